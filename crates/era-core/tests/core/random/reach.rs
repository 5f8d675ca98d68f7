//! Where random stories get to. What they never come to, no invariant is tried on.

use std::collections::BTreeSet;

use era_core::explain::Explanation;
use era_core::job::{Outcome, StopReason};
use era_core::reason::WaitReason;
use era_core::{Event, Output, State, explain};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::dice::{Dice, story};
use super::rig::Rig;

/// How many stories are told before it counts as never.
const STORIES_MAX: usize = 1000;

const PLACES: [&str; 16] = [
    "a job of an array of which only so many run",
    "a job after another",
    "constraints in a queue",
    "fair share with jobs that wait",
    "least service with jobs that wait",
    "waiting for a turn of its array",
    "waiting for a quota",
    "waiting for funds",
    "waiting for its queue",
    "waiting for a share",
    "waiting behind others",
    "giving way to queue work",
    "giving way to a promise",
    "growth",
    "a gang that is failing",
    "a broken promise",
];

fn places(before: &State, state: &State, output: &Output, reached: &mut BTreeSet<&'static str>) {
    for queue in state.queues().iter().filter(|queue| state.waiting_in_line(&queue.name) > 0) {
        match queue.policy.as_str() {
            "fair-share" => drop(reached.insert("fair share with jobs that wait")),
            "las" => drop(reached.insert("least service with jobs that wait")),
            _ => {}
        }
    }
    for job in state.jobs() {
        let array = job.array.and_then(|member| state.array(member.first));
        if array.is_some_and(|book| book.running_max.is_some()) {
            reached.insert("a job of an array of which only so many run");
        }
        if !job.after.is_empty() {
            reached.insert("a job after another");
        }
        if job.queue().is_some() && !job.parts[0].request.constraints.is_empty() {
            reached.insert("constraints in a queue");
        }
        if job.parts.iter().any(|part| !part.extras().is_empty()) {
            reached.insert("growth");
        }
        if (0..job.parts.len()).any(|part| job.is_failing(part)) {
            reached.insert("a gang that is failing");
        }
        if job.ended.as_ref().is_some_and(|e| matches!(e.outcome, Outcome::Broken { .. })) {
            reached.insert("a broken promise");
        }
    }
    for event in &output.events {
        let Event::Stopping { job, why: StopReason::Preempted, .. } = event else { continue };
        let preemptions = |state: &State| state.job(*job).map(|job| job.parts[0].preemptions).ok();
        reached.insert(match preemptions(before) == preemptions(state) {
            true => "giving way to a promise",
            false => "giving way to queue work",
        });
    }
}

fn waits(state: &State, reached: &mut BTreeSet<&'static str>) {
    for job in state.jobs().filter(|job| job.is_waiting()) {
        let Ok(Explanation::Waiting { reason, .. }) = explain(state, job.id) else { continue };
        let place = match reason {
            WaitReason::ArrayFull { .. } => "waiting for a turn of its array",
            WaitReason::Quota { .. } => "waiting for a quota",
            WaitReason::Funds { .. } => "waiting for funds",
            WaitReason::QueueFull { .. } | WaitReason::QueueGpus { .. } => "waiting for its queue",
            WaitReason::ShareUsed { .. } => "waiting for a share",
            WaitReason::NeverFits { .. } => "waiting for larger nodes",
            WaitReason::Behind { .. } => "waiting behind others",
            _ => continue,
        };
        reached.insert(place);
    }
}

#[test]
fn random_stories_come_to_all_that_invariants_are_about() {
    let mut runner = TestRunner::deterministic();
    let mut reached = BTreeSet::new();
    for _ in 0..STORIES_MAX {
        let (world, commands) = story(1..80).new_tree(&mut runner).unwrap().current();
        let mut rig = Rig::new(&mut Dice::new(&world));
        for faces in &commands {
            let before = rig.bed.state.clone();
            let output = rig.play(faces);
            places(&before, &rig.bed.state, &output, &mut reached);
        }
        waits(&rig.bed.state, &mut reached);
        if reached.len() == PLACES.len() {
            return;
        }
    }
    let never: Vec<_> = PLACES.iter().filter(|place| !reached.contains(*place)).collect();
    panic!("in {STORIES_MAX} stories never: {never:?}");
}
