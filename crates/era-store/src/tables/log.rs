//! Events and statements, in pages.

use era_core::units::{JobId, Time, UserId};
use sqlx::AssertSqlSafe;

use super::Tables;
use super::jobs::VisibleJobs;
use super::read::{self, EVENT_COLUMNS, STATEMENT_COLUMNS};
use super::rows::{EventRow, JobRow, StatementRow};
use crate::StoreError;

/// Which events are wanted, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventQuery {
    /// Whose events may be seen.
    pub visible: VisibleJobs,
    /// After this one: the journal's number of its input, and its place there.
    pub after: (u64, u32),
    /// Of one of these kinds; of any where none is given.
    pub kinds: Vec<String>,
    /// About this job.
    pub job: Option<JobId>,
    /// Most of them.
    pub limit: u32,
}

impl EventQuery {
    /// All that may be seen.
    pub fn all(visible: VisibleJobs, after: (u64, u32), limit: u32) -> EventQuery {
        EventQuery { visible, after, kinds: Vec::new(), job: None, limit }
    }
}

/// Which lines of a wallet's statement are wanted, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementQuery {
    pub account: UserId,
    /// Before this one: the journal's number of its input, and its place there.
    pub before: Option<(u64, u32)>,
    /// For one of these reasons; for any where none is given.
    pub reasons: Vec<String>,
    /// About this job.
    pub job: Option<JobId>,
    /// At or after.
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// Most of them.
    pub limit: u32,
}

impl StatementQuery {
    /// All of a wallet.
    pub fn all(account: UserId, limit: u32) -> StatementQuery {
        let (reasons, job, since, until) = (Vec::new(), None, None, None);
        StatementQuery { account, before: None, reasons, job, since, until, limit }
    }
}

/// A condition that a column has one of so many values; none where there are none.
fn one_of(column: &str, values: &[String]) -> String {
    match values.len() {
        0 => String::new(),
        many => format!(" AND {column} IN ({})", vec!["?"; many].join(", ")),
    }
}

/// A page of a statement, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementPage {
    pub rows: Vec<StatementRow>,
    /// Whether there are older ones.
    pub more: bool,
}

