//! The executor of this machine: it talks to the node's supervisor, and starts one where there is
//! none.
//!
//! It keeps a mirror of which tasks the supervisor must know: those that it was told of. If the
//! supervisor is gone, another is started, which first makes certain that nothing of the old one
//! runs, and then says what it knows; whatever of the mirror is not among it is lost. Processes,
//! limits and logs are the supervisor's ([`crate::shim`]).

mod attach;
mod talk;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use era_core::job::TaskId;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use crate::executor::{Executor, ExecutorReport, Order, Reports};
use crate::shim::{self, ShimError};
use crate::task::SupervisorSettings;
use crate::terminal::Attaching;

/// How long a supervisor may take to start: it sweeps first.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// What the executor needs to know.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// The supervisor's folder. Its path must be short enough for a socket.
    pub folder: PathBuf,
    /// The program that is a supervisor when it is given `arguments` and then the folder.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// What supervisors are told about this node.
    pub settings: SupervisorSettings,
}

impl LocalOptions {
    /// The running program as supervisor: `era shim --folder FOLDER`.
    pub fn of_this_program(
        folder: PathBuf,
        settings: SupervisorSettings,
    ) -> io::Result<LocalOptions> {
        let arguments = vec!["shim".into(), "--folder".into()];
        Ok(LocalOptions { folder, program: std::env::current_exe()?, arguments, settings })
    }
}

/// Why this machine cannot run tasks.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The supervisor's folder cannot be used.
    #[error(transparent)]
    Shim(#[from] ShimError),
    #[error("the supervisor of this node could not be reached: {0}")]
    Io(#[from] io::Error),
    /// It does not come up.
    #[error("the supervisor of this node does not answer: see {0}")]
    Silent(PathBuf),
    /// Its protocol is another.
    #[error("the supervisor of this node refused us: {0}")]
    Refused(String),
}

/// The executor of this machine.
#[derive(Debug)]
pub struct LocalExecutor {
    /// Where its supervisor listens.
    socket: PathBuf,
    says: mpsc::UnboundedSender<SupervisorCommand>,
    known: Known,
    notes: Vec<String>,
    ended: Vec<ExecutorReport>,
}

/// Which tasks the supervisor must know.
type Known = Arc<Mutex<BTreeSet<TaskId>>>;

/// What is to be said to the supervisor.
#[derive(Debug)]
enum SupervisorCommand {
    Order(Box<Order>),
    Acknowledge(TaskId),
    Leave(oneshot::Sender<bool>),
}

fn lock(known: &Known) -> std::sync::MutexGuard<'_, BTreeSet<TaskId>> {
    // A set of numbers is right whoever panicked beside it.
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LocalExecutor {
    /// Reaches the node's supervisor, starting it where there is none, and goes on talking to it
    /// until this executor is dropped. When it returns, [`Executor::known`] can be asked.
    pub async fn start(
        options: LocalOptions,
        reports: Reports,
    ) -> Result<LocalExecutor, LocalError> {
        std::fs::create_dir_all(&options.folder)?;
        private(&options.folder)?;
        let socket = shim::socket(&options.folder)?;
        let mut host = Host { options, child: None };
        let (talk, hello) = talk::Talk::begin(&mut host).await?;
        let known = Known::default();
        lock(&known).extend(hello.known);
        let (says, heard) = mpsc::unbounded_channel();
        let (notes, ended) = (hello.notes, hello.ended);
        tokio::spawn(talk::go_on(host, talk, heard, reports, Arc::clone(&known)));
        Ok(LocalExecutor { socket, says, known, notes, ended })
    }

    /// What this machine does not permit, in words, to be said once.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Asks the supervisor to exit, which it does if it looks after nothing; says whether it did.
    pub async fn leave(&self) -> bool {
        let (answer, answered) = oneshot::channel();
        self.says.send(SupervisorCommand::Leave(answer)).is_ok() && answered.await.unwrap_or(false)
    }

    fn say(&self, say: SupervisorCommand) {
        if self.says.send(say).is_err() {
            tracing::error!("an order was given to an executor that has stopped");
        }
    }
}

impl Executor for LocalExecutor {
    fn shares_clock(&self) -> bool {
        true
    }

    fn carry_out(&self, order: Order) {
        let order = match order {
            // To a process they are variables, and a supervisor of an older version, which knows no
            // secrets, would start it without them.
            Order::Launch(launch) => Order::Launch(launch.with_secrets_as_variables()),
            other => other,
        };
        self.say(SupervisorCommand::Order(Box::new(order)));
    }

    fn acknowledge(&self, task: TaskId) {
        lock(&self.known).remove(&task);
        self.say(SupervisorCommand::Acknowledge(task));
    }

    fn known(&self) -> Vec<TaskId> {
        lock(&self.known).iter().copied().collect()
    }

    fn ended_before(&self) -> Vec<ExecutorReport> {
        self.ended.clone()
    }

    fn has_terminals(&self) -> bool {
        // Elsewhere it is not certain that a terminal can be waited for beside sockets and pipes.
        cfg!(target_os = "linux")
    }

    fn attach(&self, task: TaskId) -> Attaching<'_> {
        Box::pin(attach::attach(&self.socket, task))
    }

    fn leave(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            LocalExecutor::leave(self).await;
        })
    }
}

fn private(folder: &std::path::Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
}

/// Where supervisors are started.
struct Host {
    options: LocalOptions,
    /// The one that we started, if we did.
    child: Option<Child>,
}

impl Host {
    /// Connects to the supervisor, starting it where there is none.
    async fn connect(&mut self) -> Result<UnixStream, LocalError> {
        let socket = shim::socket(&self.options.folder)?;
        let begun = tokio::time::Instant::now();
        loop {
            let refused = match UnixStream::connect(&socket).await {
                Ok(stream) => return Ok(stream),
                Err(error) => error.kind(),
            };
            let absent = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
            if absent.contains(&refused) && !self.is_starting()? {
                self.start()?;
            }
            if begun.elapsed() > START_PATIENCE {
                return Err(LocalError::Silent(self.log()));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn log(&self) -> PathBuf {
        self.options.folder.join("shim.log")
    }

    /// Whether the one that we started still runs. One that has ended is reaped here.
    fn is_starting(&mut self) -> io::Result<bool> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait()?.is_none()),
            None => Ok(false),
        }
    }

    fn start(&mut self) -> io::Result<()> {
        self.options.settings.write(&self.options.folder)?;
        let log = std::fs::File::options().create(true).append(true).open(self.log())?;
        let child = Command::new(&self.options.program)
            .args(&self.options.arguments)
            .arg(&self.options.folder)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        self.child = Some(child);
        Ok(())
    }
}
