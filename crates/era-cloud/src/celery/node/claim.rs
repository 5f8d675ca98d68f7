//! Which worker runs a command: of several that have the same message, or have it twice, one does,
//! and once.
//!
//! A claim is a key that lasts for two leases and is renewed while its holder lives. It is held
//! from before the command begins until its end was told: a result that is kept under a claim is
//! not yet followed by what it calls. Workers of both kinds ask here, so neither runs what the
//! other does.

use std::time::Duration;

use era_core::units::Span;

use super::exec::task_of;
use super::{AGAIN, CeleryNode, Exec, ExecLimits};
use crate::celery::bus::{self, BusError, Claimed};
use crate::celery::names;
use crate::celery::outcome::{TaskEnd, started_meta};
use crate::celery::result::{self, Meta, TaskState};

/// How often a task that another worker runs is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long it is remembered that what follows a task was sent.
const REMEMBERED_TIME: Duration = Duration::from_secs(86_400);
/// How often a command that was lost is begun again.
const LOST_MAX: usize = 3;

/// What became of a command that a node was asked to run.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandOutcome {
    /// It ran here.
    Now(TaskEnd),
    /// It was over before.
    Before {
        end: Box<Meta>,
        /// Whether a Celery worker has sent what follows it.
        followed: bool,
    },
    /// It was over before, and nobody wanted to know how it ended.
    Over,
}

/// What whoever asked for a command did with its end.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandAck {
    /// It kept the result, and sent what follows where something does.
    Kept {
        /// Whether something does.
        follows: bool,
        /// Whether nobody wants a result.
        ignored: bool,
    },
    /// It is gone: the end waits for the message to come again.
    Gone {
        /// The end, if the command ran here.
        ended: Option<TaskEnd>,
        /// Whether nobody wants a result.
        ignored: bool,
    },
}

/// Whose a task is.
enum Claim {
    Mine,
    Others,
    /// It is over, and this node's to conclude.
    Over(Box<Meta>),
    /// It is over, and nothing is left to do.
    Done,
}

impl CeleryNode {
    /// Runs a command, unless it is over; waits while another worker, or another message here, has
    /// it.
    pub async fn exec(&self, id: &str, exec: &Exec, limits: ExecLimits) -> CommandOutcome {
        match self.claim_patiently(id).await {
            Claim::Over(end) => {
                let followed = self.followed_patiently(&end).await;
                return CommandOutcome::Before { end, followed };
            }
            Claim::Done => return CommandOutcome::Over,
            Claim::Mine | Claim::Others => {}
        }
        if limits.tracked {
            let meta = started_meta(id, self.name(), self.bus().now(), Span::ZERO);
            // The end tells it too.
            if let Err(error) = self.bus().store(&meta).await {
                tracing::warn!(%error, id, "a start is not told");
            }
        }
        let mut task = self.attempt(id);
        let mut ended = self.execute(task, exec, limits).await;
        for _ in 0..LOST_MAX {
            // What was lost with its lease certainly runs no more, and is begun again.
            if !matches!(ended, Some(TaskEnd::Lost(_))) {
                break;
            }
            // No attempt is started twice.
            task.attempt += 1;
            ended = self.execute(task, exec, limits).await;
        }
        ended.map_or(CommandOutcome::Over, CommandOutcome::Now)
    }

    /// How long a command is kept from other workers without renewal: its tasks may run for one
    /// lease after the worker has died, and that is counted from later.
    fn claim_time(&self) -> Duration {
        self.lease() + self.announced()
    }

    fn claim_ms(&self) -> u64 {
        u64::try_from(self.claim_time().as_millis()).unwrap_or(u64::MAX)
    }

