//! What a run teaches: how long it took, for predictions to come.

use super::Step;
use crate::estimate::feature::Subject;
use crate::job::Job;
use crate::outlook::Prediction;
use crate::units::{Milli, Span};

impl Step<'_> {
    /// Remembers how long a run took, for predictions to come.
    pub(super) fn note_run(&mut self, job: &Job, took: Span) {
        if job.queue().is_some() {
            Subject::from(job).end(&mut self.state.histories, took);
        }
    }

    /// How a job will go, by what is known at this moment.
    pub(super) fn prediction(&self, job: &Job) -> Option<Prediction> {
        self.state.estimates.predict(&self.state.features_of(job))
    }

    /// Learns how long a run took compared with what was stated: a moving mean of eight.
    pub(super) fn note_duration(&mut self, job: &Job, stated: Span, took: Span) {
        let ratio = (i128::from(took.0.max(0)) * 1000 / i128::from(stated.0.max(1))).min(1_000_000);
        let ratio = u32::try_from(ratio).unwrap_or(1000);
        let before = self.state.errors.get(&job.user).copied();
        let mean = before.map_or(ratio, |old| (old.0 * 7 + ratio) / 8);
        self.state.errors.insert(job.user, Milli(mean));
    }
}
