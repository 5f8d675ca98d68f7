//! Jobs of the tables as the wire writes them: pure functions of rows.

use std::collections::BTreeMap;

use crate::feed::{NameIndex, particulars};
use crate::wire::{Wrong, stamp};
use era_api::Credits;
use era_api::job::{
    ArrayPlace, Ask, Cost, JobCountFilter, JobCounts, JobFilter, JobSpec, JobState, JobSummary,
    JobView, OutcomeView, Quantity, Replicas, TaskView,
};
use era_core::units::{JobId, Time};
use era_store::tables::{Count, EventRow, IDS_MAX, JobQuery, JobRow, TaskRow, VisibleJobs};
use serde_json::Value;

use crate::error::AppError;
use crate::visibility::page_size;
use crate::wire::unknown_word;

/// Causes of a task's end that say more of its job's end than an exit code.
const TOLD: [&str; 3] = ["out_of_memory", "out_of_disk", "not_started"];

/// States by name and comma; `active` stands for all that are not over, `over` for the others.
pub fn states(text: &str) -> Result<Vec<JobState>, AppError> {
    let mut all = Vec::new();
    for word in text.split(',').map(str::trim) {
        let known = JobState::ALL.into_iter();
        match word {
            "active" => all.extend(known.filter(|known| !known.is_over())),
            "over" => all.extend(known.filter(|known| known.is_over())),
            word => {
                let mut found = known.filter(|known| known.as_str() == word);
                all.push(found.next().ok_or_else(|| no_state(word))?);
            }
        }
    }
    Ok(all)
}

fn no_state(word: &str) -> AppError {
    let states = JobState::ALL.map(JobState::as_str);
    let known: Vec<&str> = ["active", "over"].into_iter().chain(states).collect();
    AppError::bad_field("state", unknown_word(word, &known))
}

/// Jobs by number and comma.
fn ids(text: &str) -> Result<Vec<JobId>, AppError> {
    let mut ids = Vec::new();
    for word in text.split(',').map(str::trim) {
        if ids.len() == IDS_MAX {
            let wrong = Wrong::TooMany { most: IDS_MAX, what: "jobs" };
            return Err(AppError::bad_field("ids", wrong));
        }
        let id = word.parse().ok().filter(|id| i64::try_from(*id).is_ok());
        ids.push(id.map(JobId).ok_or_else(|| AppError::bad_field("ids", Wrong::NoJob))?);
    }
    Ok(ids)
}

/// Which jobs are asked for.
pub fn query(filter: &JobFilter, visible: VisibleJobs) -> Result<JobQuery, AppError> {
    let states = filter.state.as_deref().map(states).transpose()?.unwrap_or_default();
    let at = |at: &Option<era_api::Timestamp>| at.map(|at| Time(at.as_millisecond()));
    let array = filter.array.map(|id| {
        let known = i64::try_from(id).is_ok();
        known.then_some(JobId(id)).ok_or_else(|| AppError::bad_field("array", Wrong::NoJob))
    });
    Ok(JobQuery {
        visible,
        states,
        account: filter.user.clone(),
        team: filter.group.clone(),
        queue: filter.queue.clone(),
        project: filter.project.clone(),
        name: filter.name.clone(),
        array: array.transpose()?,
        ids: filter.ids.as_deref().map(ids).transpose()?.unwrap_or_default(),
        since: at(&filter.since),
        until: at(&filter.until),
        limit: page_size(filter.limit)?,
    })
}

/// Whose jobs are counted, and in which states.
pub fn count_query(filter: &JobCountFilter, visible: VisibleJobs) -> Result<JobQuery, AppError> {
    let states = filter.state.as_deref().map(states).transpose()?.unwrap_or_default();
    Ok(JobQuery { states, account: filter.user.clone(), ..JobQuery::all(visible, 0) })
}

pub fn counts(found: &BTreeMap<JobState, Count>) -> JobCounts {
    let all = || found.iter();
    JobCounts {
        counts: all().map(|(state, count)| (state.as_str().to_owned(), count.jobs)).collect(),
        at_least: all().filter(|(_, count)| count.more).map(|(state, _)| *state).collect(),
    }
}

/// A job as lists show it.
pub fn summary(row: &JobRow) -> JobSummary {
    JobSummary {
        id: row.id.0,
        name: row.name.clone(),
        user: row.account_name.clone(),
        group: row.team_name.clone(),
        state: row.state,
        queue: row.queue.clone(),
        submitted: stamp(row.submitted),
        promised_start: row.promised_start.map(stamp),
        promised_finish: row.promised_finish.map(stamp),
        likely_start: None,
        started: row.started.map(stamp),
        ended: row.ended.map(stamp),
        exit_code: row.exit_code,
        price: Credits(row.cost()),
        // Written by us; a row that is damaged shows no resources rather than nothing at all.
        resources: serde_json::from_str(&row.resources).unwrap_or_default(),
        replicas: row.replicas,
        duration_s: seconds(row.duration_ms),
        array: row.array.map(|(first, index)| ArrayPlace { array: first.0, index }),
        simulated: row.simulated,
        project: row.project.clone(),
    }
}

