//! All tasks of an executor, looked after by one loop: orders in, looks at the engine, leases
//! renewed, reports out.
//!
//! Whatever takes long is done beside the loop and comes back to it as news, so a slow engine or a
//! shared folder that hangs holds up nobody else. What is to be done about one task is decided in
//! [`held`](super::held).

mod ending;
mod looking;

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::PathBuf;
use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::{JobId, Span, Time};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::begin::{LaunchContext, Laying, Problem};
use super::engine::DockerEngine;
use super::failure::DockerError;
use super::follow::LogTail;
use super::held::{AWAY_PATIENCE, FORGOTTEN, Held, NODE_UNKNOWN, Phase, SUPERSEDED};
use super::instance::{EngineNode, InstanceState, InstanceStatus};
use super::lease::{LeaseOrder, Shared};
use super::nodes::{Nodes, Remembered};
use super::task::TaskDefaults;
use super::{Known, lock};
use crate::executor::{ExecutorReport, Launch, Order, Reports};
use crate::task::Places;

/// How often due things are looked for.
const TICK: Duration = Duration::from_millis(200);
/// How often the engine is looked at: so many times as long as a look takes, within bounds.
const LOOK_SHARE: u32 = 8;
const LOOK_MIN: Duration = Duration::from_millis(100);
const LOOK_MAX: Duration = Duration::from_secs(3);
/// How often while no task is under way.
const LOOK_IDLE: Duration = Duration::from_secs(1);
/// How long it is until an instance that could not be started is made again.
const AGAIN: Duration = Duration::from_secs(2);
/// How long a lease that ends a task may take to be written before its end is told all the same.
const WRITE_PATIENCE: Duration = Duration::from_secs(2);

/// What is kept of the engine's nodes, in the data folder.
const NODES_FILE: &str = "docker-nodes";

/// What is said to the loop.
pub(super) enum LoopCommand {
    Order(Box<Order>),
    Acknowledge(TaskId),
}

/// What comes back to it.
enum LoopEvent {
    /// A launch was carried out, or not.
    Begun(TaskId, Result<(), Problem>),
    /// The engine was looked at.
    Looked(Result<(Vec<EngineNode>, Vec<InstanceStatus>), DockerError>, Instant),
    /// All of an ended task's log is there.
    Drained(TaskId, Box<ExecutorReport>),
}

/// Something to be written: a lease, or what a server that starts anew must know.
struct Write {
    path: PathBuf,
    write: Box<dyn FnOnce() -> io::Result<()> + Send>,
    done: Option<oneshot::Sender<()>>,
}

pub(super) struct TaskLoop {
    engine: DockerEngine,
    defaults: TaskDefaults,
    image: Option<String>,
    reports: Reports,
    known: Known,
    tasks: BTreeMap<TaskId, Held>,
    /// Starts under way.
    starts: BTreeMap<TaskId, AbortHandle>,
    tails: BTreeMap<TaskId, (LogTail, Vec<AbortHandle>)>,
    nodes: Nodes,
    /// Whether anything was told of them yet.
    nodes_told: bool,
    /// What a server that starts anew must know of them.
    remembered: Remembered,
    news: (mpsc::UnboundedSender<LoopEvent>, Option<mpsc::UnboundedReceiver<LoopEvent>>),
    full: (mpsc::UnboundedSender<TaskId>, Option<mpsc::UnboundedReceiver<TaskId>>),
    writes: mpsc::UnboundedSender<Write>,
    laying: Laying,
    looking: bool,
    look_due: Instant,
    /// Since when the engine does not answer.
    away: Option<Instant>,
}

