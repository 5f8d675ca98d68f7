//! The folder that a task and its server share about the task itself: the lease and the guard on
//! one side, what the guard tells on the other (decision 0018).
//!
//! What the guard tells lies in a folder that the task can write to. So it is read as what a
//! stranger sends: plain files only, so many bytes at most, and nothing that decides who pays.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::{Span, Time};

use crate::executor::Launch;
use crate::usage::{GpuUse, TaskUsage};

/// The guard itself: a script, so that it runs in any image that has a shell.
const GUARD: &str = include_str!("guard.sh");
/// Most of a file that is read.
const TOLD_BYTES_MAX: u64 = 4096;

/// How late a guard may notice a renewal and count it (three seconds), and a tick come (one).
const LATE: Duration = Duration::from_secs(4);

/// How long a lease lasts, and how long what lapsed may take to be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// From the last renewal to the signal; `None` where tasks need no lease.
    pub lasts: Option<Duration>,
    /// From the signal to the kill.
    pub kill: Duration,
}

impl LeaseTimes {
    /// The times of tasks that must be gone within `fence` of the moment their node is told to be
    /// lost: a sixth for the kill, four seconds for looks that come late, and the lease has at most
    /// two thirds. A fence of less than eight seconds is too short for any of it.
    pub fn within(fence: Span) -> LeaseTimes {
        let fence = Duration::from_millis(u64::try_from(fence.ms()).unwrap_or(0));
        let whole = |part: Duration| Duration::from_secs(part.as_secs().max(1));
        let kill = whole(fence / 6);
        let lasts = (fence * 2 / 3).min(fence.saturating_sub(kill + LATE));
        LeaseTimes { lasts: Some(whole(lasts)), kill }
    }

    /// Those of an engine on the server's own machine, which no cut can part from it.
    pub fn none() -> LeaseTimes {
        LeaseTimes { lasts: None, kill: Duration::from_secs(5) }
    }

    /// How long after the last renewal a task is certainly gone.
    pub(super) fn gone_after(&self) -> Duration {
        self.lasts.unwrap_or_default() + self.kill + LATE
    }

    /// How late a guard that counts by itself may be.
    pub(super) fn late(&self) -> Duration {
        LATE
    }

    /// How often a lease is renewed.
    pub(super) fn renewed_every(&self) -> Option<Duration> {
        self.lasts.map(|lasts| (lasts / 4).max(Duration::from_millis(500)))
    }
}

/// What the server says in a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseOrder {
    /// The task may run, for so many seconds at most.
    Run(u64),
    /// It is to end within so many seconds.
    Stop(u64),
    /// It is to be gone, and never to run again.
    Over,
}

/// The folder that is shared about one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shared {
    pub(super) folder: PathBuf,
}

impl Shared {
    /// That of a task in its job's folder.
    pub(super) fn of(job_folder: &Path, task: TaskId) -> Shared {
        let name = format!("p{}-a{}-r{}", task.part, task.attempt, task.rank);
        Shared { folder: job_folder.join("guard").join(name) }
    }

    /// Makes it, for a task that runs under these ids. The launch is kept in it, so that a server
    /// that starts anew knows what it found.
    pub(super) fn make(&self, launch: &Launch, owner: Option<u32>) -> io::Result<()> {
        make(&self.folder, 0o755, None)?;
        make(&self.folder.join("told"), 0o700, owner)?;
        write(&self.folder.join("guard"), GUARD.as_bytes(), 0o755, None)?;
        self.keep(launch)
    }

    /// Puts what is secret where the guard finds it.
    pub(super) fn put_secrets(&self, text: &str, owner: Option<u32>) -> io::Result<()> {
        write(&self.folder.join("secrets"), text.as_bytes(), 0o400, owner)
    }

