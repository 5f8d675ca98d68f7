//! What leaves the state: jobs that ended, keys that were used, shares and uses of their time.
//!
//! Each is remembered for a while, and only so many are: a house that ends a thousand jobs a second
//! must not fill up with them. Whatever is forgotten here was told in events before; who needs
//! it longer has stored them.

use super::Step;
use crate::event::Event;
use crate::state::State;
use crate::units::{JobId, Span, Time};

/// How often what is no longer needed is looked for.
const SWEEP_EVERY: Span = Span::from_h(1);
/// How many are kept until the oldest go, where so many are remembered at most. They go together:
/// what one removal copies because a snapshot shares it, the next ones use.
pub(crate) fn kept_until(most: usize) -> usize {
    most + most / 1024
}

/// When the job that ended first is to be forgotten.
pub(super) fn due(state: &State) -> Option<Time> {
    state.ended.get_min().map(|(at, _)| *at + state.settings.remember)
}

impl Step<'_> {
    /// The job that ended first leaves the state, and once an hour so do the keys, shares and uses
    /// of its time.
    pub(super) fn forget_oldest(&mut self) {
        let Some((_, job)) = self.state.ended.get_min().copied() else { return };
        self.forget(&[job]);
        let now = self.state.now;
        if now.since(self.state.swept) < SWEEP_EVERY {
            return;
        }
        self.state.swept = now;
        let remember = self.state.settings.remember;
        self.forget_keys(|state, used_at| used_at + remember <= state.now);
        let half_life = self.state.settings.fair_half_life;
        self.state.shares.forget(now, half_life);
        self.state.usage.forget_before(now);
    }

    /// Where more have ended, or were used, than are remembered, the oldest go before their time.
    pub(super) fn forget_surplus(&mut self) {
        let most = self.state.settings.remember_max as usize;
        let ended = self.state.ended.len();
        if ended > kept_until(most) {
            let oldest = self.state.ended.iter().take(ended - most);
            let oldest: Vec<JobId> = oldest.map(|(_, job)| *job).collect();
            self.forget(&oldest);
        }
        if self.state.keys.len() > kept_until(most) {
            self.forget_keys(|state, _| state.keys.len() > most);
        }
    }

    fn forget(&mut self, jobs: &[JobId]) {
        jobs.iter().for_each(|job| self.state.remove_job(*job));
        self.events.push(Event::Forgotten { jobs: jobs.to_vec() });
    }

    /// Forgets keys, the oldest first, while that holds of the next.
    fn forget_keys(&mut self, is_over: impl Fn(&State, Time) -> bool) {
        while let Some(oldest) = self.state.key_ages.get_min().cloned()
            && is_over(self.state, oldest.0)
        {
            self.state.key_ages.remove(&oldest);
            self.state.keys.remove(&(oldest.1, oldest.2));
        }
    }
}
