//! A job as it is handed in again: the same work, on terms that hold now.

use era_api::Credits;
use era_api::job::{AfterSpec, AfterWhen, ArraySpec, JobSpec};
use era_api::quote::{ValueSpec, ValueStepSpec};
use era_core::bid::Value;
use era_core::units::{Money, Time};
use era_spec::JobState;
use era_store::tables::JobRow;

use crate::wire::{credits, stamp, time};

/// How something that a job waited for stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Predecessor {
    /// The core knows it, and judges it.
    Known,
    /// Only the tables know it.
    Forgotten(Box<JobRow>),
    Nowhere,
}

/// A job to be handed in again.
#[derive(Clone, Debug, PartialEq)]
pub struct RenewedJob {
    /// The job. It has a value only where its owner said one.
    pub job: JobSpec,
    /// For a promise whose worth nobody said: what its owner agreed to pay then.
    price: Option<Credits>,
}

impl RenewedJob {
    /// Whether it asks for a promise.
    pub fn is_bid(&self) -> bool {
        self.job.value.is_some() || self.price.is_some()
    }

    /// The job as it is handed in. What was worth anything at all is worth this price, or the one
    /// of then: nobody agreed to more.
    pub fn for_at_most(self, most: Option<Credits>) -> JobSpec {
        let RenewedJob { mut job, price } = self;
        if let Some(price) = price {
            (job.accept_price, job.most) = (true, Some(most.unwrap_or(price)));
        } else if job.value.is_some() {
            job.most = most;
        }
        job
    }
}

/// The same job anew. `bid` is what it was worth, where the core still knows that.
pub(super) fn renew(mut job: JobSpec, row: &JobRow, bid: Option<&Value>, now: Time) -> RenewedJob {
    if row.queue.is_some() {
        // What waits in a queue has no deadline: an earlier release passed over the one it had.
        (job.ask.deadline, job.most) = (None, None);
    }
    let price = forget_price(&mut job, row, bid);
    renew_window(&mut job, row, now);
    // One job of an array is an array of one, so that it finds its index again.
    job.array = row.array.map(|(_, at)| ArraySpec { from: at, to: at, step: 1, limit: None });
    if row.started.is_some() {
        // What it waited for was as it should be, or it would not have run.
        job.after.clear();
    }
    RenewedJob { job, price }
}

/// A held quote is used up, and a price was of its time. Leaves the value only where its owner
/// said one; else returns what was agreed to.
fn forget_price(job: &mut JobSpec, row: &JobRow, bid: Option<&Value>) -> Option<Credits> {
    let takes_price = job.takes_price();
    let (held, most) = (job.hold.take(), job.most.take());
    match (&job.value, bid) {
        // So clients of an earlier release wrote that nobody had said a worth.
        (Some(ValueSpec::Flat(worth)), _) if Some(*worth) == most => {
            job.value = None;
            return most;
        }
        (Some(_), _) => {}
        (None, _) if takes_price => return Some(most.unwrap_or(Credits(row.price))),
        (None, _) if held.is_none() => {}
        (None, Some(Value::Flat(worth))) if *worth < Money::MOST => {
            job.value = Some(ValueSpec::Flat(credits(*worth)));
        }
        (None, Some(Value::Steps(steps))) => {
            let step = |step: &era_core::bid::ValueStep| ValueStepSpec {
                by: stamp(step.by),
                worth: credits(step.worth),
            };
            job.value = Some(ValueSpec::Steps(steps.iter().map(step).collect()));
        }
        (None, _) => return Some(Credits(row.price)),
    }
    None
}

/// A window that has passed becomes one of the same length from now on.
fn renew_window(job: &mut JobSpec, row: &JobRow, now: Time) {
    let began = job.ask.earliest.map_or(row.submitted, time).max(row.submitted);
    job.ask.earliest = job.ask.earliest.filter(|at| time(*at) > now);
    let needed = now.0.saturating_add(row.duration_ms);
    let late = now.0.saturating_sub(began.0).max(0);
    let moved = |at| stamp(Time(time(at).0.saturating_add(late)));
    let passed = |at| time(at).0 < needed;
    if let Some(deadline) = job.ask.deadline.filter(|at| passed(*at)) {
        job.ask.deadline = Some(moved(deadline));
    }
    if let Some(ValueSpec::Steps(steps)) = &mut job.value
        && steps.last().is_some_and(|last| passed(last.by))
    {
        steps.iter_mut().for_each(|step| step.by = moved(step.by));
    }
}

/// Whether a job still has to wait for another. What the core has forgotten is over: it counts as
/// met where the tables say that it ended as it should, and is else left for the core to refuse.
pub(super) fn still_counts(after: AfterSpec, before: &Predecessor) -> bool {
    match before {
        Predecessor::Known => true,
        Predecessor::Nowhere => after.when == AfterWhen::Ok,
        Predecessor::Forgotten(row) => {
            // Of an array the first row does not speak for all.
            let met = row.state == JobState::Succeeded && row.array.is_none();
            after.when == AfterWhen::Ok && !met
        }
    }
}

#[cfg(test)]
mod tests {
    use era_core::bid::ValueStep;

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

