//! Reports become inputs; the end of a task is acknowledged once its input is durable.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use era_cloud::{Ending, Report};
use era_core::calendar::Seat;
use era_core::input::Threshold;
use era_core::job::{Job, Task, TaskId};
use era_core::units::{Name, NodeId, Time};
use era_core::{Command, Snapshot};
use era_store::accounts::Accounts;
use era_store::note::{Note, Seen};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{Engines, nodes};
use crate::clock::{Clock as _, SystemClock};
use crate::driver::{BATCH_MAX, Handle, Late, Pending, Unanswered};
use crate::gather::Gathering;

pub(super) struct Taker {
    pub(super) driver: Handle,
    pub(super) rows: Accounts,
    pub(super) engines: Engines,
    pub(super) samples: Option<mpsc::Sender<(TaskId, Vec<era_cloud::Sample>)>>,
    /// Whether the scheduler reads the clock of this machine.
    pub(super) one_clock: bool,
}

/// So many reports in 50 ms are a load, under which they are gathered for so long.
const LOAD: usize = 24;
const GATHER_TIME: Duration = Duration::from_millis(4);
/// How long it is until a scheduler that changed hands is told again.
const AGAIN: Duration = Duration::from_millis(200);

/// An input that a report became, and whose end it tells.
type Became = (Command, Option<Box<RawValue>>, Option<TaskId>);

impl Taker {
    /// Takes reports until no executor or no driver is left.
    pub(super) async fn run(self, mut reports: mpsc::Receiver<Report>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut gathering = Gathering::new(LOAD, GATHER_TIME);
        while reports.recv_many(&mut batch, BATCH_MAX).await > 0 {
            if let Some(wait) = gathering.came(batch.len(), Instant::now())
                && batch.len() < BATCH_MAX
            {
                tokio::time::sleep(wait).await;
                while batch.len() < BATCH_MAX
                    && let Ok(report) = reports.try_recv()
                {
                    batch.push(report);
                }
            }
            if let Err(error) = self.take(batch.drain(..)).await {
                // What was not acknowledged is told again after the next start.
                tracing::warn!(%error, "reports are no longer taken");
                return;
            }
        }
    }

    /// Hands in a batch, waits until all of it is durable, and acknowledges.
    async fn take(&self, reports: impl Iterator<Item = Report>) -> Result<(), Unanswered> {
        // What was gathered is handed in without a pause, so that it is one batch there too.
        let (mut inputs, mut waiting) = (Vec::new(), Vec::new());
        let mut found = Vec::new();
        for report in reports {
            if !found.is_empty() && !matches!(report, Report::Node(_)) {
                let found = std::mem::take(&mut found);
                surely(|| nodes::found(&self.driver, &self.rows, &found)).await?;
            }
            match report {
                Report::Samples { task, samples } => {
                    if let Some(sink) = &self.samples {
                        // None of them is precious: a full channel means that many come.
                        let _ = sink.try_send((task, samples));
                    }
                }
                Report::Node(node) => {
                    self.hand_in(&mut inputs, &mut waiting).await?;
                    // Those that come in a row are told together.
                    found.push(node);
                }
                Report::NodeLost { name } => {
                    self.hand_in(&mut inputs, &mut waiting).await?;
                    surely(|| nodes::lost(&self.driver, &name)).await?;
                }
                Report::NodesAre { names } => {
                    self.hand_in(&mut inputs, &mut waiting).await?;
                    surely(|| nodes::only(&self.driver, &names)).await?;
                }
                Report::NodeDrained { name } => {
                    self.hand_in(&mut inputs, &mut waiting).await?;
                    surely(|| nodes::drained(&self.driver, &name)).await?;
                }
                Report::NodeResumed { name } => {
                    self.hand_in(&mut inputs, &mut waiting).await?;
                    surely(|| nodes::resumed(&self.driver, &self.rows, &name)).await?;
                }
                report => inputs.extend(self.input(report)),
            }
        }
        if !found.is_empty() {
            surely(|| nodes::found(&self.driver, &self.rows, &found)).await?;
        }
        self.hand_in(&mut inputs, &mut waiting).await?;
        for (answer, ended) in waiting {
            answer.await?;
            for engine in self.engines.all() {
                // Whoever does not know the task passes over it.
                ended.iter().for_each(|task| engine.acknowledge(*task));
            }
        }
        Ok(())
    }

