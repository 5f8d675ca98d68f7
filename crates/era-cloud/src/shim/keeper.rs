//! A keeper: the small process that is the parent of one task at a time.
//!
//! It lives in the control groups of its slot, so that its task is born there; it enters the task's
//! namespace to start it; and it adopts whatever the task leaves behind, so that "the task is gone"
//! is simply "the keeper has no child", however the task forked, changed its session or hid. It
//! is told what to do on its standard input, which is a socket; with the word to start a task come
//! the pipes of that task. If that socket closes, the supervisor is gone, and the keeper ends its
//! task and itself.
//!
//! It knows no limits and no deadlines: the supervisor tells it when to signal.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use era_core::units::{Span, Time, UserId};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use serde::{Deserialize, Serialize};

use super::faults::is_the_machines;
use super::protocol::{LineBuffer, put};
use super::system;
use super::terminal;
use super::trail::{self, Follower};
use crate::clock::MachineClock;
use crate::executor::Launch;
use crate::isolate::{Birth, Isolation, MountNamespace, TASK_ROOT, Unisolated, View, devices, ipc};
use crate::limits::{cgroups, tree};
use crate::task::{Places, SupervisorSettings, Unready, environment, give};

/// How long the word that a task has started waits for the word that it is over. Most short tasks
/// are over by then, and whoever hears both at once has half as much to do.
const START_UNTOLD_MAX: Duration = Duration::from_millis(5);
/// Shared memory of a task that names no memory of its own.
const SHM_BYTES: u64 = 8 << 30;

/// What a keeper is told first, and then for each task.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToKeeper {
    /// What is the same for all tasks.
    Node(Box<NodeContext>),
    /// Start a task. Its output and its error come with this line; its terminal comes as both.
    Start(Box<Launch>),
    /// Ask all of the task to end.
    Terminate,
    /// End all of the task.
    Kill,
}

/// What is the same for all tasks of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct NodeContext {
    pub(super) settings: SupervisorSettings,
    pub(super) isolation: Isolation,
    pub(super) mark: String,
    /// The control groups of this keeper's slot.
    pub(super) groups: Vec<PathBuf>,
    /// Where this keeper puts an empty temporary folder aside for its next task.
    pub(super) spare: PathBuf,
    /// Whether those groups limit the number of processes.
    pub(super) groups_limit_processes: bool,
    /// How many files a process may open where nobody asks for more.
    pub(super) open_files: Option<u64>,
    /// What keepers are started from.
    pub(super) program: PathBuf,
}

/// What a keeper tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromKeeper {
    /// The task's first instruction was at `at`, or a moment later: never before.
    Started { at: Time, prepared: Span },
    /// It could not be started.
    NotStarted(NotStarted),
    /// All of it is gone. If the keeper tidies up after it, it says when it is ready again.
    Gone { at: Time, code: i32, tidies: bool },
    /// It has tidied up.
    Ready,
}

/// Why a task could not be started.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NotStarted {
    /// What it is told to have ended with.
    pub(super) code: i32,
    pub(super) why: String,
    /// Whether this machine is the reason, and not the task.
    pub(super) fault: bool,
}

impl NotStarted {
    fn of_the_task(why: impl ToString) -> NotStarted {
        NotStarted { code: 126, why: why.to_string(), fault: false }
    }

    fn of_the_machine(why: impl ToString) -> NotStarted {
        NotStarted { code: 126, why: why.to_string(), fault: true }
    }
}

impl From<Unready> for NotStarted {
    fn from(why: Unready) -> NotStarted {
        match &why {
            Unready::Io { source, .. } if is_the_machines(source) => {
                NotStarted::of_the_machine(why)
            }
            _ => NotStarted::of_the_task(why),
        }
    }
}

impl From<Unisolated> for NotStarted {
    fn from(why: Unisolated) -> NotStarted {
        match why {
            Unisolated::NoUserId(_) => NotStarted::of_the_task(why),
            Unisolated::Step { .. } => NotStarted::of_the_machine(why),
        }
    }
}

