//! A job as it is handed in again: the same work, on terms that hold now.

use era_api::Credits;
use era_api::job::{After, AfterWhen, Array, NewJob};
use era_api::quote::{Value, ValueStep};
use era_core::bid::Value as Worth;
use era_core::units::{Money, Time};
use era_store::tables::{JobRow, JobState};

use crate::wire::{credits, stamp, time};

/// How something that a job waited for stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Before {
    /// The core knows it, and judges it.
    Known,
    /// Only the tables know it.
    Forgotten(Box<JobRow>),
    /// Nobody does.
    Nowhere,
}

/// The same job anew. `bid` is what it was worth, where the core still knows that.
pub(super) fn anew(mut job: NewJob, row: &JobRow, bid: Option<&Worth>, now: Time) -> NewJob {
    renew_price(&mut job, row, bid);
    renew_window(&mut job, row, now);
    // One job of an array is an array of one, so that it finds its index again.
    job.array = row.array.map(|(_, at)| Array { from: at, to: at, step: 1, limit: None });
    if row.started.is_some() {
        // What it waited for was as it should be, or it would not have run.
        job.after.clear();
    }
    job
}

/// A held quote is used up, and a price was of its time. What was worth anything at all is now
/// worth what it cost then: nobody agreed to more.
fn renew_price(job: &mut NewJob, row: &JobRow, bid: Option<&Worth>) {
    let held = job.hold.take();
    job.most = None;
    if held.is_some() && job.value.is_none() {
        job.value = Some(match bid {
            Some(Worth::Flat(worth)) if *worth < Money::MOST => Value::Flat(credits(*worth)),
            Some(Worth::Steps(steps)) => Value::Steps(
                steps
                    .iter()
                    .map(|step| ValueStep { by: stamp(step.by), worth: credits(step.worth) })
                    .collect(),
            ),
            _ => Value::Flat(Credits(row.price)),
        });
    }
}

/// A window that has passed becomes one of the same length from now on.
fn renew_window(job: &mut NewJob, row: &JobRow, now: Time) {
    let began = job.ask.earliest.take().map_or(row.submitted, time).max(row.submitted);
    let needed = now.0.saturating_add(row.duration_ms);
    let late = now.0.saturating_sub(began.0).max(0);
    let moved = |at| stamp(Time(time(at).0.saturating_add(late)));
    let passed = |at| time(at).0 < needed;
    if let Some(deadline) = job.ask.deadline.filter(|at| passed(*at)) {
        job.ask.deadline = Some(moved(deadline));
    }
    if let Some(Value::Steps(steps)) = &mut job.value
        && steps.last().is_some_and(|last| passed(last.by))
    {
        steps.iter_mut().for_each(|step| step.by = moved(step.by));
    }
}

/// Whether a job still has to wait for another. What the core has forgotten is over: it counts as
/// met where the tables say that it ended as it should, and is else left for the core to refuse.
pub(super) fn still_counts(after: After, before: &Before) -> bool {
    match before {
        Before::Known => true,
        Before::Nowhere => after.when == AfterWhen::Ok,
        Before::Forgotten(row) => {
            // Of an array the first row does not speak for all.
            let met = row.state == JobState::Succeeded && row.array.is_none();
            after.when == AfterWhen::Ok && !met
        }
    }
}

#[cfg(test)]
mod tests {
    use era_core::bid::ValueStep as WorthStep;

    use super::*;

    const HOUR: i64 = 3_600_000;

    /// A job of half an hour, submitted at eight.
    fn row() -> JobRow {
        let text = r#"{"id": 7, "name": null, "account": 1, "account_name": "ada", "team": 1,
            "team_name": "vision", "state": "failed", "queue": null, "submitted": 28800000,
            "promised_start": null, "promised_finish": null, "started": null, "ended": null,
            "exit_code": null, "price": 5000000, "resources": "{}", "replicas": 1,
            "duration_ms": 1800000, "array": null, "simulated": false, "reason": null,
            "attempts": 0, "charged": 0, "refunded": 0, "changed": 1}"#;
        serde_json::from_str(text).unwrap()
    }

    fn job() -> NewJob {
        let text = r#"{"work": {"command": ["true"]}, "ask": {"resources": {"cpu": "1"},
            "duration_s": 1800}}"#;
        serde_json::from_str(text).unwrap()
    }

    fn at(hour: i64) -> Time {
        Time(hour * HOUR)
    }

    #[test]
    fn a_passed_window_is_as_long_as_it_was_from_now_on() {
        let mut evening = job();
        evening.ask.earliest = Some(stamp(at(18)));
        evening.ask.deadline = Some(stamp(at(20)));
        let again = anew(evening.clone(), &row(), None, at(21));
        assert_eq!((again.ask.earliest, again.ask.deadline), (None, Some(stamp(at(23)))));
        let again = anew(evening, &row(), None, at(19));
        assert_eq!(again.ask.deadline, Some(stamp(at(20))), "there is still time");
        let mut steps = job();
        let step = |hour, worth| ValueStep { by: stamp(at(hour)), worth: Credits(worth) };
        steps.value = Some(Value::Steps(vec![step(9, 3), step(10, 1)]));
        let again = anew(steps, &row(), None, at(12));
        assert_eq!(again.value, Some(Value::Steps(vec![step(13, 3), step(14, 1)])));
    }

    #[test]
    fn a_taken_hold_is_worth_what_was_said_or_what_it_cost() {
        let mut held = job();
        (held.hold, held.most) = (Some(3), Some(Credits(1)));
        let value = |bid: Option<Worth>| {
            let again = anew(held.clone(), &row(), bid.as_ref(), at(9));
            assert_eq!((again.hold, again.most), (None, None));
            again.value
        };
        let flat = |credits| Some(Value::Flat(Credits(credits)));
        assert_eq!(value(Some(Worth::Flat(Money(8)))), flat(8));
        assert_eq!(value(Some(Worth::Flat(Money::MOST))), flat(5_000_000));
        assert_eq!(value(None), flat(5_000_000));
        let step = WorthStep { by: at(20), worth: Money(2) };
        let told = ValueStep { by: stamp(at(20)), worth: Credits(2) };
        assert_eq!(value(Some(Worth::Steps(vec![step]))), Some(Value::Steps(vec![told])));
        assert_eq!(anew(job(), &row(), None, at(9)).value, None, "queue work stays queue work");
    }

    #[test]
    fn what_was_waited_for_counts_until_it_was_met() {
        let after = |when| After { job: 3, when };
        let (ok, any) = (after(AfterWhen::Ok), after(AfterWhen::Any));
        let forgotten =
            |state, array| Before::Forgotten(Box::new(JobRow { state, array, ..row() }));
        assert!(still_counts(any, &Before::Known) && still_counts(ok, &Before::Known));
        assert!(!still_counts(any, &forgotten(JobState::Failed, None)));
        assert!(!still_counts(ok, &forgotten(JobState::Succeeded, None)));
        assert!(still_counts(ok, &forgotten(JobState::Failed, None)));
        let first = Some((era_core::units::JobId(3), 0));
        assert!(still_counts(ok, &forgotten(JobState::Succeeded, first)), "not all of an array");
        let mut follower = job();
        follower.after = vec![ok];
        let ran = JobRow { started: Some(at(9)), ..row() };
        assert!(anew(follower.clone(), &ran, None, at(10)).after.is_empty());
        assert_eq!(anew(follower, &row(), None, at(10)).after, [ok]);
    }
}
