//! A site's rows moved from one database to another, with the server stopped.
//!
//! Both ends are held by their leases, so no server starts meanwhile. The target says that it is
//! half a copy until every table was read back with the checksum that it was written with, and
//! the journal, carried out again there, has led to the same state. Contents and what jobs wrote
//! are files under the server's folder: they stay where they are.

mod rows;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use crate::{Database, Dialect, Leader, Lease, Place, Store, StoreError};
use rows::checksum;
#[cfg(test)]
pub(crate) use rows::read_all;

/// How long an end is held from one table to the next. The slowest table must fit.
const HELD: Duration = Duration::from_secs(3600);
/// What a copy calls itself where it holds an end.
const HOLDER: &str = "era admin copy";

/// Which of a store's databases a table is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorePart {
    Durable,
    Tables,
    Metrics,
}

/// Every table with the columns that order it, those first that others name. The lead, revisions
/// and the mark of a copy are each database's own.
pub(crate) const TABLES: [(StorePart, &str, &str); 42] = [
    (StorePart::Durable, "segments", "number"),
    (StorePart::Durable, "journal", "seq"),
    (StorePart::Durable, "account_groups", "id"),
    (StorePart::Durable, "account_users", "id"),
    (StorePart::Durable, "account_tokens", "id"),
    (StorePart::Durable, "answered_keys", "user_id, name"),
    (StorePart::Durable, "secrets", "user_id, name"),
    (StorePart::Durable, "audit", "id"),
    (StorePart::Durable, "images", "name"),
    (StorePart::Durable, "webhooks", "id"),
    (StorePart::Durable, "webhook_outbox", "id"),
    (StorePart::Durable, "webhook_cursor", "id"),
    (StorePart::Durable, "prices", "pool, at"),
    (StorePart::Durable, "blobs", "hash"),
    (StorePart::Durable, "blob_claims", "hash, account"),
    (StorePart::Durable, "trees", "id"),
    (StorePart::Durable, "tree_files", "tree, path"),
    (StorePart::Durable, "tree_claims", "tree, account"),
    (StorePart::Durable, "job_trees", "job, tree"),
    (StorePart::Durable, "job_outputs", "job"),
    (StorePart::Durable, "data_sets", "id"),
    (StorePart::Durable, "data_shares", "data_set, account_name"),
    (StorePart::Durable, "outputs_cursor", "id"),
    (StorePart::Tables, "jobs", "id"),
    (StorePart::Tables, "specs", "job"),
    (StorePart::Tables, "live", "job"),
    (StorePart::Tables, "holds", "hold"),
    (StorePart::Tables, "tasks", "job, part, attempt, replica"),
    (StorePart::Tables, "events", "seq, place"),
    (StorePart::Tables, "statement_lines", "account, seq, place"),
    (StorePart::Tables, "refusals", "seq"),
    (StorePart::Tables, "accounts", "id"),
    (StorePart::Tables, "teams", "id"),
    (StorePart::Tables, "nodes", "id"),
    (StorePart::Tables, "node_spans", "node, since"),
    (StorePart::Tables, "node_hours", "hour, node"),
    (StorePart::Tables, "tallies", "hour, what"),
    (StorePart::Tables, "spending", "account, team, project, hour"),
    (StorePart::Tables, "cursors", "projection"),
    (StorePart::Metrics, "series", "id"),
    (StorePart::Metrics, "samples", "series, number"),
    (StorePart::Metrics, "asks", "at, account, bid, price"),
];
/// Tables whose rows the database numbers.
const NUMBERED: [(StorePart, &str); 3] = [
    (StorePart::Durable, "trees"),
    (StorePart::Durable, "data_sets"),
    (StorePart::Metrics, "series"),
];

