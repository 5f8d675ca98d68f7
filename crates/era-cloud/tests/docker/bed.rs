//! Engines for tests: each a daemon of its own, in a network namespace of its own, with its own
//! socket, data, state and pid file, ended with the test.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use era_cloud::clock::MachineClock;
use era_cloud::docker::{DockerExecutor, DockerOptions, EngineAddress};
use era_cloud::log::{LogReader, Only};
use era_cloud::{Executor, ExecutorReport, Launch, TaskLimits, TaskSpec};
use era_core::job::TaskId;
use era_core::resources::Resources;
use era_core::units::{JobId, NodeId, Span, Time, UserId};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The image that tests run in.
pub(crate) const IMAGE: &str = "era-test/busybox:1";
/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command, and gives what it printed.
pub(crate) fn sh(program: &str, arguments: &[&str]) -> Result<String, String> {
    let run = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let run = run.map_err(|error| format!("{program}: {error}"))?;
    match run.status.success() {
        true => Ok(String::from_utf8_lossy(&run.stdout).trim().to_owned()),
        false => Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&run.stderr))),
    }
}

/// A network namespace, gone when this is.
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    pub(crate) fn new() -> Result<Namespace, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("et{}x{number}", std::process::id());
        sh("ip", &["netns", "add", &name])?;
        let namespace = Namespace(name);
        namespace.run(&["ip", "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Runs a command in it. Only the network is another: a remounted `/sys` would hide the control
    /// groups.
    pub(crate) fn run(&self, words: &[&str]) -> Result<String, String> {
        let net = format!("--net=/run/netns/{}", self.0);
        sh("nsenter", &[&[net.as_str()], words].concat())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = sh("ip", &["netns", "delete", &self.0]);
    }
}

pub(crate) struct Daemon {
    pub(crate) namespace: Namespace,
    pub(crate) folder: PathBuf,
    child: Child,
    path: String,
    more: Vec<String>,
}

impl Daemon {
    pub(crate) fn start(namespace: Namespace, more: &[&str]) -> Result<Daemon, String> {
        Daemon::start_with(namespace, more, None)
    }

    /// The same, with programs of this folder before all others.
    pub(crate) fn start_with(
        namespace: Namespace,
        more: &[&str],
        programs: Option<&Path>,
    ) -> Result<Daemon, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("an engine needs root".into());
        }
        let folder = std::env::temp_dir().join(&namespace.0);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let path = std::env::var("PATH").unwrap_or_default();
        let path = programs.map(|folder| format!("{}:{path}", folder.display())).unwrap_or(path);
        let more: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        let child = spawn(&namespace, &folder, &path, &more)?;
        let mut daemon = Daemon { namespace, folder, child, path, more };
        daemon.wait_until_it_answers()?;
        let image = rootfs()?;
        daemon.docker(&["import", &image, IMAGE])?;
        let _ = std::fs::remove_file(image);
        Ok(daemon)
    }

    fn wait_until_it_answers(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        while self.docker(&["version", "-f", "{{.Server.Version}}"]).is_err() {
            let ended = self.child.try_wait().ok().flatten().is_some();
            if ended || begun.elapsed() > PATIENCE {
                let mut log = String::new();
                let _ = std::fs::File::open(self.folder.join("log"))
                    .and_then(|mut file| file.read_to_string(&mut log));
                let last: Vec<&str> = log.lines().rev().take(3).collect();
                return Err(format!("dockerd does not start: {}", last.join(" | ")));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Kills it, so that it can bring nothing to an end.
    pub(crate) fn crash(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again after that, on what it left.
    pub(crate) fn revive(&mut self) -> Result<(), String> {
        self.child = spawn(&self.namespace, &self.folder, &self.path, &self.more)?;
        self.wait_until_it_answers()
    }

    /// One alone, whose containers have a bridge.
    pub(crate) fn alone() -> Option<Daemon> {
        can(Namespace::new().and_then(|namespace| Daemon::start(namespace, &[])))
    }

    pub(crate) fn docker(&self, words: &[&str]) -> Result<String, String> {
        let host = format!("unix://{}/s", self.folder.display());
        sh("docker", &[&["-H", host.as_str()], words].concat())
    }

    pub(crate) fn address(&self) -> String {
        format!("docker://{}/s?image={IMAGE}", self.folder.display())
    }
}

/// The process of a daemon.
fn spawn(
    namespace: &Namespace,
    folder: &Path,
    path: &str,
    more: &[String],
) -> Result<Child, String> {
    let at = |name: &str| folder.join(name).display().to_string();
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log"));
    let log = log.map_err(|error| error.to_string())?;
    Command::new("nsenter")
        .env("PATH", path)
        .arg(format!("--net=/run/netns/{}", namespace.0))
        .args(["dockerd", "-H", &format!("unix://{}", at("s"))])
        .args(["--data-root", &at("data"), "--exec-root", &at("exec"), "--pidfile", &at("pid")])
        .args(more)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(|error| error.to_string())?)
        .stderr(log)
        .spawn()
        .map_err(|error| format!("nsenter: {error}"))
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It ends its containers first.
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let begun = Instant::now();
        while self.child.try_wait().ok().flatten().is_none() {
            if begun.elapsed() > Duration::from_secs(20) {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What could be started. Where it could not, the test is skipped.
pub(crate) fn can<T>(started: Result<T, String>) -> Option<T> {
    match started {
        Ok(started) => Some(started),
        Err(why) => {
            super::skipped::skipped(&why);
            None
        }
    }
}

/// A root file system of Debian's static busybox, as a tar file.
pub(crate) fn rootfs() -> Result<String, String> {
    // Each has its own: where tests are threads, one would import what another is writing.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("era-busybox-{}-{number}.tar", std::process::id());
    let path = std::env::temp_dir().join(name);
    let write = || -> std::io::Result<()> {
        let mut tar = tar::Builder::new(std::fs::File::create(&path)?);
        let busybox = Path::new("/bin/busybox");
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(std::fs::metadata(busybox)?.len());
        tar.append_data(&mut header, "bin/busybox", std::fs::File::open(busybox)?)?;
        for applet in "sh true false sleep echo cat ls ps kill env mkdir touch date mv nc nslookup \
                       tail head id hostname printf grep wc test dd"
            .split_ascii_whitespace()
        {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            tar.append_link(&mut header, format!("bin/{applet}"), "busybox")?;
        }
        tar.into_inner()?.sync_all()
    };
    write().map_err(|error| format!("the image cannot be made (busybox-static?): {error}"))?;
    Ok(path.display().to_string())
}

/// An executor under test, with its data folder.
pub(crate) struct Bed {
    pub(crate) executor: DockerExecutor,
    pub(crate) reports: mpsc::Receiver<ExecutorReport>,
    pub(crate) data: PathBuf,
    pub(crate) nodes: Vec<String>,
}

impl Bed {
    pub(crate) async fn start(address: &str, data: &Path, fence: Span) -> Bed {
        let (tell, reports) = mpsc::channel(1024);
        let address = EngineAddress::parse(address).expect("an address");
        let options =
            DockerOptions { address, data: data.into(), fence, clock: MachineClock::system() };
        let executor = DockerExecutor::start(options, tell).await.expect("an executor");
        Bed { executor, reports, data: data.into(), nodes: Vec::new() }
    }

    /// Waits for so many nodes.
    pub(crate) async fn joined(&mut self, count: usize) {
        while self.nodes.len() < count {
            if let ExecutorReport::Node(node) = self.next().await {
                self.nodes.push(node.name);
            }
        }
    }

    pub(crate) async fn next(&mut self) -> ExecutorReport {
        let next = tokio::time::timeout(PATIENCE, self.reports.recv()).await;
        next.expect("a report in time").expect("an executor")
    }

    /// The next report that this finds, whatever else is told.
    pub(crate) async fn find<T>(&mut self, find: impl Fn(&ExecutorReport) -> Option<T>) -> T {
        let begun = Instant::now();
        let mut passed = Vec::new();
        while begun.elapsed() < PATIENCE {
            let report = self.next().await;
            if let Some(found) = find(&report) {
                return found;
            }
            if !matches!(report, ExecutorReport::Samples { .. }) {
                passed.push(report);
            }
        }
        panic!("not told in time; what was: {passed:?}");
    }

    /// Waits until a task is over, and acknowledges it.
    pub(crate) async fn over(&mut self, task: TaskId) -> ExecutorReport {
        let over = self
            .find(|report| match report {
                ExecutorReport::Exited { task: t, .. } | ExecutorReport::Lost { task: t, .. }
                    if *t == task =>
                {
                    Some(report.clone())
                }
                _ => None,
            })
            .await;
        self.executor.acknowledge(task);
        over
    }

    /// All that a job printed.
    pub(crate) fn log(&self, job: u64) -> String {
        log(&self.data, job)
    }

    /// A launch of a command in a shell.
    pub(crate) fn launch(&self, job: u64, script: &str) -> Launch {
        launch(&self.data, self.nodes.first().map_or("", String::as_str), job, script)
    }
}

/// All that a job of this data folder printed.
pub(crate) fn log(data: &Path, job: u64) -> String {
    let folder = JobId(job).folder(data).join("logs");
    let Ok(mut reader) = LogReader::open(&folder, Only::default()) else {
        return String::new();
    };
    let mut text = String::new();
    loop {
        let entries = reader.read(1000, 1 << 20, Time::MAX).expect("a log");
        if entries.is_empty() {
            return text;
        }
        for entry in entries {
            text += &String::from_utf8_lossy(&entry.text);
            text += "\n";
        }
    }
}

/// A launch of a command in a shell, on this node.
pub(crate) fn launch(data: &Path, node: &str, job: u64, script: &str) -> Launch {
    Launch {
        task: TaskId { job: JobId(job), part: 0, attempt: 1, rank: 0 },
        node: NodeId(0),
        node_name: node.to_owned(),
        gpus: Vec::new(),
        each: Resources { cpu: 500, memory: 64, ..Resources::default() },
        replicas: 1,
        until: Time::MAX,
        master: "127.0.0.1".into(),
        peers: vec!["127.0.0.1".into()],
        spec: Arc::new(TaskSpec {
            user: UserId(1),
            user_name: "ada".into(),
            job_name: None,
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            env: Default::default(),
            secrets: Default::default(),
            code: Vec::new(),
            inputs: Vec::new(),
            image: None,
            folder: JobId(job).folder(data),
            checkpoints_of: None,
            alone: true,
            terminal: false,
            array: None,
            limits: TaskLimits::default(),
        }),
    }
}

/// A data folder that containers can reach into.
pub(crate) fn data() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).expect("its mode");
    folder
}

/// Now, by the wall clock.
pub(crate) fn now() -> Time {
    MachineClock::system().now()
}
