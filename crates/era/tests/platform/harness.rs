//! A server of its own for a test: `era up` in a temporary folder, and commands that talk to it.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::skipped::skipped;

/// How long a server may take to be ready.
const READY_MAX: Duration = Duration::from_secs(60);

/// How long something may take to happen.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(150);

/// How long it may take to stop.
const STOP_MAX: Duration = Duration::from_secs(20);

/// How long it may take to end by itself, when it cannot go on.
const END_MAX: Duration = Duration::from_secs(60);

/// A running server; it ends with the value.
pub(crate) struct Platform {
    folder: tempfile::TempDir,
    url: String,
    tcp: String,
    server: Child,
    program: Program,
    arguments: Vec<String>,
}

/// The binary, and as whom it is started.
#[derive(Clone)]
pub(crate) enum Program {
    /// As whoever runs the tests.
    Own,
    /// As a user without rights; this is where that user finds it.
    Nobody(PathBuf),
    /// With these variables.
    Told(Vec<(String, String)>),
}

/// The number of that user.
const NOBODY: u32 = 65_534;

impl Platform {
    /// Starts `era up` on an empty folder and a free port, and waits until it is ready.
    pub(crate) fn start() -> Platform {
        Platform::start_in(tempfile::tempdir().unwrap(), &[])
    }

    /// The same, with further arguments.
    pub(crate) fn start_with(arguments: &[&str]) -> Platform {
        Platform::start_in(tempfile::tempdir().unwrap(), arguments)
    }

    /// The same, in a folder of one's own.
    pub(crate) fn start_in(folder: tempfile::TempDir, arguments: &[&str]) -> Platform {
        Platform::start_as(Program::Own, folder, arguments)
    }

    /// The same on an empty folder, with further variables.
    pub(crate) fn start_with_env(variables: &[(&str, &str)]) -> Platform {
        let told = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Platform::start_as(Program::Told(told.collect()), tempfile::tempdir().unwrap(), &[])
    }

    /// The same on an empty folder, without root; `None` where that cannot be given up here.
    pub(crate) fn start_without_root(arguments: &[&str]) -> Option<Platform> {
        let folder = tempfile::tempdir().unwrap();
        if !rustix::process::geteuid().is_root() {
            return Some(Platform::start_in(folder, arguments));
        }
        if Command::new("setpriv").arg("--version").output().is_err() {
            skipped("there is no setpriv to give up root with");
            return None;
        }
        // Where it was built others may not look.
        let program = folder.path().join("era");
        std::fs::copy(env!("CARGO_BIN_EXE_era"), &program).unwrap();
        std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        Some(Platform::start_as(Program::Nobody(program), folder, arguments))
    }

    fn start_as(program: Program, folder: tempfile::TempDir, arguments: &[&str]) -> Platform {
        let address = free_address();
        let tcp = free_address();
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let server = up(&program, folder.path(), &address, &tcp, &arguments);
        let url = format!("http://{address}");
        let mut platform = Platform { folder, url, tcp, server, program, arguments };
        platform.wait_until_ready(&address);
        platform
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// Where it takes lines.
    pub(crate) fn tcp(&self) -> &str {
        &self.tcp
    }

    /// The token of the user who started it.
    pub(crate) fn token(&self) -> String {
        let token = std::fs::read_to_string(self.folder.path().join("data/local-token"));
        token.unwrap().trim().to_owned()
    }

    /// What a job kept.
    pub(crate) fn outputs(&self, job: u64) -> PathBuf {
        self.folder.path().join("data/jobs").join(job.to_string()).join("outputs")
    }

    /// What the API answers.
    pub(crate) fn get(&self, path: &str) -> serde_json::Value {
        let token = format!("authorization: Bearer {}\r\n", self.token());
        let path = format!("/api/v1{path}");
        let (status, body) = exchange(self.address(), "GET", &path, &token, "").unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Asks for something that changes something: status and answer.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        body: &serde_json::Value,
    ) -> (u16, serde_json::Value) {
        self.send_as(&self.token(), method, path, body)
    }

    /// The same with another token.
    pub(crate) fn send_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &serde_json::Value,
    ) -> (u16, serde_json::Value) {
        let token = format!("authorization: Bearer {token}\r\n");
        let path = format!("/api/v1{path}");
        let (status, answer) =
            exchange(self.address(), method, &path, &token, &body.to_string()).unwrap();
        (status, serde_json::from_str(&answer).unwrap_or_default())
    }

