//! What the handlers of files take out of a request: JSON that may be large, for trees of many
//! files, and content that comes piece by piece.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use era_store::files::Upload;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::http::Failure;
use crate::reading;

/// Most bytes of a list of files.
const LIST_BYTES_MAX: usize = 64 << 20;
/// Most MiB of such lists that are held at a time, all in all; whoever comes later comes back.
const HELD_MIB_MAX: usize = 512;
/// How long a client may send nothing.
const SILENCE_MAX: Duration = Duration::from_secs(30);

static HELD: Semaphore = Semaphore::const_new(HELD_MIB_MAX);

/// A JSON body that may be large.
pub(super) struct Large<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Large<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Large<T>, Failure> {
        let mut body = request.into_body().into_data_stream();
        let mut whole = Vec::new();
        let mut held = Vec::new();
        while let Some(piece) = next(&mut body).await? {
            // Of the first MiB nobody is asked: other bodies may have as much.
            while held.len() < (whole.len() + piece.len()) >> 20 {
                held.push(HELD.try_acquire().map_err(|_| too_many())?);
            }
            if whole.len() + piece.len() > LIST_BYTES_MAX {
                let detail = format!("the list is larger than {LIST_BYTES_MAX} bytes: send parts");
                return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail));
            }
            whole.extend_from_slice(&piece);
        }
        Ok(Large(reading::json(&whole)?))
    }
}

fn too_many() -> Failure {
    let detail = "too many long lists of files are being sent: try again in a moment";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).after(5)
}

/// Writes a body to an upload. What came before a cut is kept.
pub(super) async fn receive(body: Body, upload: &mut Upload) -> Result<(), Failure> {
    let mut body = body.into_data_stream();
    loop {
        match next(&mut body).await {
            Ok(Some(piece)) => upload.write(&piece).await?,
            Ok(None) => return Ok(()),
            Err(cut) => {
                upload.flush().await?;
                return Err(cut);
            }
        }
    }
}

async fn next(body: &mut axum::body::BodyDataStream) -> Result<Option<Bytes>, Failure> {
    let Ok(piece) = tokio::time::timeout(SILENCE_MAX, body.next()).await else {
        let detail = "nothing came for half a minute: send faster, or go on later";
        return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "too_slow", detail));
    };
    piece.transpose().map_err(|_| {
        let detail = "the body broke off: go on where it stopped";
        Failure::new(StatusCode::BAD_REQUEST, "broken_off", detail)
    })
}
