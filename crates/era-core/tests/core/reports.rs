//! What executors report: started, exited, lost, checkpointed, idle.

use era_core::input::Threshold;
use era_core::job::{Outcome, Overrun, StopReason, TaskId};
use era_core::ledger::Account;
use era_core::output::Notification;
use era_core::units::{JobId, Span};
use era_core::{Command, Effect, Event, Reply, outstanding};

use crate::bed::{ALICE, Bed, bid, gang, min, name};
use crate::verbs::{for_queue, queue_terms, with_bid};

#[test]
fn a_gang_runs_when_its_last_task_has_started_and_its_owner_is_told() {
    let mut bed = Bed::new(2);
    let job = bed.promise(gang(2, "gpu=8", 60, (0, 100)));
    let (first, second) = (bed.take_launch().0, bed.take_launch().0);
    bed.done(Command::Started { task: first });
    assert!(!bed.saw(|e| matches!(e, Event::Running { .. })));
    bed.done(Command::Started { task: second });
    assert!(bed.saw(|e| *e == Event::Running { job, part: 0, attempt: 1 }));
    let notification = Effect::Notify { user: ALICE, job, notification: Notification::Started };
    assert_eq!(bed.effects.pop_front(), Some(notification));
}

#[test]
fn a_gang_has_run_though_its_first_task_is_over_before_its_last_begins() {
    let mut bed = Bed::new(2);
    let job = bed.promise(gang(2, "gpu=8", 60, (0, 100)));
    let (first, second) = (bed.take_launch().0, bed.take_launch().0);
    bed.done(Command::Started { task: first });
    bed.done(Command::Exited { task: first, code: 0, at: None });
    assert!(!bed.saw(|e| matches!(e, Event::Running { .. })));
    bed.done(Command::Started { task: second });
    assert!(bed.saw(|e| *e == Event::Running { job, part: 0, attempt: 1 }));
    let notification = Effect::Notify { user: ALICE, job, notification: Notification::Started };
    assert_eq!(bed.effects.pop_front(), Some(notification));
}

#[test]
fn what_is_said_twice_or_of_nothing_known_changes_nothing() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 100)));
    let task = bed.run(job)[0];
    let before = bed.state.clone();
    let wrong = [
        Command::Started { task },
        Command::Exited { task: TaskId { attempt: 0, ..task }, code: 0, at: None },
        Command::Exited { task: TaskId { rank: 1, ..task }, code: 0, at: None },
        Command::Exited { task: TaskId { part: 1, ..task }, code: 0, at: None },
        Command::Exited { task: TaskId { job: JobId(9), ..task }, code: 0, at: None },
        Command::TaskLost { task: TaskId { attempt: 2, ..task }, reason: name("gone") },
        Command::Checkpointed { task, done: Span::from_min(60) },
        Command::Checkpointed { task, done: Span(0) },
        Command::Checkpointed { task, done: Span(-1) },
        Command::UsageCrossed {
            task: TaskId { attempt: 9, ..task },
            threshold: Threshold::GpusIdle,
        },
    ];
    for command in wrong {
        let said = format!("{command:?}");
        assert_eq!(bed.send(command), Reply::Ignored, "{said}");
        assert!(bed.state.same_but_clock(&before), "{said}");
    }
    bed.assert_quiet();
}

#[test]
fn a_task_that_fails_stops_its_gang_and_the_job_has_failed() {
    let mut bed = Bed::new(2);
    let job = bed.promise(gang(2, "gpu=8", 60, (0, 100)));
    let tasks = bed.run(job);
    bed.done(Command::Exited { task: tasks[1], code: 3, at: None });
    let (task, why, _) = bed.take_stop();
    assert_eq!((task, why), (tasks[0], StopReason::Failed { code: 3 }));
    assert_eq!(bed.outcome(job), None);
    bed.done(Command::Exited { task: tasks[0], code: 143, at: None });
    assert_eq!(bed.outcome(job), Some(Outcome::Failed { code: 3 }));
}

