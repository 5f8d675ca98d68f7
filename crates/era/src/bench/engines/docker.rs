//! A Swarm of one node, as Debian's engine gives it: a hundred containers of `true` through the
//! executor, beside `docker service create` in a loop; and the time from a promised start to the
//! first instruction: the image on the node before, not on it, and brought to it ahead of the start
//! as the server does.
//!
//! Needs root, and `docker.io`, `docker-registry` and `busybox-static`; where an engine cannot be
//! started its keys are null, and why is said on standard error.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use era_cloud::docker::{DockerExecutor, DockerOptions, EngineAddress};
use era_cloud::{Executor, ExecutorReport, Launch, Order, TaskLimits, TaskSpec};
use era_core::job::TaskId;
use era_core::resources::Resources;
use era_core::units::{JobId, NodeId, Span, Time, UserId};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::clock::{instant, timestamp};

/// How many containers each side runs.
const TASKS: u64 = 100;
/// How often each kind of start is measured.
const STARTS: usize = 5;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);
const IMAGE: &str = "era-bench/busybox:1";
const REGISTRY: &str = "127.0.0.1:5000";

/// The keys of this engine.
pub(super) fn measure() -> Result<Map<String, Value>> {
    let keys = [
        "swarm_tasks_per_second",
        "docker_cli_services_per_second",
        "swarm_start_cached_p50_ms",
        "swarm_start_uncached_p50_ms",
        "swarm_start_staged_p50_ms",
    ];
    let measured = match BenchEngine::start() {
        Ok(engine) => tokio::runtime::Runtime::new()?.block_on(all(&engine))?,
        Err(why) => {
            use std::io::Write as _;
            writeln!(std::io::stderr(), "no engine could be started: {why:#}")?;
            [const { Value::Null }; 5]
        }
    };
    Ok(keys.map(str::to_owned).into_iter().zip(measured).collect())
}

async fn all(engine: &BenchEngine) -> Result<[Value; 5]> {
    let mut site = BenchExecutor::start(engine).await?;
    let begun = instant();
    for job in 1..=TASKS {
        site.executor.carry_out(Order::Launch(site.launch(job, IMAGE, &["true"])));
    }
    site.ended(TASKS).await?;
    let swarm = TASKS as f64 / begun.elapsed().as_secs_f64();
    let cli = by_hand(engine)?;
    let [mut cached, mut uncached, mut staged] = [const { Vec::new() }; 3];
    for round in 0..STARTS as u64 {
        let job = 1001 + 3 * round;
        cached.push(site.start_of(job, IMAGE).await?);
        let absent = engine.absent(2 * round)?;
        uncached.push(site.start_of(job + 1, &absent).await?);
        let absent = engine.absent(2 * round + 1)?;
        site.stage(engine, job + 2, &absent).await?;
        staged.push(site.start_of(job + 2, &absent).await?);
    }
    let [cached, uncached, staged] = [cached, uncached, staged].map(median_ms);
    Ok([json!(swarm), json!(cli), cached, uncached, staged])
}

fn median_ms(mut times: Vec<Duration>) -> Value {
    times.sort();
    times.get(times.len() / 2).map_or(Value::Null, |time| json!(time.as_secs_f64() * 1000.0))
}

/// The same work by the engine's own command, one service after the other.
fn by_hand(engine: &BenchEngine) -> Result<f64> {
    let begun = instant();
    for number in 0..TASKS {
        let name = format!("by-hand-{number}");
        engine.docker(&[
            "service",
            "create",
            "--detach",
            "--quiet",
            "--restart-condition",
            "none",
            "--name",
            &name,
            "--label",
            "by=hand",
            IMAGE,
            "true",
        ])?;
    }
    loop {
        let filter = ["service", "ls", "--quiet", "--filter", "label=by=hand"];
        let ids = engine.docker(&filter)?;
        let ids: Vec<&str> = ids.lines().collect();
        let format = ["--format", "{{.CurrentState}}"];
        let states = engine.docker(&[&["service", "ps"], &format[..], &ids[..]].concat())?;
        let done = states.lines().filter(|state| state.starts_with("Complete")).count();
        if done as u64 >= TASKS {
            let rate = TASKS as f64 / begun.elapsed().as_secs_f64();
            engine.docker(&[&["service", "rm"], &ids[..]].concat())?;
            return Ok(rate);
        }
        if begun.elapsed() > PATIENCE {
            bail!("{done} of {TASKS} services have run: {states}");
        }
    }
}