fn seconds(ms: i64) -> u64 {
    ms.max(0).unsigned_abs().div_ceil(1000)
}

/// A job with all that the tables know of it.
pub fn job(row: &JobRow, spec: Option<JobSpec>, tasks: &[TaskRow], names: &NameIndex) -> JobView {
    JobView {
        summary: summary(row),
        spec: spec.unwrap_or_else(|| spec_of(row)),
        reason: row.reason.clone(),
        outcome: None,
        attempts: row.attempts,
        tasks: tasks.iter().map(|row| task(row, names)).collect(),
        cost: Cost {
            charged: Credits(row.charged),
            refunded: Credits(row.refunded),
            net: Credits(row.cost()),
        },
        explanation: None,
    }
}

/// How a job ended, by the event of its end and what ended its newest tasks.
pub fn outcome(end: &EventRow, tasks: &[TaskRow], names: &NameIndex) -> Option<OutcomeView> {
    let mut parameters = particulars(end.event.as_ref()?, names);
    let Some(Value::String(mut code)) = parameters.remove("outcome") else { return None };
    if code == "failed" {
        let told = |task: &TaskRow| task.cause.clone().filter(|cause| TOLD.contains(&&**cause));
        code = tasks.iter().find_map(told).unwrap_or(code);
    }
    Some(OutcomeView { code, parameters })
}

/// What was handed in, as far as the scheduler knows: for jobs that came by another door.
fn spec_of(row: &JobRow) -> JobSpec {
    let resources: BTreeMap<String, String> =
        serde_json::from_str(&row.resources).unwrap_or_default();
    let resources = resources.into_iter().map(|(key, amount)| (key, Quantity::Text(amount)));
    JobSpec {
        name: row.name.clone(),
        project: row.project.clone(),
        ask: Ask {
            resources: resources.collect(),
            replicas: Some(Replicas::Fixed(row.replicas)),
            duration_s: Some(seconds(row.duration_ms)),
            ..Ask::default()
        },
        queue: row.queue.clone(),
        priority: Some(0),
        ..JobSpec::default()
    }
}

fn task(row: &TaskRow, names: &NameIndex) -> TaskView {
    TaskView {
        part: row.part,
        attempt: row.attempt,
        rank: row.rank,
        node: row.node.map(|node| names.node(node)).unwrap_or_default(),
        gpus: (0..64).filter(|bit| row.gpus >> bit & 1 == 1).collect(),
        launched: stamp(row.launched),
        started: row.started.map(stamp),
        ended: row.ended.map(stamp),
        exit_code: row.exit_code,
        cause: row.cause.clone(),
        simulated: row.node.is_some_and(|node| names.is_simulated(node)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_by_name_and_active_stands_for_all_that_are_not_over() {
        assert_eq!(states("failed").unwrap(), [JobState::Failed]);
        assert_eq!(states("active").unwrap().len(), 5);
        assert_eq!(states("active, succeeded").unwrap().len(), 6);
        assert_eq!(states("active,over").unwrap(), JobState::ALL);
        let refused = states("done").unwrap_err().0;
        assert_eq!(refused.field.as_deref(), Some("state"));
        assert!(refused.sentence.contains("limit_reached"), "{}", refused.sentence);
        let near = states("running,runing").unwrap_err().0;
        assert_eq!(near.parameters["given"], "runing");
        assert_eq!(near.parameters["meant"], "running");
        assert!(near.sentence.contains("did you mean `running`?"), "{}", near.sentence);
    }

    #[test]
    fn a_list_shows_what_the_job_itself_shows_as_its_cost() {
        let text = r#"{"id": 7, "name": null, "account": 1, "account_name": "ada", "team": 1,
            "team_name": "vision", "state": "cancelled", "queue": null, "submitted": 0,
            "promised_start": 0, "promised_finish": 0, "started": null, "ended": 0,
            "exit_code": null, "price": 6060000, "resources": "{}", "replicas": 1,
            "duration_ms": 1800000, "array": null, "simulated": false, "reason": null,
            "attempts": 0, "charged": 6060000, "refunded": 4848000, "changed": 1}"#;
        let row: JobRow = serde_json::from_str(text).unwrap();
        let names = NameIndex::default();
        assert_eq!(summary(&row).price, Credits(1_212_000));
        assert_eq!(job(&row, None, &[], &names).cost.net, summary(&row).price);
    }

    #[test]
    fn numbers_of_jobs_are_read_by_comma_and_are_not_too_many() {
        assert_eq!(ids("7, 12").unwrap(), [JobId(7), JobId(12)]);
        let many = |count: usize| vec!["1"; count].join(",");
        assert_eq!(ids(&many(IDS_MAX)).unwrap().len(), IDS_MAX);
        for bad in ["", "7,", "x", "-1", "9223372036854775808", &many(IDS_MAX + 1)] {
            assert_eq!(ids(bad).unwrap_err().0.field.as_deref(), Some("ids"), "{bad}");
        }
    }
}
