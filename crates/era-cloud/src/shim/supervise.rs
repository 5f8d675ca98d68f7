//! The one loop of a supervisor, and what it does with what it hears.
//!
//! `run` waits for sockets, pipes and the next deadline; each thing that happened is one call of a
//! function below, in `keepers` or in `terminals`; what is looked at from time to time is in [`watch`].

mod keepers;
mod terminals;
mod watch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use era_core::job::TaskId;
use era_core::units::{JobId, Time};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::connection::Connection;
use super::emptied::Emptied;
use super::ended::EndedTasks;
use super::faults::Faults;
use super::keeper::{NodeContext, ToKeeper};
use super::protocol::{FromShim, Hello, ToShim};
use super::roster::Roster;
use super::slot::KeeperSlot;
use super::socket::SupervisorSocket;
use super::task::{KeptTask, steady};
use crate::clock::MachineClock;
use crate::executor::{Ending, ExecutorReport, Launch, Order};
use crate::limits::cgroups::Cgroups;
use crate::log::Stream;
use crate::task::Places;
use watch::Watch;

/// Most tasks at once; more wait their turn.
const KEEPERS_MAX: usize = 2048;
/// Most servers at once: the one, and those that have not noticed yet that they are not.
const CONNECTIONS_MAX: usize = 16;
/// So many acknowledged tasks are remembered, so that a late launch of one is not run again.
const REMEMBERED_MAX: usize = 1 << 16;
/// Samples that wait for a server that is away; older ones go first.
const SAMPLES_MAX: usize = 4096;
/// A keeper that has not ended its task so long after it was told to is killed itself.
const KEEPER_PATIENCE: Duration = Duration::from_secs(10);
/// How often one that is alone looks whether it can still be found.
const ALONE_EVERY: Duration = Duration::from_secs(5);

/// What a supervisor has in its folder.
pub(super) struct SupervisorFiles {
    pub(super) socket: SupervisorSocket,
    pub(super) roster: Roster,
    pub(super) ended: EndedTasks,
}

/// The state of a supervisor.
pub(super) struct Supervisor {
    socket: SupervisorSocket,
    pub(super) node: NodeContext,
    notes: Vec<String>,
    keeper_arguments: Vec<String>,
    pub(super) cgroups: Cgroups,
    roster: Roster,
    pub(super) connections: Vec<Connection>,
    pub(super) keepers: BTreeMap<u64, KeeperSlot>,
    next_keeper: u64,
    idle: Vec<u64>,
    pub(super) tasks: BTreeMap<TaskId, KeptTask>,
    waiting: VecDeque<TaskId>,
    /// When something is to be done with which task. May hold entries that no longer matter.
    deadlines: BTreeSet<(Instant, TaskId)>,
    ended: EndedTasks,
    emptied: Emptied,
    faults: Faults,
    acknowledged: Remembered,
    samples: VecDeque<ExecutorReport>,
    watch: Watch,
    piece: Vec<u8>,
    leaving: bool,
    pub(super) clock: MachineClock,
}

/// A bounded memory.
#[derive(Default)]
struct Remembered {
    order: VecDeque<TaskId>,
    all: BTreeSet<TaskId>,
}

impl Remembered {
    fn insert(&mut self, task: TaskId) {
        if self.all.insert(task) {
            self.order.push_back(task);
        }
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }
}

/// Where something can be read, or written again.
#[derive(Clone, Copy)]
enum Source {
    Listener,
    Connection(usize),
    Control(u64),
    Printed(u64, Stream),
}

impl Supervisor {
    pub(super) fn new(
        own: SupervisorFiles,
        node: NodeContext,
        cgroups: Cgroups,
        notes: Vec<String>,
        keeper_arguments: &[String],
        clock: MachineClock,
    ) -> Supervisor {
        let SupervisorFiles { socket, roster, ended } = own;
        Supervisor {
            socket,
            emptied: Emptied::new(&node.spare),
            node,
            notes,
            keeper_arguments: keeper_arguments.to_vec(),
            cgroups,
            roster,
            connections: Vec::new(),
            keepers: BTreeMap::new(),
            next_keeper: 0,
            idle: Vec::new(),
            tasks: BTreeMap::new(),
            waiting: VecDeque::new(),
            deadlines: BTreeSet::new(),
            ended,
            faults: Faults::default(),
            acknowledged: Remembered::default(),
            samples: VecDeque::new(),
            watch: Watch::default(),
            piece: Vec::new(),
            leaving: false,
            clock,
        }
    }

