//! When a waiting job may start for the first time, so that a pass is made then.
//!
//! The core's timers know what happens by itself; that a queue is gone through is the driver's to
//! ask. It asks when something happened that may let a job start, when a job's own earliest start
//! has come, and now and then while anything waits, since waiting itself changes who goes first.

use std::collections::BTreeSet;

use era_core::job::{Job, Phase};
use era_core::units::{JobId, Span, Time};
use era_core::{Event, State};

/// How often queues are gone through while jobs wait and nothing happens.
const PASS_EVERY: Span = Span::from_s(10);

/// When passes are due.
#[derive(Debug, Default)]
pub(super) struct Openings {
    /// Earliest starts that lie ahead.
    ahead: BTreeSet<(Time, JobId)>,
    /// When the last pass was.
    passed: Time,
}

impl Openings {
    /// Those of a state that was loaded.
    pub(super) fn of(state: &State) -> Openings {
        let mut openings = Openings::default();
        for queue in state.queues() {
            for id in state.waiting(&queue.name) {
                openings.note(state, id);
            }
        }
        openings
    }

    /// Takes note of what was decided, and says whether that may let a queued job start.
    pub(super) fn look(&mut self, state: &State, events: &[Event]) -> bool {
        let mut opened = false;
        for event in events {
            match event {
                Event::Queued { job, count, .. } => {
                    (job.0..job.0 + u64::from(*count)).for_each(|id| self.note(state, JobId(id)));
                }
                Event::Requeued { job, .. } => self.note(state, *job),
                Event::Ready { jobs } => jobs.iter().for_each(|job| self.note(state, *job)),
                _ => {}
            }
            opened |= may_let_start(event);
        }
        opened && state.could_pass()
    }

    /// Whether a pass is due at this time, whatever happened.
    pub(super) fn is_due(&self, state: &State, now: Time) -> bool {
        self.next(state).is_some_and(|next| next <= now)
    }

    /// A pass was made at this time.
    pub(super) fn passed(&mut self, now: Time) {
        self.passed = now;
        while self.ahead.first().is_some_and(|(time, _)| *time <= now) {
            self.ahead.pop_first();
        }
    }

    /// When the next pass is due; `None` while nothing waits.
    pub(super) fn next(&self, state: &State) -> Option<Time> {
        let again = state.could_pass().then_some(self.passed + PASS_EVERY);
        let ahead = self.ahead.first().map(|(time, _)| *time);
        again.into_iter().chain(ahead).min()
    }

    fn note(&mut self, state: &State, id: JobId) {
        let Ok(job) = state.job(id) else { return };
        if let Some(time) = opens(job).filter(|time| *time > state.now()) {
            self.ahead.insert((time, id));
        }
    }
}

fn opens(job: &Job) -> Option<Time> {
    let part = job.parts.first()?;
    match part.phase {
        Phase::Waiting { not_before } => Some(not_before),
        _ => None,
    }
}

/// Whether room, money or right may have come that was not there before.
fn may_let_start(event: &Event) -> bool {
    match event {
        Event::Queued { .. }
        | Event::Ready { .. }
        | Event::HoldEnded { .. }
        | Event::Moved { .. }
        | Event::HoldMoved { .. }
        | Event::PartDone { .. }
        | Event::Requeued { .. }
        | Event::Replanned { .. }
        | Event::Broken { .. }
        | Event::Resized { .. }
        | Event::Ended { .. }
        | Event::Edited { .. }
        | Event::NodesChanged { .. }
        | Event::Changed { .. }
        | Event::Posted { job: None, .. } => true,
        Event::Refused { .. }
        | Event::BidDeclined { .. }
        | Event::Promised { .. }
        | Event::Held { .. }
        | Event::Launched { .. }
        | Event::Running { .. }
        | Event::Stopping { .. }
        | Event::TaskEnded { .. }
        | Event::Extended { .. }
        | Event::Posted { .. }
        | Event::Checkpointed { .. }
        | Event::IdleReported { .. }
        | Event::Ignored { .. }
        | Event::Forgotten { .. } => false,
    }
}