#[test]
fn an_end_that_is_told_late_is_dated_and_settled_as_it_was() {
    let used = |at: Option<i64>, told: i64| {
        let mut bed = Bed::new(2);
        let before = bed.wallet(ALICE);
        let job = bed.promise(gang(2, "gpu=8", 60, (0, 100)));
        let paid = before.0 - bed.wallet(ALICE).0;
        let tasks = bed.run(job);
        bed.until(min(told));
        // The other one was over before.
        let early = Command::Exited { task: tasks[0], code: 0, at: at.map(|at| min(at - 1)) };
        bed.done(early);
        bed.done(Command::Exited { task: tasks[1], code: 0, at: at.map(min) });
        let ended = bed.state.job(job).unwrap().ended.clone().unwrap();
        assert_eq!(ended.outcome, Outcome::Succeeded);
        assert_eq!(bed.state.now(), min(told), "the core's own time goes on");
        // Four fifths of what was not used come back.
        let back = bed.wallet(ALICE).0 - (before.0 - paid);
        (ended.at, 60 - (back * 75 + paid / 2) / paid)
    };
    assert_eq!(used(None, 40), (min(40), 40));
    assert_eq!(used(Some(10), 40), (min(10), 10));
    assert_eq!(used(Some(-99), 40), (min(0), 0), "nothing is over before it was launched");
    assert_eq!(used(Some(50), 40), (min(50), 50), "it may be told before time goes on");
    assert_eq!(used(Some(99), 40), (min(60), 60), "but nothing is over after its plan");
}

#[test]
fn queue_work_pays_until_its_end_and_not_until_that_is_told() {
    let paid = |at: Option<i64>| {
        let mut bed = Bed::new(1);
        let before = bed.wallet(ALICE);
        let job = bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 100)), false);
        bed.pass();
        let tasks = bed.run(job);
        bed.until(min(40));
        bed.done(Command::Exited { task: tasks[0], code: 0, at: at.map(min) });
        assert!(bed.saw(|e| matches!(e, Event::Ended { at: told, .. } if *told == at.map(min))));
        before.0 - bed.wallet(ALICE).0
    };
    assert!(paid(None) > 0);
    // A run's price is rounded up once.
    assert!((paid(None) - 4 * paid(Some(10))).abs() < 4);
}

#[test]
fn of_a_gang_that_lost_a_task_nobody_knows_when_it_was_over() {
    let mut bed = Bed::new(2);
    let job = bed.enqueue(ALICE, gang(2, "gpu=4", 60, (0, 100)), false);
    bed.pass();
    let tasks = bed.run(job);
    bed.until(min(40));
    bed.done(Command::Exited { task: tasks[0], code: 3, at: Some(min(10)) });
    bed.done(Command::TaskLost { task: tasks[1], reason: name("gone") });
    assert_eq!(bed.state.job(job).unwrap().ended.as_ref().map(|e| e.at), Some(min(40)));
}

#[test]
fn an_exit_whose_time_nobody_knew_is_not_dated_by_a_later_one() {
    let ended = |exits: [(usize, Option<i64>); 2]| {
        let mut bed = Bed::new(2);
        let job = bed.enqueue(ALICE, gang(2, "gpu=8", 60, (0, 100)), false);
        bed.pass();
        let tasks = bed.run(job);
        bed.until(min(40));
        for (rank, at) in exits {
            bed.done(Command::Exited { task: tasks[rank], code: 0, at: at.map(min) });
        }
        bed.state.job(job).unwrap().ended.as_ref().map(|e| e.at)
    };
    assert_eq!(ended([(0, None), (1, Some(10))]), Some(min(40)));
    assert_eq!(ended([(1, Some(10)), (0, None)]), Some(min(40)));
    assert_eq!(ended([(1, Some(20)), (0, Some(10))]), Some(min(20)));
}

#[test]
fn a_gang_has_succeeded_when_all_its_tasks_have() {
    let mut bed = Bed::new(2);
    let job = bed.promise(gang(2, "gpu=8", 60, (0, 100)));
    let tasks = bed.run(job);
    bed.exit(&tasks[..1], 0);
    assert_eq!(bed.is(job), "running");
    bed.exit(&tasks[1..], 0);
    assert_eq!(bed.outcome(job), Some(Outcome::Succeeded));
}

#[test]
fn a_lost_task_of_a_promise_goes_on_within_its_window_with_what_was_saved() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 100)));
    let task = bed.run(job)[0];
    bed.until(min(30));
    bed.done(Command::Checkpointed { task, done: Span::from_min(20) });
    bed.done(Command::TaskLost { task, reason: name("xid-79") });
    let again = bed.run(job);
    // The rest of 40 minutes begins after the grace period of whatever was left of the gang.
    assert!(again.is_empty());
    bed.until(min(31));
    let again = bed.run(job);
    assert_eq!(again[0].attempt, 2);
    let plan = bed.state.job(job).unwrap().first_part().plan().unwrap().clone();
    assert_eq!(plan.to.since(plan.from), Span::from_min(40));
}

