//! Arrays: many jobs alike as one input, with one event, one limit and one cancellation.

use era_core::explain::queue_order;
use era_core::input::{ARRAY_MAX, Array, NewJob, Terms};
use era_core::job::{Outcome, QueueTerms, TaskId};
use era_core::queue::formula::Formula;
use era_core::queue::{PolicyRule, Queue};
use era_core::reason::WaitReason;
use era_core::units::{JobId, Money, NodeId, Span};
use era_core::{Command, Effect, Event, Refusal, Reply, State};

use crate::bed::{ALICE, BOB, Bed, by, gang, min, name, new_job};

/// A job of an array for the default queue.
pub(crate) fn array(count: u32, running_max: Option<u32>, each: &str) -> NewJob {
    let queue = QueueTerms::new(name("default"));
    let request = gang(1, each, 60, (0, 1));
    let array = Some(Array { count, running_max });
    NewJob { array, ..new_job(ALICE, Terms::Queue { request, queue }) }
}

impl Bed {
    /// Hands something in for a queue, which must be accepted; the first job's number.
    pub(crate) fn hand_in(&mut self, job: NewJob) -> JobId {
        let wanted = job.array.map_or(1, |array| array.count);
        match self.send(Command::Submit { key: None, job }) {
            Reply::Accepted { job, quote: None, count } if count == wanted => job,
            reply => panic!("should have been accepted: {reply:?}"),
        }
    }

    /// Takes all launches out.
    pub(crate) fn launched(&mut self) -> Vec<TaskId> {
        let launches = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::Launch { task, .. } => Some(task),
            _ => None,
        });
        launches.collect()
    }

    /// The jobs that a pass starts.
    pub(crate) fn pass_starts(&mut self) -> Vec<u64> {
        self.pass();
        self.launched().iter().map(|task| task.job.0).collect()
    }
}

fn task(job: u64) -> TaskId {
    TaskId { job: JobId(job), part: 0, attempt: 1, rank: 0 }
}

#[test]
fn one_input_makes_many_jobs_with_numbers_that_follow_one_another() {
    let mut bed = Bed::new(1);
    let first = bed.hand_in(array(10, None, "gpu=2"));
    assert_eq!(first, JobId(1));
    let queued = Event::Queued { job: first, user: ALICE, queue: name("default"), count: 10 };
    assert_eq!(bed.events, [queued]);
    assert_eq!(bed.state.jobs().count(), 10);
    assert_eq!(bed.pass_starts(), [1, 2, 3, 4]);
    let next = bed.enqueue(BOB, gang(1, "gpu=1", 60, (0, 1)), false);
    assert_eq!(next, JobId(11));
}

#[test]
fn its_jobs_share_one_request_also_after_a_state_was_stored() {
    let mut bed = Bed::new(1);
    bed.hand_in(array(5, None, "gpu=8"));
    bed.pass();
    let shared = |state: &State| {
        let requests: Vec<_> = state.jobs().map(|job| job.first_part().request.clone()).collect();
        requests.iter().all(|request| std::sync::Arc::ptr_eq(request, &requests[0]))
    };
    assert!(shared(&bed.state));
    let stored = serde_json::to_string(&bed.state).unwrap();
    let back: State = serde_json::from_str(&stored).unwrap();
    assert_eq!(back, bed.state);
    assert!(shared(&back));
}

#[test]
fn no_more_of_it_run_at_a_time_than_it_says() {
    let mut bed = Bed::new(1);
    bed.hand_in(array(5, Some(2), "gpu=1"));
    assert_eq!(bed.pass_starts(), [1, 2]);
    let full = WaitReason::ArrayFull { running: 2 };
    assert_eq!(bed.reason(JobId(3)), full);
    assert_eq!(full.to_string(), "its array already runs 2 jobs, as many as it may");
    // Others go past it.
    bed.enqueue(BOB, gang(1, "gpu=1", 60, (0, 1)), false);
    assert_eq!(bed.pass_starts(), [6]);
    bed.exit(&[task(2)], 0);
    assert_eq!(bed.pass_starts(), [3]);
    bed.exit(&[task(1), task(3)], 1);
    assert_eq!(bed.pass_starts(), [4, 5]);
    assert_eq!(bed.state.array(JobId(4)).unwrap().spoiled, Some(JobId(1)));
}

#[test]
fn what_is_left_of_it_is_cancelled_in_one_input() {
    let mut bed = Bed::new(1);
    let first = bed.hand_in(array(6, None, "gpu=4"));
    assert_eq!(bed.pass_starts(), [1, 2]);
    bed.exit(&[task(1)], 0);
    let all = Command::CancelArray { job: first, by: by(ALICE) };
    let others = Command::CancelArray { job: JobId(3), by: by(BOB) };
    assert_eq!(bed.refused(others), Refusal::NotYours { job: first });
    bed.events.clear();
    bed.done(all.clone());
    assert_eq!(bed.outcome(first), Some(Outcome::Succeeded));
    assert_eq!(bed.outcome(JobId(2)), None, "it has its grace");
    for job in 3..=6 {
        assert_eq!(bed.outcome(JobId(job)), Some(Outcome::Cancelled));
    }
    bed.exit(&[task(2)], 0);
    assert_eq!(bed.outcome(JobId(2)), Some(Outcome::Cancelled));
    let hint = "there is nothing to stop".into();
    let over = Refusal::WrongState { job: first, state: "ended".into(), hint };
    assert_eq!(bed.refused(all), over);
    let single = bed.enqueue(ALICE, gang(1, "gpu=1", 60, (0, 1)), false);
    let alone = Command::CancelArray { job: single, by: by(ALICE) };
    assert_eq!(bed.refused(alone), Refusal::NoArray { job: single });
    let unknown = Command::CancelArray { job: JobId(99), by: by(ALICE) };
    assert_eq!(bed.refused(unknown), Refusal::UnknownJob { job: JobId(99) });
}

