//! Answers that are sent once: tags for what did not change.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Failure;

/// A JSON answer with a tag of its contents; only the tag, where the caller has it already.
pub(super) fn tagged<T: serde::Serialize>(
    headers: &HeaderMap,
    value: &T,
) -> Result<Response, Failure> {
    let body = serde_json::to_vec(value).map_err(|e| Failure::internal(&e))?;
    let tag = format!("\"{}\"", &blake3::hash(&body).to_hex()[..22]);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|v| v.to_str().ok());
    let mut known = known.flat_map(|list| list.split(',')).map(|tag| tag.trim());
    let same = known.any(|known| known.trim_start_matches("W/") == tag || known == "*");
    let mut response = match same {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(body).into_response(),
    };
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_change_is_not_sent_again() {
        let first = tagged(&HeaderMap::new(), &[1, 2, 3]).unwrap();
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[header::ETAG].clone();
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, tag);
        assert_eq!(tagged(&headers, &[1, 2, 3]).unwrap().status(), StatusCode::NOT_MODIFIED);
        assert_eq!(tagged(&headers, &[1, 2]).unwrap().status(), StatusCode::OK);
    }
}
