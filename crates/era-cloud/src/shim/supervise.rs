//! The one loop of a supervisor, and what it does with what it hears.
//!
//! `run` waits for sockets, pipes and the next deadline; each thing that happened is one call of a
//! function below. Keepers that end unexpectedly are in `lost`, what is looked at from time to
//! time in [`super::watch`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use era_core::job::TaskId;
use era_core::units::{JobId, Time};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::connection::Connection;
use super::emptied::Emptied;
use super::ended::{End, Ended};
use super::faults::{Faults, Next};
use super::keeper::{FromKeeper, Node, NotStarted, ToKeeper};
use super::protocol::{FromShim, Hello, ToShim};
use super::roster::Roster;
use super::slot::Kept;
use super::task::{Task, steady};
use super::trail::Trail;
use super::watch::Watch;
use crate::executor::{Ending, Launch, Order, Report};
use crate::limits::cgroups::Cgroups;
use crate::limits::{Amounts, tree};
use crate::log::{LogWriter, Stream, Told};
use crate::scalars::Scalars;
use crate::task::Places;

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

/// The state of a supervisor.
pub(super) struct Supervisor {
    listener: UnixListener,
    pub(super) node: Node,
    notes: Vec<String>,
    keeper_arguments: Vec<String>,
    pub(super) cgroups: Cgroups,
    roster: Roster,
    pub(super) connections: Vec<Connection>,
    pub(super) keepers: BTreeMap<u64, Kept>,
    next_keeper: u64,
    idle: Vec<u64>,
    pub(super) tasks: BTreeMap<TaskId, Task>,
    waiting: VecDeque<TaskId>,
    /// When something is to be done with which task. May hold entries that no longer matter.
    deadlines: BTreeSet<(Instant, TaskId)>,
    ended: Ended,
    emptied: Emptied,
    faults: Faults,
    acknowledged: Remembered,
    samples: VecDeque<Report>,
    watch: Watch,
    piece: Vec<u8>,
    leaving: bool,
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
        listener: UnixListener,
        node: Node,
        cgroups: Cgroups,
        roster: Roster,
        notes: Vec<String>,
        ended: Ended,
        keeper_arguments: &[String],
    ) -> Supervisor {
        Supervisor {
            listener,
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
        }
    }

    /// Goes on until it is asked to leave.
    pub(super) fn run(&mut self) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        while !self.leaving {
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
        let keepers: Vec<u64> = self.keepers.keys().copied().collect();
        keepers.into_iter().for_each(|keeper| self.dismiss(keeper));
        self.cgroups.remove();
    }

    /// Waits until something happens.
    fn wait(&self) -> io::Result<Vec<Source>> {
        let mut sources = vec![Source::Listener];
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
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
        let tick = self.watch.due(!self.tasks.is_empty() || self.too_many_spares());
        let next = due.into_iter().chain(tick).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    // Servers.

    fn welcome(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
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
        let mut reports: Vec<Report> = self.tasks.values().flat_map(Task::so_far).collect();
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
    pub(super) fn report(&mut self, report: Report) {
        let over = match &report {
            Report::Exited { task, .. } | Report::Lost { task, .. } => Some(*task),
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
            && matches!(*report, Report::Samples { .. })
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
                    about.prolong(steady(until, crate::task::now(), Instant::now()));
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
        let known = self.tasks.get(&task).map(Task::so_far);
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
            return self.report(Report::Lost { task, reason: "over-already".into() });
        }
        let about = Task::new(launch, crate::task::now(), Instant::now());
        self.deadlines.insert((about.until, task));
        self.tasks.insert(task, about);
        self.waiting.push_back(task);
    }

    fn stop(&mut self, task: TaskId, until: Time) {
        let Some(about) = self.tasks.get_mut(&task) else {
            if !self.acknowledged.all.contains(&task) && !self.ended.all().contains_key(&task) {
                self.report(Report::Lost { task, reason: "unknown-to-its-node".into() });
            }
            return;
        };
        let again = about.doom.is_some();
        about.stop(steady(until, crate::task::now(), Instant::now()));
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
        self.end(task, 128 + 15, crate::task::now(), false);
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

    // Keepers.

    /// Gives waiting tasks to idle keepers, and makes keepers for the others.
    fn place(&mut self) {
        let (mut held_back, now) = (VecDeque::new(), Instant::now());
        while let Some(task) = self.waiting.pop_front() {
            // At most one attempt at a time, whatever we are told.
            let oldest = TaskId { attempt: 0, rank: 0, ..task };
            let this = TaskId { rank: 0, ..task };
            let overtakes = self.tasks.range(oldest..this).next().is_some();
            if overtakes || self.faults.holds(task, now) {
                held_back.push_back(task);
                continue;
            }
            let keeper = match self.idle.pop() {
                Some(keeper) => Ok(keeper),
                None if self.keepers.len() >= KEEPERS_MAX => {
                    self.waiting.push_front(task);
                    break;
                }
                None => self.hire(),
            };
            match keeper {
                Ok(keeper) => self.entrust(keeper, task),
                Err(error) => self.fault(task, &format!("no keeper could be started: {error}")),
            }
        }
        held_back.append(&mut self.waiting);
        self.waiting = held_back;
    }

    /// Starts a keeper in a slot of its own.
    fn hire(&mut self) -> io::Result<u64> {
        let id = self.next_keeper;
        self.next_keeper += 1;
        let slot = self.cgroups.slot(id)?;
        let groups = slot.paths();
        match Kept::start(&self.keeper_arguments, &self.node, id, slot) {
            Ok(kept) => {
                self.roster.add(id, kept.child.id());
                self.keepers.insert(id, kept);
                Ok(id)
            }
            Err(error) => {
                for group in groups {
                    // What cannot be removed is swept at the next start.
                    let _ = std::fs::remove_dir(group);
                }
                Err(error)
            }
        }
    }

    /// Gives a task to a keeper.
    fn entrust(&mut self, keeper: u64, task: TaskId) {
        let (Some(about), Some(kept)) = (self.tasks.get_mut(&task), self.keepers.get_mut(&keeper))
        else {
            return;
        };
        if kept.slot.limit(Amounts::of(&about.launch)).is_err() {
            // What an earlier task left cannot be squeezed into the new limit: another slot.
            self.dismiss(keeper);
            match self.hire() {
                Ok(fresh) => {
                    let limits = self.tasks.get(&task).map(|about| Amounts::of(&about.launch));
                    let kept = self.keepers.get_mut(&fresh);
                    if let (Some(kept), Some(limits)) = (kept, limits)
                        && let Err(error) = kept.slot.limit(limits)
                    {
                        self.dismiss(fresh);
                        let why = format!("its limits could not be set: {error}");
                        return self.fault(task, &why);
                    }
                    return self.hand_over(fresh, task);
                }
                Err(error) => {
                    let why = format!("no keeper could be started: {error}");
                    return self.fault(task, &why);
                }
            }
        }
        self.hand_over(keeper, task);
    }

    fn hand_over(&mut self, keeper: u64, task: TaskId) {
        let (Some(about), Some(kept)) = (self.tasks.get_mut(&task), self.keepers.get_mut(&keeper))
        else {
            return;
        };
        let owner = self.node.isolation.uid(about.launch.spec.user).ok().flatten();
        let (laid, what) = match about.launch.spec.terminal {
            true => (kept.lay_terminal(owner), "terminal"),
            false => (kept.lay_pipes(owner), "pipes"),
        };
        if let Err(error) = laid {
            self.idle.push(keeper);
            return self.fault(task, &format!("its {what} could not be made: {error}"));
        }
        about.keeper = Some(keeper);
        let (portable, mark) = (self.node.settings.portable, &self.node.mark);
        kept.trail = portable.then(|| Trail::new(kept.child.id(), &about.launch, mark));
        // Not as the task before was told of: it may have coped with being out of memory.
        about.oom_kills_before = kept.slot.oom_kills();
        if task.rank == 0 {
            about.scalars = Some(Scalars::new(&Places::of(&about.launch).outputs));
        }
        about.disk_due = Some(Instant::now() + super::watch::DISK_FIRST);
        self.emptied.give(&about.launch);
        kept.task = Some(task);
        let start = ToKeeper::Start(Box::new(about.launch.clone()));
        self.tell_keeper(keeper, &start);
    }

    fn tell_keeper(&mut self, keeper: u64, message: &ToKeeper) {
        let told = self.keepers.get_mut(&keeper).map(|kept| kept.tell(message));
        if let Some(Err(_)) = told {
            self.lose(keeper);
        }
    }

    fn hear_keeper(&mut self, keeper: u64) {
        let Some(kept) = self.keepers.get_mut(&keeper) else { return };
        let Ok(said) = kept.flush().and_then(|()| kept.hear()) else { return self.lose(keeper) };
        for message in said {
            let Some(kept) = self.keepers.get(&keeper) else { return };
            match (message, kept.task) {
                (FromKeeper::Started { at, prepared }, Some(task)) => {
                    self.faults.began(task);
                    if let Some(about) = self.tasks.get_mut(&task) {
                        about.started = Some((at, prepared));
                        self.report(Report::Started { task, at, prepared });
                    }
                }
                (FromKeeper::NotStarted(NotStarted { code, why, fault }), Some(task)) => {
                    if fault {
                        self.fault(task, &why);
                    } else {
                        self.not_started(task, code, &why);
                    }
                    self.release(keeper);
                    self.idle.push(keeper);
                }
                (FromKeeper::Gone { at, code, tidies }, Some(task)) => {
                    self.gone(keeper, task, at, code);
                    if !tidies {
                        self.idle.push(keeper);
                    }
                }
                // Not before: a task that were given to it would wait.
                (FromKeeper::Ready, None) => self.idle.push(keeper),
                (message, task) => {
                    tracing::warn!(?message, ?task, "a keeper said what makes no sense");
                    return self.lose(keeper);
                }
            }
        }
    }

    /// All of a task is gone: what it printed is in the pipes, and then it is over.
    fn gone(&mut self, keeper: u64, task: TaskId, at: Time, code: i32) {
        for stream in [Stream::Out, Stream::Err] {
            // Not until they are empty: who was given an end of them may write for ever.
            let mut left = self.keepers.get(&keeper).map_or(0, |kept| kept.unread(stream));
            while left > 0 {
                match self.hear_task(keeper, stream) {
                    0 => break,
                    read => left = left.saturating_sub(read as u64),
                }
            }
        }
        // What it wrote last counts too.
        if let Some(about) = self.tasks.get_mut(&task)
            && let Some(scalars) = &mut about.scalars
        {
            let samples = scalars.look(at);
            if !samples.is_empty() {
                self.report(Report::Samples { task, samples });
            }
        }
        let before = self.tasks.get(&task).map_or(0, |about| about.oom_kills_before);
        let mut out_of_memory = false;
        if let Some(kept) = self.keepers.get(&keeper)
            && code != 0
        {
            out_of_memory = kept.slot.oom_kills() > before;
        }
        self.release(keeper);
        if let Some(about) = self.tasks.get(&task)
            && code == 0
            && about.doom.is_none()
        {
            // Before its end is told: until then nobody starts anything in its folder.
            self.emptied.take(&about.launch);
        }
        self.end(task, code, at, out_of_memory);
    }

    /// A keeper has no task any more.
    fn release(&mut self, keeper: u64) {
        if let Some(kept) = self.keepers.get_mut(&keeper) {
            kept.task = None;
            kept.trail = None;
            kept.pipes = None;
            kept.terminal = None;
            if let Some(mut log) = kept.log.take() {
                log.flush(crate::task::now());
            }
        }
    }

    /// A task is over, and its exit code is known.
    fn end(&mut self, task: TaskId, code: i32, at: Time, out_of_memory: bool) {
        let Some(about) = self.tasks.remove(&task) else { return };
        self.deadlines.remove(&(about.until, task));
        self.faults.over(task);
        let report = about.end(at, code, out_of_memory);
        self.keep(&about, report);
    }

    /// Keeps how a task ended until that is acknowledged, and tells it.
    fn keep(&mut self, about: &Task, report: Report) {
        let end = End { report: report.clone(), before: about.so_far() };
        self.ended.keep(about.launch.task, end);
        self.report(report);
    }

    /// A task could not be started: why is in its log.
    fn not_started(&mut self, task: TaskId, code: i32, why: &str) {
        self.note(task, &format!("the task was not started: {why}"));
        let Some(about) = self.tasks.get_mut(&task) else { return };
        about.doom.get_or_insert(Ending::NotStarted);
        self.end(task, code, crate::task::now(), false);
    }

    /// A task could not be started, and this machine is the reason.
    fn fault(&mut self, task: TaskId, why: &str) {
        tracing::warn!(%task, why, "this machine could not start a task");
        if self.tasks.get(&task).is_some_and(|about| about.doom.is_some()) {
            // It was to end in any case.
            return self.not_started(task, 126, why);
        }
        match self.faults.came(task, Instant::now()) {
            Next::Again(at) => {
                self.note(task, &format!("the task could not be started, and will be: {why}"));
                let Some(about) = self.tasks.get_mut(&task) else { return };
                about.keeper = None;
                self.waiting.push_back(task);
                // So that we wake up for it.
                self.deadlines.insert((at, task));
            }
            Next::Lost => {
                self.note(task, &format!("the task was not started here: {why}"));
                let Some(about) = self.tasks.remove(&task) else { return };
                self.deadlines.remove(&(about.until, task));
                self.keep(&about, Report::Lost { task, reason: "not-started-here".into() });
            }
            Next::Failed => self.not_started(task, 126, why),
        }
    }

    /// Writes a line of our own into a task's log.
    fn note(&mut self, task: TaskId, line: &str) {
        let Some(about) = self.tasks.get(&task) else { return };
        let spec = &about.launch.spec;
        let open = || LogWriter::open(&spec.folder.join("logs"), task, spec.limits.log_bytes);
        let mut own = None;
        let log = match about.keeper.and_then(|keeper| self.keepers.get_mut(&keeper)) {
            Some(kept) => kept.log.get_or_insert_with(open),
            None => own.insert(open()),
        };
        log.write(Stream::Err, format!("{line}\n").as_bytes(), crate::task::now());
        log.flush(crate::task::now());
    }

    /// Takes one piece of what a task printed, and says how much that was.
    fn hear_task(&mut self, keeper: u64, stream: Stream) -> usize {
        let Some(kept) = self.keepers.get_mut(&keeper) else { return 0 };
        let Some(task) = kept.task else { return 0 };
        let mut piece = std::mem::take(&mut self.piece);
        let read = kept.listen(stream, &mut piece);
        let mut told = Vec::new();
        if read > 0
            && let Some(about) = self.tasks.get(&task)
        {
            let spec = &about.launch.spec;
            let log = kept.log.get_or_insert_with(|| {
                LogWriter::open(&spec.folder.join("logs"), task, spec.limits.log_bytes)
            });
            let printed = match &mut kept.terminal {
                Some(terminal) => {
                    super::terminal::show(&mut self.connections, task, &piece);
                    terminal.shown(&piece)
                }
                None => std::borrow::Cow::from(&piece),
            };
            told = log.write(stream, &printed, crate::task::now());
        }
        self.piece = piece;
        for told in told {
            self.told(task, told);
        }
        read
    }

    /// What a line of a task's log told.
    fn told(&mut self, task: TaskId, told: Told) {
        match told {
            Told::Samples(samples) => self.report(Report::Samples { task, samples }),
            Told::Checkpoint(done) => {
                if let Some(about) = self.tasks.get_mut(&task) {
                    about.checkpoint = Some(done);
                }
                self.report(Report::Checkpointed { task, done });
            }
        }
    }

    /// A keeper is gone, and its task with it.
    fn lose(&mut self, keeper: u64) {
        let Some(mut kept) = self.keepers.remove(&keeper) else { return };
        self.idle.retain(|idle| *idle != keeper);
        let _ = kept.child.kill();
        let _ = kept.child.wait();
        self.end_strays(&mut kept);
        self.roster.remove(keeper);
        kept.remove();
        let Some(task) = kept.task else { return };
        let Some(about) = self.tasks.remove(&task) else { return };
        self.deadlines.remove(&(about.until, task));
        self.faults.over(task);
        let report = match about.doom {
            // It was killed so thoroughly that its keeper went too.
            Some(_) => about.end(crate::task::now(), 128 + 9, false),
            None => Report::Lost { task, reason: "keeper-gone".into() },
        };
        self.keep(&about, report);
    }

    /// Ends what a keeper left: what is in its slot, and what has become our own child without
    /// being a keeper.
    fn end_strays(&mut self, kept: &mut Kept) {
        if self.node.settings.portable {
            if let Some(trail) = &mut kept.trail
                && let Err(error) = trail.end_all(KEEPER_PATIENCE)
            {
                tracing::error!(%error, "what a keeper left cannot be found");
            }
            return;
        }
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let begun = Instant::now();
        loop {
            let keepers: BTreeSet<u32> = self.keepers.values().map(|k| k.child.id()).collect();
            let all = tree::processes();
            let strays = all.iter().filter(|p| {
                p.parent == own && !u32::try_from(p.pid).is_ok_and(|pid| keepers.contains(&pid))
            });
            let mut any = false;
            for stray in strays {
                any = true;
                let below = tree::descendants(stray.pid, &all);
                for process in below.iter().chain([stray]) {
                    if let Some(pid) = rustix::process::Pid::from_raw(process.pid) {
                        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                    }
                }
                if let Some(pid) = rustix::process::Pid::from_raw(stray.pid) {
                    let nohang = rustix::process::WaitOptions::NOHANG;
                    let _ = rustix::process::waitpid(Some(pid), nohang);
                }
            }
            let empty = kept.slot.kill_all();
            if (empty && !any) || begun.elapsed() > KEEPER_PATIENCE {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets a keeper go that has no task.
    fn dismiss(&mut self, keeper: u64) {
        self.idle.retain(|idle| *idle != keeper);
        if let Some(mut kept) = self.keepers.remove(&keeper) {
            let _ = kept.child.kill();
            let _ = kept.child.wait();
            self.roster.remove(keeper);
            kept.remove();
        }
    }

    /// Keeps a few keepers ready: starting one takes longer than starting a task.
    fn spares(&mut self) {
        let wanted = self.node.settings.spare_keepers;
        while self.idle.len() < wanted && self.keepers.len() < KEEPERS_MAX {
            match self.hire() {
                Ok(keeper) => self.idle.push(keeper),
                Err(error) => {
                    tracing::warn!(%error, "a spare keeper could not be started");
                    return;
                }
            }
        }
    }

    fn too_many_spares(&self) -> bool {
        self.idle.len() > self.node.settings.spare_keepers
    }

    // Time.

    /// Kills what is due, and keepers that do not obey.
    fn kill_due(&mut self) {
        let now = Instant::now();
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
                let now = Instant::now();
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
        if !self.watch.is_due(active) {
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
