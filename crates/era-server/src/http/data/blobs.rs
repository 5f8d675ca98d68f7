//! Contents by their hash.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::response::IntoResponse;
use era_api::data::{BlobList, BlobState};
use era_app::files::Service;
use era_app::files::contents::{self, ContentState};
use era_store::files::ContentHash;
use serde::Deserialize;

use super::take::{Large, receive};
use crate::http::{Caller, Failure, Path, Query};

/// Which contents must be sent: those that are not there, or not known to be the caller's.
#[utoipa::path(post, path = "/blobs/missing", tag = "data", request_body = BlobList,
    responses((status = 200, body = BlobList)))]
pub(super) async fn missing(
    State(service): State<Service>,
    caller: Caller,
    Large(list): Large<BlobList>,
) -> Result<Json<BlobList>, Failure> {
    Ok(Json(contents::missing(&service, &caller, &list).await?))
}

/// How much of a content is there: `upload-complete: ?1` if all of it, else `upload-offset`, which
/// an upload goes on from.
#[utoipa::path(head, path = "/blobs/{hash}", tag = "data", params(("hash" = String, Path)),
    responses((status = 200, description = "All of it is there"),
        (status = 204, description = "So much of the caller's upload is there")))]
pub(super) async fn state(
    State(service): State<Service>,
    caller: Caller,
    Path(hash): Path<String>,
) -> Result<Response<Body>, Failure> {
    Ok(match contents::there(&service, &caller, &hash).await? {
        ContentState::All(bytes) => {
            let headers =
                [("upload-complete", "?1".to_owned()), ("content-length", bytes.to_string())];
            (headers, Body::empty()).into_response()
        }
        ContentState::UpTo(offset) => {
            let headers =
                [("upload-complete", "?0".to_owned()), ("upload-offset", offset.to_string())];
            (StatusCode::NO_CONTENT, headers).into_response()
        }
    })
}

/// Where an upload goes on.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Resume {
    /// The offset; what is there up to it stays.
    offset: Option<u64>,
}

/// Sends a content, or the rest of it from an offset on. The end of the body is the end of the
/// content, unless `content-range` says that more is to come.
#[utoipa::path(put, path = "/blobs/{hash}", tag = "data", params(("hash" = String, Path), Resume),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 201, body = BlobState, description = "Complete and verified"),
        (status = 202, body = BlobState, description = "Go on from the offset")))]
pub(super) async fn put(
    State(service): State<Service>,
    caller: Caller,
    Path(hash): Path<String>,
    Query(resume): Query<Resume>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<BlobState>), Failure> {
    service.changer(&caller)?;
    let parsed: ContentHash = hash.parse()?;
    let range = match headers.get(header::CONTENT_RANGE) {
        Some(range) => Some(range.to_str().ok().and_then(content_range).ok_or_else(bad_range)?),
        None => None,
    };
    let offset = range.map(|range| range.0).or(resume.offset).unwrap_or(0);
    let mut upload = contents::take(&service, &caller, parsed, offset).await?;
    receive(body, &mut upload).await?;
    let offset = upload.offset();
    let complete = range.is_none_or(|(_, total)| total == Some(offset));
    if complete {
        upload.finish().await?;
    } else {
        upload.flush().await?;
    }
    let status = if complete { StatusCode::CREATED } else { StatusCode::ACCEPTED };
    Ok((status, Json(BlobState { hash, offset, complete })))
}

/// `bytes 5-9/20` or `bytes 5-9/*`: the first byte, and how many there are in all.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let total = if total == "*" { None } else { Some(total.parse().ok()?) };
    (first <= last && total.is_none_or(|total| last < total)).then_some((first, total))
}

fn bad_range() -> Failure {
    let detail = "`content-range` must be such as `bytes 0-99/1000`";
    Failure::new(StatusCode::BAD_REQUEST, "bad_range", detail).about("content-range")
}

/// A content that the caller can reach: through an own upload, a data set or a job. Ranges and
/// `if-none-match` are understood.
#[utoipa::path(get, path = "/blobs/{hash}", tag = "data", params(("hash" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "Not changed"), (status = 416, description = "No such range")))]
pub(super) async fn get(
    State(service): State<Service>,
    caller: Caller,
    Path(hash): Path<String>,
    headers: HeaderMap,
) -> Result<Response<Body>, Failure> {
    let parsed: ContentHash = hash.parse()?;
    let file = contents::open(&service, &caller, parsed).await?;
    super::ranges::answer(file, &hash, &headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read() {
        assert_eq!(content_range("bytes 5-9/20"), Some((5, Some(20))));
        assert_eq!(content_range("bytes 5-9/*"), Some((5, None)));
        for wrong in ["bytes 9-5/20", "bytes 5-20/20", "5-9/20", "bytes */20", "bytes 5-9/x", ""] {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }
}
