//! What is asked here goes to whoever leads.
//!
//! While nobody leads, questions wait. One that was sent and not answered when the leader went
//! away may have been carried out or not: those that are harmless twice are asked again of the
//! next leader, and of all others it is said that nobody knows. Which is which is the core's
//! nature: a keyed submission is one job however often it is asked, and the second report of a
//! task's end changes nothing. A leader that says nothing for a while is gone too: a line that is
//! cut on its way tells neither end.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use era_core::Command;
use era_drive::Answer;
use era_store::Lease;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::link::{Contact, ForwardedInput, LeaderMessage, Link, line, read};
use crate::driver::{BATCH_MAX, DriverRequest, Unanswered};

/// How often it is looked who leads.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long it is until a leader that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a question waits for a leader, unless it is patient.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a leader may say nothing, which it does every second.
const SILENCE_MAX: Duration = Duration::from_secs(4);
/// How long an answer waits for this replica to have what it is about.
const CATCH_UP_MAX: Duration = Duration::from_secs(5);
/// Most questions that wait for an answer.
const OUTSTANDING_MAX: usize = 4096;

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
    let mut forwarder =
        Forwarder { leader, asked, committed, hint, waiting: BTreeMap::new(), asked_before: 0 };
    tokio::select! {
        () = stop.cancelled() => {}
        () = watch_leader(&lease, known) => {}
        () = forwarder.run() => {}
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

/// A question that has no answer yet.
struct Waiting {
    asked: DriverRequest,
    since: Instant,
    sent: bool,
}

impl Waiting {
    /// What is told of it if it has waited long enough.
    fn late(&self) -> Option<Unanswered> {
        let late = !self.asked.patient && self.since.elapsed() > PATIENCE;
        late.then_some(if self.sent { Unanswered::Unknown } else { Unanswered::NoLeader })
    }
}

struct Forwarder {
    leader: watch::Receiver<Known>,
    asked: mpsc::Receiver<DriverRequest>,
    committed: watch::Receiver<u64>,
    hint: watch::Sender<u64>,
    /// In the order in which they were asked.
    waiting: BTreeMap<u64, Waiting>,
    asked_before: u64,
}

/// Nobody can ask any more, and all is answered.
struct Finished;

impl Forwarder {
    async fn run(&mut self) {
        let mut failed = false;
        loop {
            let known = self.leader.borrow_and_update().clone();
            if let Some((generation, contact)) = known {
                match Link::connect(&contact).await {
                    Ok(mut link) => {
                        tracing::info!(generation, address = contact.address, "a leader is there");
                        failed = false;
                        match self.talk(&mut link).await {
                            Ok(Finished) => return,
                            Err(error) => tracing::warn!(%error, generation, "the leader is gone"),
                        }
                    }
                    Err(error) if !failed => {
                        failed = true;
                        let address = contact.address;
                        tracing::warn!(%error, address, "the leader cannot be reached: trying on");
                    }
                    Err(_) => {}
                }
            }
            self.settle();
            if self.gather().await.is_err() {
                return;
            }
        }
    }

    /// Asks and hears until the link breaks or somebody else leads.
    async fn talk(&mut self, link: &mut Link) -> io::Result<Finished> {
        let mut lines = Vec::new();
        for (id, waiting) in &mut self.waiting {
            waiting.sent = true;
            lines.extend(ask(*id, &waiting.asked)?);
        }
        link.write(&lines).await?;
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut silent_from = tokio::time::Instant::now() + SILENCE_MAX;
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                text = tokio::time::timeout_at(silent_from, link.next()) => match text {
                    Ok(text) => {
                        let text = text?.ok_or(io::ErrorKind::UnexpectedEof)?;
                        self.heard(read(&text)?);
                        silent_from = tokio::time::Instant::now() + SILENCE_MAX;
                    }
                    Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "it is silent")),
                },
                changed = self.leader.changed() => {
                    let why = if changed.is_ok() { "another one leads" } else { "it is over" };
                    return Err(io::Error::other(why));
                }
                _ = look.tick() => self.give_up(Waiting::late),
                count = self.asked.recv_many(&mut batch, BATCH_MAX),
                    if self.waiting.len() < OUTSTANDING_MAX =>
                {
                    if count == 0 {
                        return Ok(Finished);
                    }
                    let mut lines = Vec::new();
                    for asked in batch.drain(..) {
                        let id = self.put(asked, true);
                        if let Some(waiting) = self.waiting.get(&id) {
                            lines.extend(ask(id, &waiting.asked)?);
                        }
                    }
                    link.write(&lines).await?;
                }
            }
        }
    }

    fn put(&mut self, asked: DriverRequest, sent: bool) -> u64 {
        self.asked_before += 1;
        self.waiting.insert(self.asked_before, Waiting { asked, since: Instant::now(), sent });
        self.asked_before
    }

    fn heard(&mut self, told: LeaderMessage) {
        match told {
            LeaderMessage::Committed(last) => self.hint_at(last),
            LeaderMessage::Answer { id, answer } => {
                self.hint_at(answer.seq);
                if let Some(waiting) = self.waiting.remove(&id) {
                    tokio::spawn(tell(waiting.asked, answer, self.committed.clone()));
                }
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

    /// Without a leader: what was sent and is not harmless twice is given up, and what has waited
    /// long enough.
    fn settle(&mut self) {
        self.give_up(|waiting| {
            let lost = waiting.sent && !is_harmless_twice(&waiting.asked.command);
            if lost { Some(Unanswered::Unknown) } else { waiting.late() }
        });
    }

    /// Tells whoever waits in vain why.
    fn give_up(&mut self, in_vain: impl Fn(&Waiting) -> Option<Unanswered>) {
        let over: Vec<(u64, Unanswered)> =
            self.waiting.iter().filter_map(|(id, one)| Some((*id, in_vain(one)?))).collect();
        for (id, why) in over {
            if let Some(waiting) = self.waiting.remove(&id) {
                // Whoever no longer waits has gone away.
                let _ = waiting.asked.answer.send(Err(why));
            }
        }
    }

    /// Takes what is asked for a moment, without anybody to ask.
    async fn gather(&mut self) -> Result<(), Finished> {
        let until = tokio::time::Instant::now() + AGAIN;
        while self.waiting.len() < OUTSTANDING_MAX {
            match tokio::time::timeout_at(until, self.asked.recv()).await {
                Ok(Some(asked)) => drop(self.put(asked, false)),
                Ok(None) => return Err(Finished),
                Err(_) => return Ok(()),
            }
        }
        tokio::time::sleep_until(until).await;
        Ok(())
    }
}

fn ask(id: u64, asked: &DriverRequest) -> io::Result<Vec<u8>> {
    line(&ForwardedInput { id, command: &asked.command, note: asked.note.as_deref() })
}

/// Answers once this replica has what the answer is about, or after a while without.
async fn tell(asked: DriverRequest, answer: Answer, mut committed: watch::Receiver<u64>) {
    let here = committed.wait_for(|last| *last >= answer.seq);
    let _ = tokio::time::timeout(CATCH_UP_MAX, here).await;
    // Whoever no longer waits has gone away.
    let _ = asked.answer.send(Ok(answer));
}

/// Whether a command that may have been carried out can be carried out again without harm.
fn is_harmless_twice(command: &Command) -> bool {
    match command {
        Command::Submit { key, .. } | Command::Hold { key, .. } => key.is_some(),
        // Reports name an attempt, and one that is over hears nothing.
        Command::Started { .. }
        | Command::Exited { .. }
        | Command::TaskLost { .. }
        | Command::Checkpointed { .. }
        | Command::UsageCrossed { .. }
        | Command::Pass
        | Command::Tick => true,
        _ => false,
    }
}
