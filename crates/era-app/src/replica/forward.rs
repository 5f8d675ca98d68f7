//! The line to whoever leads: what [`era_drive::forward`] decides about questions is carried out here.

use std::io;
use std::time::Duration;

use era_drive::Answer;
use era_drive::forward::{Forwarder, NoAnswer, Settled};
use era_store::Lease;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::link::{Contact, ForwardedInput, LeaderMessage, Link, line, read};
use crate::driver::{BATCH_MAX, DriverRequest, Unanswered};

/// How often it is looked who leads, and what has waited long enough.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long it is until a leader that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// Who leads, by how many changes, and how that one is reached.
type Known = Option<(u64, Contact)>;

/// Forwards until nobody can ask any more, or until it is stopped.
pub(super) async fn run(
    lease: Lease,
    asked: mpsc::Receiver<DriverRequest>,
    committed: watch::Receiver<u64>,
    hint: watch::Sender<u64>,
    stop: CancellationToken,
) {
    let (known, leader) = watch::channel(None);
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (begun, forwarder) = (Instant::now(), Forwarder::default());
    let mut line = LeaderLine { begun, asked, committed, hint, look, forwarder };
    tokio::select! {
        () = stop.cancelled() => {}
        () = watch_leader(&lease, known) => {}
        Finished = line.run(leader) => {}
    }
}

async fn watch_leader(lease: &Lease, known: watch::Sender<Known>) {
    loop {
        match lease.leader().await {
            Ok(leader) => {
                let contact = Contact::read(&leader.contact).map(|at| (leader.generation, at));
                known.send_if_modified(|known| {
                    let changed = *known != contact;
                    *known = contact;
                    changed
                });
            }
            Err(error) => tracing::warn!(%error, "who leads cannot be read: trying again"),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Who asked, and what goes with it.
struct Asker {
    note: Option<Box<RawValue>>,
    answer: oneshot::Sender<Result<Answer, Unanswered>>,
}

struct LeaderLine {
    /// From when instants are counted.
    begun: Instant,
    asked: mpsc::Receiver<DriverRequest>,
    committed: watch::Receiver<u64>,
    hint: watch::Sender<u64>,
    look: Interval,
    forwarder: Forwarder<Asker>,
}

/// Nobody can ask any more and all is answered, or the replica is gone.
struct Finished;

impl LeaderLine {
    async fn run(&mut self, mut leader: watch::Receiver<Known>) -> Finished {
        let mut failed = false;
        loop {
            let known = leader.borrow_and_update().clone();
            if let Some((generation, contact)) = known {
                let link = tokio::select! {
                    link = Link::connect(&contact) => link,
                    finished = self.wait() => return finished,
                };
                match link {
                    Ok(mut link) => {
                        tracing::info!(generation, address = contact.address, "a leader is there");
                        failed = false;
                        self.forwarder.met(self.begun.elapsed());
                        match self.talk(&mut link, &mut leader).await {
                            Ok(finished) => return finished,
                            Err(error) => tracing::warn!(%error, generation, "the leader is gone"),
                        }
                        tell(self.forwarder.parted());
                    }
                    Err(error) if !failed => {
                        failed = true;
                        let address = contact.address;
                        tracing::warn!(%error, address, "the leader cannot be reached: trying on");
                    }
                    Err(_) => {}
                }
            }
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                finished = self.wait() => return finished,
            }
        }
    }

    /// Asks and hears until the link breaks or somebody else leads.
    async fn talk(
        &mut self,
        link: &mut Link,
        leader: &mut watch::Receiver<Known>,
    ) -> io::Result<Finished> {
        loop {
            let mut lines = Vec::new();
            for (id, command, asker) in self.forwarder.to_send() {
                let note = asker.note.as_deref();
                lines.extend(line(&ForwardedInput { id, command, note })?);
            }
            if !lines.is_empty() {
                link.write(&lines).await?;
            }
            tokio::select! {
                biased;
                text = link.next() => {
                    let text = text?.ok_or(io::ErrorKind::UnexpectedEof)?;
                    self.hear(read(&text)?);
                }
                changed = leader.changed() => {
                    let why = if changed.is_ok() { "another one leads" } else { "it is over" };
                    return Err(io::Error::other(why));
                }
                finished = self.go_on() => if let Some(finished) = finished {
                    return Ok(finished);
                },
            }
            if self.forwarder.is_silent(self.begun.elapsed()) {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it is silent"));
            }
        }
    }

    /// Waits without anybody to ask.
    async fn wait(&mut self) -> Finished {
        loop {
            if let Some(finished) = self.go_on().await {
                return finished;
            }
        }
    }

    /// Takes what is asked, tells what the replica has come to, and gives up what has waited long
    /// enough: one of these, whichever is first. What is not waited for to its end is not lost.
    async fn go_on(&mut self) -> Option<Finished> {
        let mut batch = Vec::new();
        tokio::select! {
            changed = self.committed.changed() => match changed {
                Ok(()) => self.tell_caught_up(),
                Err(_) => return Some(Finished),
            },
            _ = self.look.tick() => tell(self.forwarder.given_up(self.begun.elapsed())),
            _ = self.asked.recv_many(&mut batch, BATCH_MAX),
                if self.forwarder.has_room() && !self.is_closed() =>
            {
                let now = self.begun.elapsed();
                for DriverRequest { command, note, patient, answer } in batch {
                    self.forwarder.ask(command, Asker { note, answer }, patient, now);
                }
            }
        }
        (self.is_closed() && self.forwarder.is_idle()).then_some(Finished)
    }

    /// Whether nobody can ask any more.
    fn is_closed(&self) -> bool {
        self.asked.is_closed() && self.asked.is_empty()
    }

    fn hear(&mut self, told: LeaderMessage) {
        let now = self.begun.elapsed();
        self.forwarder.heard(now);
        match told {
            LeaderMessage::Committed(last) => self.hint_at(last),
            LeaderMessage::Answer { id, answer } => {
                self.hint_at(answer.seq);
                self.forwarder.answered(id, answer, now);
                self.tell_caught_up();
            }
        }
    }

    fn hint_at(&self, last: u64) {
        self.hint.send_if_modified(|known| {
            let newer = last > *known;
            *known = last.max(*known);
            newer
        });
    }

    fn tell_caught_up(&mut self) {
        let here = *self.committed.borrow_and_update();
        tell(self.forwarder.caught_up(here));
    }
}

fn tell(over: Vec<Settled<Asker>>) {
    for (asker, told) in over {
        let told = told.map_err(|why| match why {
            NoAnswer::NotAsked => Unanswered::NoLeader,
            NoAnswer::Unknown => Unanswered::Unknown,
        });
        // Whoever no longer waits has gone away.
        let _ = asker.answer.send(told);
    }
}
