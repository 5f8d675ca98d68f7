//! A database server of its own, for tests and measurements: MariaDB or PostgreSQL, started on
//! loopback with a folder of its own, and ended with the value.

use std::fmt;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::{AnyConnection, AssertSqlSafe, Connection};

use crate::Dialect;

/// How long a server may take to be up, and to be down.
const UP_MAX: Duration = Duration::from_secs(60);
const DOWN_MAX: Duration = Duration::from_secs(20);
/// What PostgreSQL says while a process of one that crashed is there.
const STILL_IN_USE: &str = "pre-existing shared memory block";
/// How often it is looked for a statement that is under way.
const LOOKS_MAX: usize = 1000;
/// Its only user, who may do anything.
pub const USER: &str = "era";
/// That user's password.
pub const PASSWORD: &str = "s3cret-for-a-trial";

/// Why a server could not be started.
#[derive(Debug)]
pub struct NoServer(String);

impl std::error::Error for NoServer {}

impl fmt::Display for NoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A running server.
pub struct Server {
    child: Child,
    command: Command,
    log: PathBuf,
    dialect: Dialect,
    port: u16,
}

impl Server {
    /// Starts one on an empty folder. Durable means that a commit is on the disk before it is
    /// answered, as a site would have it; else nothing ever waits for the disk.
    pub fn start(dialect: Dialect, folder: &Path, durable: bool) -> Result<Server, NoServer> {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.map_err(|e| NoServer(format!("no free port: {e}")))?.port();
        let command = match dialect {
            Dialect::Sqlite => return Err(NoServer("SQLite has no server".to_owned())),
            Dialect::MySql => mariadb(folder, port, durable)?,
            Dialect::Postgres => postgres(folder, port, durable)?,
        };
        let log = folder.join("log");
        let mut command = written_to(command, &log)?;
        let child = spawned(&mut command)?;
        let mut server = Server { child, command, log, dialect, port };
        server.wait_until_up(0)?;
        Ok(server)
    }

