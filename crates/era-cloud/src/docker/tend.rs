//! All tasks of an executor, looked after by one loop: orders in, looks at the engine, leases
//! renewed, reports out.
//!
//! Whatever takes long is done beside the loop and comes back to it as news, so a slow engine or a
//! shared folder that hangs holds up nobody else. What is to be done about one task is decided in
//! [`held`](super::held).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use era_core::job::TaskId;
use era_core::units::{JobId, Span, Time};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::begin::{Hand, Problem};
use super::engine::Engine;
use super::failure::DockerError;
use super::follow::{self, LogTail};
use super::held::{Act, Held, Phase};
use super::instance::{EngineNode, Seen, Sighting};
use super::lease::{Shared, Word};
use super::nodes::Nodes;
use super::task::House;
use super::{Known, lock};
use crate::executor::{Ending, Launch, Order, Report, Reports};
use crate::shim::{Places, now};

/// How often due things are looked for.
const TICK: Duration = Duration::from_millis(200);
/// How often the engine is looked at: so many times as long as a look takes, within bounds.
const LOOK_SHARE: u32 = 8;
const LOOK_MIN: Duration = Duration::from_millis(100);
const LOOK_MAX: Duration = Duration::from_secs(3);
/// How often while no task is under way.
const LOOK_IDLE: Duration = Duration::from_secs(1);
/// How long a lease that ends a task may take to be written before its end is told all the same.
const WRITE_PATIENCE: Duration = Duration::from_secs(2);

/// What is said to the loop.
pub(super) enum Say {
    Order(Box<Order>),
    Acknowledge(TaskId),
}

/// What comes back to it.
enum News {
    /// A launch was carried out, or not.
    Begun(TaskId, Result<(), Problem>),
    /// The engine was looked at.
    Looked(Result<(Vec<EngineNode>, Vec<Sighting>), DockerError>, Instant),
    /// All of an ended task's log is there.
    Drained(TaskId, Box<Report>),
}

/// A lease to be written.
struct Write {
    shared: Shared,
    generation: u64,
    word: Word,
    done: Option<oneshot::Sender<()>>,
}

pub(super) struct Tender {
    engine: Engine,
    house: House,
    image: Option<String>,
    reports: Reports,
    known: Known,
    tasks: BTreeMap<TaskId, Held>,
    tails: BTreeMap<TaskId, (LogTail, Vec<AbortHandle>)>,
    nodes: Nodes,
    news: (mpsc::UnboundedSender<News>, Option<mpsc::UnboundedReceiver<News>>),
    full: (mpsc::UnboundedSender<TaskId>, Option<mpsc::UnboundedReceiver<TaskId>>),
    writes: mpsc::UnboundedSender<Write>,
    looking: bool,
    look_due: Instant,
    unreachable: bool,
}

impl Tender {
    pub(super) fn new(
        engine: Engine,
        house: House,
        image: Option<String>,
        reports: Reports,
        known: Known,
    ) -> Tender {
        let (news, heard) = mpsc::unbounded_channel();
        let (full, filled) = mpsc::unbounded_channel();
        let (writes, mut to_write) = mpsc::unbounded_channel::<Write>();
        // Leases are written one after the other, so that none overtakes a later word.
        tokio::task::spawn_blocking(move || {
            while let Some(write) = to_write.blocking_recv() {
                if let Err(error) = write.shared.say(write.generation, write.word) {
                    tracing::warn!(folder = %write.shared.folder.display(), %error, "a lease was not written");
                }
                // Whoever waited may have given up.
                write.done.map(|done| done.send(()));
            }
        });
        Tender {
            engine,
            house,
            image,
            reports,
            known,
            tasks: BTreeMap::new(),
            tails: BTreeMap::new(),
            nodes: Nodes::default(),
            news: (news, Some(heard)),
            full: (full, Some(filled)),
            writes,
            looking: false,
            look_due: Instant::now(),
            unreachable: false,
        }
    }