impl TaskLoop {
    pub(super) fn new(
        engine: DockerEngine,
        defaults: TaskDefaults,
        image: Option<String>,
        reports: Reports,
        known: Known,
    ) -> TaskLoop {
        let (news, heard) = mpsc::unbounded_channel();
        let (full, filled) = mpsc::unbounded_channel();
        let (writes, mut to_write) = mpsc::unbounded_channel::<Write>();
        // They are written one after the other, so that none overtakes a later word.
        tokio::task::spawn_blocking(move || {
            while let Some(Write { path, write, done }) = to_write.blocking_recv() {
                if let Err(error) = write() {
                    tracing::warn!(path = %path.display(), %error, "it was not written");
                }
                // Whoever waited may have given up.
                done.map(|done| done.send(()));
            }
        });
        TaskLoop {
            engine,
            defaults,
            image,
            reports,
            known,
            tasks: BTreeMap::new(),
            starts: BTreeMap::new(),
            tails: BTreeMap::new(),
            nodes: Nodes::default(),
            nodes_told: false,
            remembered: Remembered::default(),
            news: (news, Some(heard)),
            full: (full, Some(filled)),
            writes,
            laying: Laying::default(),
            looking: false,
            look_due: Instant::now(),
            away: None,
        }
    }

    /// Finds what runs already. Of several attempts of one gang only the newest is wanted.
    pub(super) async fn adopt(&mut self) -> Result<(), DockerError> {
        let path = self.defaults.data.join(NODES_FILE);
        let remembered = Remembered::read(&path).inspect_err(|error| {
            tracing::warn!(path = %path.display(), %error, "what was known of nodes is forgotten");
        });
        self.remembered = remembered.unwrap_or_default();
        // Orders may come before the first look: they name nodes and GPUs.
        self.nodes = Nodes::of(&self.engine.nodes().await?, &self.remembered);
        let found = self.engine.list().await?;
        let mut newest: BTreeMap<(JobId, u16), u32> = BTreeMap::new();
        for InstanceStatus { task, .. } in &found {
            let attempt = newest.entry((task.job, task.part)).or_default();
            *attempt = task.attempt.max(*attempt);
        }
        for InstanceStatus { task, .. } in &found {
            let shared = Shared::of(&self.job_folder(*task), *task);
            let old = newest.get(&(task.job, task.part)).is_some_and(|new| task.attempt < *new);
            match shared.launch() {
                Ok(launch) => {
                    let (generation, over) = shared.said().unwrap_or((0, false));
                    let mut held = Held::new(launch, Phase::Waits, generation);
                    held.said_over = over;
                    held.made = Some(Instant::now());
                    if over || old {
                        held.cut_off(&self.defaults.times, Instant::now());
                    }
                    held.stray = old;
                    self.tasks.insert(*task, held);
                    if old {
                        self.revoke(*task).await;
                        self.delete(*task);
                    } else {
                        lock(&self.known).insert(*task);
                    }
                }
                Err(error) => {
                    tracing::warn!(%task, %error, "a task that nobody remembers is removed");
                    self.engine.delete(*task).await?;
                }
            }
        }
        let gangs = self.tasks.keys().map(|task| TaskId { rank: 0, ..*task }).collect();
        self.engine.sweep(&gangs).await
    }

    fn job_folder(&self, task: TaskId) -> PathBuf {
        task.job.folder(&self.defaults.data)
    }