    /// What a report says to the core. When a task was over is what its executor says only where
    /// both read the same clock: one that is behind would make every run shorter than it was.
    fn input(&self, report: Report) -> Option<Became> {
        let snapshot = self.driver.snapshot();
        let known = match &report {
            Report::Exited { task, at, .. } if self.one_clock => {
                let node =
                    node_of(&snapshot, *task).and_then(|id| snapshot.cluster().node(id).ok());
                node.filter(|node| self.engines.of(node).shares_clock()).map(|_| on_our_clock(*at))
            }
            _ => None,
        };
        let (mut command, note, ended) = input(report, &snapshot)?;
        if let Command::Exited { at, .. } = &mut command {
            *at = known;
        }
        Some((command, note, ended))
    }

    async fn hand_in(
        &self,
        inputs: &mut Vec<Became>,
        waiting: &mut Vec<Waiting>,
    ) -> Result<(), Unanswered> {
        for (command, note, ended) in inputs.drain(..) {
            waiting.push((self.driver.hand_in_patiently(command, note).await?, ended));
        }
        Ok(())
    }
}

/// Tells of a node until it is known to be told: the scheduler may change hands meanwhile. What
/// the newest state knows already is not told again.
async fn surely<F>(tell: impl Fn() -> F) -> Result<(), Unanswered>
where
    F: Future<Output = Result<(), Unanswered>>,
{
    loop {
        match tell().await {
            Err(Unanswered::Unknown | Unanswered::NoLeader) => tokio::time::sleep(AGAIN).await,
            told => return told,
        }
    }
}

/// An answer to come, and whose end it makes durable.
type Waiting = (Pending, Option<TaskId>);

/// What a task's report says to the core, and what only the platform wants to know.
fn input(report: Report, snapshot: &Snapshot) -> Option<Became> {
    let seen = |at_ms: i64| Seen { at_ms, ..Seen::default() };
    let note = |seen: Seen| Note { task: Some(seen), ..Note::default() }.write();
    Some(match report {
        Report::Started { task, at, prepared } => {
            let seat = growth_seat(snapshot, task);
            let seen = Seen { prepared_ms: Some(prepared.0), seat, ..seen(at.0) };
            (Command::Started { task }, note(seen), None)
        }
        Report::Exited { task, at, code, ending } => {
            let seen = Seen { cause: cause(ending).map(str::to_owned), ..seen(at.0) };
            (Command::Exited { task, code, at: None }, note(seen), Some(task))
        }
        Report::Lost { task, reason } => {
            let seen = Seen { cause: Some("lost".to_owned()), ..Seen::default() };
            (Command::TaskLost { task, reason: reason_name(&reason) }, note(seen), Some(task))
        }
        Report::Checkpointed { task, done } => (Command::Checkpointed { task, done }, None, None),
        Report::GpusIdle { task } => {
            (Command::UsageCrossed { task, threshold: Threshold::GpusIdle }, None, None)
        }
        Report::Samples { .. }
        | Report::Node(_)
        | Report::NodeLost { .. }
        | Report::NodeDrained { .. }
        | Report::NodeResumed { .. }
        | Report::NodesAre { .. } => return None,
    })
}

/// An instant of the machine's clock as the scheduler counts: the two differ where it was set back.
fn on_our_clock(at: Time) -> Time {
    (at + SystemClock.ahead()).min(SystemClock.now())
}

/// Whether it tells an end which no limit, and nobody, had a part in.
pub(super) fn is_end_by_itself(report: &Report) -> bool {
    let Report::Exited { ending, .. } = report else { return false };
    !matches!(ending, Ending::Stopped | Ending::Limit)
}

/// The input that tells what happened while no scheduler was here. That a task began is told of
/// those that nobody has heard to begin.
pub(super) fn late(report: Report, snapshot: &Snapshot) -> Option<Late> {
    let ended = match &report {
        Report::Started { task, .. } if !is_launching(snapshot, *task) => return None,
        Report::Exited { at, .. } => Some(on_our_clock(*at)),
        _ => None,
    };
    let (mut command, note, _) = input(report, snapshot)?;
    if let Command::Exited { at, .. } = &mut command {
        *at = ended;
    }
    Some((command, note))
}

