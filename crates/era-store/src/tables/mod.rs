//! Tables that are read: projections of the journal with a durable cursor.
//!
//! [`Projector`] reads entries after its cursor, works out what they change (a pure function, in
//! `project`) and writes that together with the cursor in one transaction; so a crash at any
//! moment repeats nothing and loses nothing. There is one of it. Everybody else reads, by
//! [`Tables`]. The core's state is never asked, and who may see what is for the caller to say.

mod counts;
mod hours;
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
pub use hours::{HOUR_MS, hour_of, hours};
pub use jobs::{BadCursor, IDS_MAX, JobCursor, JobQuery, Jobs, VisibleJobs};
pub use log::{EventQuery, StatementPage, StatementQuery};
pub use measure::{NodeUse, Open};
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
    /// What is remembered of what was written. Whatever fails takes it along: it may not be what is
    /// in the tables any more.
    memory: Option<Memory>,
}

impl Projector {
    /// The projector of a store.
    pub async fn open(store: &Store) -> Result<Projector, StoreError> {
        let begin = "INSERT INTO cursors (projection, seq) VALUES (?, 0) ON CONFLICT DO NOTHING";
        sqlx::query(begin).bind(CURSOR).execute(store.tables().writer()).await?;
        let (journal, tables) = (store.journal(), store.tables().clone());
        Ok(Projector { journal, tables, memory: None })
    }

    /// The last entry that the tables have. Whoever carries entries out asks this first, and after
    /// whatever failed.
    pub async fn locate(&mut self) -> Result<u64, StoreError> {
        let at = cursor(self.tables.readers()).await?;
        // Afterwards: what is newer than the cursor is refused with it.
        self.memory = Some(load::names(self.tables.readers()).await?);
        Ok(at)
    }

    /// Carries out the entries after this one, if there are any: one transaction. `None`, and nothing
    /// happens, where that is not the last that the tables have, or that was not asked.
    pub async fn take(&mut self, after: u64) -> Result<Option<Applied>, StoreError> {
        let Some(mut memory) = self.memory.take() else { return Ok(None) };
        let entries = self.next(after).await?;
        let applied = match entries.last() {
            None => Applied { seq: after, events: Vec::new() },
            Some(last) => {
                let seq = last.input.seq;
                match self.carry_out(&mut memory, &entries, after, seq).await? {
                    Some(events) => Applied { seq, events },
                    None => return Ok(None),
                }
            }
        };
        self.memory = Some(memory);
        Ok(Some(applied))
    }

    /// Carries out all that is there, and says which entry is the last.
    pub async fn catch_up(&mut self) -> Result<u64, StoreError> {
        let mut at = self.locate().await?;
        loop {
            match self.take(at).await? {
                Some(applied) if applied.seq == at => return Ok(at),
                Some(applied) => at = applied.seq,
                None => at = self.locate().await?,
            }
        }
    }

    /// Carries entries out; `None`, and nothing happens, where somebody else has moved the cursor.
    async fn carry_out(
        &self,
        memory: &mut Memory,
        entries: &[ReadEntry],
        after: u64,
        last: u64,
    ) -> Result<Option<Vec<EventRow>>, StoreError> {
        load::mentioned(self.tables.readers(), memory, entries).await?;
        let mut changes = Changes::default();
        for entry in entries {
            project(memory, &mut changes, entry);
        }
        let touched = changes.touched.clone();
        let mut transaction = self.tables.writer().begin().await?;
        let moved = sqlx::query("UPDATE cursors SET seq = ? WHERE projection = ? AND seq = ?")
            .bind(last.cast_signed())
            .bind(CURSOR)
            .bind(after.cast_signed())
            .execute(&mut *transaction)
            .await?;
        if moved.rows_affected() != 1 {
            return Ok(None);
        }
        let events = write::write(&mut transaction, changes, memory).await?;
        transaction.commit().await?;
        memory.arrays.clear();
        for id in touched {
            if memory.jobs.get(&id).is_some_and(|live| live.row.ended.is_some()) {
                memory.jobs.remove(&id);
            }
        }
        Ok(Some(events))
    }

    /// The entries of the journal after this one.
    async fn next(&self, after: u64) -> Result<Vec<ReadEntry>, StoreError> {
        let entries = self.journal.read(after, BATCH).await?;
        entries.iter().map(read_entry).collect()
    }

    /// Empties the tables and makes them anew from the journal's first entry; says which entry is
    /// the last.
    pub async fn rebuild(store: &Store) -> Result<u64, StoreError> {
        let mut transaction = store.tables().writer().begin().await?;
        for table in EMPTIED {
            // Made of constants alone.
            let sql = sqlx::AssertSqlSafe(format!("DELETE FROM {table}"));
            sqlx::query(sql).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Projector::open(store).await?.catch_up().await
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
