//! A site in layers for a test: processes of each on one database server, which are killed, paused
//! and started again.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use era_store::Dialect;
use era_store::trial::{Server, make_database};
use serde_json::Value;

use crate::harness::{exchange, free_address};
use crate::skipped::skipped;

/// How long a layer may take to be ready.
const READY_MAX: Duration = Duration::from_secs(60);

/// A database server, and folders.
pub(crate) struct Bed {
    // Ended in this order: processes are gone before.
    pub(crate) server: Server,
    pub(crate) folder: tempfile::TempDir,
    /// Where layers find the database.
    pub(crate) database: String,
    _server_folder: tempfile::TempDir,
}

impl Bed {
    /// One with this database; `None` where that is not installed and need not be.
    pub(crate) fn start(dialect: Dialect) -> Option<Bed> {
        Bed::start_as(dialect, false)
    }

    /// The same with a server that may be killed without losing what it has acknowledged.
    pub(crate) fn start_durable(dialect: Dialect) -> Option<Bed> {
        Bed::start_as(dialect, true)
    }

    fn start_as(dialect: Dialect, durable: bool) -> Option<Bed> {
        let server_folder = tempfile::tempdir().unwrap();
        let server = match Server::start(dialect, server_folder.path(), durable) {
            Ok(server) => server,
            Err(why) => {
                skipped(&format!("{dialect}: {why}"));
                return None;
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(make_database(&server.url(), "era")).unwrap();
        let database = format!("{}/era", server.url());
        let folder = tempfile::tempdir().unwrap();
        Some(Bed { server, folder, database, _server_folder: server_folder })
    }

    /// The folder that layers share, but for schedulers, which need none.
    pub(crate) fn shared(&self) -> PathBuf {
        self.folder.path().join("shared")
    }

    pub(crate) fn core(&self, number: u32) -> Layer {
        self.core_with(number, &self.database, &[])
    }

    /// The same with another way to the database, and further arguments.
    pub(crate) fn core_with(&self, number: u32, database: &str, more: &[&str]) -> Layer {
        let (listen, inbox) = (free_address(), free_address());
        let data = self.folder.path().join(format!("core-{number}"));
        let arguments = [&["--inbox", &inbox], more].concat();
        self.layer_on(database, "core", &listen, &data, &arguments, None)
    }

    /// A layer of this kind with another way to the database, at an address of its own, in a
    /// namespace of its own where there is one, and with further arguments. Schedulers have folders
    /// of their own.
    pub(crate) fn placed(
        &self,
        kind: &str,
        database: &str,
        listen: &str,
        namespace: Option<&str>,
        more: &[&str],
    ) -> Layer {
        let own = || self.folder.path().join(format!("core-{}", listen.replace(':', "-")));
        let data = if kind == "core" { own() } else { self.shared() };
        self.layer_on(database, kind, listen, &data, more, namespace)
    }

    pub(crate) fn app(&self) -> Layer {
        self.sharing("app", &[])
    }

    pub(crate) fn cloud(&self) -> Layer {
        self.sharing("cloud", &["--insecure-shared-user"])
    }

    pub(crate) fn files(&self) -> Layer {
        self.sharing("files", &[])
    }

    /// A layer of this kind in the shared folder, with further arguments.
    pub(crate) fn sharing(&self, kind: &str, more: &[&str]) -> Layer {
        self.layer_on(&self.database, kind, &free_address(), &self.shared(), more, None)
    }

    /// A process of a layer, started.
    fn layer_on(
        &self,
        database: &str,
        kind: &str,
        listen: &str,
        data: &Path,
        more: &[&str],
        namespace: Option<&str>,
    ) -> Layer {
        let log = self.folder.path().join(format!("{kind}-{}.log", listen.replace(':', "-")));
        let mut arguments: Vec<String> =
            [kind, "--listen", listen, "--data"].map(str::to_owned).into();
        arguments.push(data.display().to_string());
        arguments.extend(more.iter().map(|&word| word.to_owned()));
        let mut layer = Layer {
            address: listen.to_owned(),
            arguments,
            namespace: namespace.map(str::to_owned),
            database: database.to_owned(),
            config: self.folder.path().join("config"),
            log,
            process: None,
        };
        layer.start();
        layer
    }

    /// The token of the user who started the applications.
    pub(crate) fn token(&self) -> String {
        let file = self.shared().join("local-token");
        wait("a token", READY_MAX, || std::fs::read_to_string(&file).ok()).trim().to_owned()
    }

    /// What a job kept.
    pub(crate) fn outputs(&self, job: u64) -> PathBuf {
        self.shared().join("jobs").join(job.to_string()).join("outputs")
    }

    /// Copies the journal out and carries it out again.
    pub(crate) fn journal_replays(&self, app: &Layer, token: &str) {
        let file = self.folder.path().join("journal.ndjson");
        for arguments in [&["admin", "journal"][..], &["replay"]] {
            let done = Command::new(env!("CARGO_BIN_EXE_era"))
                .args(arguments)
                .arg(&file)
                .env("ERA_URL", format!("http://{}", app.address))
                .env("ERA_TOKEN", token)
                .env("ERA_CONFIG", self.folder.path().join("config"))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.success(), "{arguments:?}: {said}");
        }
    }
}

/// A process of a layer. It ends with the value.
pub(crate) struct Layer {
    pub(crate) address: String,
    arguments: Vec<String>,
    namespace: Option<String>,
    database: String,
    config: PathBuf,
    log: PathBuf,
    process: Option<Child>,
}

impl Layer {
    /// Starts it, again if it was started before.
    pub(crate) fn start(&mut self) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let program = env!("CARGO_BIN_EXE_era");
        let mut command = match &self.namespace {
            None => Command::new(program),
            // It becomes the program, with the same number.
            Some(namespace) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/{namespace}")).arg(program);
                command
            }
        };
        let process = command
            .args(&self.arguments)
            .env("ERA_DATABASE", &self.database)
            .env("ERA_CONFIG", &self.config)
            .env("ERA_LOG", "info,sqlx=warn")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.process = Some(process);
    }

    pub(crate) fn signal(&self, signal: &str) {
        if let Some(process) = &self.process {
            let id = process.id().to_string();
            // One that has ended meanwhile hears nothing.
            let _ = Command::new("kill").args([signal, &id]).stderr(Stdio::null()).status();
        }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Whether it has ended by itself, and how.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.as_mut()?.try_wait().unwrap()
    }

    /// Starts it again if it was killed or has ended, as a service manager does.
    pub(crate) fn start_if_ended(&mut self) {
        if self.process.is_none() || self.ended().is_some() {
            self.start();
        }
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) {
        self.signal("-TERM");
        wait(&format!("the end of {:?}", self.arguments), READY_MAX, || self.ended());
        self.process = None;
    }

    /// Its answer to whether it is ready.
    pub(crate) fn readiness(&self) -> Option<(u16, String)> {
        TcpStream::connect(&self.address).ok()?;
        exchange(&self.address, "GET", "/readyz", "", "").ok()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.readiness().is_some_and(|(status, _)| status == 200)
    }

    pub(crate) fn wait_until_ready(&mut self) {
        let begun = Instant::now();
        while !self.is_ready() {
            if let Some(status) = self.ended() {
                panic!("{:?} ended with {status}: {}", self.arguments, self.said());
            }
            assert!(begun.elapsed() < READY_MAX, "{:?}: {}", self.arguments, self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Asks its API: status and answer.
    pub(crate) fn ask(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> std::io::Result<(u16, Value)> {
        self.ask_by_key(token, "", method, path, body)
    }

    /// The same with an idempotency key.
    pub(crate) fn ask_by_key(
        &self,
        token: &str,
        key: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> std::io::Result<(u16, Value)> {
        let key =
            if key.is_empty() { String::new() } else { format!("idempotency-key: {key}\r\n") };
        let headers = format!("authorization: Bearer {token}\r\n{key}");
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let path = format!("/api/v1{path}");
        let (status, answer) = exchange(&self.address, method, &path, &headers, &text)?;
        Ok((status, serde_json::from_str(&answer).unwrap_or_default()))
    }

    pub(crate) fn count_jobs(&self, token: &str) -> usize {
        let (mut count, mut cursor) = (0, String::new());
        loop {
            let page = self.get(token, &format!("/jobs?limit=1000{cursor}"));
            count += page["items"].as_array().unwrap().len();
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return count,
            }
        }
    }

    /// What its API answers to a question that is right.
    pub(crate) fn get(&self, token: &str, path: &str) -> Value {
        let (status, answer) = self.ask(token, "GET", path, &Value::Null).unwrap();
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        if self.process.is_none() {
            return;
        }
        // One that runs tasks takes its idle supervisor along if it is asked.
        self.signal("-CONT");
        self.signal("-TERM");
        let begun = Instant::now();
        while self.ended().is_none() && begun.elapsed() < Duration::from_secs(15) {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.kill();
    }
}

/// Waits until something is there.
pub(crate) fn wait<T>(what: &str, most: Duration, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < most, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}