    /// Goes on until nobody gives orders any more. What runs goes on without us.
    pub(super) async fn go_on(mut self, mut says: mpsc::UnboundedReceiver<LoopCommand>) {
        let (Some(mut news), Some(mut full)) = (self.news.1.take(), self.full.1.take()) else {
            return;
        };
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                said = says.recv() => match said {
                    Some(LoopCommand::Order(order)) => self.obey(*order).await,
                    Some(LoopCommand::Acknowledge(task)) => self.acknowledged(task),
                    None => break,
                },
                Some(news) = news.recv() => self.hear(news).await,
                Some(task) = full.recv() => self.filled(task).await,
                _ = tick.tick() => self.tick().await,
            }
            if self.reports.is_closed() {
                break;
            }
        }
        self.starts.values().for_each(AbortHandle::abort);
        for (_, (_, handles)) in std::mem::take(&mut self.tails) {
            handles.iter().for_each(AbortHandle::abort);
        }
    }

    async fn report(&self, report: ExecutorReport) {
        // The other end is gone only when nobody takes reports any more.
        let _ = self.reports.send(report).await;
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Launch(launch) => self.launch(launch).await,
            Order::Stage(launch) => {
                // What is not known now is found out at the start.
                if let Some(hand) = self.hand(&launch) {
                    tokio::spawn(async move { hand.stage(launch).await });
                }
            }
            Order::Stop { task, until } => self.stop(task, until).await,
            Order::Prolong { task, until } => self.prolong(task, until),
            Order::Resize { job, part, attempt, replicas } => {
                let folder = self.job_folder(TaskId { job, part, attempt, rank: 0 });
                let path = Places::world(&folder, part, attempt);
                let new = path.with_extension("new");
                let written = std::fs::write(&new, format!("{replicas}\n"))
                    .and_then(|()| std::fs::rename(&new, &path));
                if let Err(error) = written {
                    tracing::warn!(%job, %error, "a gang could not be told its size");
                }
            }
        }
    }

    /// A task may run longer. The new end is kept, so that a server that starts anew knows of it.
    fn prolong(&mut self, task: TaskId, until: Time) {
        let Some(held) = self.tasks.get_mut(&task) else { return };
        held.until = until;
        // A start under way writes what it began with: it is said again once that is done.
        if held.phase == Phase::Beginning {
            return;
        }
        held.launch.until = until;
        if held.phase == Phase::Blocked || !held.is_live() {
            return;
        }
        let (word, stops) = (held.word(self.engine.clock.now()), held.stop.is_some());
        let (launch, shared) = (held.launch.clone(), Shared::of(&held.launch.spec.folder, task));
        let path = shared.folder.clone();
        self.write_down(path, None, move || shared.keep(&launch));
        // What it was told of its end stands.
        if !stops {
            self.say(task, word);
        }
    }

    // Starting.

    async fn launch(&mut self, launch: Launch) {
        let task = launch.task;
        if let Some(held) = self.tasks.get_mut(&task) {
            // The same order again: what is known is told again.
            match &held.phase {
                _ if held.stray => held.asked_again = true,
                Phase::Runs(at) => {
                    let (at, prepared) = (*at, Span::ZERO);
                    self.report(ExecutorReport::Started { task, at, prepared }).await;
                }
                Phase::Ended(report) => {
                    let report = report.clone();
                    self.report(report).await;
                }
                _ => {}
            }
            return;
        }
        // Of several attempts of one gang only the newest is wanted.
        if self.has_newer(task) {
            let reason = SUPERSEDED.into();
            return self.report(ExecutorReport::Lost { task, reason }).await;
        }
        let older: Vec<TaskId> = self.older(task).collect();
        for old in older {
            self.end_stray(old).await;
        }
        let shared = Shared::of(&launch.spec.folder, task);
        let (generation, _) = shared.said().unwrap_or((0, false));
        self.tasks.insert(task, Held::new(launch, Phase::Blocked, generation));
        self.unblock(task);
    }

    /// The older attempts of a task's gang that are looked after.
    fn older(&self, task: TaskId) -> impl Iterator<Item = TaskId> {
        let first = TaskId { attempt: 0, rank: 0, ..task };
        let last = TaskId { rank: 0, ..task };
        self.tasks.range(first..last).map(|(old, _)| *old)
    }

    /// Whether a newer attempt of its gang is looked after.
    fn has_newer(&self, task: TaskId) -> bool {
        let last = TaskId { rank: u32::MAX, ..task };
        let of_part = |newer: &TaskId| (newer.job, newer.part) == (task.job, task.part);
        let newer = self.tasks.range((Bound::Excluded(last), Bound::Unbounded)).next();
        newer.is_some_and(|(newer, _)| of_part(newer))
    }

    /// An older attempt is in the way: it is ended, and nobody is told.
    async fn end_stray(&mut self, task: TaskId) {
        let times = self.defaults.times;
        let Some(held) = self.tasks.get_mut(&task) else { return };
        let first = !std::mem::replace(&mut held.stray, true);
        if !held.is_live() {
            self.tasks.remove(&task);
            self.delete(task);
        } else if first {
            held.cut_off(&times, Instant::now());
            self.revoke(task).await;
            self.delete(task);
        }
    }

    /// Starts a task once no older attempt may run.
    fn unblock(&mut self, task: TaskId) {
        if self.older(task).next().is_some() {
            return;
        }
        let Some(held) = self.tasks.get(&task).filter(|held| held.phase == Phase::Blocked) else {
            return;
        };
        let launch = held.launch.clone();
        let (hand, tell) = (self.hand(&launch), self.news.0.clone());
        let (generation, word) = self.beginning(task);
        let start = tokio::spawn(async move {
            let begun = match hand {
                Some(hand) => begin(hand, launch, generation, word).await,
                None => Err(Problem::NoNode(launch.node_name.clone())),
            };
            // The loop may be gone, and the next one finds the launch outstanding.
            let _ = tell.send(LoopEvent::Begun(task, begun));
        });
        self.starts.insert(task, start.abort_handle());
    }

    /// A start begins: the generation and the word of the lease that it writes.
    fn beginning(&mut self, task: TaskId) -> (u64, LeaseOrder) {
        let Some(held) = self.tasks.get_mut(&task) else { return (0, LeaseOrder::Over) };
        held.phase = Phase::Beginning;
        held.generation += 1;
        held.renewed = Some(Instant::now());
        (held.generation, held.word(self.engine.clock.now()))
    }

    /// An instance was made and could not be started. Where the reason may pass, it is made again,
    /// within the patience that other passing trouble has.
    fn failed(&mut self, task: TaskId, why: String) {
        let Some(held) = self.tasks.get_mut(&task) else { return };
        let first = held.trouble.is_none();
        let patient = held.trouble.get_or_insert_with(Instant::now).elapsed() < AWAY_PATIENCE;
        held.made = None;
        let launch = held.launch.clone();
        let (hand, tell) = (self.hand(&launch), self.news.0.clone());
        let image = launch.spec.image.clone().or_else(|| self.image.clone()).unwrap_or_default();
        let (generation, word) = self.beginning(task);
        let start = tokio::spawn(async move {
            let begun = match hand {
                Some(hand) => {
                    let error = hand.engine.why_failed(&image, &why).await;
                    match error.is_passing() || error.is_full() {
                        true if patient => {
                            again(hand, launch, generation, word, error, first).await
                        }
                        true => Err(Problem::that_stays(error)),
                        false => Err(error.into()),
                    }
                }
                None => Err(Problem::NoNode(launch.node_name.clone())),
            };
            let _ = tell.send(LoopEvent::Begun(task, begun));
        });
        self.starts.insert(task, start.abort_handle());
    }

    /// What a launch is carried out with; `None` where the engine knows no such node, or not the
    /// GPUs that were chosen there.
    fn hand(&self, launch: &Launch) -> Option<LaunchContext> {
        let name = &launch.node_name;
        let node = match self.engine.is_swarm() {
            true => Some(self.nodes.id(name)?.to_owned()),
            false => None,
        };
        Some(LaunchContext {
            engine: self.engine.clone(),
            defaults: self.defaults.clone(),
            image: self.image.clone(),
            node,
            gpus: self.nodes.gpu_ids(name, &launch.gpus)?,
            laying: self.laying.clone(),
        })
    }

    async fn hear(&mut self, news: LoopEvent) {
        match news {
            LoopEvent::Begun(task, begun) => {
                self.starts.remove(&task);
                match begun {
                    Ok(()) => self.begun(task).await,
                    Err(Problem::Away(error)) => {
                        self.given_up(task, &error.to_string(), error.reason()).await;
                    }
                    // It was there when it was chosen: no doing of the job's.
                    Err(problem @ Problem::NoNode(_)) => {
                        self.given_up(task, &problem.to_string(), NODE_UNKNOWN).await;
                    }
                    Err(problem @ Problem::Forgotten) => {
                        self.given_up(task, &problem.to_string(), FORGOTTEN).await;
                    }
                    Err(problem) => self.not_started(task, &problem.to_string()).await,
                }
            }
            LoopEvent::Looked(Ok((nodes, sightings)), begun) => {
                self.away = None;
                self.looked(begun);
                self.see_nodes(&nodes).await;
                self.see(sightings, begun).await;
            }
            LoopEvent::Looked(Err(error), begun) => {
                if self.away.is_none() {
                    tracing::warn!(%error, "the engine does not say how its tasks are");
                }
                let away = *self.away.get_or_insert(begun);
                for held in self.tasks.values_mut().filter(|held| held.runs()) {
                    held.engine_away = true;
                }
                self.looked(begun);
                // Of a Swarm only its manager is away: its nodes go on.
                if !self.engine.is_swarm() && away.elapsed() >= AWAY_PATIENCE {
                    self.see_nodes(&[]).await;
                }
            }
            LoopEvent::Drained(task, report) => self.end(task, *report).await,
        }
    }

    /// An instance was made. What was said of its task meanwhile is said again: a start may have
    /// overtaken it.
    async fn begun(&mut self, task: TaskId) {
        // It was told to stop meanwhile.
        let Some(held) = self.tasks.get_mut(&task) else { return self.delete(task) };
        held.made = Some(Instant::now());
        if held.phase == Phase::Beginning {
            held.phase = Phase::Waits;
        }
        // What runs is seen at the next look.
        self.look_due = self.look_due.min(Instant::now() + LOOK_MIN / 2);
        let (over, stop) = (held.said_over, held.stop);
        let (until, began_with) = (held.until, held.launch.until);
        if over {
            self.revoke(task).await;
            self.delete(task);
        } else if let Some(until) = stop {
            self.stop(task, until).await;
        } else if until != began_with {
            self.prolong(task, until);
        }
    }

    /// A task waited for its engine in vain, or its node is gone. Whatever of it was made all the
    /// same ends by itself: its lease is over.
    async fn given_up(&mut self, task: TaskId, why: &str, reason: &str) {
        let Some(held) = self.tasks.get(&task) else { return };
        let tail = LogTail::new(self.engine.clone(), &held.launch);
        tail.note(&format!("the task was not started: {why}"));
        self.revoke(task).await;
        self.lost(task, reason).await;
    }

    /// A task could not be started: why is in its log.
    async fn not_started(&mut self, task: TaskId, why: &str) {
        let Some(held) = self.tasks.get(&task) else { return };
        let tail = LogTail::new(self.engine.clone(), &held.launch);
        tail.note(&format!("the task was not started: {why}"));
        let report =
            held.end(&InstanceState::Failed(why.to_owned()), None, self.engine.clock.now());
        self.end(task, report).await;
    }
}

