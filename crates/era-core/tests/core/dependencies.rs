//! Jobs that wait for others: until they are over as asked, and no longer than they could be.

use era_core::explain::Explanation;
use era_core::input::{AFTER_MAX, Array, NewJob, Terms};
use era_core::job::{After, Outcome, QueueTerms, TaskId, When};
use era_core::reason::WaitReason;
use era_core::units::{JobId, Span};
use era_core::{Command, Event, Refusal, explain};

use crate::arrays::array;
use crate::bed::{ALICE, Bed, by, gang, min, name, new_job};

fn ok(job: u64) -> After {
    After { job: JobId(job), when: When::Ok }
}

fn any(job: u64) -> After {
    After { job: JobId(job), when: When::Any }
}

fn after(after: &[After]) -> NewJob {
    let queue = QueueTerms::new(name("default"));
    let request = gang(1, "gpu=1", 60, (0, 1));
    let job = new_job(ALICE, Terms::Queue { request, queue });
    NewJob { after: after.to_vec(), ..job }
}

fn submit(job: NewJob) -> Command {
    Command::Submit { key: None, job }
}

fn task(job: u64) -> TaskId {
    TaskId { job: JobId(job), part: 0, attempt: 1, rank: 0 }
}

fn unfulfilled(job: u64) -> Option<Outcome> {
    Some(Outcome::Unfulfilled { job: JobId(job) })
}

#[test]
fn a_job_waits_until_the_one_before_it_has_succeeded() {
    let mut bed = Bed::new(1);
    bed.hand_in(after(&[]));
    let second = bed.hand_in(after(&[ok(1)]));
    let reason = WaitReason::After { job: JobId(1), when: When::Ok };
    assert_eq!(reason.to_string(), "it waits for the success of job 1");
    let told = Explanation::Waiting { position: 0, start: None, reason };
    assert_eq!(explain(&bed.state, second), Ok(told));
    assert_eq!(bed.state.held(&name("default")), 1);
    assert_eq!(bed.pass_starts(), [1]);
    assert_eq!(bed.pass_starts(), [0u64; 0]);
    bed.exit(&[task(1)], 0);
    assert!(bed.events.contains(&Event::Ready { jobs: vec![second] }));
    assert_eq!(bed.state.held(&name("default")), 0);
    assert_eq!(bed.pass_starts(), [2]);
}

#[test]
fn a_job_that_can_never_be_ready_ends_and_so_do_those_after_it() {
    let mut bed = Bed::new(1);
    bed.hand_in(after(&[]));
    bed.hand_in(after(&[ok(1)]));
    bed.hand_in(after(&[ok(2)]));
    bed.hand_in(after(&[any(2)]));
    assert_eq!(bed.pass_starts(), [1]);
    bed.exit(&[task(1)], 7);
    assert_eq!(bed.outcome(JobId(2)), unfulfilled(1));
    assert_eq!(bed.outcome(JobId(3)), unfulfilled(2));
    assert_eq!(bed.pass_starts(), [4], "the end of the second was enough for it");
}

#[test]
fn a_chain_of_any_length_ends_in_one_step() {
    let mut bed = Bed::new(1);
    bed.checks = false;
    bed.hand_in(after(&[]));
    for before in 1..20_000 {
        bed.hand_in(after(&[ok(before)]));
    }
    bed.done(Command::Cancel { job: JobId(1), by: by(ALICE) });
    assert_eq!(bed.outcome(JobId(20_000)), unfulfilled(19_999));
    assert_eq!(era_core::check(&bed.state), Ok(()));
}

#[test]
fn it_waits_for_all_that_it_names_and_each_as_asked() {
    let mut bed = Bed::new(1);
    bed.hand_in(after(&[]));
    bed.hand_in(after(&[]));
    bed.hand_in(after(&[ok(1), any(2), any(1)]));
    assert_eq!(bed.pass_starts(), [1, 2]);
    bed.exit(&[task(2)], 1);
    assert_eq!(bed.pass_starts(), [0u64; 0]);
    let reason = WaitReason::After { job: JobId(1), when: When::Ok };
    assert_eq!(bed.reason(JobId(3)), reason, "success is the stricter wish");
    bed.exit(&[task(1)], 0);
    assert_eq!(bed.pass_starts(), [3]);
}

