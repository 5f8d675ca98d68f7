//! Jobs: one, a page of many, and their tasks.
//!
//! A list is in the order of job numbers, newest first, and each page begins where the one before
//! ended. Whatever is asked for, a page is the merge of one short walk along an index for each
//! state that is wanted, for each name or for each number, so its cost does not grow with the
//! number of jobs. Since jobs are numbered in the order of their submission, limits in time become
//! limits of numbers.

use std::fmt::Write;

use era_core::units::{GroupId, JobId, Time, UserId};
use era_spec::{JobSpec, JobState};
use sqlx::{AssertSqlSafe, Row};

use super::Tables;
use super::read::{self, JOB_COLUMNS, TASK_COLUMNS};
use super::rows::{JobRow, TaskRow};
use super::upsert::Cell;
use crate::{Dialect, StoreError};

/// Fewer jobs than this with a wanted beginning of the name are sorted.
const NAMED_FEW: i64 = 2000;
/// Most names with a wanted beginning that are walked along; with more, jobs are looked at one by
/// one.
const NAMES_MAX: usize = 100;

/// Most jobs that are asked for by their numbers at a time.
pub const IDS_MAX: usize = 100;

/// Whose jobs a caller may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisibleJobs {
    All,
    /// Those of a group, and the caller's own.
    Team(GroupId, UserId),
    /// The caller's own.
    Own(UserId),
}

impl VisibleJobs {
    /// Whether something of this account and group is to be seen.
    pub fn allows(self, account: Option<UserId>, team: Option<GroupId>) -> bool {
        match self {
            VisibleJobs::All => true,
            VisibleJobs::Team(of, own) => team == Some(of) || account == Some(own),
            VisibleJobs::Own(own) => account == Some(own),
        }
    }
}

/// Which jobs are wanted. Every field narrows the list; `visible` always does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobQuery {
    /// Whose jobs may be seen.
    pub visible: VisibleJobs,
    /// In one of these states; any where none is given.
    pub states: Vec<JobState>,
    /// Of the account with this name.
    pub account: Option<String>,
    /// Of the group with this name.
    pub team: Option<String>,
    pub queue: Option<String>,
    pub project: Option<String>,
    /// Whose name begins so.
    pub name: Option<String>,
    pub array: Option<JobId>,
    /// One of these, at most [`IDS_MAX`]; any where none is given.
    pub ids: Vec<JobId>,
    /// Submitted at or after.
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// Most jobs on the page.
    pub limit: u32,
}

impl JobQuery {
    /// All that may be seen.
    pub fn all(visible: VisibleJobs, limit: u32) -> JobQuery {
        JobQuery {
            visible,
            states: Vec::new(),
            account: None,
            team: None,
            queue: None,
            project: None,
            name: None,
            array: None,
            ids: Vec::new(),
            since: None,
            until: None,
            limit,
        }
    }

    /// What a cursor of this question is bound to: all of it but the size of a page.
    fn fingerprint(&self) -> [u8; 8] {
        let bound = JobQuery { limit: 0, ..self.clone() };
        let hash = blake3::hash(format!("{bound:?}").as_bytes());
        let mut short = [0; 8];
        short.copy_from_slice(&hash.as_bytes()[..8]);
        short
    }
}

/// Where a page ends and the next one begins: opaque, and good for the same question only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobCursor(JobId);

/// What is no cursor of this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a cursor of this list: give `next` of its page before, with the same filter")]
pub struct BadCursor;