/// Runs a keeper on our standard input, until that closes.
pub fn keep(clock: MachineClock) -> io::Result<()> {
    let control = io::stdin().as_fd().try_clone_to_owned()?;
    let mut keeper = Keeper::new(UnixStream::from(control), clock)?;
    while let Some(order) = keeper.next_order()? {
        match order {
            ToKeeper::Node(node) => keeper.settle(*node)?,
            ToKeeper::Start(launch) => keeper.run(&launch)?,
            // The task that this is about has gone before the word came.
            ToKeeper::Terminate | ToKeeper::Kill => {}
        }
    }
    keeper.leave();
    Ok(())
}

struct Keeper {
    control: UnixStream,
    clock: MachineClock,
    lines: LineBuffer,
    orders: std::collections::VecDeque<ToKeeper>,
    /// The pipes of the next task, once they are here.
    pipes: Vec<OwnedFd>,
    /// What is to be told, in order.
    untold: Vec<u8>,
    node: Option<NodeContext>,
    /// Whose temporary folder was put aside; `None` where none is.
    spare_of: Option<UserId>,
    /// Whether what is shared by System V's means is our tasks' own.
    own_ipc: bool,
    /// So that the kernel spares the keeper and not the task; `None` without the right to.
    oom_score: Option<File>,
    pid: i32,
    /// Follows our task, where orphans do not come to us.
    follower: Option<Follower>,
    /// What tasks read.
    nothing: File,
}

/// A task that was started.
struct Born {
    pid: Pid,
    /// Its first instruction was not before.
    at: Time,
    /// The same by the steady clock.
    when: Instant,
}

/// How a task ended: its exit code, or 128 and the signal.
fn code(status: WaitStatus) -> i32 {
    let signal = || status.terminating_signal().map(|signal| 128 + signal);
    status.exit_status().or_else(signal).unwrap_or(255)
}