    /// Takes it away: its task is over.
    pub(super) fn remove_secrets(&self) -> io::Result<()> {
        match std::fs::remove_file(self.folder.join("secrets")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Keeps a launch as it is now: with the node that it is on, and the end that it has.
    pub(super) fn keep(&self, launch: &Launch) -> io::Result<()> {
        // Its environment may hold credentials all the same, so it is the server's alone.
        let launch = serde_json::to_vec(&launch.without_secrets()).map_err(io::Error::other)?;
        write(&self.folder.join("launch.json"), &launch, 0o600, None)
    }

    /// The launch that was kept.
    pub(super) fn launch(&self) -> io::Result<Launch> {
        let text = std::fs::read(self.folder.join("launch.json"))?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    }

    /// Whether all of the task's folders were made ready.
    pub(super) fn is_ready(&self) -> bool {
        self.folder.join("ready").exists()
    }

    /// Notes that they were.
    pub(super) fn set_ready(&self) -> io::Result<()> {
        write(&self.folder.join("ready"), b"", 0o600, None)
    }

    /// Writes the lease.
    pub(super) fn say(&self, generation: u64, word: LeaseOrder) -> io::Result<()> {
        let (verb, seconds) = match word {
            LeaseOrder::Run(seconds) => ("run", seconds),
            LeaseOrder::Stop(seconds) => ("stop", seconds),
            LeaseOrder::Over => ("over", 0),
        };
        let line = format!("{generation} {verb} {seconds}\n");
        write(&self.folder.join("lease"), line.as_bytes(), 0o644, None)
    }

    /// The generation of the lease as it was left, and whether it was over.
    pub(super) fn said(&self) -> Option<(u64, bool)> {
        let text = std::fs::read_to_string(self.folder.join("lease")).ok()?;
        let mut words = text.split_ascii_whitespace();
        let generation = words.next()?.parse().ok()?;
        Some((generation, words.next()? == "over"))
    }

    /// When the guard started.
    pub(super) fn started(&self) -> Option<Time> {
        let about = std::fs::symlink_metadata(self.folder.join("told/started")).ok()?;
        let ms = about.mtime().checked_mul(1000)?.checked_add(about.mtime_nsec() / 1_000_000)?;
        Some(Time(ms))
    }

    /// How the guard says that its task ended.
    pub(super) fn ended(&self) -> Option<GuardReport> {
        let text = self.told("ended")?;
        let mut words = text.split_ascii_whitespace();
        let _code = words.next()?;
        let why = match words.next()? {
            "itself" => EndCause::Itself,
            "stopped" => EndCause::Stopped,
            "lapsed" => EndCause::Lapsed,
            "not_started" => EndCause::NotStarted,
            _ => return None,
        };
        let oom = words.next()?.parse::<u64>().ok()? > 0;
        Some(GuardReport { why, oom })
    }

    /// What the guard says that its task uses, if it said so since `after`; the time of its word.
    pub(super) fn usage(&self, launch: &Launch, after: Option<Time>) -> Option<(Time, Measured)> {
        let about = std::fs::symlink_metadata(self.folder.join("told/usage")).ok()?;
        let ms = about.mtime().checked_mul(1000)?.checked_add(about.mtime_nsec() / 1_000_000)?;
        let at = Time(ms);
        if after.is_some_and(|after| at <= after) {
            return None;
        }
        Some((at, Measured::read(&self.told("usage")?, &launch.gpus)))
    }

    /// The text of a plain file that the guard wrote: not of what the task put in its place.
    fn told(&self, name: &str) -> Option<String> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = File::options()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(self.folder.join("told").join(name))
            .ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut text = String::new();
        file.take(TOLD_BYTES_MAX).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

/// How a task ended, by its guard's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GuardReport {
    pub(super) why: EndCause,
    /// Whether the kernel killed something of it for want of memory.
    pub(super) oom: bool,
}

/// What ended a task, by its guard's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndCause {
    Itself,
    Stopped,
    Lapsed,
    NotStarted,
}

/// What a guard measured: totals, as its control groups count them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    cpu_us: Option<u64>,
    memory: u64,
    memory_peak: u64,
    processes: u32,
    net: Option<(u64, u64)>,
    gpus: Vec<GpuUse>,
}

impl Measured {
    fn read(text: &str, gpus: &[u8]) -> Measured {
        let mut measured = Measured::default();
        let mut gpus = gpus.iter();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let name = words.next().unwrap_or_default();
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
            match (name, number(), number()) {
                ("cpu_us", Some(total), _) => measured.cpu_us = Some(total),
                ("memory", Some(bytes), _) => measured.memory = bytes,
                ("memory_peak", Some(bytes), _) => measured.memory_peak = bytes,
                ("processes", Some(count), _) => {
                    measured.processes = u32::try_from(count).unwrap_or(u32::MAX);
                }
                ("net", Some(received), Some(sent)) => {
                    let (was_received, was_sent) = measured.net.unwrap_or_default();
                    measured.net = Some((
                        was_received.saturating_add(received),
                        was_sent.saturating_add(sent),
                    ));
                }
                ("gpu", busy, memory_mib) => {
                    let Some(gpu) = gpus.next() else { continue };
                    measured.gpus.push(GpuUse {
                        gpu: *gpu,
                        busy: busy.map(|percent| percent.min(100) as f64 / 100.0),
                        memory_bytes: memory_mib.map(|mib| mib.saturating_mul(1 << 20)),
                    });
                }
                _ => {}
            }
        }
        measured
    }

    /// As usage, given what was measured before.
    pub(super) fn usage(&self, at: Time, before: Option<&(Time, Measured)>) -> TaskUsage {
        let rate = before.and_then(|(then, was)| {
            let ms = at.since(*then).ms();
            let spent = self.cpu_us?.checked_sub(was.cpu_us?)?;
            (ms > 0).then(|| spent as f64 / (ms as f64 * 1000.0))
        });
        TaskUsage {
            cpu_cores: rate,
            memory_bytes: self.memory,
            memory_peak_bytes: self.memory_peak.max(self.memory),
            received_bytes: self.net.map(|(received, _)| received),
            sent_bytes: self.net.map(|(_, sent)| sent),
            processes: self.processes,
            gpus: self.gpus.clone(),
            ..TaskUsage::default()
        }
    }
}