/// The executor under measurement.
struct BenchExecutor {
    executor: DockerExecutor,
    reports: mpsc::Receiver<ExecutorReport>,
    folder: tempfile::TempDir,
    node: String,
}

impl BenchExecutor {
    async fn start(engine: &BenchEngine) -> Result<BenchExecutor> {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir()?;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
        let (tell, mut reports) = mpsc::channel(4096);
        let address = EngineAddress::parse(&format!("docker://{}", engine.socket().display()))?;
        let options = DockerOptions {
            address,
            data: folder.path().into(),
            fence: Span::from_s(30),
            clock: crate::clock::machine(),
        };
        let executor = DockerExecutor::start(options, tell).await?;
        let node = loop {
            match reports.recv().await.context("the executor has stopped")? {
                ExecutorReport::Node(node) => break node.name,
                _ => continue,
            }
        };
        Ok(BenchExecutor { executor, reports, folder, node })
    }

    fn launch(&self, job: u64, image: &str, command: &[&str]) -> Launch {
        Launch {
            task: TaskId { job: JobId(job), part: 0, attempt: 1, rank: 0 },
            node: NodeId(0),
            node_name: self.node.clone(),
            gpus: Vec::new(),
            each: Resources { cpu: 10, memory: 32, ..Resources::default() },
            replicas: 1,
            until: Time::MAX,
            master: "127.0.0.1".into(),
            peers: vec!["127.0.0.1".into()],
            spec: Arc::new(TaskSpec {
                user: UserId(1),
                user_name: "bench".into(),
                job_name: None,
                command: command.iter().map(|&word| word.to_owned()).collect(),
                env: Default::default(),
                secrets: Default::default(),
                code: Vec::new(),
                inputs: Vec::new(),
                image: Some(image.to_owned()),
                folder: JobId(job).folder(self.folder.path()),
                checkpoints_of: None,
                alone: true,
                terminal: false,
                array: None,
                limits: TaskLimits::default(),
            }),
        }
    }

