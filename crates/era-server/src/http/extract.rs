//! What handlers take out of a request. Whatever cannot be taken is a [`Failure`] that says why.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::extract::path::ErrorKind;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use era_spec::plain;
use serde::de::DeserializeOwned;

use super::Failure;
use crate::reading;

/// Most bytes of a JSON body.
pub const JSON_BYTES_MAX: usize = 1024 * 1024;
/// How long a client may take to send one.
const BODY_TIME: Duration = Duration::from_secs(30);

/// A JSON body.
#[derive(Clone, Copy, Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Body<T>, Failure> {
        is_json(request.headers())?;
        let bytes = whole(request).await?;
        Ok(Body(reading::json(&bytes)?))
    }
}

/// Refuses a body that does not say that it is JSON.
fn is_json(headers: &HeaderMap) -> Result<(), Failure> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = kind.unwrap_or("").split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = "the body must be JSON: send `content-type: application/json`";
    Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail))
}

/// All of a body, of bounded size and in bounded time.
pub(super) async fn whole(request: Request) -> Result<axum::body::Bytes, Failure> {
    let too_large = || {
        let detail = format!("the body is larger than {JSON_BYTES_MAX} bytes: send less");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    };
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > JSON_BYTES_MAX) {
        return Err(too_large());
    }
    let reading = axum::body::to_bytes(request.into_body(), JSON_BYTES_MAX);
    match tokio::time::timeout(BODY_TIME, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_limit(&error) => Err(too_large()),
        Ok(Err(_)) => {
            let detail = "the body broke off: send all of it";
            Err(Failure::new(StatusCode::BAD_REQUEST, "broken_body", detail))
        }
        Err(_) => {
            let detail = format!("the body took more than {} s: send faster", BODY_TIME.as_secs());
            Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "too_slow", detail))
        }
    }
}

fn is_limit(error: &axum::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if error.to_string().contains("length limit") {
            return true;
        }
        source = error.source();
    }
    false
}

/// What stands behind the `?`.
#[derive(Clone, Copy, Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query<T>, Failure> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        let bad = |rejection| bad_query(&rejection, &parts.uri);
        read.map(|axum::extract::Query(value)| Query(value)).map_err(bad)
    }
}

fn bad_query(rejection: &QueryRejection, asked: &Uri) -> Failure {
    let sentence = rejection.body_text();
    let problem = sentence.strip_prefix("Failed to deserialize query string: ");
    // A number's parser does not say what it was given.
    let given = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(asked);
    told_of_query(problem.unwrap_or(&sentence), given.map_or(Vec::new(), |given| given.0))
}

/// A query where none is read, as a parser would say it of a value without fields.
pub(super) fn unread_query(name: &str) -> Failure {
    let name: String = name.chars().take(80).collect();
    told_of_query(&format!("{name}: unknown field `{name}`, there are no fields"), Vec::new())
}

fn told_of_query(problem: &str, given: Vec<(String, String)>) -> Failure {
    let of_field = problem.split_once(": ").filter(|(field, _)| !field.contains(' '));
    let (field, problem) = of_field.map_or((None, problem), |(field, rest)| (Some(field), rest));
    let said = plain::said(problem, "field");
    let given = given.into_iter().find(|(name, _)| Some(name.as_str()) == field);
    let sentence = match given {
        Some((_, given)) if plain::is_about_a_number(problem) => plain::unread(&given, ""),
        _ => said.sentence,
    };
    let named = field.or(said.field.as_deref());
    let detail = format!("in the query: {sentence}");
    let failure = Failure::new(StatusCode::BAD_REQUEST, "bad_query", detail);
    match named {
        Some(field) => failure.about(field),
        None => failure,
    }
}

/// What stands in the path.
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>, Failure> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Path(value)| Path(value)).map_err(bad_path)
    }
}

fn bad_path(rejection: PathRejection) -> Failure {
    let PathRejection::FailedToDeserializePathParams(bad) = rejection else {
        return Failure::internal(&rejection);
    };
    let sentence = match bad.kind() {
        ErrorKind::ParseErrorAtKey { value, expected_type, .. }
        | ErrorKind::ParseErrorAtIndex { value, expected_type, .. }
        | ErrorKind::ParseError { value, expected_type } => plain::unread(value, expected_type),
        ErrorKind::InvalidUtf8InPathParam { .. } => "this is no text: give UTF-8".to_owned(),
        ErrorKind::DeserializeError { message, .. } | ErrorKind::Message(message) => {
            plain::said(message, "field").sentence
        }
        _ => "there is no such path: see the documentation".to_owned(),
    };
    Failure::new(StatusCode::BAD_REQUEST, "bad_path", format!("in the path: {sentence}"))
}

/// The address that a request comes from. Behind a proxy it is the proxy's.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddr(pub IpAddr);

impl<S: Send + Sync> FromRequestParts<S> for ClientAddr {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<ClientAddr, Self::Rejection> {
        Ok(ClientAddr(address(parts)))
    }
}

pub(super) fn address(parts: &Parts) -> IpAddr {
    let info = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    // Without a connection there is nobody but this process.
    info.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |info| info.0.ip()).to_canonical()
}