/// Why a copy cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// There is nothing to copy.
    #[error("{0} has no site in it: give the database of a server that ran")]
    Nothing(Place),
    /// Both ends are the same.
    #[error("{0} cannot be copied into itself: give another target")]
    Itself(Place),
    /// A server is at work there.
    #[error(
        "{place} is held by {holder} for another {left_s} s: stop that server; if it crashed, \
         wait and try again"
    )]
    Held {
        place: Place,
        holder: String,
        /// How long still.
        left_s: u64,
    },
    /// The target is in use.
    #[error("{place} is not empty ({table} has rows): give an empty database")]
    NotEmpty { place: Place, table: &'static str },
    /// What was read back is not what was written.
    #[error(
        "{table} in {place} is not what was copied: the copy is not used; see that database's log, \
         and copy again"
    )]
    Differs {
        place: Place,
        /// Which table, or the journal's state.
        table: &'static str,
    },
    /// A database does not do what it is asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for CopyError {
    fn from(error: sqlx::Error) -> CopyError {
        CopyError::Store(error.into())
    }
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyProgress {
    /// So many rows of a table were written.
    Copied(&'static str, u64),
    /// A table was read back, and is the same.
    Verified(&'static str),
    /// The journal is carried out again.
    Replaying,
}

/// What a copy came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    pub tables: usize,
    pub rows: u64,
    /// The last entry of the journal.
    pub seq: u64,
    /// Entries that were carried out again.
    pub replayed: u64,
}

/// Copies all rows of one database into another one that is empty, or has half a copy in it.
pub async fn copy(
    from: &Place,
    to: &Place,
    tell: &mut (dyn FnMut(CopyProgress) + Send),
) -> Result<Copied, CopyError> {
    if from == to {
        return Err(CopyError::Itself(to.clone()));
    }
    if let Some(folder) = from.as_folder()
        && !folder.join("era.db").is_file()
    {
        return Err(CopyError::Nothing(from.clone()));
    }
    let source = Store::open_at(own_folder(from), from, None).await?;
    let target = match Store::open_unfinished(own_folder(to), to, None).await {
        Ok(target) => target,
        Err(error) => {
            source.close().await;
            return Err(error.into());
        }
    };
    let done = between(&source, &target, tell).await;
    source.close().await;
    target.close().await;
    done
}

/// Rows need no folder beside SQLite's own.
fn own_folder(place: &Place) -> &Path {
    place.as_folder().map_or(Path::new("."), |folder| folder.as_path())
}

async fn between(
    source: &Store,
    target: &Store,
    tell: &mut (dyn FnMut(CopyProgress) + Send),
) -> Result<Copied, CopyError> {
    if source.journal().newest_segment().await?.is_none() {
        return Err(CopyError::Nothing(source.place().clone()));
    }
    let held_source = held(source).await?;
    let held_target = match held(target).await {
        Ok(held) => held,
        Err(error) => {
            held_source.release().await?;
            return Err(error);
        }
    };
    let done = all(source, target, tell, [&held_source, &held_target]).await;
    let given_up = (held_source.release().await, held_target.release().await);
    let copied = done?;
    given_up.0?;
    given_up.1?;
    Ok(copied)
}

async fn held(store: &Store) -> Result<Lease, CopyError> {
    let lease = store.lease();
    match lease.acquire(HOLDER, HELD).await? {
        None => Ok(lease),
        Some(Leader { holder, left, .. }) => {
            let place = store.place().clone();
            Err(CopyError::Held { place, holder, left_s: left.as_secs() + 1 })
        }
    }
}

async fn all(
    source: &Store,
    target: &Store,
    tell: &mut (dyn FnMut(CopyProgress) + Send),
    leases: [&Lease; 2],
) -> Result<Copied, CopyError> {
    prepare(source, target).await?;
    let (mut rows, mut tables) = (0, 0);
    for (part, table, keys) in TABLES {
        let mut copied = |rows| tell(CopyProgress::Copied(table, rows));
        let (from, to) = (of(source, part), of(target, part));
        let written = rows::copy(from, to, table, keys, &mut copied).await?;
        if checksum(to.readers(), table, keys).await? != written {
            return Err(CopyError::Differs { place: target.place().clone(), table });
        }
        tell(CopyProgress::Verified(table));
        for lease in leases {
            lease.renew(HELD).await?;
        }
        rows += written.rows;
        tables += 1;
    }
    for (part, table) in NUMBERED {
        go_on_numbering(of(target, part), table).await?;
    }
    tell(CopyProgress::Replaying);
    let (ours, theirs) = (source.journal().restore().await?, target.journal().restore().await?);
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return Err(CopyError::Nothing(source.place().clone()));
    };
    if ours.state != theirs.state {
        let (place, table) = (target.place().clone(), "the state after the journal");
        return Err(CopyError::Differs { place, table });
    }
    // From here on it is a site.
    let mark = sqlx::query("DELETE FROM copying WHERE id = 1");
    mark.execute(target.durable().writer()).await?;
    Ok(Copied { tables, rows, seq: theirs.state.seq(), replayed: theirs.replayed })
}

/// Makes sure that the target has nothing in it, but for half a copy, which is removed; and marks
/// it as one.
async fn prepare(source: &Store, target: &Store) -> Result<(), CopyError> {
    let half = target.half_copied().await?.is_some();
    for (part, table, _) in TABLES.into_iter().rev() {
        let database = of(target, part);
        if half {
            rows::empty(database, table).await?;
        } else if rows::any(database, table).await? {
            return Err(CopyError::NotEmpty { place: target.place().clone(), table });
        }
    }
    if !half {
        sqlx::query("INSERT INTO copying (id, source) VALUES (1, ?)")
            .bind(source.place().to_string())
            .execute(target.durable().writer())
            .await?;
    }
    Ok(())
}

pub(crate) fn of(store: &Store, part: StorePart) -> &Database {
    match part {
        StorePart::Durable => store.durable(),
        StorePart::Tables => store.tables(),
        StorePart::Metrics => store.metrics(),
    }
}

/// Rows that came with their numbers do not count in PostgreSQL; the next one does.
async fn go_on_numbering(database: &Database, table: &'static str) -> Result<(), StoreError> {
    if database.dialect() != Dialect::Postgres {
        return Ok(());
    }
    let sql = format!(
        "SELECT setval(pg_get_serial_sequence('{table}', 'id'), \
         (SELECT COALESCE(MAX(id), 0) + 1 FROM {table}), false)"
    );
    // Made of constants alone.
    sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_one(database.writer()).await?;
    Ok(())
}