impl Keeper {
    fn new(control: UnixStream, clock: MachineClock) -> io::Result<Keeper> {
        // A session of our own is one of our tasks' own. It fails for the leader of a group, which
        // a keeper is not, and would do no harm.
        let _ = rustix::process::setsid();
        system::gain_nothing()?;
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Core, none)?;
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        let mut oom_score = File::options().write(true).open("/proc/self/oom_score_adj").ok();
        if let Some(file) = &mut oom_score
            && file.write_all(b"-1000").is_err()
        {
            oom_score = None;
        }
        let pid = rustix::process::getpid().as_raw_pid();
        let (lines, orders, untold) = (LineBuffer::default(), Default::default(), Vec::new());
        let nothing = File::open("/dev/null")?;
        let (node, spare_of, pipes) = (None, None, Vec::new());
        Ok(Keeper {
            control,
            clock,
            lines,
            orders,
            pipes,
            untold,
            node,
            spare_of,
            own_ipc: false,
            oom_score,
            pid,
            follower: None,
            nothing,
        })
    }

    /// Moves into the slot, and away from what others share. This can take milliseconds, which is
    /// why tasks are not moved.
    fn settle(&mut self, node: NodeContext) -> io::Result<()> {
        if node.settings.portable {
            self.follower = Some(Follower::new(self.clock.clone())?);
        } else {
            // Orphans come to us, whatever they do.
            system::adopt_orphans()?;
        }
        for group in &node.groups {
            cgroups::admit_self(group)?;
        }
        let mut files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        files.current = node.open_files;
        rustix::process::setrlimit(rustix::process::Resource::Nofile, files)?;
        // Where it is not permitted, what tasks leave of it stays, as it does without root.
        self.own_ipc = node.isolation.namespaces && ipc::anew().is_ok();
        self.node = Some(node);
        Ok(())
    }

    /// Leaves nothing behind.
    fn leave(&mut self) {
        if let (Some(node), Some(_)) = (&self.node, self.spare_of) {
            // The next supervisor sweeps what cannot be removed.
            let _ = std::fs::remove_dir(&node.spare);
        }
    }

    /// Waits for the next order; `None` when the supervisor is gone.
    fn next_order(&mut self) -> io::Result<Option<ToKeeper>> {
        while self.orders.is_empty() {
            if !self.hear()? {
                return Ok(None);
            }
        }
        Ok(self.orders.pop_front())
    }

    /// Reads once from the supervisor, and says whether it is there.
    fn hear(&mut self) -> io::Result<bool> {
        let mut piece = [0; 16 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(&mut piece)];
        let read = match rustix::net::recvmsg(&self.control, into, &mut with, system::RECEIVE) {
            Ok(received) => received.bytes,
            Err(rustix::io::Errno::INTR) => return Ok(true),
            Err(rustix::io::Errno::CONNRESET) => 0,
            Err(errno) => return Err(errno.into()),
        };
        for message in with.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                for file in files {
                    if system::PORTABLE {
                        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::CLOEXEC)?;
                    }
                    self.pipes.push(file);
                }
            }
        }
        let (orders, mut wrong) = (&mut self.orders, None);
        self.lines.feed(&piece[..read], |line| match serde_json::from_slice(line) {
            Ok(order) => orders.push_back(order),
            Err(error) => wrong = Some(error),
        })?;
        match wrong {
            Some(error) => Err(error.into()),
            None => Ok(read > 0),
        }
    }

    fn tell(&mut self, message: &FromKeeper) -> io::Result<()> {
        put(&mut self.untold, message);
        self.tell_all()
    }

    /// Tells what was not told yet.
    fn tell_all(&mut self) -> io::Result<()> {
        let told = self.control.write_all(&self.untold);
        self.untold.clear();
        match told {
            // The supervisor is gone: the next look at the socket says so too.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            told => told,
        }
    }

    /// A task from its preparation to its end.
    fn run(&mut self, launch: &Launch) -> io::Result<()> {
        let begun = self.clock.steady();
        let places = Places::of(launch);
        // Open until the end is told: a task that closes them has not ended.
        let pipes = std::mem::take(&mut self.pipes);
        match self.start(launch, &places, &pipes) {
            Err(why) => {
                places.tidy();
                if why.fault {
                    // It may be tried again, and nothing ran in it that could have left anything.
                    let _ = std::fs::remove_dir_all(&places.work);
                }
                self.tell(&FromKeeper::NotStarted(why))
            }
            Ok(Born { pid, at, when }) => {
                let prepared = when.saturating_duration_since(begun).as_millis();
                let prepared = Span(i64::try_from(prepared).unwrap_or(i64::MAX));
                put(&mut self.untold, &FromKeeper::Started { at, prepared });
                let code = self.until_gone(pid, launch.spec.terminal)?;
                let at = self.clock.now();
                // Who cannot be rid of what a task shared is no keeper for another.
                let stuck = self.own_ipc && ipc::is_used() && ipc::anew().is_err();
                let spare = self.node.as_ref().map(|node| node.spare.as_path());
                let aside = spare.is_some_and(|spare| places.put_aside(spare));
                self.spare_of = aside.then_some(launch.spec.user);
                self.tell(&FromKeeper::Gone { at, code, tidies: !aside || stuck })?;
                if stuck {
                    places.tidy();
                    return Err(io::Error::other("what a task left in shared memory stays"));
                }
                if !aside {
                    // There may be much to remove, and what the task held is free: nobody waits
                    // for it, but no other task is given to us meanwhile.
                    places.tidy();
                    self.tell(&FromKeeper::Ready)?;
                }
                Ok(())
            }
        }
    }

    /// How long ago that was.
    fn since(&self, begun: Instant) -> Duration {
        self.clock.steady().saturating_duration_since(begun)
    }

    /// Starts a task, or says why not.
    fn start(
        &mut self,
        launch: &Launch,
        places: &Places,
        pipes: &[OwnedFd],
    ) -> Result<Born, NotStarted> {
        let Some(node) = self.node.take() else {
            let why = "the supervisor has not told its settings";
            return Err(NotStarted::of_the_machine(why));
        };
        let started = self.start_on(&node, launch, places, pipes);
        self.node = Some(node);
        started
    }

    fn start_on(
        &mut self,
        node: &NodeContext,
        launch: &Launch,
        places: &Places,
        pipes: &[OwnedFd],
    ) -> Result<Born, NotStarted> {
        let Some(program) = launch.spec.command.first() else {
            return Err(NotStarted::of_the_task("there is no command to run: give one"));
        };
        if let Some(image) = &launch.spec.image {
            let why = "tasks of this node are plain processes: leave the image out, or run the job \
                       on an executor `docker://…`";
            return Err(NotStarted::of_the_task(format!("it names image `{image}`, and {why}")));
        }
        let [output, error] = pipes else {
            return Err(NotStarted::of_the_machine("its pipes did not come with it"));
        };
        let root = node.isolation.namespaces.then(|| PathBuf::from(TASK_ROOT));
        let uid = node.isolation.uid(launch.spec.user)?;
        let spare = self.take_spare(node, launch.spec.user);
        let mounts = places.prepare(launch, &node.isolation, spare)?;
        let seen = places.seen(launch, root.as_deref());
        let env = environment(launch, &seen, &node.settings, &node.mark);
        let away = match &root {
            Some(root) => Some(self.leave_home(node, launch, places, root, mounts)?),
            None => None,
        };
        self.spare(false);
        let few = (!node.groups_limit_processes).then(|| {
            let uid = uid.unwrap_or_else(|| rustix::process::geteuid().as_raw());
            // Linux counts threads, others processes. Where neither is told, it has none.
            let processes = self.follower.as_mut().map(|it| it.count_of(uid).unwrap_or(0));
            few_processes(launch, tree::threads_of(uid).max(processes.unwrap_or(0)))
        });
        let usual = few.map(set_process_limit);
        let (command, folder) = (&launch.spec.command, &seen.work);
        let (output, error, terminal) = (output.as_fd(), error.as_fd(), launch.spec.terminal);
        let input = if terminal { output } else { self.nothing.as_fd() };
        let birth = Birth { command, env: &env, folder, uid, terminal, input, output, error };
        // What the task sees is in its place: from here on its owner may change what is below.
        let born = give(&seen.work, uid).and_then(|()| {
            if let Some(follower) = &mut self.follower {
                follower.begin(launch, &node.mark);
            }
            // Taken before the task can take its own: on a busy machine it is at work before we
            // are told that it was started.
            let (at, when) = (self.clock.now(), self.clock.steady());
            let pid = if self.follower.is_some() { birth.spawn() } else { birth.start() }?;
            Ok(Born { pid, at, when })
        });
        if let Some(usual) = usual.flatten() {
            set_process_limit(usual);
        }
        self.spare(true);
        if let Some(away) = away {
            away.back()?;
        }
        born.map_err(|error| NotStarted {
            code: if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 },
            fault: is_the_machines(&error),
            why: format!("could not start `{program}`: {error}"),
        })
    }

    /// The temporary folder that was put aside, if it was this user's; another's is removed.
    fn take_spare<'a>(&mut self, node: &'a NodeContext, user: UserId) -> Option<&'a Path> {
        let owner = self.spare_of.take()?;
        if owner != user {
            // It is empty. Should it stay, there is none to put aside in its place.
            let _ = std::fs::remove_dir(&node.spare);
        }
        (owner == user).then_some(&node.spare)
    }

    fn leave_home(
        &self,
        node: &NodeContext,
        launch: &Launch,
        places: &Places,
        root: &Path,
        mounts: Vec<(PathBuf, PathBuf)>,
    ) -> Result<MountNamespace, crate::isolate::Unisolated> {
        let memory = u64::from(launch.each.memory) << 20;
        let inside = |to: PathBuf| match to.strip_prefix(&places.folder) {
            Ok(below) => root.join(below),
            Err(_) => to,
        };
        let read_only: Vec<_> = mounts.into_iter().map(|(from, to)| (from, inside(to))).collect();
        let gpu_uuids = &node.settings.gpu_uuids;
        let closed = if gpu_uuids.is_empty() {
            Vec::new()
        } else {
            let own = |gpu: &u8| gpu_uuids.get(usize::from(*gpu)).map_or("", String::as_str);
            let own: Vec<&str> = launch.gpus.iter().map(own).collect();
            devices::of_others(&own, devices::DEVICES.as_ref(), devices::DRIVER.as_ref())
        };
        let view = View {
            folder: &places.folder,
            root,
            tmp: &places.tmp,
            read_only: &read_only,
            hidden: &node.settings.hidden,
            closed: &closed,
            shm_bytes: if memory == 0 { SHM_BYTES } else { memory },
        };
        let away = MountNamespace::from_home()?;
        match away.arrange(&view) {
            Ok(()) => Ok(away),
            Err(why) => away.back().and(Err(why)),
        }
    }

    /// Whether the kernel spares us when memory is short. What we start inherits it, so it is
    /// off while we start something.
    fn spare(&mut self, spared: bool) {
        if let Some(file) = &mut self.oom_score {
            // It was permitted at the start; if it no longer is, the task is only safer.
            let _ = file.write_all(if spared { b"-1000" } else { b"0" });
        }
    }

    /// Waits until nothing of the task is left, signalling it as told.
    fn until_gone(&mut self, root: Pid, terminal: bool) -> io::Result<i32> {
        let ending = match self.follower {
            Some(_) => trail::ending(root)?,
            None => system::ending(root)?,
        };
        let (begun, mut hang_up) = (self.clock.steady(), false);
        loop {
            let (said, ended) = self.wait(&ending, begun, hang_up)?;
            if hang_up {
                hang_up = !ended && !terminal::hang_up(&self.task_processes()?, root);
            }
            if !ended && !self.untold.is_empty() && self.since(begun) >= START_UNTOLD_MAX {
                self.tell_all()?;
            }
            if let Some(follower) = self.follower.as_mut().filter(|_| !ended) {
                follower.look_if_due();
            }
            if said && !self.hear()? {
                // The supervisor is gone.
                self.kill_all(Some(root))?;
                std::process::exit(0);
            }
            while let Some(order) = self.orders.pop_front() {
                match order {
                    ToKeeper::Terminate => {
                        self.terminate(root);
                        hang_up = terminal;
                    }
                    ToKeeper::Kill => return self.kill_all(Some(root)),
                    ToKeeper::Node(_) | ToKeeper::Start(_) => {
                        return Err(io::Error::other("told to start a task beside another"));
                    }
                }
            }
            if ended && let Reaped::Ended(_, status) = reap(Some(root))? {
                let code = code(status);
                self.kill_all(None)?;
                return Ok(code);
            }
        }
    }

    /// Waits for word from the supervisor or the end of the task's first process, or until it is
    /// time to tell that it began, to look at the task, or whether a terminal can be hung up.
    fn wait(&self, ending: &OwnedFd, begun: Instant, hang_up: bool) -> io::Result<(bool, bool)> {
        let mut fds =
            [PollFd::new(&self.control, PollFlags::IN), PollFd::new(ending, PollFlags::IN)];
        let left = START_UNTOLD_MAX.saturating_sub(self.since(begun));
        let untold = (!self.untold.is_empty()).then_some(left);
        let look = self.follower.as_ref().map(Follower::patience);
        let hang_up = hang_up.then_some(terminal::HANG_UP_EVERY);
        let soonest = untold.into_iter().chain(look).chain(hang_up).min();
        let left = soonest.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match rustix::event::poll(&mut fds, left.as_ref()) {
            Ok(_) => Ok((!fds[0].revents().is_empty(), !fds[1].revents().is_empty())),
            Err(rustix::io::Errno::INTR) => Ok((false, false)),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Asks all of the task to end: its group at once, then whoever has left the group.
    fn terminate(&mut self, root: Pid) {
        // It may be gone, which is what we want.
        let _ = rustix::process::kill_process_group(root, Signal::TERM);
        // Who cannot be found now is killed later.
        for process in self.task_processes().unwrap_or_default() {
            if process.group != root.as_raw_pid() {
                signal(process.pid, Signal::TERM);
            }
        }
    }

    fn task_processes(&mut self) -> io::Result<Vec<tree::Process>> {
        match &mut self.follower {
            Some(follower) => follower.look(),
            None => Ok(tree::descendants(self.pid, &tree::processes())),
        }
    }

    /// Whether somebody of the task is not our child.
    fn has_strays(&mut self) -> io::Result<bool> {
        let living = |all: Vec<tree::Process>| all.iter().any(|process| !process.zombie);
        self.follower.as_mut().map_or(Ok(false), |follower| follower.look().map(living))
    }

    /// Ends everything that is the task's, and returns how `root` ended. First all are stopped,
    /// until no new one appears, so that nothing forks away while we kill.
    fn kill_all(&mut self, root: Option<Pid>) -> io::Result<i32> {
        let mut ended = 128 + Signal::KILL.as_raw();
        let mut pause = Duration::from_micros(200);
        loop {
            loop {
                match reap(None)? {
                    Reaped::Childless if !self.has_strays()? => return Ok(ended),
                    Reaped::Childless | Reaped::Running => break,
                    Reaped::Ended(pid, status) if Some(pid) == root => ended = code(status),
                    Reaped::Ended(..) => {}
                }
            }
            let mut stopped = BTreeSet::new();
            loop {
                let all = self.task_processes()?;
                let living = all.iter().filter(|process| !process.zombie);
                let new: Vec<i32> =
                    living.map(|process| process.pid).filter(|pid| stopped.insert(*pid)).collect();
                if new.is_empty() {
                    break;
                }
                new.iter().for_each(|pid| signal(*pid, Signal::STOP));
            }
            stopped.iter().for_each(|pid| signal(*pid, Signal::KILL));
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

/// What became of children.
enum Reaped {
    /// There is none.
    Childless,
    /// There are some, and all of them run.
    Running,
    Ended(Pid, WaitStatus),
}

/// Reaps a child that has ended: a certain one, or any.
fn reap(which: Option<Pid>) -> io::Result<Reaped> {
    loop {
        let waited = match which {
            Some(pid) => rustix::process::waitpid(Some(pid), WaitOptions::NOHANG),
            None => rustix::process::wait(WaitOptions::NOHANG),
        };
        return match waited {
            Ok(Some((pid, status))) => Ok(Reaped::Ended(pid, status)),
            Ok(None) => Ok(Reaped::Running),
            Err(rustix::io::Errno::CHILD) => Ok(Reaped::Childless),
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => Err(errno.into()),
        };
    }
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may be gone, which is what we want.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// How many processes a task's user, who has some, may have so that the task has no more than it
/// may. Counted by user, since that is what systems count by without control groups; what is finer
/// is sampled.
fn few_processes(launch: &Launch, has: u64) -> rustix::process::Rlimit {
    let most = has.saturating_add(u64::from(launch.spec.limits.processes));
    let usual = rustix::process::getrlimit(rustix::process::Resource::Nproc);
    let current = usual.maximum.map_or(most, |maximum| most.min(maximum));
    rustix::process::Rlimit { current: Some(current), maximum: usual.maximum }
}

/// Sets how many processes our user may have, for what we start, and returns what it was.
fn set_process_limit(limit: rustix::process::Rlimit) -> Option<rustix::process::Rlimit> {
    let usual = rustix::process::getrlimit(rustix::process::Resource::Nproc);
    rustix::process::setrlimit(rustix::process::Resource::Nproc, limit).ok().map(|()| usual)
}