    /// Asks again and again until the answer is the one that is waited for.
    pub(crate) fn wait_for<T>(
        &self,
        what: &str,
        path: &str,
        found: impl Fn(&serde_json::Value) -> Option<T>,
    ) -> T {
        let until = Instant::now() + WAIT_MAX;
        loop {
            let answer = self.get(path);
            if let Some(found) = found(&answer) {
                return found;
            }
            assert!(Instant::now() < until, "{what}: still {answer}; {}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Hands in a job; its number.
    pub(crate) fn submit(&self, job: &serde_json::Value) -> u64 {
        let (status, answer) = self.send("POST", "/jobs", job);
        assert_eq!(status, 201, "{job}: {answer}");
        answer["job"].as_u64().unwrap()
    }

    /// Waits until a job is over; it.
    pub(crate) fn ended(&self, job: u64) -> serde_json::Value {
        let over = |job: &serde_json::Value| job["ended"].is_string().then(|| job.clone());
        self.wait_for("the end of a job", &format!("/jobs/{job}"), over)
    }

    /// Kills the server where it stands.
    pub(crate) fn kill(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }

    /// Asks the server to stop, and waits until it has. Asked, it takes its idle supervisor along;
    /// killed, it would leave it behind.
    pub(crate) fn stop(&mut self) -> bool {
        if matches!(self.server.try_wait(), Ok(Some(_))) {
            return true;
        }
        let id = self.server.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status();
        let until = Instant::now() + STOP_MAX;
        while asked.is_ok() && Instant::now() < until {
            if matches!(self.server.try_wait(), Ok(Some(_))) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Waits until the server has ended by itself: its exit code and what it said.
    pub(crate) fn ends(&mut self) -> (Option<i32>, String) {
        let until = Instant::now() + END_MAX;
        loop {
            if let Some(status) = self.server.try_wait().unwrap() {
                return (status.code(), self.said());
            }
            assert!(Instant::now() < until, "it goes on: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts it again where it cannot: its exit code and what it said.
    pub(crate) fn fails_to_start(&mut self) -> (Option<i32>, String) {
        let folder = self.folder.path();
        self.server = up(&self.program, folder, self.address(), &self.tcp, &self.arguments);
        let code = self.server.wait().unwrap().code();
        (code, self.said())
    }

    /// The same with other arguments.
    pub(crate) fn fails_to_start_with(&mut self, arguments: &[&str]) -> (Option<i32>, String) {
        self.arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        self.fails_to_start()
    }

    /// Starts it again with other arguments.
    pub(crate) fn restart_with(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        self.restart();
    }

    /// Where the server keeps everything.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Kills what looks after the server's tasks, which another then does.
    pub(crate) fn kill_supervisor(&self) {
        let (data, mut supervisors) = (self.data(), Vec::new());
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<&str> = line.split('\0').collect();
            let ours =
                words.contains(&"shim") && words.iter().any(|w| data.join("shim") == Path::new(w));
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            supervisors.extend(pid.filter(|_| ours).and_then(rustix::process::Pid::from_raw));
        }
        // What it is just about to start is called as it is until it runs.
        let parent = |pid: &rustix::process::Pid| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            let after_name = stat.unwrap_or_default().rsplit(") ").next().map(str::to_owned);
            let parent = after_name.and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
            parent.and_then(rustix::process::Pid::from_raw)
        };
        let all = supervisors.clone();
        supervisors.retain(|pid| !parent(pid).is_some_and(|parent| all.contains(&parent)));
        // All are looked for first: another one takes its place as soon as it is gone.
        assert_eq!(supervisors.len(), 1, "there is one supervisor");
        rustix::process::kill_process(supervisors[0], rustix::process::Signal::KILL).unwrap();
    }

    /// Starts it again on the same folder and address.
    pub(crate) fn restart(&mut self) {
        let address = self.address().to_owned();
        // Written again once its new token lies there.
        let _ = std::fs::remove_file(self.folder.path().join("config/local.json"));
        let folder = self.folder.path();
        self.server = up(&self.program, folder, &address, &self.tcp, &self.arguments);
        self.wait_until_ready(&address);
    }

    /// A folder for the user's own files.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The command line, set up to talk to this server as its administrator.
    pub(crate) fn era(&self) -> Command {
        std::fs::create_dir_all(self.home()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_era"));
        command
            .current_dir(self.home())
            .env("ERA_URL", &self.url)
            .env_remove("ERA_TOKEN")
            .env("ERA_CONFIG", self.folder.path().join("config"))
            .env("NO_COLOR", "1")
            .env("TZ", "UTC");
        command
    }

    /// Runs a command line; what it printed, if it went well.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.era().args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "era {arguments:?}: {:?}\n{}{}",
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Runs a command line that fails; its code and what it said.
    pub(crate) fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let Output { status, stderr, .. } = self.era().args(arguments).output().unwrap();
        (status.code().unwrap_or(-1), String::from_utf8_lossy(&stderr).into_owned())
    }

    /// Runs a command line at a terminal, where this is typed: its code and what the terminal
    /// showed. `None` where there is no `script` to make a terminal.
    pub(crate) fn at_a_terminal(&self, line: &str, typed: &str) -> Option<(i32, String)> {
        let era = self.era();
        let mut command = Command::new("script");
        command
            .args(["-qec", &format!("{} {line}", env!("CARGO_BIN_EXE_era")), "/dev/null"])
            .current_dir(self.home())
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        for (name, value) in era.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command.spawn().ok()?;
        // Kept open: a keyboard does not end.
        let mut keyboard = child.stdin.take().unwrap();
        keyboard.write_all(typed.as_bytes()).unwrap();
        let mut shown = String::new();
        std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut shown).unwrap();
        let code = child.wait().unwrap().code().unwrap_or(-1);
        Some((code, shown))
    }

    fn wait_until_ready(&mut self, address: &str) {
        let until = Instant::now() + READY_MAX;
        let told = self.folder.path().join("config").join("local.json");
        while !is_ready(address) || !told.exists() {
            if let Some(status) = self.server.try_wait().unwrap() {
                panic!("era up ended with {status}: {}", self.said());
            }
            assert!(Instant::now() < until, "era up is not ready: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default()
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        if self.stop() {
            return;
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn up(program: &Program, folder: &Path, address: &str, tcp: &str, arguments: &[String]) -> Child {
    let log = std::fs::File::create(folder.join("server.log")).unwrap();
    let mut command = match program {
        Program::Own => Command::new(env!("CARGO_BIN_EXE_era")),
        Program::Told(variables) => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_era"));
            command.envs(variables.iter().cloned());
            command
        }
        Program::Nobody(program) => {
            let mut command = Command::new("setpriv");
            let user = NOBODY.to_string();
            command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(program);
            command
        }
    };
    command
        .args(["up", "--listen", address, "--tcp", tcp, "--data"])
        .arg(folder.join("data"))
        .args(arguments)
        .env("ERA_CONFIG", folder.join("config"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("the binary does not start: {error}"))
}

/// An address that nobody listens on.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Whether the server says that it takes requests.
fn is_ready(address: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    if stream.write_all(request.as_bytes()).is_err() {
        return false;
    }
    let mut first = String::new();
    let read = BufReader::new(stream).read_line(&mut first);
    read.is_ok() && first.starts_with("HTTP/1.1 200")
}

/// One request over a connection of its own: status and body.
pub(crate) fn exchange(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> std::io::Result<(u16, String)> {
    let other = |_| std::io::Error::from(std::io::ErrorKind::InvalidInput);
    let address: std::net::SocketAddr = address.parse().map_err(other)?;
    // One that is cut off does not answer at all.
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer)?;
    let cut = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
    let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or_else(cut)?;
    Ok((status, body.to_owned()))
}
