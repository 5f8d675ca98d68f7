//! How a job that waits stands, told to whoever watches it: at once, and whenever the reason is
//! another one. A job may wait for something that only somebody else can give.

use std::time::{Duration, Instant};

use era_api::client::{Client, ClientError};
use era_api::job::{ExplanationView, JobFilter};

use super::follow;
use super::look::{Look, note};
use super::submit::granting;
use crate::clock::instant;

/// Between two looks, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// Most jobs of an array among which the first that waits is looked for.
const LOOKED_AT_MAX: u32 = 1000;

/// What was told of a job that may wait.
pub(crate) struct Waits {
    told: Option<String>,
    waits: bool,
    pause: Duration,
    next: Instant,
}

impl Waits {
    /// Whoever watches was told this.
    pub(crate) fn told(standing: Option<ExplanationView>) -> Waits {
        let (told, waits) = match standing {
            Some(told) => (told.why.clone(), waits(&told)),
            None => (None, true),
        };
        Waits { told, waits, pause: PAUSE.0, next: instant() + PAUSE.0 }
    }

    /// Until when nothing is to be looked at; `None` once the job waits no more.
    pub(crate) fn pause(&self) -> Option<Duration> {
        self.waits.then(|| self.next.saturating_duration_since(instant()))
    }

    /// Looks again, if it is time to.
    pub(crate) fn look(&mut self, client: &Client, job: u64, look: &Look) -> anyhow::Result<()> {
        match self.pause() {
            Some(Duration::ZERO) => self.ask(client, job, look),
            _ => Ok(()),
        }
    }

    /// The same for an array: the job that is looked at is the first that waits. While some run,
    /// others may wait for what only somebody else can give.
    pub(crate) fn look_at_array(
        &mut self,
        client: &Client,
        first: u64,
        look: &Look,
    ) -> anyhow::Result<()> {
        if self.next > instant() {
            return Ok(());
        }
        let waiting = JobFilter {
            array: Some(first),
            state: Some("waiting".to_owned()),
            limit: Some(LOOKED_AT_MAX),
            ..JobFilter::default()
        };
        // The newest come first.
        match follow::patiently(|| client.jobs(&waiting))?.items.last() {
            Some(job) => self.ask(client, job.id, look),
            None => {
                self.look_later();
                Ok(())
            }
        }
    }

    fn ask(&mut self, client: &Client, job: u64, look: &Look) -> anyhow::Result<()> {
        match client.explain(job) {
            Ok(standing) => {
                self.waits = waits(&standing);
                if self.waits && self.told != standing.why {
                    note(
                        (look.sentence(&standing.sentence) + "\n" + &granting(&standing))
                            .trim_end(),
                    );
                    self.told = standing.why;
                    self.pause = PAUSE.0;
                }
            }
            Err(error) if follow::is_passing(&error) => {}
            // It was over long ago: its log says so.
            Err(ClientError::Refused(problem)) if problem.status == 404 => self.waits = false,
            Err(error) => return Err(error.into()),
        }
        self.look_later();
        Ok(())
    }

    fn look_later(&mut self) {
        self.next = instant() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE.1);
    }
}

fn waits(standing: &ExplanationView) -> bool {
    standing.state == "waiting"
}