/// Whether a task was sent off, and nothing was heard of it.
fn is_launching(snapshot: &Snapshot, task: TaskId) -> bool {
    let Ok(job) = snapshot.job(task.job) else { return false };
    let Some(part) = job.parts.get(usize::from(task.part)) else { return false };
    let grown = || part.extras().iter().find(|extra| extra.rank == task.rank).map(|it| it.task);
    let rank = usize::try_from(task.rank).unwrap_or(usize::MAX);
    part.attempt == task.attempt
        && part.tasks().get(rank).copied().or_else(grown) == Some(Task::Launching)
}

/// Whether nothing of a job runs any more once these are over.
pub(super) fn nothing_left(job: &Job, over: &BTreeSet<TaskId>) -> bool {
    (0u16..).zip(&job.parts).filter(|(_, part)| part.is_active()).all(|(index, part)| {
        let task = |rank| TaskId { job: job.id, part: index, attempt: part.attempt, rank };
        let promised = (0u32..).zip(part.tasks().iter().copied());
        let grown = part.extras().iter().map(|extra| (extra.rank, extra.task));
        promised.chain(grown).all(|(rank, state)| !state.is_live() || over.contains(&task(rank)))
    })
}

/// The node that a task is on.
fn node_of(snapshot: &Snapshot, task: TaskId) -> Option<NodeId> {
    let part = snapshot.job(task.job).ok()?.parts.get(usize::from(task.part))?;
    let planned = part.plan()?.seats.get(usize::try_from(task.rank).ok()?);
    planned.copied().or_else(|| growth_seat(snapshot, task)).map(|seat| seat.node)
}

/// Where a task sits that is growth beyond a promise.
fn growth_seat(snapshot: &Snapshot, task: TaskId) -> Option<Seat> {
    let part = snapshot.job(task.job).ok()?.parts.get(usize::from(task.part))?;
    part.extras().iter().find(|extra| extra.rank == task.rank).map(|extra| extra.seat)
}

/// What ended a task, if it was not its own doing.
fn cause(ending: Ending) -> Option<&'static str> {
    match ending {
        Ending::Itself => None,
        Ending::Stopped => Some("stopped"),
        Ending::OutOfMemory => Some("out_of_memory"),
        Ending::OutOfDisk => Some("out_of_disk"),
        Ending::Limit => Some("limit"),
        Ending::NotStarted => Some("not_started"),
    }
}

/// A reason as the core can hold it.
fn reason_name(reason: &str) -> Name {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let text: String = reason.chars().map(letter).take(63).collect();
    let lost = || Name::new("lost").unwrap_or_else(|_| unreachable!("`lost` is a name"));
    Name::new(text.trim_start_matches('-')).unwrap_or_else(|_| lost())
}

/// After a restart: whatever is believed to run and is known to no executor is lost.
pub(super) async fn reconcile(driver: &Handle, engines: &Engines) {
    let asked = engines.clone();
    let known = tokio::task::spawn_blocking(move || {
        asked.all().flat_map(|engine| engine.known()).collect::<BTreeSet<TaskId>>()
    });
    let Ok(known) = known.await else {
        tracing::error!("an executor could not say what it knows: nothing is taken for lost");
        return;
    };
    let gone = |(task, _): &(TaskId, NodeId)| !known.contains(task);
    for (task, _) in believed(&driver.snapshot()).into_iter().filter(gone) {
        let seen = Seen { cause: Some("lost".to_owned()), ..Seen::default() };
        let note = Note { task: Some(seen), ..Note::default() }.write();
        let reason = reason_name("not known after a restart");
        // Should the driver stop now, the next start finds the same.
        let _ = driver.hand_in_patiently(Command::TaskLost { task, reason }, note).await;
    }
}

/// The tasks that are confirmed to run. Those sent out and not confirmed are sent out again.
fn believed(snapshot: &Snapshot) -> Vec<(TaskId, NodeId)> {
    let mut running = Vec::new();
    for job in snapshot.jobs().filter(|job| job.ended.is_none()) {
        for (index, part) in (0u16..).zip(&job.parts).filter(|(_, part)| part.is_active()) {
            let task = |rank| TaskId { job: job.id, part: index, attempt: part.attempt, rank };
            let seats = part.plan().into_iter().flat_map(|plan| &plan.seats);
            for ((rank, state), seat) in (0u32..).zip(part.tasks()).zip(seats) {
                if *state == Task::Running {
                    running.push((task(rank), seat.node));
                }
            }
            let grown = part.extras().iter().filter(|extra| extra.task == Task::Running);
            running.extend(grown.map(|extra| (task(extra.rank), extra.seat.node)));
        }
    }
    running
}