impl Tables {
    /// Events after one, oldest first.
    pub async fn events(&self, query: &EventQuery) -> Result<Vec<EventRow>, StoreError> {
        let visible = match query.visible {
            VisibleJobs::All => "",
            VisibleJobs::Team(..) => " AND (team = ? OR account = ?)",
            VisibleJobs::Own(_) => " AND account = ?",
        };
        let kinds = one_of("kind", &query.kinds);
        let job = if query.job.is_some() { " AND job = ?" } else { "" };
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events WHERE (seq > ? OR (seq = ? AND place > ?)) \
             AND seq >= ?{visible}{kinds}{job} ORDER BY seq, place LIMIT ?"
        );
        let (seq, place) = query.after;
        let seq = seq.cast_signed();
        // Made of constants alone; what the caller gave is bound.
        let mut question = sqlx::query(AssertSqlSafe(sql));
        question = question.bind(seq).bind(seq).bind(i64::from(place)).bind(seq);
        question = match query.visible {
            VisibleJobs::All => question,
            VisibleJobs::Team(team, own) => question.bind(i64::from(team.0)).bind(i64::from(own.0)),
            VisibleJobs::Own(own) => question.bind(i64::from(own.0)),
        };
        for kind in &query.kinds {
            question = question.bind(kind);
        }
        if let Some(job) = query.job {
            question = question.bind(job.0.cast_signed());
        }
        let question = question.bind(i64::from(query.limit));
        let rows = question.fetch_all(self.database.readers()).await?;
        rows.iter().map(read::event).collect()
    }

    /// Jobs that ended after an event, oldest first: where that is told, the job, its owner.
    pub async fn ends(
        &self,
        after: (u64, u32),
        limit: u32,
    ) -> Result<Vec<((u64, u32), JobId, UserId)>, StoreError> {
        let seq = after.0.cast_signed();
        let rows: Vec<(i64, i64, i64, i64)> = sqlx::query_as(
            "SELECT seq, place, job, account FROM events WHERE seq >= ? \
             AND (seq > ? OR place > ?) AND kind = 'ended' AND job IS NOT NULL \
             AND account IS NOT NULL ORDER BY seq, place LIMIT ?",
        )
        .bind(seq)
        .bind(seq)
        .bind(i64::from(after.1))
        .bind(i64::from(limit))
        .fetch_all(self.database.readers())
        .await?;
        let small = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
        Ok(rows
            .into_iter()
            .map(|(seq, place, job, account)| {
                let place = (seq.cast_unsigned(), small(place));
                (place, JobId(job.cast_unsigned()), UserId(small(account)))
            })
            .collect())
    }

    /// The history of a job, oldest first, after one of its events and of these kinds, or of any
    /// where none is given; a job of an array was submitted with its first.
    pub async fn timeline(
        &self,
        job: &JobRow,
        after: (u64, u32),
        kinds: &[String],
        limit: u32,
    ) -> Result<Vec<EventRow>, StoreError> {
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events \
             WHERE (job = ? OR (job = ? AND kind = 'queued')) \
             AND (seq > ? OR (seq = ? AND place > ?)){} ORDER BY seq, place LIMIT ?",
            one_of("kind", kinds)
        );
        let first = job.array.map_or(job.id, |(first, _)| first);
        let seq = after.0.cast_signed();
        // Made of constants alone; what the caller gave is bound.
        let mut question = sqlx::query(AssertSqlSafe(sql))
            .bind(job.id.0.cast_signed())
            .bind(first.0.cast_signed())
            .bind(seq)
            .bind(seq)
            .bind(i64::from(after.1));
        for kind in kinds {
            question = question.bind(kind);
        }
        let question = question.bind(i64::from(limit));
        let rows = question.fetch_all(self.database.replica()).await?;
        rows.iter().map(read::event).collect()
    }

    /// The event of a job's end, if it has ended.
    pub async fn end_of(&self, job: JobId) -> Result<Option<EventRow>, StoreError> {
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events WHERE job = ? AND kind = 'ended' \
             ORDER BY seq DESC, place DESC LIMIT 1"
        );
        // Made of constants alone; what the caller gave is bound.
        let question = sqlx::query(AssertSqlSafe(sql)).bind(job.0.cast_signed());
        let row = question.fetch_optional(self.database.replica()).await?;
        row.as_ref().map(read::event).transpose()
    }

    /// The event by which a job was first given a simulated node.
    pub async fn simulated_since(&self, job: JobId) -> Result<Option<(u64, u32)>, StoreError> {
        let sql = "SELECT seq, place FROM events WHERE job = ? AND kind = 'launched' AND at >= \
                   (SELECT MIN(tasks.launched) FROM tasks JOIN nodes ON nodes.id = tasks.node \
                   WHERE tasks.job = ? AND nodes.simulated <> 0) ORDER BY seq, place LIMIT 1";
        let job = job.0.cast_signed();
        let row = sqlx::query(sql).bind(job).bind(job);
        let row = row.fetch_optional(self.database.replica()).await?;
        row.map(|row| Ok((read::unsigned(&row, 0)?, read::id32(&row, 1)?))).transpose()
    }

    /// A page of a wallet's lines, newest first.
    pub async fn statement(&self, query: &StatementQuery) -> Result<StatementPage, StoreError> {
        let (seq, place) = query.before.unwrap_or((i64::MAX.unsigned_abs(), u32::MAX));
        let seq = seq.cast_signed();
        let mut limits: Vec<(&str, i64)> = Vec::new();
        limits.extend(query.job.map(|job| (" AND line.job = ?", job.0.cast_signed())));
        limits.extend(query.since.map(|at| (" AND line.at >= ?", at.0)));
        limits.extend(query.until.map(|at| (" AND line.at < ?", at.0)));
        let sql = format!(
            "SELECT {STATEMENT_COLUMNS} WHERE line.account = ? \
             AND (line.seq < ? OR (line.seq = ? AND line.place < ?)){}{} \
             ORDER BY line.seq DESC, line.place DESC LIMIT ?",
            limits.iter().map(|(limit, _)| *limit).collect::<String>(),
            one_of("line.reason", &query.reasons),
        );
        // Made of constants alone; what the caller gave is bound.
        let mut question = sqlx::query(AssertSqlSafe(sql))
            .bind(i64::from(query.account.0))
            .bind(seq)
            .bind(seq)
            .bind(i64::from(place));
        for (_, value) in limits {
            question = question.bind(value);
        }
        for reason in &query.reasons {
            question = question.bind(reason);
        }
        let question = question.bind(i64::from(query.limit) + 1);
        let rows = question.fetch_all(self.database.replica()).await?;
        let mut rows = rows.iter().map(read::statement).collect::<Result<Vec<_>, _>>()?;
        let more = rows.len() > query.limit as usize;
        rows.truncate(query.limit as usize);
        Ok(StatementPage { rows, more })
    }

    /// A wallet's lines that are about one job, oldest first.
    pub async fn statement_of_job(
        &self,
        account: UserId,
        job: JobId,
        limit: u32,
    ) -> Result<Vec<StatementRow>, StoreError> {
        let sql = format!(
            "SELECT {STATEMENT_COLUMNS} WHERE line.account = ? AND line.job = ? \
             ORDER BY line.seq, line.place LIMIT ?"
        );
        // Made of constants alone; what the caller gave is bound.
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(i64::from(account.0))
            .bind(job.0.cast_signed())
            .bind(i64::from(limit))
            .fetch_all(self.database.replica())
            .await?;
        rows.iter().map(read::statement).collect()
    }

    /// The account with this name, as the journal knows it, with its group.
    pub async fn account(
        &self,
        name: &str,
    ) -> Result<Option<(UserId, era_core::units::GroupId)>, StoreError> {
        let sql = "SELECT id, team FROM accounts WHERE name = ?";
        let row = sqlx::query(sql).bind(name).fetch_optional(self.database.readers()).await?;
        let ids = |row| {
            let (id, team) = (read::id32(&row, 0)?, read::id32(&row, 1)?);
            Ok((UserId(id), era_core::units::GroupId(team)))
        };
        row.map(ids).transpose()
    }

    /// What accounts are called, of those that are named by events.
    pub async fn account_names(
        &self,
    ) -> Result<std::collections::BTreeMap<UserId, String>, StoreError> {
        let rows = sqlx::query("SELECT id, name FROM accounts");
        let rows = rows.fetch_all(self.database.readers()).await?;
        let name = |row| Ok((UserId(read::id32(row, 0)?), sqlx::Row::try_get(row, 1)?));
        rows.iter().map(name).collect()
    }

    /// Whether a job is there, and whose it is.
    pub async fn owner(
        &self,
        job: JobId,
    ) -> Result<Option<(UserId, era_core::units::GroupId)>, StoreError> {
        let row = sqlx::query("SELECT account, team FROM jobs WHERE id = ?")
            .bind(job.0.cast_signed())
            .fetch_optional(self.database.readers())
            .await?;
        let ids = |row| {
            let (id, team) = (read::id32(&row, 0)?, read::id32(&row, 1)?);
            Ok((UserId(id), era_core::units::GroupId(team)))
        };
        row.map(ids).transpose()
    }
}
