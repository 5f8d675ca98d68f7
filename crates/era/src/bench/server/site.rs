//! A server of its own to be measured: `era up` on an empty folder, ended with the value.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::clock::instant;

/// How long a server may take to be ready.
const READY_MAX: Duration = Duration::from_secs(120);

/// A running server.
pub(super) struct BenchServer {
    server: Child,
    folder: PathBuf,
    /// Where HTTP listens.
    pub(super) http: SocketAddr,
    /// Where lines are taken.
    pub(super) tcp: SocketAddr,
    /// An administrator's token.
    pub(super) token: String,
    /// How long it took to be ready.
    pub(super) started_in: Duration,
}

impl BenchServer {
    /// Starts one on this folder, with these simulated nodes beside this machine.
    pub(super) fn start(folder: &Path, nodes: Option<&str>) -> Result<BenchServer> {
        BenchServer::start_on(folder, nodes, None)
    }

    /// The same with its rows in this database.
    pub(super) fn start_on(
        folder: &Path,
        nodes: Option<&str>,
        database: Option<&str>,
    ) -> Result<BenchServer> {
        let (http, tcp) = (free_address()?, free_address()?);
        let begun = instant();
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("up")
            .arg("--data")
            .arg(folder.join("data"))
            .args(["--listen", &http.to_string(), "--tcp", &tcp.to_string()])
            // The accounts are made up, and nobody else's.
            .arg("--insecure-shared-user")
            .env("ERA_CONFIG", folder.join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        if let Some(database) = database {
            command.env("ERA_DATABASE", database);
        }
        if let Some(nodes) = nodes {
            let file = folder.join("nodes.yaml");
            std::fs::write(&file, nodes)?;
            command.arg("--nodes").arg(file);
        }
        let server = command.spawn().context("the server cannot be started")?;
        let mut site = BenchServer {
            server,
            folder: folder.to_owned(),
            http,
            tcp,
            token: String::new(),
            started_in: Duration::ZERO,
        };
        site.wait_until(|site| is_ready(site.http))?;
        site.started_in = begun.elapsed();
        // It is written once the addresses are known, which others may find out before.
        let file = folder.join("data/local-token");
        site.wait_until(|_| std::fs::metadata(&file).is_ok_and(|about| about.len() > 0))?;
        site.token = std::fs::read_to_string(file)?.trim().to_owned();
        // It is ready before its nodes have joined: this machine, then all simulated ones at once.
        let joined = 1 + usize::from(nodes.is_some());
        site.wait_until(|site| site.nodes() >= joined)?;
        Ok(site)
    }

    /// How many nodes it has.
    fn nodes(&self) -> usize {
        let Ok(mut era) = self.era() else { return 0 };
        let listed = era.args(["nodes", "-o", "json"]).stdout(Stdio::piped()).output();
        let listed = listed.ok().and_then(|told| serde_json::from_slice(&told.stdout).ok());
        listed.map_or(0, |nodes: Vec<serde_json::Value>| nodes.len())
    }

    fn wait_until(&mut self, ready: impl Fn(&BenchServer) -> bool) -> Result<()> {
        let begun = instant();
        while !ready(self) {
            ensure!(self.server.try_wait()?.is_none(), "the server ended before it was ready");
            ensure!(begun.elapsed() < READY_MAX, "the server is not ready");
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// The command line, as a user of this server calls it.
    pub(super) fn era(&self) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .env("ERA_CONFIG", self.folder.join("config"))
            .env("ERA_URL", format!("http://{}", self.http))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Ok(command)
    }

    /// What it holds and uses while nobody asks for anything, over a few seconds.
    pub(super) fn at_rest(&self) -> Result<AtRest> {
        let ticks = || -> Result<f64> {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.server.id()))?;
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split(' ').collect();
            let used = |n: usize| fields.get(n).and_then(|f| f.parse::<f64>().ok());
            Ok(used(12).context("no time of use")? + used(13).context("no time of use")?)
        };
        std::thread::sleep(Duration::from_secs(2));
        let before = ticks()?;
        let span = Duration::from_secs(5);
        std::thread::sleep(span);
        let busy = (ticks()? - before) / 100.0 / span.as_secs_f64();
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<f64>().ok());
        let own_mb = kib.context("no memory of the server")? / 1024.0;
        Ok(AtRest { own_mb, all_mb: self.with_helpers_mb()?, cores: busy })
    }

    /// Megabytes of the server with its supervisor and spare keepers, what they share counted once.
    #[cfg(target_os = "linux")]
    fn with_helpers_mb(&self) -> Result<f64> {
        use era_cloud::limits::tree;
        let (all, own) = (tree::processes(), i32::try_from(self.server.id())?);
        let mut tree = tree::descendants(own, &all);
        tree.extend(all.into_iter().find(|process| process.pid == own));
        Ok(tree::memory_bytes(&tree, 0) as f64 / f64::from(1 << 20))
    }

    #[cfg(not(target_os = "linux"))]
    fn with_helpers_mb(&self) -> Result<f64> {
        anyhow::bail!("memory is measured on Linux only")
    }
}

/// A server that nobody asks for anything.
pub(super) struct AtRest {
    /// Megabytes that its process holds.
    pub(super) own_mb: f64,
    /// The same with its helpers.
    pub(super) all_mb: f64,
    /// The share of a core that it uses.
    pub(super) cores: f64,
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        // Asked first, so that its supervisor goes with it; by force if it does not.
        let _ = Command::new("kill").arg(self.server.id().to_string()).status();
        let begun = instant();
        while matches!(self.server.try_wait(), Ok(None)) && begun.elapsed().as_secs() < 10 {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

pub(in crate::bench) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

pub(in crate::bench) fn is_ready(address: SocketAddr) -> bool {
    use std::io::{Read, Write};
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let request = "GET /readyz HTTP/1.1\r\nhost: era\r\nconnection: close\r\n\r\n";
    let mut answer = [0; 12];
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer == *b"HTTP/1.1 200"
}