fn make(path: &Path, mode: u32, owner: Option<u32>) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(path)?;
    chown(path, owner, owner)
}

/// Writes a file whole: whoever reads it sees the old one or the new one.
fn write(path: &Path, bytes: &[u8], mode: u32, owner: Option<u32>) -> io::Result<()> {
    let new = path.with_extension("new");
    let _ = std::fs::remove_file(&new);
    let mut file = File::options().create_new(true).write(true).mode(mode).open(&new)?;
    file.write_all(bytes)?;
    chown(&new, owner, owner)?;
    std::fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::launch;

    fn shared() -> (tempfile::TempDir, Shared) {
        let folder = tempfile::tempdir().expect("a folder");
        let launch = launch(7, &["true"]);
        let shared = Shared::of(folder.path(), launch.task);
        shared.make(&launch, None).expect("made");
        (folder, shared)
    }

    #[test]
    fn a_task_is_gone_before_its_fence_even_if_every_look_comes_late() {
        for fence_s in [8, 12, 15, 30, 60, 600] {
            let times = LeaseTimes::within(Span::from_s(fence_s));
            let fence = Duration::from_secs(u64::try_from(fence_s).expect("small"));
            assert!(times.gone_after() <= fence, "{fence_s}: {times:?}");
            assert!(times.lasts.expect("a lease") > times.renewed_every().expect("renewed") * 3);
        }
    }

    #[test]
    fn a_server_that_starts_anew_finds_the_launch_and_the_generation() {
        let (_folder, shared) = shared();
        assert_eq!(shared.said(), None);
        shared.say(4, LeaseOrder::Run(9)).expect("said");
        assert_eq!(shared.said(), Some((4, false)));
        shared.say(5, LeaseOrder::Over).expect("said");
        assert_eq!(shared.said(), Some((5, true)));
        assert_eq!(shared.launch().expect("kept"), launch(7, &["true"]));
        assert!(!shared.is_ready());
        shared.set_ready().expect("noted");
        assert!(shared.is_ready());
    }

    #[test]
    fn what_a_task_puts_in_place_of_the_guards_word_is_not_read() {
        let (folder, shared) = shared();
        let told = shared.folder.join("told");
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "0 itself 0").expect("write");
        std::os::unix::fs::symlink(&secret, told.join("ended")).expect("link");
        assert_eq!(shared.ended(), None, "a link is not followed");
        std::fs::remove_file(told.join("ended")).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(told.join("ended")).status();
        assert!(made.expect("a pipe").success());
        assert_eq!(shared.ended(), None, "and a pipe does not hang us");
        std::fs::remove_file(told.join("ended")).expect("removed");
        for nonsense in ["", "x", "0 because 0", "0 itself", "0 itself x"] {
            std::fs::write(told.join("ended"), nonsense).expect("write");
            assert_eq!(shared.ended(), None, "{nonsense}");
        }
        std::fs::write(told.join("ended"), "137 itself 2").expect("write");
        assert_eq!(shared.ended(), Some(GuardReport { why: EndCause::Itself, oom: true }));
    }

    #[test]
    fn what_a_guard_measures_becomes_usage() {
        let text = "cpu_us 1500000\nmemory 100\nmemory_peak 300\nprocesses 4\nnet 5 6\nnet 1 1\n\
                    gpu 50 1024\ngpu x 2\ngpu 1 1\nnonsense\nmemory -1\n";
        let now = Measured::read(text, &[3, 1]);
        let before = (Time(1000), Measured::read("cpu_us 500000", &[]));
        let usage = now.usage(Time(3000), Some(&before));
        assert_eq!(usage.cpu_cores, Some(0.5));
        assert_eq!((usage.memory_bytes, usage.memory_peak_bytes), (100, 300));
        assert_eq!((usage.received_bytes, usage.sent_bytes), (Some(6), Some(7)));
        let gpus: Vec<_> = usage.gpus.iter().map(|gpu| (gpu.gpu, gpu.busy)).collect();
        assert_eq!(gpus, [(3, Some(0.5)), (1, None)], "no more GPUs than it was given");
    }
}
