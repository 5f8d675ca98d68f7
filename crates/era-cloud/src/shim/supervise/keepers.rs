//! Tasks in the hands of keepers: who is given what, what keepers say, how a task ends.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::Time;

use super::watch::DISK_FIRST;
use super::{KEEPER_PATIENCE, KEEPERS_MAX, Supervisor, terminals};
use crate::executor::{Ending, ExecutorReport};
use crate::limits::{Amounts, tree};
use crate::log::{LogDirective, LogWriter, Stream};
use crate::scalars::Scalars;
use crate::shim::ended::End;
use crate::shim::faults::Next;
use crate::shim::keeper::{FromKeeper, NotStarted, ToKeeper};
use crate::shim::slot::KeeperSlot;
use crate::shim::task::KeptTask;
use crate::shim::trail::Trail;
use crate::task::Places;

impl Supervisor {
    /// Gives waiting tasks to idle keepers, and makes keepers for the others.
    pub(super) fn place(&mut self) {
        let (mut held_back, now) = (VecDeque::new(), self.clock.steady());
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
        match KeeperSlot::start(&self.keeper_arguments, &self.node, id, slot) {
            Ok(kept) => {
                self.roster.add(id, kept.child.id(), self.clock.now());
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
        about.disk_due = Some(self.clock.steady() + DISK_FIRST);
        self.emptied.give(&about.launch);
        kept.task = Some(task);
        let start = ToKeeper::Start(Box::new(about.launch.clone()));
        self.tell_keeper(keeper, &start);
    }

    pub(super) fn tell_keeper(&mut self, keeper: u64, message: &ToKeeper) {
        let told = self.keepers.get_mut(&keeper).map(|kept| kept.tell(message));
        if let Some(Err(_)) = told {
            self.lose(keeper);
        }
    }

    pub(super) fn hear_keeper(&mut self, keeper: u64) {
        let Some(kept) = self.keepers.get_mut(&keeper) else { return };
        let Ok(said) = kept.flush().and_then(|()| kept.hear()) else { return self.lose(keeper) };
        for message in said {
            let Some(kept) = self.keepers.get(&keeper) else { return };
            match (message, kept.task) {
                (FromKeeper::Started { at, prepared }, Some(task)) => {
                    self.faults.began(task);
                    if let Some(about) = self.tasks.get_mut(&task) {
                        about.started = Some((at, prepared));
                        self.report(ExecutorReport::Started { task, at, prepared });
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
                self.report(ExecutorReport::Samples { task, samples });
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
                log.flush(self.clock.now());
            }
        }
    }

    /// A task is over, and its exit code is known.
    pub(super) fn end(&mut self, task: TaskId, code: i32, at: Time, out_of_memory: bool) {
        let Some(about) = self.tasks.remove(&task) else { return };
        self.deadlines.remove(&(about.until, task));
        self.faults.over(task);
        let report = about.end(at, code, out_of_memory);
        self.keep(&about, report);
    }

    /// Keeps how a task ended until that is acknowledged, and tells it.
    fn keep(&mut self, about: &KeptTask, report: ExecutorReport) {
        let end = End { report: report.clone(), before: about.so_far() };
        self.ended.keep(about.launch.task, end);
        self.report(report);
    }

    /// A task could not be started: why is in its log.
    fn not_started(&mut self, task: TaskId, code: i32, why: &str) {
        self.note(task, &format!("the task was not started: {why}"));
        let Some(about) = self.tasks.get_mut(&task) else { return };
        about.doom.get_or_insert(Ending::NotStarted);
        self.end(task, code, self.clock.now(), false);
    }

    /// A task could not be started, and this machine is the reason.
    fn fault(&mut self, task: TaskId, why: &str) {
        tracing::warn!(%task, why, "this machine could not start a task");
        if self.tasks.get(&task).is_some_and(|about| about.doom.is_some()) {
            // It was to end in any case.
            return self.not_started(task, 126, why);
        }
        match self.faults.came(task, self.clock.steady()) {
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
                self.keep(&about, ExecutorReport::Lost { task, reason: "not-started-here".into() });
            }
            Next::Failed => self.not_started(task, 126, why),
        }
    }

    /// Writes a line of our own into a task's log.
    pub(super) fn note(&mut self, task: TaskId, line: &str) {
        let Some(about) = self.tasks.get(&task) else { return };
        let spec = &about.launch.spec;
        let open = || LogWriter::open(&spec.folder.join("logs"), task, spec.limits.log_bytes);
        let mut own = None;
        let log = match about.keeper.and_then(|keeper| self.keepers.get_mut(&keeper)) {
            Some(kept) => kept.log.get_or_insert_with(open),
            None => own.insert(open()),
        };
        log.write(Stream::Err, format!("{line}\n").as_bytes(), self.clock.now());
        log.flush(self.clock.now());
    }

    /// Takes one piece of what a task printed, and says how much that was.
    pub(super) fn hear_task(&mut self, keeper: u64, stream: Stream) -> usize {
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
                    terminals::show(&mut self.connections, task, &piece);
                    terminal.shown(&piece)
                }
                None => std::borrow::Cow::from(&piece),
            };
            told = log.write(stream, &printed, self.clock.now());
        }
        self.piece = piece;
        for told in told {
            self.told(task, told);
        }
        read
    }

    /// What a line of a task's log told.
    fn told(&mut self, task: TaskId, told: LogDirective) {
        match told {
            LogDirective::Samples(samples) => {
                self.report(ExecutorReport::Samples { task, samples })
            }
            LogDirective::Checkpoint(done) => {
                if let Some(about) = self.tasks.get_mut(&task) {
                    about.checkpoint = Some(done);
                }
                self.report(ExecutorReport::Checkpointed { task, done });
            }
        }
    }

    /// A keeper is gone, and its task with it.
    pub(super) fn lose(&mut self, keeper: u64) {
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
            Some(_) => about.end(self.clock.now(), 128 + 9, false),
            None => ExecutorReport::Lost { task, reason: "keeper-gone".into() },
        };
        self.keep(&about, report);
    }

    /// Ends what a keeper left: what is in its slot, and what has become our own child without
    /// being a keeper.
    fn end_strays(&mut self, kept: &mut KeeperSlot) {
        if self.node.settings.portable {
            if let Some(trail) = &mut kept.trail
                && let Err(error) = trail.end_all(KEEPER_PATIENCE, &self.clock)
            {
                tracing::error!(%error, "what a keeper left cannot be found");
            }
            return;
        }
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let begun = self.clock.steady();
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
            if (empty && !any)
                || self.clock.steady().saturating_duration_since(begun) > KEEPER_PATIENCE
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets a keeper go that has no task.
    pub(super) fn dismiss(&mut self, keeper: u64) {
        self.idle.retain(|idle| *idle != keeper);
        if let Some(mut kept) = self.keepers.remove(&keeper) {
            let _ = kept.child.kill();
            let _ = kept.child.wait();
            self.roster.remove(keeper);
            kept.remove();
        }
    }

    /// Keeps a few keepers ready: starting one takes longer than starting a task.
    pub(super) fn spares(&mut self) {
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

    pub(super) fn too_many_spares(&self) -> bool {
        self.idle.len() > self.node.settings.spare_keepers
    }
}