#[test]
fn a_lost_task_of_queue_work_goes_back_to_its_queue_with_age_and_checkpoint() {
    let mut bed = Bed::new(1);
    let job = bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), false);
    let young = bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), false);
    bed.pass();
    let task = bed.run(job)[0];
    bed.until(min(30));
    bed.done(Command::Checkpointed { task, done: Span::from_min(25) });
    assert!(bed.saw(|e| *e == Event::Checkpointed { job, part: 0, done_ms: 1_500_000 }));
    bed.done(Command::TaskLost { task, reason: name("xid-79") });
    bed.until(min(31));
    assert_eq!(bed.order("default"), [job, young], "it kept its age");
    bed.pass();
    let part = bed.state.job(job).unwrap().first_part();
    assert_eq!(part.plan().unwrap().to, min(31) + Span::from_min(35));
    assert_eq!(part.attempt, 2);
}

#[test]
fn a_checkpoint_only_ever_grows() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 100)));
    let task = bed.run(job)[0];
    bed.done(Command::Checkpointed { task, done: Span::from_min(20) });
    let less = Command::Checkpointed { task, done: Span::from_min(10) };
    assert_eq!(bed.send(less), Reply::Ignored);
    assert_eq!(bed.state.job(job).unwrap().first_part().done, Span::from_min(20));
}

#[test]
fn idle_gpus_are_taken_back_only_from_those_who_opted_in() {
    let mut bed = Bed::new(1);
    let idle = |task| Command::UsageCrossed { task, threshold: Threshold::GpusIdle };
    let keeps = bed.promise(gang(1, "gpu=4", 60, (0, 100)));
    let task = bed.run(keeps)[0];
    bed.done(idle(task));
    assert!(bed.saw(|e| *e == Event::IdleReported { job: keeps, released: false }));
    assert_eq!(bed.is(keeps), "running");
    let notification = Effect::Notify { user: ALICE, job: keeps, notification: Notification::Idle };
    assert_eq!(bed.effects.pop_front(), Some(notification));

    let wish = bid(gang(1, "gpu=4", 60, (0, 100)));
    let gives = bed.accept(with_bid(wish, None, Overrun::Stop, true));
    let task = bed.run(gives)[0];
    bed.done(idle(task));
    assert_eq!(bed.take_stop().1, StopReason::Released);
    assert_eq!(bed.send(idle(task)), Reply::Done, "it is told again, and stopped once");
    bed.assert_quiet();
    bed.exit(&[task], 0);
    assert_eq!(bed.outcome(gives), Some(Outcome::Released));
}

#[test]
fn idle_queue_work_gives_way_too_if_its_owner_said_so() {
    let mut bed = Bed::new(1);
    let mut terms = queue_terms("default");
    terms.release_when_idle = true;
    let job = bed.accept(for_queue(ALICE, gang(1, "gpu=4", 60, (0, 1)), terms));
    bed.pass();
    let task = bed.run(job)[0];
    bed.done(Command::UsageCrossed { task, threshold: Threshold::GpusIdle });
    assert_eq!(bed.take_stop().1, StopReason::Released);
}

#[test]
fn a_task_that_does_not_answer_is_gone_when_its_grace_is_over() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 100)));
    bed.run(job);
    bed.done(Command::Cancel { job, by: crate::bed::by(ALICE) });
    bed.until(bed.at + Span::from_s(29));
    assert_eq!(bed.outcome(job), None);
    bed.until(bed.at + Span::from_s(1));
    assert_eq!(bed.outcome(job), Some(Outcome::Cancelled));
    assert_eq!(bed.state.ledger().balance(Account::Escrow(job)).0, 0);
}

#[test]
fn effects_that_nobody_confirmed_are_found_again_in_the_state() {
    let mut bed = Bed::new(2);
    let job = bed.promise(gang(2, "gpu=8", 60, (0, 100)));
    let launches: Vec<Effect> = bed.effects.drain(..).collect();
    assert_eq!(outstanding(&bed.state), launches);
    let task = bed.task(job, 0);
    bed.done(Command::Started { task });
    assert_eq!(outstanding(&bed.state), launches[1..]);
    bed.done(Command::Cancel { job, by: crate::bed::by(ALICE) });
    let stops: Vec<Effect> = bed.effects.drain(..).collect();
    assert_eq!(stops.len(), 2);
    assert_eq!(outstanding(&bed.state), stops);
    bed.done(Command::Exited { task, code: 0, at: None });
    assert_eq!(outstanding(&bed.state), stops[1..]);
    bed.until(min(2));
    assert_eq!(outstanding(&bed.state), []);
}
