//! Jobs that wait for others: what the end of a job means for those that come after it.
//!
//! Only those that wait for the very job are looked at. What became ready goes into the line of
//! its queue with no wait behind it; what can never be ready any more ends. Numbers only point
//! back, so nobody waits for himself.

use std::collections::BTreeMap;

use super::Step;
use crate::event::Event;
use crate::job::{After, Outcome, When};
use crate::refusal::Refusal;
use crate::units::JobId;

/// How a job, or an array as a whole, stands for those that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// It may still end in any way.
    Open,
    /// It may still end, though not in success any more.
    Spoiled,
    Succeeded,
    /// It has ended otherwise.
    Failed,
}

impl Before {
    fn succeeds_no_more(self) -> bool {
        matches!(self, Before::Spoiled | Before::Failed)
    }

    fn is_over(self) -> bool {
        matches!(self, Before::Succeeded | Before::Failed)
    }
}

impl Step<'_> {
    /// How something that a job waits for stands, by its own number or an array's first.
    fn before(&self, id: JobId) -> Option<Before> {
        if let Some(book) = self.state.arrays.get(&id) {
            return Some(match (book.open, book.spoiled) {
                (0, None) => Before::Succeeded,
                (0, Some(_)) => Before::Failed,
                (_, None) => Before::Open,
                (_, Some(_)) => Before::Spoiled,
            });
        }
        let job = self.state.jobs.get(&id)?;
        Some(match &job.ended {
            None => Before::Open,
            Some(ended) if ended.outcome == Outcome::Succeeded => Before::Succeeded,
            Some(_) => Before::Failed,
        })
    }

    /// What of this is still to come, each named once.
    pub(super) fn still_to_come(&self, after: &[After]) -> Result<Vec<After>, Refusal> {
        let mut asked: BTreeMap<JobId, When> = BTreeMap::new();
        for After { job, when } in after {
            // Success is the stricter wish.
            asked.entry(*job).and_modify(|known| *known = (*known).min(*when)).or_insert(*when);
        }
        let mut left = Vec::new();
        for (job, when) in asked {
            let before = self.before(job).ok_or(Refusal::UnknownBefore { job })?;
            if when == When::Ok && before.succeeds_no_more() {
                return Err(Refusal::FailedBefore { job });
            }
            if !before.is_over() {
                left.push(After { job, when });
            }
        }
        Ok(left)
    }

    /// Tells those that wait for jobs that have ended, and those that wait for them, and so on.
    pub(super) fn let_followers_know(&mut self) {
        while !self.over.is_empty() {
            for id in std::mem::take(&mut self.over) {
                let Ok(job) = self.state.job(id) else { continue };
                let array = job.array.map(|member| member.first);
                let failed = job.ended.as_ref().is_some_and(|e| e.outcome != Outcome::Succeeded);
                if let Some(book) = array.and_then(|first| self.state.arrays.get_mut(&first)) {
                    let spoils = failed && book.spoiled.is_none();
                    if spoils {
                        book.spoiled = Some(id);
                    }
                    if spoils || book.open == 0 {
                        let first = book.first;
                        self.tell_followers(first);
                    }
                }
                if array != Some(id) {
                    self.tell_followers(id);
                }
            }
        }
    }

    /// Lets those go on that waited for this, and ends those that waited in vain.
    fn tell_followers(&mut self, of: JobId) {
        let Some(before) = self.before(of).filter(|before| *before != Before::Open) else { return };
        let followers = self.state.followers.range((of, JobId(0))..=(of, JobId(u64::MAX)));
        let followers: Vec<JobId> = followers.map(|(_, follower)| *follower).collect();
        let mut ready = Vec::new();
        for id in followers {
            let Some(job) = self.job(id) else { continue };
            let wants = |after: &&After| after.job == of;
            let Some(After { when, .. }) = job.after.iter().find(wants).copied() else { continue };
            if when == When::Ok && before.succeeds_no_more() {
                self.end_job(id, Outcome::Unfulfilled { job: of });
            } else if before.is_over() {
                ready.extend(self.no_longer_waits_for(id, of));
            }
        }
        if !ready.is_empty() {
            self.events.push(Event::Ready { jobs: ready });
        }
    }

    /// Takes something off what a job waits for; names the job if that was the last.
    fn no_longer_waits_for(&mut self, id: JobId, of: JobId) -> Option<JobId> {
        let now = self.state.now;
        let is_ready = self.edit_job(id, |job| {
            job.after.retain(|after| after.job != of);
            if job.after.is_empty() {
                job.ready = Some(now);
            }
            job.after.is_empty()
        });
        is_ready.filter(|ready| *ready).map(|_| id)
    }
}
