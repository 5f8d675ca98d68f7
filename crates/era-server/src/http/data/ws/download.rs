//! One download of a conversation.

use std::fs::File;
use std::io::SeekFrom;

use axum::extract::ws::Message;
use era_api::data::JobFolder;
use era_api::file_service::{FileChunk, ServerMessage, Source};
use era_app::files::{Service, contents, kept, sets, wire};
use era_store::files::ContentHash;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::outbox::{Outbox, tell};
use crate::http::{Caller, Failure};

/// Smaller than may be sent: others take their turn between two pieces.
const PIECE_BYTES: usize = 128 << 10;

/// Sends a file from an offset on, as fast as the client takes it.
pub(super) async fn send(
    service: &Service,
    caller: &Caller,
    outbox: &Outbox,
    id: u32,
    from: Source,
    offset: u64,
) -> Result<(), Failure> {
    let (file, hash) = open(service, caller, from).await?;
    let bytes = file.metadata().map_err(wire::unreadable)?.len();
    let hash = hash.map(|hash| hash.to_string());
    if tell(outbox, &ServerMessage::Size { id, bytes, hash }).await.is_err() {
        return Ok(());
    }
    let mut file = tokio::fs::File::from_std(file);
    file.set_max_buf_size(PIECE_BYTES);
    file.seek(SeekFrom::Start(offset)).await.map_err(wire::unreadable)?;
    let mut offset = offset;
    let mut piece = vec![0; PIECE_BYTES];
    while offset < bytes {
        let most = PIECE_BYTES.min(usize::try_from(bytes - offset).unwrap_or(PIECE_BYTES));
        let count = file.read(&mut piece[..most]).await.map_err(wire::unreadable)?;
        if count == 0 {
            break;
        }
        let frame = FileChunk { id, offset, bytes: &piece[..count] }.frame();
        if outbox.send(Message::Binary(frame.into())).await.is_err() {
            return Ok(());
        }
        offset += count as u64;
    }
    // Who is gone does not hear it.
    let _ = tell(outbox, &ServerMessage::Done { id }).await;
    Ok(())
}

async fn open(
    service: &Service,
    caller: &Caller,
    from: Source,
) -> Result<(File, Option<ContentHash>), Failure> {
    match from {
        Source::Blob(hash) => {
            let hash: ContentHash = hash.parse()?;
            Ok((contents::open(service, caller, hash).await?, Some(hash)))
        }
        Source::Data { data, path } => {
            let (file, hash) = sets::open(service, caller, &data.parse()?, &path).await?;
            Ok((file, Some(hash)))
        }
        Source::Output { job, path } => {
            Ok((kept::open(service, caller, job, JobFolder::Outputs, path).await?, None))
        }
    }
}
