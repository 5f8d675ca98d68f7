//! The messages of the WebSocket file service: many files at once over one connection.
//!
//! Text frames carry these messages as JSON, each with an `id` that the client chose; binary
//! frames carry content as [`FileChunk`]s. `docs/file-service.md` describes the conversation.

use serde::{Deserialize, Serialize};

use crate::Problem;
use crate::data::FileEntry;

/// Most bytes of content in a binary frame.
pub const PIECE_BYTES_MAX: usize = 1 << 20;
/// Most bytes of a text frame.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Most transfers at a time on one connection.
pub const TRANSFERS_MAX: usize = 32;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClientMessage {
    /// I am going to send a content.
    Upload {
        id: u32,
        /// The BLAKE3 hash of all of it.
        hash: String,
        /// How many bytes it has.
        bytes: u64,
    },
    /// I want a file, from an offset on.
    Download {
        id: u32,
        from: Source,
        /// From where on.
        #[serde(default)]
        offset: u64,
    },
    /// I do not want a transfer any more.
    Cancel { id: u32 },
    /// What is in a folder of a data set?
    Browse {
        id: u32,
        data: String,
        /// The folder; the whole where nothing is said.
        #[serde(default)]
        folder: String,
        /// `next` of the answer before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
    /// Which files of a data set have this in their path?
    Search {
        id: u32,
        data: String,
        /// What is looked for.
        text: String,
        /// `next` of the answer before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
}

/// Where a file comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// A content, by its hash.
    Blob(String),
    /// A file of a data set.
    Data { data: String, path: String },
    /// An output of a job.
    Output { job: u64, path: String },
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)] // answers live one at a time
pub enum ServerMessage {
    /// Send from this offset on.
    Ready {
        id: u32,
        /// What is there already.
        offset: u64,
    },
    /// So much of an upload has been written.
    Written {
        id: u32,
        /// Up to here.
        offset: u64,
    },
    /// A download begins; its pieces follow.
    Size {
        id: u32,
        /// How many bytes the file has.
        bytes: u64,
        /// Its hash, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    },
    /// A transfer is complete; an upload is verified and kept.
    Done { id: u32 },
    /// What was asked for.
    Listing {
        id: u32,
        /// Folders, when a folder was asked for.
        folders: Vec<String>,
        files: Vec<FileEntry>,
        /// Where to go on, unless this is all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    },
    /// A transfer or question has failed. An upload can be gone on with later.
    Failed {
        /// Which; absent if the message could not be read at all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u32>,
        problem: Box<Problem>,
    },
}

/// Content on its way: the transfer's id and the offset in the file, both big-endian, then bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileChunk<'a> {
    pub id: u32,
    /// Where it belongs in the file.
    pub offset: u64,
    pub bytes: &'a [u8],
}

impl<'a> FileChunk<'a> {
    /// Bytes before the content.
    pub const HEADER_BYTES: usize = 12;

    /// Reads a binary frame; `None` if it is too short or too long.
    pub fn read(frame: &'a [u8]) -> Option<FileChunk<'a>> {
        let (id, rest) = frame.split_first_chunk::<4>()?;
        let (offset, bytes) = rest.split_first_chunk::<8>()?;
        let piece =
            FileChunk { id: u32::from_be_bytes(*id), offset: u64::from_be_bytes(*offset), bytes };
        (bytes.len() <= PIECE_BYTES_MAX).then_some(piece)
    }

    /// As a binary frame.
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(FileChunk::HEADER_BYTES + self.bytes.len());
        frame.extend_from_slice(&self.id.to_be_bytes());
        frame.extend_from_slice(&self.offset.to_be_bytes());
        frame.extend_from_slice(self.bytes);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_piece_reads_back(id: u32, offset: u64, bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            let piece = FileChunk { id, offset, bytes: &bytes };
            let frame = piece.frame();
            prop_assert_eq!(FileChunk::read(&frame), Some(piece));
        }

        #[test]
        fn a_frame_that_is_too_short_is_no_piece(frame in prop::collection::vec(any::<u8>(), 0..12)) {
            prop_assert_eq!(FileChunk::read(&frame), None);
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_no_piece() {
        let frame = |bytes: usize| vec![0; FileChunk::HEADER_BYTES + bytes];
        assert!(FileChunk::read(&frame(PIECE_BYTES_MAX)).is_some());
        assert!(FileChunk::read(&frame(PIECE_BYTES_MAX + 1)).is_none());
    }

    #[test]
    fn messages_are_written_as_the_protocol_page_says() {
        let said = r#"{"op":"download","id":2,"from":{"data":{"data":"ada/mnist","path":"a/1.png"}},"offset":0}"#;
        let say: ClientMessage = serde_json::from_str(said).unwrap();
        assert_eq!(serde_json::to_string(&say).unwrap(), said);
        let ready = serde_json::to_string(&ServerMessage::Ready { id: 1, offset: 9 }).unwrap();
        assert_eq!(ready, r#"{"op":"ready","id":1,"offset":9}"#);
        assert!(serde_json::from_str::<ClientMessage>(r#"{"op":"cancel","id":1,"x":2}"#).is_err());
    }
}
