//! Idempotency keys of HTTP: the header that brings one, which creations take one, and what makes a
//! request another one.

use axum::extract::{MatchedPath, OptionalFromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use era_api::job::Submitted;
use era_app::auth::token::hex;
use era_app::idempotency::{ClaimedKey, KEY_MAX, KeyUse, claim, core_key};
use era_core::units::{Name, UserId};
use era_store::accounts::KeyedAnswer;
use tracing::Instrument;

use super::failure::FailureBody;
use super::{Caller, Failure, extract};
use crate::App;

/// The header that brings a key.
pub const HEADER: &str = "idempotency-key";
/// Says that an answer was given before.
const REPLAYED: &str = "idempotency-replayed";
/// Creations whose keys the core keeps.
const KEPT_BY_CORE: [&str; 2] = ["/api/v1/jobs", "/api/v1/quotes"];
/// Creations whose answers are not kept, since they have secrets in them that must not lie on a
/// disk, or come bit by bit for an hour; to repeat one does it again, which harms nobody.
const NEVER_KEPT: [&str; 3] = ["/api/v1/sessions", "/api/v1/images/build", "/api/v1/images/push"];
/// What is the same however often it is asked, with a key or without, and may be too large to be
/// kept meanwhile.
const SAME_ANYWAY: [&str; 2] = ["/api/v1/trees", "/api/v1/blobs/missing"];

/// Whether a creation at this route is made harmless to repeat by a key.
pub fn takes_key(route: &str) -> bool {
    !NEVER_KEPT.contains(&route)
}

/// The key of a request, where it brings one.
pub fn key_of(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    let plain = |text: &&str| {
        (1..=KEY_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match value.to_str().ok().filter(plain) {
        Some(key) => Ok(Some(key)),
        None => {
            let detail = format!("a key has 1 to {KEY_MAX} visible characters of ASCII");
            Err(Failure::new(StatusCode::BAD_REQUEST, "bad_key", detail).about(HEADER))
        }
    }
}

/// The key that a submission brings.
pub struct Key(String);

impl Key {
    /// As the core keeps it.
    pub fn for_core(&self, user: UserId) -> Option<Name> {
        core_key(user, &self.0)
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for Key {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Key>, Failure> {
        Ok(key_of(&parts.headers)?.map(|key| Key(key.to_owned())))
    }
}

/// Surrounds every creation that brings a key.
pub async fn keep(State(app): State<App>, request: Request, next: Next) -> Response {
    match kept(&app, request, next).await {
        Ok(response) => response,
        Err(failure) => failure.into_response(),
    }
}

async fn kept(app: &App, request: Request, next: Next) -> Result<Response, Failure> {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or("");
    let ours = request.method() == Method::POST
        && !KEPT_BY_CORE.contains(&route)
        && !SAME_ANYWAY.contains(&route)
        && takes_key(route);
    let Some(key) = key_of(request.headers())?.filter(|_| ours).map(str::to_owned) else {
        return Ok(next.run(request).await);
    };
    let (mut parts, body) = request.into_parts();
    use axum::extract::FromRequestParts;
    let Ok(caller) = Caller::from_request_parts(&mut parts, app).await else {
        // The handler says why.
        return Ok(next.run(Request::from_parts(parts, body)).await);
    };
    let request = Request::from_parts(parts, body);
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let (parts, body) = request.into_parts();
    let bytes = extract::whole(Request::new(body)).await?;
    let fingerprint = fingerprint(&method, &uri, &bytes);
    let claimed = match claim(app, caller.user, &key, &fingerprint, HEADER).await? {
        KeyUse::First(claimed) => claimed,
        KeyUse::Again(answer) => return Ok(again(answer)),
    };
    let request = Request::from_parts(parts, axum::body::Body::from(bytes));
    // Carried out on its own, so that a client that hangs up does not leave the key unanswered.
    let app = app.clone();
    let work = async move { remember(&app, claimed, next.run(request).await).await };
    tokio::spawn(work.in_current_span()).await.map_err(|error| Failure::internal(&error))?
}

/// Keeps what succeeded, and frees the key of what was refused.
pub(super) async fn remember(
    app: &App,
    claimed: ClaimedKey,
    response: Response,
) -> Result<Response, Failure> {
    // These say that nothing was done, and ask to come back.
    let nothing_done =
        |FailureBody(told): &FailureBody| matches!(told.code.as_str(), "busy" | "no_leader");
    let refused = response.status().is_client_error();
    if refused || response.extensions().get().is_some_and(nothing_done) {
        claimed.free(app).await?;
        return Ok(response);
    }
    if !response.status().is_success() {
        // Perhaps it was done: nobody may do it again with this key.
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, extract::JSON_BYTES_MAX);
    let bytes = bytes.await.map_err(|error| Failure::internal(&error))?;
    let body = String::from_utf8_lossy(&bytes).into_owned();
    claimed.answered(app, parts.status.as_u16(), body).await?;
    Ok(Response::from_parts(parts, axum::body::Body::from(bytes)))
}

fn again(answer: KeyedAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let kind = HeaderValue::from_static("application/json");
    // Only a job that was made has a place of its own.
    let made = (status == StatusCode::CREATED)
        .then(|| serde_json::from_str::<Submitted>(&answer.body).ok())
        .flatten();
    let mut response = (status, [(header::CONTENT_TYPE, kind)], answer.body).into_response();
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    if let Some(place) = made.and_then(|made| HeaderValue::try_from(made.location()).ok()) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

/// What makes a request another one: its query does as well, which says how much is meant.
fn fingerprint(method: &Method, uri: &Uri, body: &[u8]) -> String {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut hasher = blake3::Hasher::new();
    hasher.update(method.as_str().as_bytes()).update(b"\n");
    hasher.update(path.as_bytes()).update(b"\n").update(body);
    hex(hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_short_and_visible() {
        let read = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, HeaderValue::from_bytes(value).unwrap());
            key_of(&headers).map(|key| key.map(str::to_owned)).ok().flatten()
        };
        assert_eq!(read(b"a-1").as_deref(), Some("a-1"));
        for bad in [&b""[..], b"a b", b"\xe9", &[b'x'; KEY_MAX + 1]] {
            assert_eq!(read(bad), None);
        }
        assert!(matches!(key_of(&HeaderMap::new()), Ok(None)));
    }

    #[test]
    fn another_body_path_query_or_method_is_another_request() {
        let print = |method: Method, uri: &str, body: &[u8]| {
            fingerprint(&method, &uri.parse().unwrap(), body)
        };
        let first = print(Method::POST, "/a?b=1", b"x");
        assert_eq!(print(Method::POST, "/a?b=1", b"x"), first);
        for uri in ["/b?b=1", "/a?b=2", "/a"] {
            assert_ne!(print(Method::POST, uri, b"x"), first, "{uri}");
        }
        assert_ne!(print(Method::POST, "/a?b=1", b"y"), first);
        assert_ne!(print(Method::PUT, "/a?b=1", b"x"), first);
    }
}
