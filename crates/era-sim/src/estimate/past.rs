//! What happened before: jobs that ended before a run begins, to learn from.
//!
//! They are gone through in the order in which they came and ended, so that each is seen as it
//! was when it was submitted, and nothing is learned from what had not ended yet.

use era_core::estimate::feature::Subject;
use era_core::estimate::history::DurationHistories;
use era_core::input::{NewJob, Terms};
use era_core::units::{GroupId, Span, Time};

use super::EstimateLearner;
use crate::trace::TraceJob;

/// Jobs of another time, with times on the clock of the run that follows.
pub struct Past<'a> {
    /// The jobs, in order of submission. They are taken to have started at once.
    pub jobs: &'a [TraceJob],
}

impl Past<'_> {
    /// Teaches a learner. `new_job` says how a job would be handed in, and `at` when.
    pub fn teach(
        &self,
        learner: &mut EstimateLearner,
        new_job: impl Fn(&TraceJob) -> (NewJob, GroupId),
        at: impl Fn(i64) -> Time,
    ) {
        let mut histories = DurationHistories::default();
        let mut moments: Vec<(i64, bool, usize)> = Vec::new();
        for (index, job) in self.jobs.iter().enumerate() {
            moments.push((job.submit_s, true, index));
            // Ends come before submissions of the same second.
            moments.push((job.submit_s + job.duration_s, false, index));
        }
        moments.sort_unstable();
        // Numbers that no job of the run has.
        let number = |index: usize| usize::MAX - index;
        for (second, arrives, index) in moments {
            let job = &self.jobs[index];
            let (new, group) = new_job(job);
            let Terms::Queue { request, .. } = &new.terms else { continue };
            let mut subject = Subject {
                user: new.user,
                group,
                name: new.name.as_ref(),
                attributes: &new.attributes,
                priority: new.priority,
                request,
                submitted: at(second),
                arrivals: Default::default(),
            };
            if arrives {
                subject.arrivals = subject.arrive(&mut histories);
                let features = subject.features(&histories, None);
                let predicted = learner.published().and_then(|e| e.predict(&features));
                learner.submitted(number(index), features, predicted.as_ref());
            } else {
                let took = Span::from_s(job.duration_s);
                subject.end(&mut histories, took);
                learner.ended(number(index), took, job.shares_used());
            }
            learner.publish(second, |open| {
                let job = &self.jobs[usize::MAX - open];
                Span::from_s(second - job.submit_s)
            });
        }
    }
}
