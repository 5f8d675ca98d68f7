//! What surrounds every request: its id, its line in the log, its measures, the headers that
//! keep browsers safe, and problem details for whatever fails without having said why.
//!
//! The log has method, path, status, time and caller's address; never headers, bodies or queries,
//! in which secrets may stand.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{ConnectInfo, MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use era_api::Problem;
use tokio::time::Instant;
use tracing::Instrument;

use super::Failure;
use super::failure::FailureBody;

/// Names a request in logs and problems.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken from a client.
const REQUEST_ID_MAX: usize = 64;

/// What the id of a request is, for handlers that log.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// An id that a client gave, where it is harmless, or a new one.
fn request_id(given: Option<&HeaderValue>) -> RequestId {
    let plain = |text: &&str| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (1..=REQUEST_ID_MAX).contains(&text.len()) && text.bytes().all(good)
    };
    let given = given.and_then(|value| value.to_str().ok()).filter(plain);
    RequestId(given.map_or_else(fresh_id, str::to_owned))
}

/// Unique within a process, and unlikely to be met again in another.
fn fresh_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    if number == 0 {
        let mut start = [0; 8];
        // Without random numbers ids begin at one, which is as good for telling them apart.
        if getrandom::fill(&mut start).is_ok() {
            NEXT.store(u64::from_le_bytes(start) | 1, Ordering::Relaxed);
        }
    }
    format!("{:016x}", NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

pub async fn surround(mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers().get(&REQUEST_ID));
    request.extensions_mut().insert(id.clone());
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let route = request.extensions().get::<MatchedPath>().map(|route| route.as_str().to_owned());
    let from = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let begun = Instant::now();
    let span = tracing::info_span!("request", id = %id.0);
    let response = next.run(request).instrument(span.clone()).await;
    let mut response = as_problem(response, &id).await;
    let took = begun.elapsed();
    let status = response.status().as_u16();
    let _inside = span.enter();
    let from = from.map(tracing::field::display);
    tracing::info!(%method, path, status, took_us = took.as_micros() as u64, from, "answered");
    // A path that no route matches is a stranger's invention: it must not become a label.
    let route = route.unwrap_or_else(|| "none".to_owned());
    let labels = [
        ("method", method_label(&method)),
        ("route", route.into()),
        ("status", status.to_string().into()),
    ];
    metrics::counter!("era_http_requests_total", &labels[..]).increment(1);
    metrics::histogram!("era_http_request_seconds", &labels[..2]).record(took.as_secs_f64());
    safe_headers(&mut response);
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

type Label = std::borrow::Cow<'static, str>;

/// Methods are a stranger's choice too.
fn method_label(method: &axum::http::Method) -> Label {
    match method.as_str() {
        "GET" => "GET".into(),
        "HEAD" => "HEAD".into(),
        "POST" => "POST".into(),
        "PUT" => "PUT".into(),
        "PATCH" => "PATCH".into(),
        "DELETE" => "DELETE".into(),
        _ => "other".into(),
    }
}

/// A failure with the request's id in it, whoever made it.
async fn as_problem(response: Response, id: &RequestId) -> Response {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let mut problem = match parts.extensions.remove::<FailureBody>() {
        Some(FailureBody(problem)) => problem,
        None => {
            // Only libraries answer like this; what they say is short, or not told.
            let text = axum::body::to_bytes(body, 1024).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let detail = match text.trim() {
                "" => status.canonical_reason().unwrap_or("refused").to_lowercase(),
                text => text.to_owned(),
            };
            Box::new(Problem::new(status.as_u16(), "refused", detail))
        }
    };
    problem.request_id = Some(id.0.clone());
    let mut told = Failure(problem).into_response();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_TYPE);
    for (name, value) in &parts.headers {
        if !told.headers().contains_key(name) {
            told.headers_mut().append(name, value.clone());
        }
    }
    told
}

/// What keeps browsers from doing more with an answer than they should. Whoever serves a page
/// sets a policy of its own.
fn safe_headers(response: &mut Response) {
    const HEADERS: [(HeaderName, &str); 6] = [
        // So that a client can say which of the two is older.
        (HeaderName::from_static("x-era-version"), env!("CARGO_PKG_VERSION")),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// A handler panicked: the request fails, the server goes on.
pub fn panicked(payload: Box<dyn Any + Send + 'static>) -> Response {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    tracing::error!(panic = text.as_deref().unwrap_or("without words"), "a handler panicked");
    let detail = "something went wrong in the server: its log has the request's id";
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail).into_response()
}

/// Nothing is there.
pub async fn nowhere() -> Failure {
    let detail = "nothing is at this path: see /api/v1/openapi.json for what there is";
    Failure::new(StatusCode::NOT_FOUND, "no_such_path", detail)
}

/// Something is there, but not for this method.
pub async fn no_such_method() -> Failure {
    let detail = "this path has no such method: the header `allow` has those that it has";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sane_id_is_kept_and_any_other_replaced() {
        let given = |text: &str| request_id(HeaderValue::from_str(text).ok().as_ref()).0;
        assert_eq!(given("abc-1.2_3"), "abc-1.2_3");
        for bad in ["", "a b", "a\u{e9}", "<script>", &"x".repeat(65)] {
            let id = given(bad);
            assert_eq!(id.len(), 16, "{bad}");
        }
        assert_ne!(request_id(None).0, request_id(None).0);
    }
}
