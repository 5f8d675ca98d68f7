//! How many jobs are in each state, for whoever needs no list of them.
//!
//! A count is one walk along an index for each state that is wanted, and each walk ends after
//! [`COUNTED_MAX`] jobs; so its cost does not grow with the number of jobs beyond that.

use std::collections::BTreeMap;

use era_core::units::UserId;
use era_spec::JobState;
use sqlx::{AssertSqlSafe, Row};

use super::jobs::{JobQuery, VisibleJobs};
use super::{Tables, read};
use crate::StoreError;

/// Jobs of one state are counted up to this many.
pub const COUNTED_MAX: u32 = 100_000;

/// How many jobs are in a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// So many were counted.
    pub jobs: u64,
    /// There may be more than these.
    pub more: bool,
}

/// A walk along an index: `on` is what the index begins with besides the state, `only` narrows.
struct Walk {
    on: Option<(&'static str, i64)>,
    only: Option<(&'static str, i64)>,
}

impl Tables {
    /// The jobs of a query by state: of its filters, only whose they are and their states count.
    pub async fn job_counts(
        &self,
        query: &JobQuery,
        most: u32,
    ) -> Result<BTreeMap<JobState, Count>, StoreError> {
        let states = match query.states.as_slice() {
            [] => &JobState::ALL,
            some => some,
        };
        let mut counts: BTreeMap<JobState, Count> =
            states.iter().map(|state| (*state, Count::default())).collect();
        let account = match &query.account {
            None => None,
            Some(name) => match self.named("accounts", name).await? {
                None => return Ok(counts),
                some => some,
            },
        };
        for walk in walks(query.visible, account) {
            // Made of constants alone; what the caller gave is bound.
            let mut question = sqlx::query(AssertSqlSafe(sql(&walk, counts.keys(), most)));
            for _ in 0..counts.len() {
                for (_, value) in walk.only.iter().chain(&walk.on) {
                    question = question.bind(*value);
                }
            }
            for row in question.fetch_all(self.database.replica()).await? {
                let state = JobState::numbered(row.try_get(0)?);
                let Some(count) = state.and_then(|state| counts.get_mut(&state)) else { continue };
                let walked: u64 = read::unsigned(&row, 1)?;
                count.jobs += read::unsigned(&row, 2)?;
                count.more |= walked >= u64::from(most);
            }
        }
        Ok(counts)
    }
}

/// Where the jobs are that a caller may see, of an account where one is named. No two walks meet
/// the same job.
fn walks(visible: VisibleJobs, account: Option<i64>) -> Vec<Walk> {
    let own = |own: UserId| i64::from(own.0);
    let all = |on| Walk { on, only: None };
    match (visible, account) {
        (VisibleJobs::All, account) => vec![all(account.map(|account| ("account", account)))],
        (VisibleJobs::Own(of), Some(account)) if account != own(of) => Vec::new(),
        (VisibleJobs::Own(of), _) => vec![all(Some(("account", own(of))))],
        (VisibleJobs::Team(_, of), Some(account)) if account == own(of) => {
            vec![all(Some(("account", account)))]
        }
        (VisibleJobs::Team(team, _), Some(account)) => vec![Walk {
            on: Some(("account", account)),
            only: Some(("team = ?", i64::from(team.0))),
        }],
        (VisibleJobs::Team(team, of), None) => vec![
            all(Some(("team", i64::from(team.0)))),
            Walk { on: Some(("account", own(of))), only: Some(("team <> ?", i64::from(team.0))) },
        ],
    }
}

/// Of each state its number, how many jobs were looked at, and how many of them count.
fn sql<'a>(walk: &Walk, states: impl Iterator<Item = &'a JobState>, most: u32) -> String {
    let counted = walk.only.map_or_else(
        || "COUNT(*)".to_owned(),
        |(only, _)| format!("COUNT(CASE WHEN {only} THEN 1 END)"),
    );
    // Without the team, the index alone is read.
    let column = if walk.only.is_some() { "team" } else { "state" };
    let on = walk.on.map_or_else(String::new, |(column, _)| format!("{column} = ? AND "));
    let one = |state: &JobState| {
        let state = state.number();
        format!(
            "SELECT {state} AS state, COUNT(*), {counted} FROM (SELECT {column} FROM jobs \
             WHERE {on}state = {state} LIMIT {most}) AS walked"
        )
    };
    states.map(one).collect::<Vec<_>>().join(" UNION ALL ")
}