    fn job() -> JobSpec {
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
        let window = |now| {
            let again = renew(evening.clone(), &row(), None, now).job;
            (again.ask.earliest, again.ask.deadline)
        };
        assert_eq!(window(at(21)), (None, Some(stamp(at(23)))));
        assert_eq!(window(at(19)), (None, Some(stamp(at(20)))), "there is still time");
        assert_eq!(window(at(17)), (Some(stamp(at(18))), Some(stamp(at(20)))), "all is to come");
        let mut steps = job();
        let step = |hour, worth| ValueStepSpec { by: stamp(at(hour)), worth: Credits(worth) };
        steps.value = Some(ValueSpec::Steps(vec![step(9, 3), step(10, 1)]));
        let again = renew(steps, &row(), None, at(12));
        assert_eq!(
            again.for_at_most(None).value,
            Some(ValueSpec::Steps(vec![step(13, 3), step(14, 1)]))
        );
    }

    #[test]
    fn a_taken_hold_is_worth_what_was_said_or_what_it_cost() {
        let mut held = job();
        (held.hold, held.most) = (Some(3), Some(Credits(1)));
        // What was said, and what is handed in.
        let values = |bid: Option<Value>| {
            let again = renew(held.clone(), &row(), bid.as_ref(), at(9));
            assert!(again.is_bid() && (again.job.hold, again.job.most) == (None, None));
            let (said, again) = (again.job.value.clone(), again.for_at_most(None));
            assert_eq!(again.accept_price, said.is_none());
            (said, again.value.or(again.most.map(ValueSpec::Flat)))
        };
        let flat = |credits| Some(ValueSpec::Flat(Credits(credits)));
        assert_eq!(values(Some(Value::Flat(Money(8)))), (flat(8), flat(8)));
        assert_eq!(values(Some(Value::Flat(Money::MOST))), (None, flat(5_000_000)));
        assert_eq!(values(None), (None, flat(5_000_000)));
        let step = ValueStep { by: at(20), worth: Money(2) };
        let told =
            Some(ValueSpec::Steps(vec![ValueStepSpec { by: stamp(at(20)), worth: Credits(2) }]));
        assert_eq!(values(Some(Value::Steps(vec![step]))), (told.clone(), told));
        let queued = renew(job(), &row(), None, at(9));
        assert!(!queued.is_bid(), "queue work stays queue work");
        assert_eq!(queued.for_at_most(Some(Credits(3))), job());
    }

    #[test]
    fn a_price_that_was_written_as_the_worth_is_none() {
        let flat = |credits| Some(ValueSpec::Flat(Credits(credits)));
        let mut priced = job();
        (priced.value, priced.most) = (flat(6), Some(Credits(6)));
        let again = renew(priced.clone(), &row(), None, at(9));
        assert_eq!((again.job.value.clone(), again.job.most), (None, None));
        // Retried, it takes that price, and so does its own retry.
        let retried = again.clone().for_at_most(None);
        assert_eq!((retried.takes_price(), retried.most), (true, Some(Credits(6))));
        assert_eq!(renew(retried.clone(), &row(), None, at(9)).for_at_most(None), retried);
        let agreed = again.for_at_most(Some(Credits(7)));
        assert_eq!((agreed.takes_price(), agreed.most), (true, Some(Credits(7))));
        priced.value = flat(90);
        let stated = renew(priced, &row(), None, at(9));
        assert_eq!((stated.job.value.clone(), stated.job.most), (flat(90), None));
        let stated = stated.for_at_most(Some(Credits(7)));
        assert_eq!((stated.value, stated.most), (flat(90), Some(Credits(7))));
    }

    #[test]
    fn a_deadline_that_a_queue_passed_over_makes_no_promise() {
        let mut evening = job();
        evening.ask.deadline = Some(stamp(at(20)));
        let promised = renew(evening.clone(), &row(), None, at(9));
        assert!(promised.is_bid() && promised.for_at_most(None).most == Some(Credits(5_000_000)));
        let queued = JobRow { queue: Some("default".to_owned()), ..row() };
        let again = renew(evening, &queued, None, at(9));
        assert!(!again.is_bid() && again.job.ask.deadline.is_none());
    }

    #[test]
    fn what_was_waited_for_counts_until_it_was_met() {
        let after = |when| AfterSpec { job: 3, when };
        let (ok, any) = (after(AfterWhen::Ok), after(AfterWhen::Any));
        let forgotten =
            |state, array| Predecessor::Forgotten(Box::new(JobRow { state, array, ..row() }));
        assert!(still_counts(any, &Predecessor::Known) && still_counts(ok, &Predecessor::Known));
        assert!(!still_counts(any, &forgotten(JobState::Failed, None)));
        assert!(!still_counts(ok, &forgotten(JobState::Succeeded, None)));
        assert!(still_counts(ok, &forgotten(JobState::Failed, None)));
        let first = Some((era_core::units::JobId(3), 0));
        assert!(still_counts(ok, &forgotten(JobState::Succeeded, first)), "not all of an array");
        let mut follower = job();
        follower.after = vec![ok];
        let ran = JobRow { started: Some(at(9)), ..row() };
        assert!(renew(follower.clone(), &ran, None, at(10)).job.after.is_empty());
        assert_eq!(renew(follower, &row(), None, at(10)).job.after, [ok]);
    }
}