    /// Finds what runs already. Of several attempts of one gang only the newest is wanted.
    pub(super) async fn adopt(&mut self) -> Result<(), DockerError> {
        let found = self.engine.list().await?;
        let mut newest: BTreeMap<(JobId, u16), u32> = BTreeMap::new();
        for Sighting { task, .. } in &found {
            let attempt = newest.entry((task.job, task.part)).or_default();
            *attempt = task.attempt.max(*attempt);
        }
        for Sighting { task, .. } in &found {
            let shared = Shared::of(&self.job_folder(*task), *task);
            let old = newest.get(&(task.job, task.part)).is_some_and(|new| task.attempt < *new);
            match shared.launch() {
                Ok(launch) => {
                    let (generation, over) = shared.said().unwrap_or((0, false));
                    let mut held = Held::new(launch, Phase::Waits, generation);
                    held.said_over = over;
                    if over || old {
                        held.cut_off(&self.house.times, Instant::now());
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
        let kept: Vec<TaskId> = self.tasks.keys().copied().collect();
        let same = |a: TaskId, b: TaskId| TaskId { rank: 0, ..a } == TaskId { rank: 0, ..b };
        self.engine.sweep(&|task| kept.iter().any(|one| same(*one, task))).await
    }

    fn job_folder(&self, task: TaskId) -> PathBuf {
        self.house.data.join("jobs").join(task.job.0.to_string())
    }

    /// Goes on until nobody gives orders any more. What runs goes on without us.
    pub(super) async fn go_on(mut self, mut says: mpsc::UnboundedReceiver<Say>) {
        let (Some(mut news), Some(mut full)) = (self.news.1.take(), self.full.1.take()) else {
            return;
        };
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                said = says.recv() => match said {
                    Some(Say::Order(order)) => self.obey(*order).await,
                    Some(Say::Acknowledge(task)) => self.acknowledged(task),
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
        for (_, (_, handles)) in std::mem::take(&mut self.tails) {
            handles.iter().for_each(AbortHandle::abort);
        }
    }

    async fn report(&self, report: Report) {
        // The other end is gone only when nobody takes reports any more.
        let _ = self.reports.send(report).await;
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Launch(launch) => self.launch(launch).await,
            Order::Stage(launch) => {
                let hand = self.hand(&launch);
                tokio::spawn(async move { hand.stage(launch).await });
            }
            Order::Stop { task, until } => self.stop(task, until).await,
            Order::Prolong { task, until } => {
                if let Some(held) = self.tasks.get_mut(&task) {
                    held.until = until;
                    let word = held.word(now());
                    self.say(task, word);
                }
            }
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

    // Starting.

    async fn launch(&mut self, launch: Launch) {
        let task = launch.task;
        if let Some(held) = self.tasks.get(&task) {
            // The same order again: what is known is told again.
            match &held.phase {
                Phase::Runs(at) => {
                    let (at, prepared) = (*at, Span::ZERO);
                    self.report(Report::Started { task, at, prepared }).await;
                }
                Phase::Ended(report) => self.report(report.clone()).await,
                _ => {}
            }
            return;
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

    /// An older attempt is in the way: it is ended, and nobody is told.
    async fn end_stray(&mut self, task: TaskId) {
        let times = self.house.times;
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
        let node = launch.node_name.clone();
        let known = !self.engine.is_swarm() || hand.node.is_some();
        let word = held.word(now());
        let shared = Shared::of(&launch.spec.folder, task);
        let generation = held.generation + 1;
        if let Some(held) = self.tasks.get_mut(&task) {
            held.phase = Phase::Beginning;
            held.generation = generation;
            held.renewed = Some(Instant::now());
        }
        tokio::spawn(async move {
            let begun = match known {
                true => begin(hand, launch, shared, generation, word).await,
                false => Err(Problem::NoNode(node)),
            };
            // The loop may be gone, and the next one finds the launch outstanding.
            let _ = tell.send(News::Begun(task, begun));
        });
    }

    fn hand(&self, launch: &Launch) -> Hand {
        let name = &launch.node_name;
        let swarm = self.engine.is_swarm();
        Hand {
            engine: self.engine.clone(),
            house: self.house.clone(),
            image: self.image.clone(),
            node: swarm.then(|| self.nodes.id(name).map(str::to_owned)).flatten(),
            gpus: self.nodes.gpu_ids(name, &launch.gpus),
        }
    }

    async fn hear(&mut self, news: News) {
        match news {
            News::Begun(task, Ok(())) => {
                if let Some(held) = self.tasks.get_mut(&task)
                    && held.phase == Phase::Beginning
                {
                    held.phase = Phase::Waits;
                }
                // What runs is seen at the next look.
                self.look_due = self.look_due.min(Instant::now() + LOOK_MIN / 2);
            }
            News::Begun(task, Err(problem)) => self.not_started(task, &problem.to_string()).await,
            News::Looked(Ok((nodes, sightings)), begun) => {
                self.unreachable = false;
                self.looked(begun);
                self.see_nodes(&nodes).await;
                self.see(sightings, begun).await;
            }
            News::Looked(Err(error), begun) => {
                if !std::mem::replace(&mut self.unreachable, true) {
                    tracing::warn!(%error, "the engine does not say how its tasks are");
                }
                self.looked(begun);
            }
            News::Drained(task, report) => self.end(task, *report).await,
        }
    }

    /// A task could not be started: why is in its log.
    async fn not_started(&mut self, task: TaskId, why: &str) {
        let Some(held) = self.tasks.get(&task) else { return };
        let tail = LogTail::new(self.engine.clone(), &held.launch);
        tail.note(&format!("the task was not started: {why}"));
        let report = held.end(&Seen::Failed(why.to_owned()), None, now());
        self.end(task, report).await;
    }

    // Looking.

    fn look(&mut self) {
        self.looking = true;
        let (engine, tell, begun) = (self.engine.clone(), self.news.0.clone(), Instant::now());
        tokio::spawn(async move {
            let looked = match engine.nodes().await {
                Ok(nodes) => engine.list().await.map(|sightings| (nodes, sightings)),
                Err(error) => Err(error),
            };
            let _ = tell.send(News::Looked(looked, begun));
        });
    }

    fn looked(&mut self, begun: Instant) {
        self.looking = false;
        let idle = !self.tasks.values().any(Held::is_live);
        let every = (begun.elapsed() * LOOK_SHARE).clamp(LOOK_MIN, LOOK_MAX);
        self.look_due = Instant::now() + if idle { LOOK_IDLE } else { every };
    }

    /// Nodes that went are told only after nothing renews the leases on them any more.
    async fn see_nodes(&mut self, listed: &[EngineNode]) {
        let nodes = Nodes::of(listed);
        let news = nodes.news(&self.nodes);
        self.nodes = nodes;
        for report in news {
            if let Report::NodeLost { name } = &report {
                self.cut_off(name).await;
            }
            self.report(report).await;
        }
    }

    async fn cut_off(&mut self, node: &str) {
        let on = |held: &Held| held.launch.node_name == node && held.is_live();
        let there: Vec<TaskId> =
            self.tasks.iter().filter(|(_, held)| on(held)).map(|(task, _)| *task).collect();
        for task in there {
            let times = self.house.times;
            if let Some(held) = self.tasks.get_mut(&task) {
                held.cut_off(&times, Instant::now());
            }
            self.revoke(task).await;
        }
    }

    async fn see(&mut self, sightings: Vec<Sighting>, begun: Instant) {
        let mut absent: Vec<TaskId> = Vec::new();
        {
            let seen: std::collections::BTreeSet<TaskId> =
                sightings.iter().map(|sighting| sighting.task).collect();
            for (task, held) in &self.tasks {
                let made = matches!(held.phase, Phase::Waits | Phase::Runs(_));
                if made && !seen.contains(task) && held.ordered < begun {
                    absent.push(*task);
                }
            }
        }
        for Sighting { task, state, .. } in sightings {
            self.saw(task, state).await;
        }
        for task in absent {
            self.vanished(task).await;
        }
    }

    async fn saw(&mut self, task: TaskId, state: Seen) {
        let Some(held) = self.tasks.get(&task) else { return };
        if !matches!(held.phase, Phase::Waits | Phase::Runs(_)) {
            return;
        }
        if held.stray {
            if state.is_over() {
                self.stray_gone(task);
            }
            return;
        }
        match state {
            Seen::Waits(says) if held.waits_in_vain(&says, Instant::now()) => {
                self.delete(task);
                self.not_started(task, &format!("its node has no room for it: {says}")).await;
            }
            Seen::Waits(_) => {}
            Seen::Runs => self.runs(task).await,
            over => self.over(task, over).await,
        }
    }

    fn stray_gone(&mut self, task: TaskId) {
        self.tasks.remove(&task);
        self.drop_tail(task);
        self.delete(task);
        let blocked: Vec<TaskId> = self
            .tasks
            .iter()
            .filter(|(_, held)| held.phase == Phase::Blocked)
            .map(|(task, _)| *task)
            .collect();
        blocked.into_iter().for_each(|task| self.unblock(task));
    }

    /// Its instance is gone, and nobody here removed it, unless it was killed or is in the way.
    async fn vanished(&mut self, task: TaskId) {
        let times = self.house.times;
        let ready = |held: &Held| self.nodes.is_ready(&held.launch.node_name);
        let Some(held) = self.tasks.get(&task) else { return };
        // Where its node answers, what the engine no longer lists is gone.
        let gone = ready(held) || !self.engine.is_swarm();
        if held.stray && gone {
            return self.stray_gone(task);
        }
        if held.killed.is_some() && gone {
            return self.over(task, Seen::Removed).await;
        }
        if let Some(held) = self.tasks.get_mut(&task)
            && held.cut_off.is_none()
        {
            held.cut_off(&times, Instant::now());
            self.revoke(task).await;
        }
    }

    async fn runs(&mut self, task: TaskId) {
        let Some(held) = self.tasks.get_mut(&task) else { return };
        if held.phase == Phase::Waits {
            let launch = held.launch.clone();
            let at = Shared::of(&launch.spec.folder, task).started().unwrap_or_else(now);
            held.phase = Phase::Runs(at);
            let prepared = Span(i64::try_from(held.ordered.elapsed().as_millis()).unwrap_or(0));
            let owner = self.house.isolation.uid(launch.spec.user).ok().flatten();
            self.report(Report::Started { task, at, prepared }).await;
            let tail = LogTail::new(self.engine.clone(), &launch);
            let follow = tokio::spawn(tail.clone().follow(self.reports.clone()));
            let watch = follow::watch(launch, owner, self.reports.clone(), self.full.0.clone());
            let watch = tokio::spawn(watch);
            let handles = vec![follow.abort_handle(), watch.abort_handle()];
            self.tails.insert(task, (tail, handles));
        }
    }

    /// Its instance is over: the rest of its log is read, then its end is told.
    async fn over(&mut self, task: TaskId, seen: Seen) {
        let Some(held) = self.tasks.get_mut(&task) else { return };
        let launch = held.launch.clone();
        let shared = Shared::of(&launch.spec.folder, task);
        let told = shared.ended();
        let began = shared.started();
        if let (Phase::Waits, Some(at)) = (&held.phase, began) {
            // So short that it was never seen to run.
            let prepared = Span(i64::try_from(held.ordered.elapsed().as_millis()).unwrap_or(0));
            let _ = self.reports.send(Report::Started { task, at, prepared }).await;
        }
        let report = held.end(&seen, told, now());
        held.phase = Phase::Ending;
        let tail = match self.tails.remove(&task) {
            Some((tail, handles)) => {
                handles.iter().for_each(AbortHandle::abort);
                tail
            }
            None => LogTail::new(self.engine.clone(), &launch),
        };
        let (reports, tell) = (self.reports.clone(), self.news.0.clone());
        tokio::spawn(async move {
            match &seen {
                Seen::Failed(why) => tail.note(&format!("the task was not started: {why}")),
                Seen::Removed => {}
                _ => tail.rest(&reports).await,
            }
            let _ = tell.send(News::Drained(task, Box::new(report)));
        });
    }

    async fn end(&mut self, task: TaskId, report: Report) {
        self.drop_tail(task);
        let Some(held) = self.tasks.get_mut(&task) else { return };
        held.phase = Phase::Ended(report.clone());
        let places = Places::of(&held.launch);
        tokio::task::spawn_blocking(move || places.tidy());
        if held.stray {
            return self.stray_gone(task);
        }
        self.report(report).await;
    }

    fn drop_tail(&mut self, task: TaskId) {
        if let Some((_, handles)) = self.tails.remove(&task) {
            handles.iter().for_each(AbortHandle::abort);
        }
    }

    // Ending.

    async fn stop(&mut self, task: TaskId, until: Time) {
        let Some(held) = self.tasks.get_mut(&task) else {
            let reason = "unknown-to-its-node".into();
            return self.report(Report::Lost { task, reason }).await;
        };
        match &held.phase {
            Phase::Ended(report) => {
                let report = report.clone();
                return self.report(report).await;
            }
            // Nothing of it runs yet, and nothing will.
            Phase::Blocked => {
                let at = now();
                let report =
                    Report::Exited { task, at, code: 128 + 15, ending: Ending::Stopped };
                return self.end(task, report).await;
            }
            _ => {}
        }
        held.doom.get_or_insert(Ending::Stopped);
        held.stop = Some(held.stop.map_or(until, |before| before.min(until)));
        let left = u64::try_from(until.since(now()).ms() / 1000).unwrap_or(0);
        self.say(task, Word::Stop(left));
        if !self.engine.is_swarm() {
            let engine = self.engine.clone();
            tokio::spawn(async move {
                if let Err(error) = engine.signal(task, "TERM").await {
                    tracing::warn!(%task, %error, "a task could not be signalled");
                }
            });
        }
    }

    async fn filled(&mut self, task: TaskId) {
        if let Some(held) = self.tasks.get_mut(&task) {
            held.doom.get_or_insert(Ending::OutOfDisk);
        }
        if let Some((tail, _)) = self.tails.get(&task) {
            tail.note("the task is ended: it filled more disk than it may");
        }
        self.kill(task).await;
    }

    async fn kill(&mut self, task: TaskId) {
        let Some(held) = self.tasks.get_mut(&task) else { return };
        held.doom.get_or_insert(Ending::Limit);
        held.killed.get_or_insert((Instant::now(), false));
        self.say(task, Word::Over);
        if !self.engine.is_swarm() {
            let engine = self.engine.clone();
            tokio::spawn(async move {
                if let Err(error) = engine.signal(task, "KILL").await {
                    tracing::warn!(%task, %error, "a task could not be killed");
                }
            });
        }
    }

    async fn tick(&mut self) {
        if !self.looking && self.look_due <= Instant::now() {
            self.look();
        }
        let (at, instant, times) = (now(), Instant::now(), self.house.times);
        let due: Vec<(TaskId, Act)> = self
            .tasks
            .iter()
            .filter_map(|(task, held)| Some((*task, held.due(&times, at, instant)?)))
            .collect();
        for (task, act) in due {
            match act {
                Act::Say(word) => self.say(task, word),
                Act::Kill => self.kill(task).await,
                Act::Remove => {
                    if let Some(held) = self.tasks.get_mut(&task)
                        && let Some((_, removed)) = &mut held.killed
                    {
                        *removed = true;
                    }
                    self.delete(task);
                }
                Act::Lost(reason) => self.lost(task, reason).await,
            }
        }
    }

    async fn lost(&mut self, task: TaskId, reason: &str) {
        if self.tasks.get(&task).is_some_and(|held| held.stray) {
            return self.stray_gone(task);
        }
        self.end(task, Report::Lost { task, reason: reason.to_owned() }).await;
    }

    fn acknowledged(&mut self, task: TaskId) {
        if let Some(held) = self.tasks.get(&task)
            && matches!(held.phase, Phase::Ended(_))
        {
            self.tasks.remove(&task);
            self.delete(task);
        }
    }

    /// Removes an instance, and with the last of a gang its network.
    fn delete(&self, task: TaskId) {
        let gang = TaskId { rank: 0, ..task };
        let mut others = self.tasks.range(gang..).map(|(other, _)| *other);
        let last = !others.any(|other| TaskId { rank: 0, ..other } == gang && other != task);
        let engine = self.engine.clone();
        tokio::spawn(async move {
            if let Err(error) = engine.delete(task).await {
                tracing::warn!(%task, %error, "an instance stays: the next start removes it");
            }
            // A network is in use until the last container has left it.
            for pause_ms in [0, 200, 1000, 5000] {
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                if !last || engine.delete_network(gang).await.unwrap_or(false) {
                    return;
                }
            }
        });
    }

    // Leases.

    fn say(&mut self, task: TaskId, word: Word) {
        self.write(task, word, None);
    }

    /// Says that a lease is over, and waits until that is written: what comes next relies on it.
    async fn revoke(&mut self, task: TaskId) {
        let (done, written) = oneshot::channel();
        self.write(task, Word::Over, Some(done));
        if tokio::time::timeout(WRITE_PATIENCE, written).await.is_err() {
            tracing::warn!(%task, "the shared folder hangs: a lease lapses unrevoked");
        }
    }

    fn write(&mut self, task: TaskId, word: Word, done: Option<oneshot::Sender<()>>) {
        let Some(held) = self.tasks.get_mut(&task) else { return };
        // Nothing is said after the last word: it is what a restarted server finds.
        let last = word == Word::Over;
        if std::mem::replace(&mut held.said_over, held.said_over || last) && !last {
            return;
        }
        held.generation += 1;
        if matches!(word, Word::Run(_)) {
            held.renewed = Some(Instant::now());
        }
        let shared = Shared::of(&held.launch.spec.folder, task);
        let write = Write { shared, generation: held.generation, word, done };
        if self.writes.send(write).is_err() {
            tracing::error!(%task, "leases are no longer written");
        }
    }
}

async fn begin(
    hand: Hand,
    launch: Launch,
    shared: Shared,
    generation: u64,
    word: Word,
) -> Result<(), Problem> {
    hand.lay_out(&launch).await?;
    let said = tokio::task::spawn_blocking(move || shared.say(generation, word)).await;
    let said = said.map_err(|error| Problem::Broken(error.to_string()))?;
    said.map_err(|source| DockerError::Io { what: "write a lease".into(), source })?;
    hand.begin(launch).await
}