impl JobCursor {
    /// As it is told.
    pub fn write(self, query: &JobQuery) -> String {
        let JobCursor(JobId(id)) = self;
        let mut text = format!("{id:016x}");
        for byte in query.fingerprint() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// As it was told for this question.
    pub fn read(text: &str, query: &JobQuery) -> Result<JobCursor, BadCursor> {
        let id = text.get(..16).ok_or(BadCursor)?;
        let id = u64::from_str_radix(id, 16).map_err(|_| BadCursor)?;
        let cursor = JobCursor(JobId(id));
        if i64::try_from(id).is_ok() && cursor.write(query) == text {
            Ok(cursor)
        } else {
            Err(BadCursor)
        }
    }
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Jobs {
    /// They, newest first.
    pub rows: Vec<JobRow>,
    /// Where the next page begins, if there is one.
    pub next: Option<JobCursor>,
}

impl Tables {
    pub async fn job(&self, id: JobId) -> Result<Option<JobRow>, StoreError> {
        let sql = format!("SELECT {JOB_COLUMNS} FROM jobs WHERE id = ?");
        // Made of constants alone.
        let row = sqlx::query(AssertSqlSafe(sql))
            .bind(id.0.cast_signed())
            .fetch_optional(self.database.readers())
            .await?;
        row.as_ref().map(read::job).transpose()
    }

    /// What was handed in; for a job of an array, once for all of them.
    pub async fn spec(&self, job: &JobRow) -> Result<Option<JobSpec>, StoreError> {
        let of = job.array.map_or(job.id, |(first, _)| first);
        let spec = sqlx::query_scalar("SELECT spec FROM specs WHERE job = ?");
        let spec: Option<String> =
            spec.bind(of.0.cast_signed()).fetch_optional(self.database.readers()).await?;
        let read = |text: String| serde_json::from_str(&text);
        spec.map(read).transpose().map_err(|e| StoreError::Damaged {
            what: format!("what job {of} runs"),
            problem: e.to_string(),
        })
    }

    /// A job's tasks, newest attempt first; at most so many.
    pub async fn tasks(&self, job: JobId, most: u32) -> Result<Vec<TaskRow>, StoreError> {
        let sql = format!(
            "SELECT {TASK_COLUMNS} FROM tasks WHERE job = ? \
             ORDER BY attempt DESC, part, replica LIMIT ?"
        );
        // Made of constants alone.
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(job.0.cast_signed())
            .bind(i64::from(most))
            .fetch_all(self.database.readers())
            .await?;
        rows.iter().map(read::task).collect()
    }

    /// A page of jobs, after the cursor of the page before.
    pub async fn jobs(
        &self,
        query: &JobQuery,
        after: Option<JobCursor>,
    ) -> Result<Jobs, StoreError> {
        let Some(walk) = self.walk(query, after).await? else {
            return Ok(Jobs { rows: Vec::new(), next: None });
        };
        // Made of constants alone; what the caller gave is bound.
        let mut question = sqlx::query(AssertSqlSafe(walk.sql()));
        for cell in walk.binds() {
            question = match cell {
                Cell::Number(number) => question.bind(number),
                Cell::Text(text) => question.bind(text),
            };
        }
        let found = question.fetch_all(self.database.replica()).await?;
        let mut rows = found.iter().map(read::job).collect::<Result<Vec<_>, _>>()?;
        let more = rows.len() > query.limit as usize;
        rows.truncate(query.limit as usize);
        let next = rows.last().filter(|_| more).map(|row| JobCursor(row.id));
        Ok(Jobs { rows, next })
    }

    /// How to find a page; `None` where there is nothing to be found.
    async fn walk(
        &self,
        query: &JobQuery,
        after: Option<JobCursor>,
    ) -> Result<Option<Walk>, StoreError> {
        let mut walk = Walk::new(query, self.database.dialect());
        match query.visible {
            VisibleJobs::All => {}
            VisibleJobs::Own(own) => walk.and("account = ?", i64::from(own.0)),
            VisibleJobs::Team(team, own) => {
                walk.and("(team = ? OR account = ?)", i64::from(team.0));
                walk.values.push(i64::from(own.0).into());
            }
        }
        if let Some(name) = &query.account {
            let Some(id) = self.named("accounts", name).await? else { return Ok(None) };
            walk.and("account = ?", id);
        }
        if let Some(name) = &query.team {
            let Some(id) = self.named("teams", name).await? else { return Ok(None) };
            walk.and("team = ?", id);
        }
        if let Some(queue) = &query.queue {
            walk.and("queue = ?", queue.clone());
        }
        if let Some(project) = &query.project {
            walk.and("project = ?", project.clone());
        }
        if let Some(array) = query.array {
            walk.and("array_first = ?", array.0);
        }
        if let Some(JobCursor(last)) = after {
            walk.and("id < ?", last.0);
        }
        for (limit, at) in [("id >= ?", query.since), ("id < ?", query.until)] {
            let Some(at) = at else { continue };
            match (self.first_since(at).await?, limit) {
                (Some(first), _) => walk.and(limit, first),
                (None, "id >= ?") => return Ok(None),
                (None, _) => {}
            }
        }
        if !query.ids.is_empty() {
            let mut ids = query.ids.clone();
            ids.sort_unstable();
            ids.dedup();
            walk.along = Along::Ids(ids);
            if let Some(name) = &query.name {
                walk.and("name >= ? AND name < ?", name.clone());
                walk.values.push(after_all(name).into());
            }
        } else if let Some(name) = &query.name {
            self.by_name(&mut walk, name).await?;
        }
        Ok(Some(walk))
    }

    /// A few jobs with such a name are best sorted, and those of a few names merged; if there are
    /// many of both, some of them come up soon enough on the way.
    async fn by_name(&self, walk: &mut Walk, name: &str) -> Result<(), StoreError> {
        let end = after_all(name);
        let count = "SELECT COUNT(*) FROM (SELECT 1 FROM jobs \
                     WHERE name >= ? AND name < ? LIMIT ?) AS few";
        let few: i64 = sqlx::query_scalar(count)
            .bind(name)
            .bind(end.as_str())
            .bind(NAMED_FEW)
            .fetch_one(self.database.replica())
            .await?;
        let mut column = walk.dialect.unindexed("name");
        if few < NAMED_FEW {
            walk.along = Along::Jobs;
            column = "name".to_owned();
        } else if let Some(names) = self.names(name, &end).await? {
            walk.along = Along::Names(names);
            return Ok(());
        }
        walk.and(&format!("{column} >= ? AND {column} < ?"), name.to_owned());
        walk.values.push(end.into());
        Ok(())
    }

    /// The names within these limits, each found by one step along the index; `None` if they are
    /// too many.
    async fn names(&self, from: &str, before: &str) -> Result<Option<Vec<String>>, StoreError> {
        let sql = format!(
            "WITH RECURSIVE found(name, n) AS (\
             SELECT MIN(name), 1 FROM jobs WHERE name >= ? AND name < ? UNION ALL \
             SELECT (SELECT MIN(jobs.name) FROM jobs WHERE jobs.name > found.name \
             AND jobs.name < ?), n + 1 FROM found WHERE found.name IS NOT NULL \
             AND n <= {NAMES_MAX}) SELECT name FROM found WHERE name IS NOT NULL"
        );
        // Made of constants alone.
        let names: Vec<String> = sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(from)
            .bind(before)
            .bind(before)
            .fetch_all(self.database.replica())
            .await?;
        Ok((1..=NAMES_MAX).contains(&names.len()).then_some(names))
    }

    pub(super) async fn named(
        &self,
        table: &'static str,
        name: &str,
    ) -> Result<Option<i64>, StoreError> {
        // Made of constants alone.
        let sql = AssertSqlSafe(format!("SELECT id FROM {table} WHERE name = ? LIMIT 1"));
        Ok(sqlx::query_scalar(sql).bind(name).fetch_optional(self.database.replica()).await?)
    }

    /// The first job that was submitted at or after an instant.
    async fn first_since(&self, at: Time) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT id FROM jobs WHERE submitted >= ? ORDER BY submitted, id LIMIT 1";
        let row = sqlx::query(sql).bind(at.0).fetch_optional(self.database.replica()).await?;
        row.map(|row| Ok(row.try_get(0)?)).transpose()
    }
}

/// The least text that is after all texts that begin so.
fn after_all(beginning: &str) -> String {
    format!("{beginning}{}", char::MAX)
}

/// What a page is merged of.
enum Along {
    /// One walk for each state.
    States,
    /// The same, but all jobs with a wanted name are looked at, since they are few.
    Jobs,
    /// One walk for each of these names.
    Names(Vec<String>),
    /// One step for each of these numbers.
    Ids(Vec<JobId>),
}

/// Walks along an index.
struct Walk {
    along: Along,
    states: Vec<JobState>,
    conditions: Vec<String>,
    values: Vec<Cell>,
    limit: u32,
    dialect: Dialect,
}

impl Walk {
    fn new(query: &JobQuery, dialect: Dialect) -> Walk {
        let mut states = query.states.clone();
        if states.is_empty() {
            states = JobState::ALL.to_vec();
        }
        states.sort_unstable();
        states.dedup();
        Walk {
            along: Along::States,
            states,
            conditions: Vec::new(),
            values: Vec::new(),
            limit: query.limit,
            dialect,
        }
    }

