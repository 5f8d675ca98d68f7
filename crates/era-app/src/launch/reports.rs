//! Reports become inputs; the end of a task is acknowledged once its input is durable.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use era_cloud::{Ending, ExecutorReport};
use era_core::input::Threshold;
use era_core::job::TaskId;
use era_core::units::{Name, Time};
use era_core::{Command, Snapshot};
use era_drive::{Gathering, tasks};
use era_store::accounts::AccountTables;
use era_store::note::{Note, Observation};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Engines, nodes};
use crate::clock::Clock;
use crate::driver::{BATCH_MAX, Handle, Pending, TaskEndReport, Unanswered};

pub(super) struct Taker {
    pub(super) driver: Handle,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) rows: AccountTables,
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
    pub(super) async fn run(self, mut reports: mpsc::Receiver<ExecutorReport>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let begun = Instant::now();
        let mut gathering = Gathering::new(LOAD, GATHER_TIME);
        while reports.recv_many(&mut batch, BATCH_MAX).await > 0 {
            if let Some(wait) = gathering.came(batch.len(), begun.elapsed())
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
    async fn take(&self, reports: impl Iterator<Item = ExecutorReport>) -> Result<(), Unanswered> {
        // What was gathered is handed in without a pause, so that it is one batch there too.
        let (mut inputs, mut waiting) = (Vec::new(), Vec::new());
        let mut found = Vec::new();
        for report in reports {
            if !found.is_empty() && !matches!(report, ExecutorReport::Node(_)) {
                let found = std::mem::take(&mut found);
                surely(|| nodes::found(&self.driver, &self.rows, &found)).await?;
            }
            match report {
                ExecutorReport::Samples { task, samples } => {
                    if let Some(sink) = &self.samples {
                        // None of them is precious: a full channel means that many come.
                        let _ = sink.try_send((task, samples));
                    }
                }
                ExecutorReport::Node(node) => {
                    self.hand_in(&mut inputs, &mut waiting).await?;
                    // Those that come in a row are told together.
                    found.push(node);
                }
                ExecutorReport::NodeLost { name } => {
                    self.hand_in(&mut inputs, &mut waiting).await?;
                    surely(|| nodes::lost(&self.driver, &name)).await?;
                }
                ExecutorReport::NodesAre { names } => {
                    self.hand_in(&mut inputs, &mut waiting).await?;
                    surely(|| nodes::only(&self.driver, &names)).await?;
                }
                ExecutorReport::NodeDrained { name } => {
                    self.hand_in(&mut inputs, &mut waiting).await?;
                    surely(|| nodes::drained(&self.driver, &name)).await?;
                }
                ExecutorReport::NodeResumed { name } => {
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
    fn input(&self, report: ExecutorReport) -> Option<Became> {
        let snapshot = self.driver.snapshot();
        let known = match &report {
            ExecutorReport::Exited { task, at, .. } if self.one_clock => {
                let seat = tasks::seat(&snapshot, *task);
                let node = seat.and_then(|seat| snapshot.cluster().node(seat.node).ok());
                node.filter(|node| self.engines.of(node).shares_clock())
                    .map(|_| on_our_clock(&*self.clock, *at))
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
fn input(report: ExecutorReport, snapshot: &Snapshot) -> Option<Became> {
    let seen = |at_ms: i64| Observation { at_ms, ..Observation::default() };
    let note = |seen: Observation| Note { task: Some(seen), ..Note::default() }.write();
    Some(match report {
        ExecutorReport::Started { task, at, prepared } => {
            let seat = tasks::growth_seat(snapshot, task);
            let seen = Observation { prepared_ms: Some(prepared.0), seat, ..seen(at.0) };
            (Command::Started { task }, note(seen), None)
        }
        ExecutorReport::Exited { task, at, code, ending } => {
            let seen = Observation { cause: cause(ending).map(str::to_owned), ..seen(at.0) };
            (Command::Exited { task, code, at: None }, note(seen), Some(task))
        }
        ExecutorReport::Lost { task, reason } => {
            let seen = Observation { cause: Some("lost".to_owned()), ..Observation::default() };
            (Command::TaskLost { task, reason: reason_name(&reason) }, note(seen), Some(task))
        }
        ExecutorReport::Checkpointed { task, done } => {
            (Command::Checkpointed { task, done }, None, None)
        }
        ExecutorReport::GpusIdle { task } => {
            (Command::UsageCrossed { task, threshold: Threshold::GpusIdle }, None, None)
        }
        ExecutorReport::Samples { .. }
        | ExecutorReport::Node(_)
        | ExecutorReport::NodeLost { .. }
        | ExecutorReport::NodeDrained { .. }
        | ExecutorReport::NodeResumed { .. }
        | ExecutorReport::NodesAre { .. } => return None,
    })
}

/// An instant of the machine's clock as the scheduler counts: the two differ where it was set back.
fn on_our_clock(clock: &dyn Clock, at: Time) -> Time {
    (at + clock.ahead()).min(clock.now())
}

/// Whether it tells an end which no limit, and nobody, had a part in.
pub(super) fn is_end_by_itself(report: &ExecutorReport) -> bool {
    let ExecutorReport::Exited { ending, .. } = report else { return false };
    !matches!(ending, Ending::Stopped | Ending::Limit)
}

/// The input that tells what happened while no scheduler was here. That a task began is told of
/// those that nobody has heard to begin.
pub(super) fn late(
    report: ExecutorReport,
    snapshot: &Snapshot,
    clock: &dyn Clock,
) -> Option<TaskEndReport> {
    let ended = match &report {
        ExecutorReport::Started { task, .. } if !tasks::is_launching(snapshot, *task) => {
            return None;
        }
        ExecutorReport::Exited { at, .. } => Some(on_our_clock(clock, *at)),
        _ => None,
    };
    let (mut command, note, _) = input(report, snapshot)?;
    if let Command::Exited { at, .. } = &mut command {
        *at = ended;
    }
    Some((command, note))
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
    for task in tasks::missing(&driver.snapshot(), &known) {
        let seen = Observation { cause: Some("lost".to_owned()), ..Observation::default() };
        let note = Note { task: Some(seen), ..Note::default() }.write();
        let reason = reason_name("not known after a restart");
        // Should the driver stop now, the next start finds the same.
        let _ = driver.hand_in_patiently(Command::TaskLost { task, reason }, note).await;
    }
}
