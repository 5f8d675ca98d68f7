//! Tables that are read: projections of the journal with a durable cursor.
//!
//! [`Projector`] reads entries after its cursor, works out what they change (a pure function, in
//! `project`) and writes that together with the cursor in one transaction; so a crash at any
//! moment repeats nothing and loses nothing. There is one of it. Everybody else reads, by
//! [`Tables`]. The core's state is never asked, and who may see what is for the caller to say.

mod counts;
mod jobs;
mod load;
mod log;
mod measure;
mod project;
mod read;
mod rows;
#[cfg(test)]
mod speed;
mod spending;
#[cfg(test)]
pub(crate) mod tests;
mod upsert;
#[cfg(test)]
mod world;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use era_core::units::NodeId;
use sqlx::Row;

pub use counts::{COUNTED_MAX, Count};
pub use jobs::{BadCursor, IDS_MAX, JobCursor, JobQuery, Jobs, VisibleJobs};
pub use log::{EventQuery, StatementPage, StatementQuery};
pub use measure::{NodeUse, Open};
pub use project::{HOUR_MS, hour_of, hours};
pub use rows::{EventRow, JobRow, NodeRow, NodeSpan, RefusalRow, StatementRow, TaskRow};
pub use spending::{SpendingRow, SpentBy, SpentHour};

use crate::journal::{Journal, Stored};
use crate::{ConnectionPool, Database, Note, Store, StoreError};
use project::{Changes, Memory, ReadEntry, project};

/// Most entries that are carried out in one transaction.
const BATCH: u32 = 1000;
/// The name of the cursor.
const CURSOR: &str = "tables";
/// Tables that a rebuild empties.
const EMPTIED: [&str; 16] = [
    "jobs",
    "specs",
    "live",
    "holds",
    "tasks",
    "events",
    "statement_lines",
    "refusals",
    "accounts",
    "teams",
    "nodes",
    "node_spans",
    "node_hours",
    "tallies",
    "spending",
    "cursors",
];

/// The tables, to read. A clone shares.
#[derive(Clone, Debug)]
pub struct Tables {
    database: Database,
}

impl Tables {
    pub fn new(store: &Store) -> Tables {
        Tables { database: store.tables().clone() }
    }

    /// The last entry that the tables have.
    pub async fn cursor(&self) -> Result<u64, StoreError> {
        cursor(self.database.readers()).await
    }

    /// What machines are called, by number.
    pub async fn node_names(&self) -> Result<BTreeMap<NodeId, String>, StoreError> {
        let rows = sqlx::query("SELECT id, name FROM nodes");
        let rows = rows.fetch_all(self.database.readers()).await?;
        rows.iter().map(|row| Ok((NodeId(read::id32(row, 0)?), row.try_get(1)?))).collect()
    }

    /// Machines whose tasks only sleep.
    pub async fn simulated_nodes(&self) -> Result<BTreeSet<NodeId>, StoreError> {
        let rows = sqlx::query("SELECT id FROM nodes WHERE simulated <> 0");
        let rows = rows.fetch_all(self.database.readers()).await?;
        rows.iter().map(|row| Ok(NodeId(read::id32(row, 0)?))).collect()
    }
}

/// What a batch came to.
#[derive(Debug)]
pub struct Applied {
    /// The last entry that the tables have now.
    pub seq: u64,
    /// Events that are new, in order.
    pub events: Vec<EventRow>,
}

/// The one that writes the tables.
#[derive(Debug)]
pub struct Projector {
    journal: Journal,
    tables: Database,
    memory: Memory,
    cursor: u64,
    /// What is remembered may not be what was written.
    stale: bool,
}