    fn and(&mut self, condition: &str, value: impl Into<Cell>) {
        self.conditions.push(condition.to_owned());
        self.values.push(value.into());
    }

    /// What each of the walks is bound to.
    fn starts(&self) -> Vec<Cell> {
        match &self.along {
            Along::States | Along::Jobs => {
                self.states.iter().map(|state| state.number().into()).collect()
            }
            Along::Names(names) => names.iter().map(|name| name.clone().into()).collect(),
            Along::Ids(ids) => ids.iter().map(|id| id.0.into()).collect(),
        }
    }

    /// What is bound, in the order of [`Walk::sql`].
    fn binds(&self) -> Vec<Cell> {
        let one = |start| std::iter::once(start).chain(self.values.iter().cloned());
        self.starts().into_iter().flat_map(one).collect()
    }

    /// One more than a page, so that it is known whether there is another.
    fn sql(&self) -> String {
        let most = self.limit.saturating_add(1);
        let unindexed = self.dialect.unindexed("state");
        let mut conditions = match &self.along {
            Along::States => vec!["state = ?".to_owned()],
            Along::Jobs => vec![format!("{unindexed} = ?")],
            Along::Names(_) | Along::Ids(_) => {
                let states: Vec<String> =
                    self.states.iter().map(|state| state.number().to_string()).collect();
                let one = if matches!(self.along, Along::Ids(_)) { "id = ?" } else { "name = ?" };
                vec![one.to_owned(), format!("{unindexed} IN ({})", states.join(", "))]
            }
        };
        conditions.extend(self.conditions.iter().cloned());
        let conditions = conditions.join(" AND ");
        let one = format!(
            "SELECT * FROM (SELECT {JOB_COLUMNS} FROM jobs WHERE {conditions} \
             ORDER BY id DESC LIMIT {most}) AS one"
        );
        let all = vec![one; self.starts().len()].join(" UNION ALL ");
        format!("SELECT * FROM ({all}) AS every ORDER BY id DESC LIMIT {most}")
    }
}