    /// Waits until so many tasks have succeeded.
    async fn ended(&mut self, count: u64) -> Result<()> {
        let mut done = 0;
        while done < count {
            let next = tokio::time::timeout(PATIENCE, self.reports.recv()).await;
            match next.context("tasks take too long")?.context("the executor has stopped")? {
                ExecutorReport::Exited { task, code: 0, .. } => {
                    self.executor.acknowledge(task);
                    done += 1;
                }
                failed @ (ExecutorReport::Exited { .. } | ExecutorReport::Lost { .. }) => {
                    bail!("{failed:?}")
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Brings a launch ahead of its start, as the server does, and waits until all of it is there.
    async fn stage(&self, engine: &BenchEngine, job: u64, image: &str) -> Result<()> {
        self.executor.carry_out(Order::Stage(self.launch(job, image, &["true"])));
        let begun = instant();
        let there = || engine.docker(&["image", "inspect", image]).is_ok();
        let service = || engine.docker(&["service", "ls", "--quiet"]);
        while !there() || !service()?.is_empty() {
            if begun.elapsed() > PATIENCE {
                bail!("{image} is not brought to its node");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// From the order to the first instruction of its container.
    async fn start_of(&mut self, job: u64, image: &str) -> Result<Duration> {
        let begun = std::time::SystemTime::from(timestamp());
        self.executor.carry_out(Order::Launch(self.launch(job, image, &["true"])));
        let mut started = None;
        loop {
            let next = tokio::time::timeout(PATIENCE, self.reports.recv()).await;
            match next.context("a start takes too long")?.context("the executor has stopped")? {
                ExecutorReport::Started { at, .. } => started = u64::try_from(at.0).ok(),
                ExecutorReport::Exited { task, code: 0, .. } => {
                    self.executor.acknowledge(task);
                    let at = started.context("its start was not told")?;
                    let at = std::time::UNIX_EPOCH + Duration::from_millis(at);
                    return Ok(at.duration_since(begun).unwrap_or_default());
                }
                failed @ (ExecutorReport::Exited { .. } | ExecutorReport::Lost { .. }) => {
                    bail!("{failed:?}")
                }
                _ => {}
            }
        }
    }
}

/// A daemon and a registry in a network namespace of their own, ended with this.
struct BenchEngine {
    namespace: String,
    folder: PathBuf,
    children: Vec<Child>,
}

impl BenchEngine {
    fn start() -> Result<BenchEngine> {
        let namespace = format!("era-bench-{}", std::process::id());
        run("ip", &["netns", "add", &namespace])?;
        let folder = std::env::temp_dir().join(&namespace);
        std::fs::create_dir_all(&folder)?;
        let mut engine = BenchEngine { namespace, folder, children: Vec::new() };
        engine.inside(&["ip", "link", "set", "lo", "up"])?.wait()?;
        let at = |name: &str| engine.folder.join(name).display().to_string();
        let (socket, data, exec, pid) =
            (format!("unix://{}", at("s")), at("data"), at("exec"), at("pid"));
        let config = engine.folder.join("registry.yml");
        std::fs::write(
            &config,
            format!(
                "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\n\
             http:\n  addr: {REGISTRY}\n",
                at("registry")
            ),
        )?;
        let config = config.display().to_string();
        let daemon = engine.inside(&[
            "dockerd",
            "-H",
            &socket,
            "--data-root",
            &data,
            "--exec-root",
            &exec,
            "--pidfile",
            &pid,
        ])?;
        engine.children.push(daemon);
        let registry = engine.inside(&["docker-registry", "serve", &config])?;
        engine.children.push(registry);
        let begun = instant();
        while let Err(error) = engine.docker(&["version"]) {
            if begun.elapsed() > Duration::from_secs(30) {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let image = engine.folder.join("image.tar");
        pack(&image, 0)?;
        engine.docker(&["import", &image.display().to_string(), IMAGE])?;
        engine.docker(&["swarm", "init", "--advertise-addr", "127.0.0.1"])?;
        Ok(engine)
    }

    /// An image of the registry of which the node has no layer.
    fn absent(&self, number: u64) -> Result<String> {
        let name = format!("{REGISTRY}/fresh:{number}");
        let tar = self.folder.join("fresh.tar");
        pack(&tar, number + 1)?;
        self.docker(&["import", &tar.display().to_string(), &name])?;
        self.docker(&["push", &name])?;
        self.docker(&["rmi", &name])?;
        Ok(name)
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("s")
    }

    fn inside(&self, words: &[&str]) -> Result<Child> {
        let log =
            std::fs::File::options().create(true).append(true).open(self.folder.join("log"))?;
        let child = Command::new("nsenter")
            .arg(format!("--net=/run/netns/{}", self.namespace))
            .args(words)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn();
        child.context("nsenter")
    }

    fn docker(&self, words: &[&str]) -> Result<String> {
        let host = format!("unix://{}", self.socket().display());
        run("docker", &[&["-H", host.as_str()], words].concat())
    }
}

impl Drop for BenchEngine {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It ends its containers first, which takes it a moment.
            let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = pid {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let _ = child.wait();
        }
        let _ = run("ip", &["netns", "delete", &self.namespace]);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(program: &str, words: &[&str]) -> Result<String> {
    let ran = Command::new(program).args(words).stdin(Stdio::null()).output();
    let ran = ran.with_context(|| program.to_owned())?;
    if !ran.status.success() {
        bail!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&ran.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}

/// A root file system of static busybox, and 8 MiB beside it that no other has.
fn pack(path: &Path, salt: u64) -> Result<()> {
    let mut tar = tar::Builder::new(std::fs::File::create(path)?);
    let busybox = std::fs::File::open("/bin/busybox").context("busybox-static is not installed")?;
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(busybox.metadata()?.len());
    tar.append_data(&mut header, "bin/busybox", busybox)?;
    for applet in ["sh", "true", "sleep", "mv"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, format!("bin/{applet}"), "busybox")?;
    }
    // A xorshift of the salt: bytes that do not compress.
    let mut state = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut filler = Vec::with_capacity(8 << 20);
    while filler.len() < 8 << 20 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        filler.extend_from_slice(&state.to_le_bytes());
    }
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(filler.len() as u64);
    tar.append_data(&mut header, "filler", filler.as_slice())?;
    tar.finish()?;
    Ok(())
}
