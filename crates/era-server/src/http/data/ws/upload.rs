//! One upload of a conversation.

use axum::http::StatusCode;
use era_api::file_service::FileChunk;
use era_app::files::{Service, contents};
use era_store::files::{BLOB_BYTES_MAX, ContentHash, FilesError, Upload};

use crate::http::{Caller, Failure};

/// How many bytes are written before it is told.
const TOLD_EVERY: u64 = 1 << 20;

pub(super) struct Receiving {
    upload: Upload,
    bytes: u64,
    told: u64,
}

/// What became of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChunkOutcome {
    /// More is to come.
    More,
    /// So much has been written.
    Written(u64),
    /// All of it has come.
    Whole,
}

impl Receiving {
    /// Goes on where the caller's last upload of this content stopped.
    pub(super) async fn begin(
        service: &Service,
        caller: &Caller,
        hash: &str,
        bytes: u64,
    ) -> Result<Receiving, Failure> {
        service.changer(caller)?;
        let hash: ContentHash = hash.parse()?;
        if bytes > BLOB_BYTES_MAX {
            return Err(FilesError::TooLarge { bytes, limit: BLOB_BYTES_MAX }.into());
        }
        let have = service.files.uploaded(caller.user, hash).await?;
        // More than there should be is not the beginning of this content.
        let offset = if have > bytes { 0 } else { have };
        let upload = contents::take(service, caller, hash, offset).await?;
        Ok(Receiving { upload, bytes, told: offset })
    }

    pub(super) fn offset(&self) -> u64 {
        self.upload.offset()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.upload.offset() == self.bytes
    }

    pub(super) async fn take(&mut self, piece: FileChunk<'_>) -> Result<ChunkOutcome, Failure> {
        let have = self.upload.offset();
        if piece.offset != have {
            return Err(FilesError::Offset { have, asked: piece.offset }.into());
        }
        if have + piece.bytes.len() as u64 > self.bytes {
            let detail = format!("more came than the {} bytes that were announced", self.bytes);
            return Err(Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "too_much", detail));
        }
        self.upload.write(piece.bytes).await?;
        if self.is_whole() {
            return Ok(ChunkOutcome::Whole);
        }
        if self.upload.offset() - self.told < TOLD_EVERY {
            return Ok(ChunkOutcome::More);
        }
        self.upload.flush().await?;
        self.told = self.upload.offset();
        Ok(ChunkOutcome::Written(self.told))
    }

    pub(super) async fn finish(self) -> Result<(), Failure> {
        self.upload.finish().await?;
        Ok(())
    }

    /// Keeps what came, for a later upload to go on from.
    pub(super) async fn keep(mut self) {
        if let Err(error) = self.upload.flush().await {
            tracing::warn!(%error, "the end of an unfinished upload could not be kept");
        }
    }
}