#[test]
fn an_array_counts_as_a_whole_by_its_first_job() {
    let mut bed = Bed::new(1);
    bed.hand_in(array(3, None, "gpu=1"));
    bed.hand_in(after(&[ok(1)]));
    bed.hand_in(after(&[any(1)]));
    bed.hand_in(after(&[ok(2)]));
    assert_eq!(bed.pass_starts(), [1, 2, 3]);
    bed.exit(&[task(1), task(2)], 0);
    assert_eq!(bed.pass_starts(), [6], "one of it by its own number");
    bed.exit(&[task(3)], 1);
    assert_eq!(bed.outcome(JobId(4)), unfulfilled(1));
    assert_eq!(bed.pass_starts(), [5]);
}

#[test]
fn an_array_that_cannot_succeed_any_more_is_not_waited_for() {
    let mut bed = Bed::new(1);
    bed.hand_in(array(3, Some(1), "gpu=1"));
    bed.hand_in(after(&[ok(1)]));
    bed.hand_in(after(&[any(1)]));
    assert_eq!(bed.pass_starts(), [1]);
    bed.exit(&[task(1)], 1);
    assert_eq!(bed.outcome(JobId(4)), unfulfilled(1), "at once, not when all of it is over");
    assert_eq!(bed.refused(submit(after(&[ok(1)]))), Refusal::FailedBefore { job: JobId(1) });
    assert_eq!(bed.outcome(JobId(5)), None);
    bed.done(Command::CancelArray { job: JobId(2), by: by(ALICE) });
    assert_eq!(bed.pass_starts(), [5]);
}

#[test]
fn a_whole_array_may_wait() {
    let mut bed = Bed::new(1);
    bed.hand_in(after(&[]));
    let later = NewJob { array: Some(Array { count: 3, running_max: Some(2) }), ..after(&[ok(1)]) };
    bed.hand_in(later);
    assert_eq!(bed.state.held(&name("default")), 3);
    assert_eq!(bed.pass_starts(), [1]);
    bed.exit(&[task(1)], 0);
    assert!(bed.events.contains(&Event::Ready { jobs: vec![JobId(2), JobId(3), JobId(4)] }));
    assert_eq!(bed.pass_starts(), [2, 3]);
}

#[test]
fn what_is_over_as_asked_is_not_waited_for() {
    let mut bed = Bed::new(1);
    bed.hand_in(after(&[]));
    bed.pass();
    bed.exit(&[task(1)], 0);
    let job = bed.hand_in(after(&[ok(1)]));
    assert!(bed.state.job(job).unwrap().after.is_empty());
}

#[test]
fn what_nobody_knows_or_what_has_failed_is_refused() {
    let mut bed = Bed::new(1);
    let job = JobId(1);
    assert_eq!(bed.refused(submit(after(&[any(1)]))), Refusal::UnknownBefore { job });
    bed.hand_in(after(&[]));
    bed.pass();
    bed.exit(&[task(1)], 1);
    assert_eq!(bed.refused(submit(after(&[ok(1)]))), Refusal::FailedBefore { job });
    bed.until(min(24 * 60 + 1));
    let forgotten = bed.refused(submit(after(&[any(1)])));
    assert_eq!(forgotten, Refusal::UnknownBefore { job });
    assert_eq!(forgotten.field(), Some("after"));
    let itself = bed.refused(submit(after(&[any(2)])));
    assert_eq!(itself, Refusal::UnknownBefore { job: JobId(2) });
    let many: Vec<After> = (1..=AFTER_MAX as u64 + 1).map(ok).collect();
    let what = "dependencies".into();
    let refusal = Refusal::TooMany { what, given: AFTER_MAX + 1, most: AFTER_MAX };
    assert_eq!(bed.refused(submit(after(&many))), refusal);
    let wide = NewJob {
        array: Some(Array { count: 60_000, running_max: None }),
        ..after(&[ok(1), ok(2)])
    };
    let what = "dependencies of an array".into();
    let refusal = Refusal::TooMany { what, given: 120_000, most: 100_000 };
    assert_eq!(bed.refused(submit(wide)), refusal);
}