#[test]
fn limits_are_checked_for_the_whole_before_anything_changes() {
    let mut bed = Bed::new(1);
    bed.queue("default", "fifo", |q| q.waiting_max = 5);
    let submit = |job| Command::Submit { key: None, job };
    let full = Refusal::Limit { what: "waiting jobs".into(), limit: 5 };
    assert_eq!(bed.refused(submit(array(6, None, "gpu=1"))), full);
    bed.hand_in(array(5, None, "gpu=1"));
    assert_eq!(bed.refused(submit(array(1, None, "gpu=1"))), full);
    for (count, running, told) in
        [(0, None, 0), (ARRAY_MAX + 1, None, ARRAY_MAX + 1), (3, Some(0), 0)]
    {
        let refusal = bed.refused(submit(array(count, running, "gpu=1")));
        assert_eq!(refusal, Refusal::BadArray { count, running: told, most: ARRAY_MAX });
    }
}

#[test]
fn a_bid_is_for_one_job() {
    let mut bed = Bed::new(1);
    let terms = Terms::bid(crate::bed::bid(gang(1, "gpu=1", 60, (0, 100))));
    let array = Some(Array { count: 2, running_max: None });
    let job = NewJob { array, ..new_job(ALICE, terms) };
    let refusal = bed.refused(Command::Submit { key: None, job });
    assert_eq!(refusal.field(), Some("array"));
    assert_eq!(
        refusal.to_string(),
        "a bid takes no `array`: bid for each job, or hand the array to a queue"
    );
}

#[test]
fn a_job_that_was_edited_or_lost_goes_its_own_way() {
    let mut bed = Bed::new(1);
    bed.queue("default", "priority", |_: &mut Queue| {});
    bed.hand_in(array(6, None, "gpu=4"));
    let edit = |job, priority, limit| Command::Edit {
        job: JobId(job),
        by: by(ALICE),
        priority,
        limit,
        queue: None,
    };
    bed.done(edit(5, Some(9), None));
    bed.done(edit(1, None, Some(Span::from_min(10))));
    assert_eq!(bed.pass_starts(), [5, 1]);
    bed.done(Command::TaskLost { task: task(5), reason: name("gone") });
    bed.until(min(1));
    let again: Vec<u64> = {
        bed.pass();
        bed.launched().iter().map(|task| task.job.0).collect()
    };
    assert_eq!(again, [5], "it keeps its priority, and is not alike any more");
}

#[test]
fn its_book_stays_as_long_as_any_of_its_jobs_is_remembered() {
    let mut bed = Bed::new(1);
    let first = bed.hand_in(array(2, Some(1), "gpu=8"));
    assert_eq!(bed.pass_starts(), [1]);
    bed.exit(&[task(1)], 3);
    bed.until(min(60));
    assert_eq!(bed.pass_starts(), [2]);
    bed.until(min(24 * 60));
    assert!(bed.state.job(first).is_err(), "the first is forgotten");
    assert_eq!(bed.state.array(first).unwrap().spoiled, Some(first));
    bed.until(min(24 * 60 + 60 + 70));
    assert!(bed.state.array(first).is_none());
}

#[test]
fn a_repeated_submission_makes_no_second_array() {
    let mut bed = Bed::new(1);
    let submit = Command::Submit { key: Some(name("once")), job: array(3, None, "gpu=1") };
    let reply = bed.send(submit.clone());
    assert_eq!(reply, Reply::Accepted { job: JobId(1), quote: None, count: 3 });
    assert_eq!(bed.send(submit), reply);
    assert_eq!(bed.state.jobs().count(), 3);
}

#[test]
fn an_array_beyond_its_queue_s_share_borrows_as_its_jobs_would() {
    let mut bed = Bed::new(1);
    bed.queue("default", "fifo", |q| q.share = era_core::units::Milli(500));
    bed.hand_in(array(10, None, "gpu=1"));
    assert_eq!(bed.pass_starts(), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bed.wallet(BOB), Money::credits(10_000_000));
}

#[test]
fn its_first_job_stands_for_the_others_only_while_it_is_like_them() {
    let ranks_by = |formula: &str| {
        let mut bed = Bed::new(1);
        let rule = PolicyRule::Priority { formula: Formula::parse(formula).unwrap() };
        bed.done(Command::PublishPolicy { name: name("priority"), rule });
        bed.queue("default", "priority", |_| ());
        bed.hand_in(array(2, None, "gpu=8"));
        bed
    };
    let serves = |bed: &mut Bed| {
        bed.enqueue(BOB, gang(1, "gpu=8", 60, (0, 1)), false);
        let order = queue_order(&bed.state, &name("default"), None).unwrap();
        assert_eq!(order, [2, 3, 1].map(JobId));
        assert_eq!(bed.pass_starts(), [2]);
    };
    // It was changed.
    let mut bed = ranks_by("priority");
    let (job, by) = (JobId(1), by(ALICE));
    bed.done(Command::Edit { job, by, priority: Some(-5), limit: None, queue: None });
    serves(&mut bed);
    // It has run, and lost its node.
    let mut bed = ranks_by("0 - attempts");
    assert_eq!(bed.pass_starts(), [1]);
    bed.done(Command::Lost { node: NodeId(0) });
    bed.until(min(5));
    bed.done(Command::Resume { node: NodeId(0) });
    bed.effects.clear();
    serves(&mut bed);
}
