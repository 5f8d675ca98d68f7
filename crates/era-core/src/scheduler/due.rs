//! When a scheduling pass is due.
//!
//! A pass is a command, since it costs time; whether one is worth it is decided here, so that
//! everybody who drives the core makes passes at the same instants. It is due at once when
//! something has happened since the last one that may let a job start or grow, when the earliest
//! start of a waiting job has come, when running work has received the service of its class, and
//! now and then while anything waits, because waiting itself changes who goes first.

use super::Step;
use crate::event::Event;
use crate::state::State;
use crate::units::{JobId, Span, Time};

/// When the next pass is due: not after the state's own time where it is overdue, and `None` while
/// a pass could do nothing.
pub fn next_pass(state: &State) -> Option<Time> {
    if state.waiting.is_empty() && state.elastic.is_empty() {
        return None;
    }
    if state.opened {
        return Some(state.now);
    }
    let again = state.passed + state.settings.pass_every;
    let start = state.not_before.get_min().map(|(time, _)| *time);
    let class = state.lines.get_min().map(|(time, _)| (*time).max(state.passed + Span(1)));
    [Some(again), start, class].into_iter().flatten().min()
}

impl Step<'_> {
    /// A pass was made. What it decided itself is no reason for another one.
    pub(super) fn passed(&mut self) {
        let state = &mut *self.state;
        (state.passed, state.opened) = (state.now, false);
        let over = state.not_before.range(..=(state.now, JobId(u64::MAX)));
        for at in over.copied().collect::<Vec<_>>() {
            state.not_before.remove(&at);
        }
        self.seen = self.events.len();
    }

    /// Takes note of what a pass has not seen yet.
    pub(super) fn note_openings(&mut self) {
        let unseen = &self.events[self.seen..];
        self.state.opened |= unseen.iter().any(|event| may_let_start(self.state, event));
    }
}

fn may_let_start(state: &State, event: &Event) -> bool {
    match event {
        // A job grows from the moment that all of it runs.
        Event::Running { job, .. } => state.elastic.contains(job),
        event => event.gives_room(),
    }
}