    /// Waits until this node is the one to run a task, or it is over.
    async fn claim_patiently(&self, id: &str) -> Claim {
        loop {
            match self.claim_exec(id).await {
                Ok(Claim::Others) => tokio::time::sleep(LOOK_EVERY).await,
                Ok(claim) => return claim,
                Err(error) => {
                    tracing::warn!(%error, id, "a task could not be claimed: trying again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// Looks for a result and claims the task in one step: whoever ran it keeps the result before
    /// it lets the task go.
    async fn claim_exec(&self, id: &str) -> Result<Claim, BusError> {
        if !self.claims().reserve(id) {
            return Ok(Claim::Others);
        }
        let claim = self.ask_for(id).await;
        match &claim {
            Ok(Claim::Mine | Claim::Over(_)) => self.claims().hold(id),
            Ok(Claim::Others | Claim::Done) | Err(_) => self.claims().forget(id),
        }
        claim
    }

    async fn ask_for(&self, id: &str) -> Result<Claim, BusError> {
        let (key, name) = (names::claim(id), self.name());
        let mut all = redis::pipe();
        all.atomic();
        all.cmd("GET").arg(result::key(id));
        all.cmd("SET").arg(&key).arg(name).arg("NX").arg("PX").arg(self.claim_ms());
        all.cmd("GET").arg(&key);
        let (kept, _, holder): (Option<Vec<u8>>, Option<String>, Option<String>) =
            self.bus().run_all("let us claim a task", &all).await?;
        match holder.as_deref() {
            Some(holder) if holder == name => {}
            Some(names::NOBODY) => return Ok(Claim::Done),
            _ => return Ok(Claim::Others),
        }
        let over = kept.and_then(|bytes| Meta::read(&bytes)).filter(|meta| meta.status.is_final());
        Ok(over.map_or(Claim::Mine, |end| Claim::Over(Box::new(end))))
    }

    async fn followed_patiently(&self, end: &Meta) -> bool {
        let mut exists = redis::cmd("EXISTS");
        exists.arg(names::followed(&end.task_id, end.status));
        loop {
            match self.bus().run("say what was sent", &exists).await {
                Ok(followed) => return followed,
                Err(error) => {
                    tracing::warn!(%error, "whether anything followed a task is asked again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// The claim of a task, as it is to be let go; `None` where it is not this node's.
    pub fn claimed(&self, id: &str, ignored: bool) -> Option<Claimed> {
        let remembered = ignored.then(|| self.claim_time());
        self.claims().has(id).then(|| Claimed { id: id.to_owned(), remembered })
    }

    /// A claim that Redis was told to drop is none.
    pub fn dropped(&self, id: &str) {
        self.claims().forget(id);
    }

    /// Lets a task go whose end somebody was told, and makes sure that the end is not lost.
    pub async fn let_go(&self, id: &str, heard: CommandAck) {
        let ignored = matches!(heard, CommandAck::Kept { ignored: true, .. });
        let Some(claimed) = self.claimed(id, ignored) else { return };
        if let CommandAck::Gone { ended: Some(ended), ignored: true } = &heard {
            self.running().keep(task_of(id), ended.clone());
        }
        while let Err(error) = self.tell_end(&claimed, &heard).await {
            tracing::warn!(%error, id, "a task that is over waits for Redis");
            tokio::time::sleep(AGAIN).await;
        }
        self.dropped(id);
    }

    async fn tell_end(&self, claimed: &Claimed, heard: &CommandAck) -> Result<(), BusError> {
        let id = &claimed.id;
        let kept = self.bus().results(std::slice::from_ref(id)).await?.pop().flatten();
        let status = kept.as_ref().map(|meta| meta.status).filter(|status| status.is_final());
        let mut all = redis::pipe();
        all.atomic();
        match heard {
            CommandAck::Kept { follows: true, .. } => {
                let key = names::followed(id, status.unwrap_or(TaskState::Success));
                let time = REMEMBERED_TIME.as_secs();
                all.cmd("SETEX").arg(key).arg(time).arg(1).ignore();
            }
            // Whoever has the message next finds the result, and sends what follows.
            CommandAck::Gone { ended: Some(ended), ignored: false } if status.is_none() => {
                bus::add_result(&mut all, &ended.meta(id, self.bus().now()));
            }
            CommandAck::Kept { .. } | CommandAck::Gone { .. } => {}
        }
        claimed.add_let_go(&mut all);
        self.bus().run_all("let a task go", &all).await
    }

    /// Keeps the claims from lapsing for as long as the node holds its lease.
    pub(super) async fn renew_claims(&self) -> Result<(), BusError> {
        let held = self.claims().held();
        if held.is_empty() {
            return Ok(());
        }
        let (mut all, time) = (redis::pipe(), self.claim_ms());
        for id in held {
            all.cmd("PEXPIRE").arg(names::claim(&id)).arg(time).ignore();
        }
        self.bus().run_all("keep our tasks from being run by others", &all).await
    }
}

/// The commands that a node has claimed, or is about to.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Whether Redis has said yes.
    all: std::collections::BTreeMap<String, bool>,
}

impl Claims {
    /// Whether nobody else here has it or asks for it.
    fn reserve(&mut self, id: &str) -> bool {
        if self.all.contains_key(id) {
            return false;
        }
        self.all.insert(id.to_owned(), false);
        true
    }

    fn hold(&mut self, id: &str) {
        if let Some(held) = self.all.get_mut(id) {
            *held = true;
        }
    }

    fn forget(&mut self, id: &str) {
        self.all.remove(id);
    }

    /// Whether Redis has said that it is ours.
    fn has(&self, id: &str) -> bool {
        self.all.get(id) == Some(&true)
    }

    fn held(&self) -> Vec<String> {
        self.all.iter().filter(|(_, held)| **held).map(|(id, _)| id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_one_message_s_at_a_time_and_renewed_only_once_it_is_ours() {
        let mut claims = Claims::default();
        assert!(claims.reserve("a") && claims.reserve("b"));
        assert!(!claims.reserve("a"), "another message of the same task waits");
        assert!(claims.held().is_empty(), "what may be another worker's is not renewed");
        claims.hold("a");
        assert_eq!(claims.held(), ["a"]);
        assert!(claims.has("a") && !claims.has("b"));
        claims.forget("a");
        claims.forget("b");
        assert!(claims.reserve("a") && claims.held().is_empty());
    }
}