impl Projector {
    /// Goes on where the tables end.
    pub async fn open(store: &Store) -> Result<Projector, StoreError> {
        let begin = "INSERT INTO cursors (projection, seq) VALUES (?, 0) ON CONFLICT DO NOTHING";
        sqlx::query(begin).bind(CURSOR).execute(store.tables().writer()).await?;
        let cursor = cursor(store.tables().readers()).await?;
        let memory = load::names(store.tables().readers()).await?;
        let journal = store.journal();
        let tables = store.tables().clone();
        Ok(Projector { journal, tables, memory, cursor, stale: false })
    }

    /// The last entry that the tables have.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Carries out the next entries, if there are any: one transaction.
    pub async fn advance(&mut self) -> Result<Option<Applied>, StoreError> {
        loop {
            if self.stale {
                self.memory = load::names(self.tables.readers()).await?;
                self.cursor = cursor(self.tables.readers()).await?;
                self.stale = false;
            }
            let entries = self.next().await?;
            let Some(last) = entries.last().map(|entry| entry.input.seq) else { return Ok(None) };
            // Until it is known to be written, whatever fails: the next look reads it again.
            self.stale = true;
            if let Some(applied) = self.carry_out(&entries, last).await? {
                self.stale = false;
                return Ok(Some(applied));
            }
        }
    }

    /// Carries entries out; `None`, and nothing happens, where somebody else has moved the cursor.
    async fn carry_out(
        &mut self,
        entries: &[ReadEntry],
        last: u64,
    ) -> Result<Option<Applied>, StoreError> {
        load::mentioned(self.tables.readers(), &mut self.memory, entries).await?;
        let mut changes = Changes::default();
        for entry in entries {
            project(&mut self.memory, &mut changes, entry);
        }
        let touched = changes.touched.clone();
        let mut transaction = self.tables.writer().begin().await?;
        let moved = sqlx::query("UPDATE cursors SET seq = ? WHERE projection = ? AND seq = ?")
            .bind(last.cast_signed())
            .bind(CURSOR)
            .bind(self.cursor.cast_signed())
            .execute(&mut *transaction)
            .await?;
        if moved.rows_affected() != 1 {
            return Ok(None);
        }
        let events = write::write(&mut transaction, changes, &self.memory).await?;
        transaction.commit().await?;
        self.cursor = last;
        self.memory.arrays.clear();
        for id in touched {
            if self.memory.jobs.get(&id).is_some_and(|live| live.row.ended.is_some()) {
                self.memory.jobs.remove(&id);
            }
        }
        Ok(Some(Applied { seq: last, events }))
    }

    /// The next entries of the journal.
    async fn next(&self) -> Result<Vec<ReadEntry>, StoreError> {
        let entries = self.journal.read(self.cursor, BATCH).await?;
        entries.iter().map(read_entry).collect()
    }

    /// Empties the tables and makes them anew from the journal's first entry.
    pub async fn rebuild(store: &Store) -> Result<Projector, StoreError> {
        let mut transaction = store.tables().writer().begin().await?;
        for table in EMPTIED {
            // Made of constants alone.
            let sql = sqlx::AssertSqlSafe(format!("DELETE FROM {table}"));
            sqlx::query(sql).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        let mut projector = Projector::open(store).await?;
        while projector.advance().await?.is_some() {}
        Ok(projector)
    }
}

async fn cursor(from: &ConnectionPool) -> Result<u64, StoreError> {
    let seq: Option<i64> = sqlx::query_scalar("SELECT seq FROM cursors WHERE projection = ?")
        .bind(CURSOR)
        .fetch_optional(from)
        .await?;
    read::narrow(seq.unwrap_or(0))
}

fn read_entry(entry: &Stored) -> Result<ReadEntry, StoreError> {
    let note = entry.note.as_deref().map(Note::read).transpose();
    let note = note.map_err(|e| StoreError::Damaged {
        what: format!("the note of entry {} of the journal", entry.seq),
        problem: e.to_string(),
    })?;
    let (input, events) = (entry.input()?, entry.written_events()?);
    let (events, texts) = events.into_iter().unzip();
    Ok(ReadEntry { input, events, texts, note: note.unwrap_or_default() })
}
