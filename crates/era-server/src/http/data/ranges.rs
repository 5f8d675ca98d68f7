//! Files as answers: whole or in part, once or not again.
//!
//! A file is somebody's bytes and must stay that: it is sent as a download of no particular kind,
//! so that no browser runs a page that a job wrote.

use std::fs::File;
use std::io::{Seek, SeekFrom};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use era_app::files::wire::unreadable;
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use crate::http::Failure;

/// How much is read at a time.
const PIECE_BYTES: usize = 256 << 10;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByteRange {
    from: u64,
    count: u64,
}

/// What of a file of so many bytes a `range` header asks for. `None` is the whole: also for what
/// is not understood, as RFC 9110 has it.
fn part(range: &str, bytes: u64) -> Option<Result<ByteRange, ()>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| -> Option<Option<u64>> {
        if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
    };
    let (from, to) = match (number(first.trim())?, number(last.trim())?) {
        (None, None) => return None,
        (None, Some(0)) => return Some(Err(())),
        (None, Some(count)) => (bytes.saturating_sub(count), bytes),
        (Some(from), None) => (from, bytes),
        (Some(from), Some(to)) if to < from => return None,
        (Some(from), Some(to)) => (from, to.saturating_add(1).min(bytes)),
    };
    Some(if from < to { Ok(ByteRange { from, count: to - from }) } else { Err(()) })
}

/// A file as an answer to a request with these headers. `tag` is the same only for the same bytes.
pub(super) fn answer(
    mut file: File,
    tag: &str,
    request: &HeaderMap,
) -> Result<Response<Body>, Failure> {
    let bytes = file.metadata().map_err(unreadable)?.len();
    let tag = format!("\"{tag}\"");
    let asked = |name| request.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let known = asked(header::IF_NONE_MATCH).is_some_and(|tags| {
        tags.split(',').map(str::trim).any(|known| known == tag || known == "*")
    });
    let builder = Response::builder()
        .header(header::ETAG, &tag)
        .header(header::ACCEPT_RANGES, "bytes")
        .header(header::CACHE_CONTROL, "private, no-cache");
    let whole = ByteRange { from: 0, count: bytes };
    let same = asked(header::IF_RANGE).is_none_or(|known| known == tag);
    let wanted = asked(header::RANGE).filter(|_| same).and_then(|range| part(range, bytes));
    let (builder, part) = match wanted {
        _ if known => return finish(builder.status(StatusCode::NOT_MODIFIED), Body::empty()),
        Some(Err(())) => {
            let builder = builder.status(StatusCode::RANGE_NOT_SATISFIABLE);
            let all = format!("bytes */{bytes}");
            return finish(builder.header(header::CONTENT_RANGE, all), Body::empty());
        }
        Some(Ok(part)) => {
            let last = part.from + part.count - 1;
            let range = format!("bytes {}-{last}/{bytes}", part.from);
            let builder = builder.status(StatusCode::PARTIAL_CONTENT);
            (builder.header(header::CONTENT_RANGE, range), part)
        }
        None => (builder.status(StatusCode::OK), whole),
    };
    file.seek(SeekFrom::Start(part.from)).map_err(unreadable)?;
    let reader = tokio::fs::File::from_std(file).take(part.count);
    let body = Body::from_stream(ReaderStream::with_capacity(reader, PIECE_BYTES));
    let builder = builder
        .header(header::CONTENT_LENGTH, part.count)
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::CONTENT_DISPOSITION, "attachment");
    finish(builder, body)
}

fn finish(builder: axum::http::response::Builder, body: Body) -> Result<Response<Body>, Failure> {
    builder.body(body).map_err(|error| {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        let some = |from, count| Some(Ok(ByteRange { from, count }));
        let cases = [
            ("bytes=0-0", some(0, 1)),
            ("bytes=2-", some(2, 8)),
            ("bytes=2-4", some(2, 3)),
            ("bytes=2-400", some(2, 8)),
            ("bytes=-3", some(7, 3)),
            ("bytes=-30", some(0, 10)),
            ("bytes=10-", Some(Err(()))),
            ("bytes=-0", Some(Err(()))),
            ("bytes=18446744073709551615-18446744073709551615", Some(Err(()))),
            ("bytes=4-2", None),
            ("bytes=-", None),
            ("bytes=a-b", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-1", None),
            ("", None),
        ];
        for (range, want) in cases {
            assert_eq!(part(range, 10), want, "{range}");
        }
        assert_eq!(part("bytes=0-", 0), Some(Err(())));
    }
}