    /// Goes on until it is asked to leave, or nobody can ask it any more.
    pub(super) fn run(&mut self) -> io::Result<()> {
        while !self.leaving && !self.is_forsaken() {
            self.spares();
            for source in self.wait()? {
                match source {
                    Source::Listener => self.welcome(),
                    Source::Connection(index) => self.hear_server(index),
                    Source::Control(keeper) => self.hear_keeper(keeper),
                    Source::Printed(keeper, stream) => {
                        self.hear_task(keeper, stream);
                        self.type_on(keeper);
                    }
                }
            }
            self.kill_due();
            self.place();
            self.tick();
            self.ended.flush();
            self.connections.retain_mut(|connection| connection.flush().is_ok());
            self.catch_up();
        }
        Ok(())
    }

    /// Ends idle keepers and leaves no control group behind.
    pub(super) fn close(mut self) {
        self.socket.close();
        let keepers: Vec<u64> = self.keepers.keys().copied().collect();
        keepers.into_iter().for_each(|keeper| self.dismiss(keeper));
        self.cgroups.remove();
    }

    /// Whether there is nothing to do and no server will ever come: one was tried in a folder that
    /// is gone since, as after a test, and was killed.
    fn is_forsaken(&self) -> bool {
        self.is_alone() && self.socket.is_gone()
    }

    /// Whether nobody listens and nothing runs.
    fn is_alone(&self) -> bool {
        self.connections.is_empty() && self.tasks.is_empty()
    }