/// Makes an instance again that could not be started. That it waits is in the task's log.
async fn again(
    hand: LaunchContext,
    launch: Launch,
    generation: u64,
    word: LeaseOrder,
    why: DockerError,
    first: bool,
) -> Result<(), Problem> {
    tracing::warn!(task = %launch.task, error = %why, "a start is tried again");
    if first {
        let tail = LogTail::new(hand.engine.clone(), &launch);
        tail.note(&format!("the task waits to be started: {why}"));
    }
    hand.engine.delete(launch.task).await?;
    tokio::time::sleep(AGAIN).await;
    begin(hand, launch, generation, word).await
}

async fn begin(
    hand: LaunchContext,
    launch: Launch,
    generation: u64,
    word: LeaseOrder,
) -> Result<(), Problem> {
    let shared = Shared::of(&launch.spec.folder, launch.task);
    hand.lay_out(&launch).await?;
    // Its folders may have been made for another node, or another end.
    let kept = launch.clone();
    let said = tokio::task::spawn_blocking(move || {
        shared.keep(&kept)?;
        shared.say(generation, word)
    });
    let said = said.await.map_err(|error| Problem::Broken(error.to_string()))?;
    said.map_err(|source| DockerError::Io { what: "write a lease".into(), source })?;
    hand.begin(launch).await
}