    /// Kills it where it stands.
    pub fn crash(&mut self) -> Result<(), NoServer> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map(drop).map_err(|e| NoServer(format!("it cannot be killed: {e}")))
    }

    /// Pauses all of its processes where they stand: whoever asks it something hears nothing.
    pub fn pause(&self) {
        // The first of them first: it would make others.
        signal("-STOP", &[self.child.id()]);
        signal("-STOP", &children(self.child.id()));
    }

    /// Lets it go on after a pause.
    pub fn go_on(&self) {
        signal("-CONT", &children(self.child.id()));
        signal("-CONT", &[self.child.id()]);
    }

    /// Starts it again where it was, after a crash. PostgreSQL refuses to while a process of the
    /// one that crashed has not ended yet, so that is tried for a while, as whatever keeps a
    /// server up does.
    pub fn start_again(&mut self) -> Result<(), NoServer> {
        let begun = now();
        loop {
            let said = self.said().len();
            self.child = spawned(&mut self.command)?;
            match self.wait_until_up(said) {
                Err(NoServer(why)) if why.contains(STILL_IN_USE) && begun.elapsed() < UP_MAX => {
                    std::thread::sleep(Duration::from_millis(200));
                }
                came => return came,
            }
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// How it is reached, without the name of a database.
    pub fn url(&self) -> String {
        let scheme = if self.dialect == Dialect::MySql { "mysql" } else { "postgres" };
        format!("{scheme}://{USER}:{PASSWORD}@127.0.0.1:{}", self.port)
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until it says that it is up, beyond what it had said before.
    fn wait_until_up(&mut self, before: usize) -> Result<(), NoServer> {
        // PostgreSQL takes connections before it lets anybody in; both say when they do.
        let ready = match self.dialect {
            Dialect::Postgres => "ready to accept connections",
            _ => "ready for connections",
        };
        let begun = now();
        loop {
            let log = self.said().split_off(before);
            if log.contains(ready) && TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(());
            }
            let ended = !matches!(self.child.try_wait(), Ok(None));
            if ended || begun.elapsed() > UP_MAX {
                let last: Vec<&str> = log.lines().rev().take(5).collect();
                return Err(NoServer(format!(
                    "the {} server does not come up: {}",
                    self.dialect,
                    last.into_iter().rev().collect::<Vec<_>>().join(" | ")
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The real time, which is what another process takes.
#[expect(clippy::disallowed_methods, reason = "a server process starts and stops in real time")]
fn now() -> Instant {
    Instant::now()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.go_on();
        // For PostgreSQL, to end at once although somebody is connected; MariaDB wants its own.
        let signal = if self.dialect == Dialect::Postgres { "-INT" } else { "-TERM" };
        let _ = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status();
        let begun = now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < DOWN_MAX {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells processes something. One that has ended meanwhile hears nothing.
fn signal(signal: &str, processes: &[u32]) {
    if !processes.is_empty() {
        let processes = processes.iter().map(u32::to_string);
        let _ = Command::new("kill").arg(signal).args(processes).stderr(Stdio::null()).status();
    }
}

/// The processes that a process has made: PostgreSQL has one for each connection.
fn children(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let made_by_it = |number: &u32| {
        let about = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // Its name, which may have anything in it, stands in brackets before its state.
        let maker = about.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        maker.and_then(|maker| maker.parse().ok()) == Some(parent)
    };
    numbers.filter(made_by_it).collect()
}

/// Makes a database on a server where there is none of that name.
pub async fn make_database(server: &str, name: &str) -> Result<(), sqlx::Error> {
    sqlx::any::install_default_drivers();
    // Either server has one of its own to begin with.
    let first = if server.starts_with("postgres") { "postgres" } else { "mysql" };
    let mut connection = AnyConnection::connect(&format!("{server}/{first}")).await?;
    let made = sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")));
    let made = made.execute(&mut connection).await;
    connection.close().await?;
    match made {
        Err(sqlx::Error::Database(told)) if told.message().contains("exists") => Ok(()),
        made => made.map(drop),
    }
}

/// Ends all other connections to a database, as its administrator may, or only those in the middle
/// of a statement that begins so, for which it looks a while; how many there were.
pub async fn cut_connections(database: &str, doing: Option<&str>) -> Result<usize, sqlx::Error> {
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(database).await?;
    let (others, active) = if database.starts_with("postgres") {
        let others = "SELECT CAST(pid AS BIGINT) FROM pg_stat_activity \
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";
        (others, "state = 'active' AND query")
    } else {
        let others = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist \
                      WHERE db = DATABASE() AND id <> CONNECTION_ID()";
        (others, "info")
    };
    let sql = match doing {
        Some(begins) => format!("{others} AND {active} LIKE '{begins}%'"),
        None => others.to_owned(),
    };
    let mut others: Vec<i64> = Vec::new();
    for _ in 0..if doing.is_some() { LOOKS_MAX } else { 1 } {
        let found = sqlx::query_scalar(AssertSqlSafe(sql.as_str()));
        others = found.fetch_all(&mut connection).await?;
        if !others.is_empty() {
            break;
        }
    }
    for other in &others {
        let cut = match database.starts_with("postgres") {
            true => format!("SELECT pg_terminate_backend({other})"),
            false => format!("KILL {other}"),
        };
        // One that has ended by itself is nothing to end.
        let _ = sqlx::raw_sql(AssertSqlSafe(cut)).execute(&mut connection).await;
    }
    connection.close().await?;
    Ok(others.len())
}

fn mariadb(folder: &Path, port: u16, durable: bool) -> Result<Command, NoServer> {
    let install = found("mariadb-install-db", &["/usr/bin"])?;
    let server = found("mariadbd", &["/usr/sbin"])?;
    let identity = Identity::of("mysql");
    let (data, init) = (folder.join("data"), folder.join("init.sql"));
    let grant = format!(
        "CREATE USER IF NOT EXISTS {USER}@'%' IDENTIFIED BY '{PASSWORD}';\n\
         GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION;\n"
    );
    std::fs::write(&init, grant).map_err(|e| NoServer(format!("{}: {e}", init.display())))?;
    identity.own(folder)?;
    let mut command = identity.command(&install);
    command
        .args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"])
        .arg(format!("--datadir={}", data.display()));
    run(command, "mariadb-install-db")?;
    let mut command = identity.command(&server);
    command
        .args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-log-bin"])
        .args(["--innodb-buffer-pool-size=128M", "--performance-schema=OFF"])
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--socket={}", folder.join("socket").display()))
        .arg(format!("--pid-file={}", folder.join("pid").display()))
        .arg(format!("--init-file={}", init.display()))
        .arg(format!("--port={port}"))
        .arg(format!("--innodb-flush-log-at-trx-commit={}", i32::from(durable)));
    Ok(command)
}

fn postgres(folder: &Path, port: u16, durable: bool) -> Result<Command, NoServer> {
    let initdb = found("initdb", &postgres_folders())?;
    let server = found("postgres", &postgres_folders())?;
    let identity = Identity::of("postgres");
    let (data, password) = (folder.join("data"), folder.join("password"));
    std::fs::write(&password, PASSWORD)
        .map_err(|e| NoServer(format!("{}: {e}", password.display())))?;
    identity.own(folder)?;
    let mut command = identity.command(&initdb);
    // An order of words as people have it, so that whoever relies on that of bytes is found out.
    command
        .args(["--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"])
        .args(["--locale-provider=icu", "--icu-locale=en-US", "--auth=scram-sha-256"])
        .args(["--username", USER, "--pwfile"])
        .arg(&password)
        .arg("--pgdata")
        .arg(&data);
    run(command, "initdb")?;
    let mut command = identity.command(&server);
    let (fsync, commit) = if durable { ("on", "on") } else { ("off", "off") };
    command
        .arg("-D")
        .arg(&data)
        .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
        .args(["-c", &format!("unix_socket_directories={}", folder.display())])
        .args(["-c", &format!("fsync={fsync}"), "-c", &format!("synchronous_commit={commit}")])
        .args(["-c", "max_connections=300"]);
    Ok(command)
}

/// Where Debian keeps PostgreSQL's programs, the newest version first.
fn postgres_folders() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders
}

fn found<P: AsRef<Path>>(program: &str, folders: &[P]) -> Result<PathBuf, NoServer> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = folders.iter().map(|folder| folder.as_ref().to_owned());
    folders
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .ok_or_else(|| NoServer(format!("{program} is not installed: run scripts/setup test")))
}

/// Who runs the server: its own user where we are root, which neither of them may be.
struct Identity(Option<(u32, u32)>);

impl Identity {
    fn of(name: &str) -> Identity {
        // A file of ours is ours: that is how we know who we are.
        let root = std::fs::metadata("/proc/self").is_ok_and(|about| {
            use std::os::unix::fs::MetadataExt;
            about.uid() == 0
        });
        if !root {
            return Identity(None);
        }
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let user = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let found = fields.next() == Some(name);
            let (user, group) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
            found.then_some((user, group))
        });
        // The name of nobody, as every Linux has it.
        Identity(Some(user.unwrap_or((65_534, 65_534))))
    }

    /// Makes a folder, and what is in it, the server's.
    fn own(&self, folder: &Path) -> Result<(), NoServer> {
        let failed = |e: std::io::Error| NoServer(format!("{}: {e}", folder.display()));
        let Some((user, group)) = self.0 else { return Ok(()) };
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
        chown(folder, Some(user), Some(group)).map_err(failed)?;
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            chown(entry.map_err(failed)?.path(), Some(user), Some(group)).map_err(failed)?;
        }
        Ok(())
    }

    /// A program run as that user, which ends when we do.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some((user, group)) = self.0 {
            command.arg(format!("--reuid={user}")).arg(format!("--regid={group}"));
            command.arg("--clear-groups");
        }
        command.arg("--").arg(program).stdin(Stdio::null()).current_dir("/");
        command
    }
}

fn run(mut command: Command, what: &str) -> Result<(), NoServer> {
    let done = command.output().map_err(|e| NoServer(format!("{what}: {e}")))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(NoServer(format!("{what} failed: {}", said.trim())))
}

fn written_to(mut command: Command, log: &Path) -> Result<Command, NoServer> {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
    let file = file.map_err(|e| NoServer(format!("its log: {e}")))?;
    let both = file.try_clone().map_err(|e| NoServer(format!("its log: {e}")))?;
    command.stdout(file).stderr(both);
    Ok(command)
}

fn spawned(command: &mut Command) -> Result<Child, NoServer> {
    command.spawn().map_err(|e| NoServer(format!("it cannot be started: {e}")))
}