    /// Waits until something happens.
    fn wait(&self) -> io::Result<Vec<Source>> {
        let mut sources = vec![Source::Listener];
        let mut fds = vec![PollFd::new(self.socket.listener(), PollFlags::IN)];
        for (index, connection) in self.connections.iter().enumerate() {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, self.may_type(connection));
            flags.set(PollFlags::OUT, connection.has_more());
            sources.push(Source::Connection(index));
            fds.push(PollFd::new(&connection.stream, flags));
        }
        for (id, kept) in &self.keepers {
            let mut flags = PollFlags::IN;
            flags.set(PollFlags::OUT, kept.has_more());
            sources.push(Source::Control(*id));
            fds.push(PollFd::new(&kept.control, flags));
            if let Some(terminal) = &kept.terminal {
                sources.push(Source::Printed(*id, Stream::Out));
                fds.push(terminal.poll());
            }
            if let Some(pipes) = &kept.pipes {
                sources.push(Source::Printed(*id, Stream::Out));
                fds.push(PollFd::new(&pipes.out, PollFlags::IN));
                sources.push(Source::Printed(*id, Stream::Err));
                fds.push(PollFd::new(&pipes.err, PollFlags::IN));
            }
        }
        let timeout = self.patience().map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        // A server that only waits to be written to is served by the flush of every turn.
        let ready = fds.iter().zip(sources).filter(|(fd, source)| match source {
            Source::Connection(_) => !(fd.revents() - PollFlags::OUT).is_empty(),
            _ => !fd.revents().is_empty(),
        });
        Ok(ready.map(|(_, source)| source).collect())
    }

    /// How long nothing needs doing; `None` for ever.
    fn patience(&self) -> Option<Duration> {
        let due = self.deadlines.first().map(|(due, _)| *due);
        let now = self.clock.steady();
        let tick = self.watch.due(!self.tasks.is_empty() || self.too_many_spares(), now);
        let alone = self.is_alone().then(|| now + ALONE_EVERY);
        let next = due.into_iter().chain(tick).chain(alone).min()?;
        Some(next.saturating_duration_since(now))
    }

    // Servers.

    fn welcome(&mut self) {
        while let Ok((stream, _)) = self.socket.listener().accept() {
            let servers = self.connections.iter().filter(|c| c.watches.is_none()).count();
            let oldest = self.connections.iter().position(|c| c.watches.is_none());
            if let Some(oldest) = oldest.filter(|_| servers >= CONNECTIONS_MAX) {
                // It is surely not the server that matters.
                self.connections.remove(oldest);
            }
            match Connection::new(stream) {
                Ok(connection) => self.connections.push(connection),
                Err(error) => tracing::warn!(%error, "a server could not be heard"),
            }
        }
    }

    fn hear_server(&mut self, index: usize) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        let said = match connection.hear() {
            Ok(said) => said,
            Err(_) => {
                // Left for the flush of this turn to drop: other indices must stay right.
                connection.greeted = false;
                let _ = connection.stream.shutdown(std::net::Shutdown::Both);
                connection.tell(&FromShim::Leaving);
                return;
            }
        };
        for message in said {
            match message {
                Ok(ToShim::Hello(hello)) => self.greet(index, &hello),
                Ok(ToShim::Order(order)) => self.obey(*order),
                Ok(ToShim::Acknowledge(tasks)) => {
                    for task in tasks {
                        if self.ended.acknowledge(task) {
                            self.acknowledged.insert(task);
                        }
                    }
                }
                Ok(ToShim::Leave) => self.leave(index),
                Ok(ToShim::Attach(task)) => self.attach(index, task),
                Ok(ToShim::Type(typed)) => self.type_in(index, &typed.0),
                Ok(ToShim::Size { rows, cols }) => self.set_size(index, rows, cols),
                Err(error) => {
                    let text = format!("a line was not understood: {error}");
                    self.answer(index, &FromShim::Refused(text));
                }
            }
        }
    }

    pub(super) fn answer(&mut self, index: usize, message: &FromShim) {
        if let Some(connection) = self.connections.get_mut(index) {
            connection.tell(message);
        }
    }

    /// Says who we are and tells all that a server must know: what runs, and what has ended.
    fn greet(&mut self, index: usize, theirs: &Hello) {
        let hello = Hello::ours();
        if hello.agree(theirs).is_none() {
            let text = format!(
                "this supervisor speaks protocols {} to {}, the server {} to {}: let its tasks \
                 end under the older server first",
                hello.oldest, hello.protocol, theirs.oldest, theirs.protocol
            );
            return self.answer(index, &FromShim::Refused(text));
        }
        let known = self.tasks.keys().chain(self.ended.all().keys()).copied().collect();
        let (pid, notes) = (std::process::id(), self.notes.clone());
        let mut reports: Vec<ExecutorReport> =
            self.tasks.values().flat_map(KeptTask::so_far).collect();
        let ended = self.ended.in_order();
        reports.extend(ended.iter().cloned());
        reports.extend(self.samples.drain(..));
        let Some(connection) = self.connections.get_mut(index) else { return };
        connection.greeted = true;
        connection.tell(&FromShim::Hello { hello, pid, known, notes, ended });
        for report in reports {
            connection.tell(&FromShim::Report(Box::new(report)));
        }
    }

    fn leave(&mut self, index: usize) {
        if self.tasks.is_empty() && self.ended.all().is_empty() {
            self.answer(index, &FromShim::Leaving);
            self.leaving = true;
        } else {
            let text = "there are tasks to look after: ask again when they are over".to_owned();
            self.answer(index, &FromShim::Refused(text));
        }
    }

    /// Tells every server that listens, and of an end whoever watches the task's terminal.
    pub(super) fn report(&mut self, report: ExecutorReport) {
        let over = match &report {
            ExecutorReport::Exited { task, .. } | ExecutorReport::Lost { task, .. } => Some(*task),
            _ => None,
        };
        let (message, mut heard) = (FromShim::Report(Box::new(report)), false);
        for connection in &mut self.connections {
            if connection.greeted || (over.is_some() && connection.watches == over) {
                connection.tell(&message);
            }
            heard |= connection.greeted;
        }
        if let FromShim::Report(report) = message
            && !heard
            && matches!(*report, ExecutorReport::Samples { .. })
        {
            self.samples.push_back(*report);
            if self.samples.len() > SAMPLES_MAX {
                self.samples.pop_front();
            }
        }
    }

    // Orders.

    fn obey(&mut self, order: Order) {
        match order {
            Order::Launch(launch) => self.launch(launch),
            Order::Stop { task, until } => self.stop(task, until),
            // What a task needs here is on this machine already.
            Order::Stage(_) => {}
            Order::Prolong { task, until } => {
                if let Some(about) = self.tasks.get_mut(&task) {
                    about.prolong(steady(until, self.clock.now(), self.clock.steady()));
                    self.deadlines.insert((about.until, task));
                }
            }
            Order::Resize { job, part, attempt, replicas } => {
                self.resize(job, part, attempt, replicas);
            }
        }
    }

    fn launch(&mut self, launch: Launch) {
        let task = launch.task;
        let known = self.tasks.get(&task).map(KeptTask::so_far);
        let ended = self.ended.all().get(&task).map(|end| end.told().cloned().collect());
        if let Some(again) = known.or(ended) {
            // The same order may come again; what is already true is told again.
            return again.into_iter().for_each(|report| self.report(report));
        }
        let after = TaskId { attempt: task.attempt.saturating_add(1), rank: 0, ..task };
        let last = TaskId { attempt: u32::MAX, rank: u32::MAX, ..task };
        if self.acknowledged.all.contains(&task) || self.tasks.range(after..=last).next().is_some()
        {
            tracing::warn!(%task, "a task that is over was not started again");
            // Whoever asks does not know its end, and would wait for it for ever.
            return self.report(ExecutorReport::Lost { task, reason: "over-already".into() });
        }
        let about = KeptTask::new(launch, self.clock.now(), self.clock.steady());
        self.deadlines.insert((about.until, task));
        self.tasks.insert(task, about);
        self.waiting.push_back(task);
    }

    fn stop(&mut self, task: TaskId, until: Time) {
        let Some(about) = self.tasks.get_mut(&task) else {
            if !self.acknowledged.all.contains(&task) && !self.ended.all().contains_key(&task) {
                self.report(ExecutorReport::Lost { task, reason: "unknown-to-its-node".into() });
            }
            return;
        };
        let again = about.doom.is_some();
        about.stop(steady(until, self.clock.now(), self.clock.steady()));
        self.deadlines.insert((about.until, task));
        match about.keeper {
            Some(keeper) if !again => self.tell_keeper(keeper, &ToKeeper::Terminate),
            Some(_) => {}
            None => self.never_started(task),
        }
    }

    /// A task that waits for its turn ends without having begun.
    fn never_started(&mut self, task: TaskId) {
        self.waiting.retain(|waiting| *waiting != task);
        self.end(task, 128 + 15, self.clock.now(), false);
    }

    /// Writes the newest size of a gang where its tasks find it (`ERA_WORLD_FILE`).
    fn resize(&mut self, job: JobId, part: u16, attempt: u32, replicas: u32) {
        let first = TaskId { job, part, attempt, rank: 0 };
        let last = TaskId { rank: u32::MAX, ..first };
        let Some((_, about)) = self.tasks.range(first..=last).next() else { return };
        let path = Places::world(&about.launch.spec.folder, part, attempt);
        let new = path.with_extension("new");
        let written = std::fs::write(&new, format!("{replicas}\n"))
            .and_then(|()| std::fs::rename(&new, &path));
        if let Err(error) = written {
            tracing::warn!(%job, %error, "a gang could not be told its size");
        }
    }

    // Time.

    /// Kills what is due, and keepers that do not obey.
    fn kill_due(&mut self) {
        let now = self.clock.steady();
        while let Some((due, task)) = self.deadlines.first().copied().filter(|(due, _)| *due <= now)
        {
            self.deadlines.remove(&(due, task));
            let Some(about) = self.tasks.get_mut(&task) else { continue };
            if about.killed.is_some() {
                if let Some(keeper) = about.keeper {
                    self.lose(keeper);
                }
            } else if about.is_due(now) {
                self.kill(task, Ending::Limit, "its time was over");
            }
        }
    }

    /// Kills a task for a reason, unless it is ending for another.
    pub(super) fn kill(&mut self, task: TaskId, ending: Ending, why: &str) {
        if self.tasks.get(&task).is_some_and(|about| about.doom.is_none()) {
            self.note(task, &format!("the task was ended: {why}"));
        }
        let Some(about) = self.tasks.get_mut(&task) else { return };
        about.doom.get_or_insert(ending);
        match about.keeper {
            Some(keeper) if about.killed.is_none() => {
                let now = self.clock.steady();
                about.killed = Some(now);
                self.deadlines.remove(&(about.until, task));
                about.until = now + KEEPER_PATIENCE;
                self.deadlines.insert((about.until, task));
                self.tell_keeper(keeper, &ToKeeper::Kill);
            }
            Some(_) => {}
            None => self.never_started(task),
        }
    }

    /// Looks at what is looked at from time to time.
    fn tick(&mut self) {
        let active = !self.tasks.is_empty() || self.too_many_spares();
        if !self.watch.is_due(active, self.clock.steady()) {
            return;
        }
        let mut watch = std::mem::take(&mut self.watch);
        watch.look(self);
        self.watch = watch;
        if self.tasks.is_empty() && self.too_many_spares() {
            // Half of them a tick: a pause of a second does not cost all.
            let wanted = self.node.settings.spare_keepers;
            for _ in 0..(self.idle.len() - wanted).div_ceil(2) {
                if let Some(keeper) = self.idle.first().copied() {
                    self.dismiss(keeper);
                }
            }
        }
    }
}
