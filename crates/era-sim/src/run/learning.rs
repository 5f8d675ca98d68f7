//! Predictions during a run: a learner beside the core, fed with what the core has seen end.

use era_core::Command;
use era_core::outlook::Prediction;
use era_core::resources::PerResource;
use era_core::units::{JobId, Milli, Span};

use super::setup::StatedDurations;
use super::site::group_of;
use super::{Driver, EARLY, instant};
use crate::estimate::{EstimateLearner, LearnerSettings, Past};
use crate::trace::TraceJob;

/// What was predicted of a job, in whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// One such job in ten takes at most this.
    pub low_s: i64,
    /// Half of such jobs take at most this.
    pub middle_s: i64,
    /// Nine in ten take at most this.
    pub high_s: i64,
    /// What it uses of what it asks for, where that was learned.
    pub used: PerResource<Option<Milli>>,
}

impl From<&Prediction> for Predicted {
    fn from(said: &Prediction) -> Predicted {
        Predicted {
            low_s: said.low.0 / 1000,
            middle_s: said.middle.0 / 1000,
            high_s: (said.high.0 + 999) / 1000,
            used: said.used,
        }
    }
}

impl Driver<'_> {
    /// Begins to learn where predictions were asked for, from these jobs first.
    pub(super) fn learn_from(&mut self, past: &[TraceJob]) {
        if self.setup.estimates != StatedDurations::Predicted {
            return;
        }
        // A limit that is at least what the trace's owner stated tells nothing else.
        let says = |job: &TraceJob| job.stated_s.is_some_and(|stated| stated >= job.duration_s);
        let stated = self.trace.jobs.iter().chain(past).all(says);
        let mut learner =
            EstimateLearner::new(LearnerSettings { stated, ..LearnerSettings::default() });
        let new_job = |job: &TraceJob| {
            let limit = Span::from_s(self.setup.estimates.limit_s(job));
            (self.desk.new_job(job, limit), group_of(job))
        };
        Past { jobs: past }.teach(&mut learner, new_job, instant);
        let known = learner.published().cloned();
        self.learner = Some(learner);
        if let Some(estimates) = known {
            self.world.send(instant(-3_600), Command::PublishEstimates { estimates });
        }
    }

    pub(super) fn note_submission(&mut self, index: usize, id: JobId) {
        let Some(learner) = &mut self.learner else { return };
        let state = self.world.state();
        let Ok(job) = state.job(id) else { return };
        let prediction = job.outlook.prediction.as_ref();
        learner.submitted(index, state.features_of(job), prediction);
        let predicted = prediction.map(Predicted::from);
        self.book().run.jobs[index].predicted = predicted;
    }

    /// Learns from the jobs that have ended.
    pub(super) fn note_ends(&mut self) {
        for index in self.book().take_done() {
            if let Some(learner) = &mut self.learner {
                let job = &self.trace.jobs[index];
                learner.ended(index, Span::from_s(job.duration_s), job.shares_used());
            }
        }
    }

    /// Publishes what was learned from all that ended before this second, if it is time to.
    pub(super) fn publish(&mut self, second: i64) {
        let Some(learner) = &mut self.learner else { return };
        let book = self.world.scenario();
        let jobs = self.trace.jobs.len();
        let ran = |index: usize| {
            // What is open from before the run is not on its machines.
            if index < jobs { Span::from_s(book.ran_s(index, second)) } else { Span::ZERO }
        };
        if let Some(estimates) = learner.publish(second, ran) {
            self.world.send(instant(second) - EARLY, Command::PublishEstimates { estimates });
        }
    }
}