#[test]
fn a_bid_does_not_wait_for_other_jobs() {
    let mut bed = Bed::new(1);
    bed.hand_in(after(&[]));
    let bid = crate::bed::bid(gang(1, "gpu=1", 60, (0, 100)));
    let terms = Terms::bid(bid);
    let job = NewJob { after: vec![ok(1)], ..new_job(ALICE, terms) };
    let refusal = bed.refused(submit(job));
    assert_eq!(refusal.field(), Some("after"));
    assert_eq!(
        refusal.to_string(),
        "a bid takes no `after`: order the requests inside one bid, or hand the job to a queue"
    );
}

#[test]
fn a_job_after_a_promise_waits_for_its_end() {
    let mut bed = Bed::new(1);
    let promise = bed.promise(gang(1, "gpu=8", 60, (10, 100)));
    let job = bed.hand_in(after(&[ok(promise.0)]));
    bed.until(min(10));
    let tasks = bed.run(promise);
    bed.until(min(30));
    bed.exit(&tasks, 0);
    assert_eq!(bed.pass_starts(), [job.0]);
}

#[test]
fn waiting_for_others_is_no_wait_of_its_own() {
    let mut bed = Bed::new(1);
    // One after the other: 8 GPUs each.
    let whole = |bed: &mut Bed| bed.enqueue(ALICE, gang(1, "gpu=8", 600, (0, 1)), false);
    let first = whole(&mut bed);
    let held = bed.hand_in(after(&[ok(first.0)]));
    let third = whole(&mut bed);
    bed.pass();
    let tasks = bed.run(first);
    bed.until(min(60));
    bed.exit(&tasks, 0);
    assert_eq!(bed.state.job(held).unwrap().waits_since(), min(60));
    let waiting: Vec<JobId> = bed.state.waiting(&name("default")).collect();
    assert_eq!(waiting, [third, held], "it joins the line when it is ready");
    assert_eq!(bed.pass_starts(), [third.0]);
}

#[test]
fn its_patience_begins_when_it_is_ready() {
    let mut bed = Bed::new(1);
    bed.queue("default", "sjf", |_| {});
    let first = bed.enqueue(ALICE, gang(1, "gpu=8", 60 * 30, (0, 1)), false);
    let held = bed.hand_in(after(&[any(first.0)]));
    bed.pass();
    let tasks = bed.run(first);
    let day = Span::from_days(1);
    bed.until(min(0) + day);
    bed.exit(&tasks, 0);
    // Longer than a day after its submission it is still judged by its length.
    let short = bed.enqueue(ALICE, gang(1, "gpu=8", 1, (0, 1)), false);
    assert_eq!(bed.pass_starts(), [short.0]);
    assert_eq!(bed.state.job(held).unwrap().waits_since(), min(0) + day);
}

#[test]
fn a_held_job_may_be_edited_and_cancelled_and_keeps_its_queue() {
    let mut bed = Bed::new(1);
    bed.queue("night", "fifo", |_| {});
    bed.hand_in(after(&[]));
    let held = bed.hand_in(after(&[ok(1)]));
    let to_night = Command::Edit {
        job: held,
        by: by(ALICE),
        priority: None,
        limit: None,
        queue: Some(name("night")),
    };
    bed.done(to_night);
    assert_eq!((bed.state.held(&name("default")), bed.state.held(&name("night"))), (0, 1));
    let in_use = bed.refused(Command::RemoveQueue { name: name("night") });
    assert!(matches!(in_use, Refusal::InUse { .. }));
    bed.done(Command::Cancel { job: held, by: by(ALICE) });
    assert_eq!(bed.state.held(&name("night")), 0);
    bed.done(Command::RemoveQueue { name: name("night") });
}
