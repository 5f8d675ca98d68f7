//! The journal as a file that `era replay` reads: a line for each segment's beginning, then one
//! for each input with its events.
//!
//! ```text
//! {"segment":1,"core_version":2,"wire_version":1,"state":{…}}
//! {"input":{"seq":1,"at":0,"command":{"type":"tick"}},"events":[]}
//! ```

use std::collections::VecDeque;
use std::fmt::Write;
use std::path::Path;

use tokio::io::AsyncWriteExt;

use super::segment::Head;
use super::{Journal, PAGE, damaged};
use crate::StoreError;

/// A copy of the journal under way, up to what was there when it began.
#[derive(Debug)]
pub struct Export {
    journal: Journal,
    /// Segments whose beginning is still to come.
    segments: VecDeque<Head>,
    /// The last entry that was written.
    written: u64,
    /// The last entry of all.
    last: u64,
}

impl Journal {
    /// Copies the journal from this segment on; from the first where nothing is said.
    pub async fn export(&self, from: Option<u64>) -> Result<Export, StoreError> {
        let heads = self.heads().await?;
        let last = self.last_seq().await?;
        let segments: VecDeque<Head> =
            heads.into_iter().filter(|head| from.is_none_or(|from| head.number >= from)).collect();
        let written = segments.front().map_or(last, |head| head.first_seq - 1);
        Ok(Export { journal: self.clone(), segments, written, last })
    }

    /// The same, written to a file.
    pub async fn export_to(&self, from: Option<u64>, path: &Path) -> Result<(), StoreError> {
        let io = |source| StoreError::File { path: path.to_owned(), source };
        let mut export = self.export(from).await?;
        let mut out = tokio::fs::File::create(path).await.map_err(io)?;
        while let Some(lines) = export.lines().await? {
            out.write_all(lines.as_bytes()).await.map_err(io)?;
        }
        out.flush().await.map_err(io)
    }

    /// The number of the newest segment; `None` where nothing was ever written.
    pub async fn newest_segment(&self) -> Result<Option<u64>, StoreError> {
        Ok(self.heads().await?.last().map(|head| head.number))
    }
}

impl Export {
    /// The next lines, each with its end; `None` when all are written.
    pub async fn lines(&mut self) -> Result<Option<String>, StoreError> {
        if let Some(head) = self.segments.pop_front_if(|head| head.first_seq == self.written + 1) {
            return Ok(Some(self.beginning(&head).await?));
        }
        let until = self.segments.front().map_or(self.last, |head| head.first_seq - 1);
        if self.written >= until {
            return Ok(None);
        }
        let left = u32::try_from(until.saturating_sub(self.written)).unwrap_or(PAGE);
        let page = self.journal.read(self.written, left).await?;
        if page.is_empty() {
            return Err(damaged(self.written + 1, &"it is missing"));
        }
        let mut lines = String::new();
        for entry in page {
            if entry.seq != self.written + 1 {
                return Err(damaged(self.written + 1, &"it is missing"));
            }
            self.written = entry.seq;
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{{\"input\":{},\"events\":{}}}", entry.input, entry.events);
        }
        Ok(Some(lines))
    }

    async fn beginning(&self, head: &Head) -> Result<String, StoreError> {
        let state = self.journal.state_text(head.number).await?;
        Ok(format!(
            "{{\"segment\":{},\"core_version\":{},\"wire_version\":{},\"state\":{state}}}\n",
            head.number, head.core_version, head.wire_version
        ))
    }
}
