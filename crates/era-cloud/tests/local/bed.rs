//! A node in a temporary folder, and what tests ask of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use era_cloud::clock::MachineClock;
use era_cloud::local::{LocalExecutor, LocalOptions};
use era_cloud::task::SupervisorSettings;
use era_cloud::{Ending, Executor, ExecutorReport, Launch, Order, TaskLimits, TaskSpec};
use era_core::job::TaskId;
use era_core::resources::Resources;
use era_core::units::{JobId, NodeId, Time, UserId};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Far more than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Bed {
    pub(crate) folder: tempfile::TempDir,
    settings: SupervisorSettings,
    server: Option<(LocalExecutor, mpsc::Receiver<ExecutorReport>)>,
}

pub(crate) fn now() -> Time {
    MachineClock::system().now()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Bed {
    pub(crate) async fn new() -> Bed {
        Bed::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut SupervisorSettings)) -> Bed {
        let folder = tempfile::tempdir().expect("a folder");
        let mut settings = SupervisorSettings {
            hidden: vec![folder.path().to_owned()],
            ..SupervisorSettings::default()
        };
        settings.portable = super::PORTABLE;
        change(&mut settings);
        let mut bed = Bed { folder, settings, server: None };
        bed.start_server().await;
        bed
    }

    fn options(&self) -> LocalOptions {
        LocalOptions {
            folder: self.folder.path().join("shim"),
            program: env!("CARGO_BIN_EXE_era-cloud-test-shim").into(),
            arguments: Vec::new(),
            settings: self.settings.clone(),
        }
    }

    pub(crate) async fn start_server(&mut self) {
        let (tell, told) = mpsc::channel(1024);
        let local = LocalExecutor::start(self.options(), tell).await.expect("a supervisor");
        self.server = Some((local, told));
    }

    /// The server goes away without a word; the supervisor stays.
    pub(crate) async fn stop_server(&mut self) {
        self.server = None;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    pub(crate) fn server(&self) -> &LocalExecutor {
        &self.server.as_ref().expect("a server").0
    }

    /// Whether the supervisor said that this machine does not permit something.
    pub(crate) fn notes_say(&self, words: &str) -> bool {
        self.server().notes().iter().any(|note| note.contains(words))
    }

    /// A launch of a shell's words.
    pub(crate) fn sh(&self, job: u64, script: &str) -> Launch {
        self.run(job, &["/bin/sh", "-c", script])
    }

    pub(crate) fn run(&self, job: u64, command: &[&str]) -> Launch {
        Launch {
            task: TaskId { job: JobId(job), part: 0, attempt: 1, rank: 0 },
            node: NodeId(0),
            node_name: "here".into(),
            gpus: Vec::new(),
            each: Resources { cpu: 2000, memory: 512, ..Resources::default() },
            replicas: 1,
            until: Time(now().0 + 600_000),
            master: "127.0.0.1".into(),
            peers: vec!["127.0.0.1".into()],
            spec: Arc::new(TaskSpec {
                user: UserId(1),
                user_name: "ada".into(),
                job_name: None,
                command: command.iter().map(|&word| word.into()).collect(),
                env: Default::default(),
                secrets: Default::default(),
                code: Vec::new(),
                inputs: Vec::new(),
                image: None,
                folder: self.job(job),
                checkpoints_of: None,
                alone: true,
                terminal: false,
                array: None,
                limits: TaskLimits::default(),
            }),
        }
    }

    /// A job's folder.
    pub(crate) fn job(&self, job: u64) -> PathBuf {
        JobId(job).folder(self.folder.path())
    }

    pub(crate) fn launch(&self, launch: Launch) -> TaskId {
        let task = launch.task;
        self.server().carry_out(Order::Launch(launch));
        task
    }

    /// The next report that says something of a task's life.
    pub(crate) async fn next(&mut self) -> ExecutorReport {
        let told = &mut self.server.as_mut().expect("a server").1;
        loop {
            let report = tokio::time::timeout(PATIENCE, told.recv()).await;
            match report.expect("a report in time").expect("a report") {
                ExecutorReport::Samples { .. } => {}
                report => return report,
            }
        }
    }

    /// The next value of this name that a task is told to have and that is not nothing.
    pub(crate) async fn sampled(&mut self, name: &str) -> f64 {
        let told = &mut self.server.as_mut().expect("a server").1;
        loop {
            let report = tokio::time::timeout(PATIENCE, told.recv()).await;
            let report = report.expect("a report in time").expect("a report");
            let ExecutorReport::Samples { samples, .. } = report else { continue };
            let value = samples.iter().find(|sample| sample.name == name).map(|s| s.value);
            if let Some(value) = value.filter(|value| *value > 0.0) {
                return value;
            }
        }
    }

    pub(crate) async fn started(&mut self, task: TaskId) {
        match self.next().await {
            ExecutorReport::Started { task: t, .. } if t == task => {}
            other => panic!("{task} did not start: {other:?}\n{}", self.log(task.job.0)),
        }
    }

    /// How a task ends, after starting if it has not.
    pub(crate) async fn ended(&mut self, task: TaskId) -> (i32, Ending) {
        loop {
            match self.next().await {
                ExecutorReport::Started { .. } => {}
                ExecutorReport::Exited { task: t, code, ending, .. } if t == task => {
                    return (code, ending);
                }
                other => panic!("{task} did not end: {other:?}\n{}", self.log(task.job.0)),
            }
        }
    }

    /// Runs a script to its end and returns what it printed.
    pub(crate) async fn output(&mut self, launch: Launch) -> String {
        let task = self.launch(launch);
        let ended = self.ended(task).await;
        let log = self.log(task.job.0);
        assert_eq!(ended, (0, Ending::Itself), "{log}");
        log
    }

    /// All that a job's tasks printed.
    pub(crate) fn log(&self, job: u64) -> String {
        String::from_utf8_lossy(&printed(&self.job(job).join("logs"))).into_owned()
    }

    /// The supervisor's process.
    pub(crate) fn supervisor(&self) -> i32 {
        self.has_supervisor().expect("a supervisor")
    }

    /// The same, if there is one that has not ended.
    pub(crate) fn has_supervisor(&self) -> Option<i32> {
        let all = processes();
        let keeper = |words: &[String]| words.get(1).is_some_and(|word| word == "keeper");
        let folder = self.options().folder.display().to_string();
        let found = all.iter().find(|(_, words)| words.contains(&folder) && !keeper(words));
        found.map(|(pid, _)| *pid)
    }

    pub(crate) fn kill(&self, pid: i32) {
        let pid = rustix::process::Pid::from_raw(pid).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.server = None;
        let folder = self.options().folder.display().to_string();
        for (pid, words) in processes() {
            if words.contains(&folder) {
                self.kill(pid);
            }
        }
        // Keepers end what they keep when their supervisor is gone.
        let mark = std::fs::read_to_string(self.options().folder.join("mark")).unwrap_or_default();
        let groups = self.options().folder.join("cgroups");
        wait_until(|| !marked(&mark));
        for parent in std::fs::read_to_string(groups).unwrap_or_default().lines() {
            for slot in std::fs::read_dir(parent).into_iter().flatten().flatten() {
                let _ = std::fs::remove_dir(slot.path());
            }
            let _ = std::fs::remove_dir(parent);
        }
    }
}

fn marked(mark: &str) -> bool {
    let wanted = format!("ERA_TASK_MARK={mark}").into_bytes();
    let has = |pid: i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|pair| pair == wanted)
    };
    !mark.is_empty() && processes().iter().any(|(pid, _)| has(*pid))
}

/// All processes and their command lines.
pub(crate) fn processes() -> Vec<(i32, Vec<String>)> {
    let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let words = line.split(|byte| *byte == 0);
            Some((pid, words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()))
        })
        .collect()
}

/// So many seconds as nobody else here sleeps: by them whoever has left all else behind is found.
/// The same test may run beside this one, as other systems would run it.
pub(crate) fn long() -> String {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let given = GIVEN.fetch_add(1, Ordering::Relaxed);
    format!("7200.{}{given:02}{}", std::process::id(), u8::from(super::PORTABLE))
}

/// How many processes have this word in their command line.
pub(crate) fn count(word: &str) -> usize {
    processes().iter().filter(|(_, words)| words.iter().any(|w| w == word)).count()
}

/// Waits for something that is bound to become true.
pub(crate) fn wait_until(mut is_true: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < PATIENCE, "it did not come true");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What was printed: a log's lines without their time and stream.
fn printed(folder: &Path) -> Vec<u8> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.sort();
    let mut text = Vec::new();
    for path in files {
        for line in std::fs::read(path).expect("a log").split_inclusive(|byte| *byte == b'\n') {
            text.extend(line.splitn(3, |byte| *byte == b' ').nth(2).unwrap_or_default());
        }
    }
    text
}
