//! The contract between the scheduler and whatever runs its tasks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use era_core::job::TaskId;
use era_core::resources::{Capacity, Resources};
use era_core::units::{JobId, NodeId, Span, Time, UserId};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::secrets::TaskSecrets;
use crate::terminal::{Attaching, NoTerminal};

/// Carries out orders on the nodes that are its own. Never blocks: an order is queued, and what
/// becomes of it is told by a report.
pub trait Executor: Send + Sync {
    /// Carries out an order. The same order again changes nothing.
    fn carry_out(&self, order: Order);

    /// The end of a task ([`ExecutorReport::Exited`] or [`ExecutorReport::Lost`]) was acted upon durably: it need
    /// not be told again. Only ends are acknowledged. Were starts acknowledged too, the word for a
    /// start could cross with the end on its way, and the end would be forgotten unheard.
    fn acknowledge(&self, task: TaskId);

    /// What runs right now or has ended without acknowledgement, asked after a restart: whatever
    /// the scheduler believes to run and is not in this list is lost.
    fn known(&self) -> Vec<TaskId>;

    /// Whether the instants that it reports are by the server's own clock.
    fn shares_clock(&self) -> bool {
        false
    }

    /// What had ended without acknowledgement when it was started, and what was known of it
    /// before, if it can say so before time goes on for the scheduler. All of it is reported as
    /// well.
    fn ended_before(&self) -> Vec<ExecutorReport> {
        Vec::new()
    }

    /// Whether it makes use of [`Order::Stage`].
    fn stages(&self) -> bool {
        false
    }

    /// Whether a task runs in the image that it names. Where it would not, one that names an image
    /// is not started: what it relies on would not be there.
    fn runs_images(&self) -> bool {
        false
    }

    /// Whether its tasks may have terminals, and be attached to. Where they may not, one that asks
    /// for a terminal is not started.
    fn has_terminals(&self) -> bool {
        false
    }

    /// Where other nodes reach what runs on this one: an address, or a name that resolves. `None`
    /// where the executor knows nothing better than what the node is called.
    fn address_of(&self, _node: &str) -> Option<String> {
        None
    }

    /// Attaches to the terminal of a running task.
    fn attach(&self, _task: TaskId) -> Attaching<'_> {
        Box::pin(std::future::ready(Err(NoTerminal::NoneHere)))
    }

    /// The server goes away: whatever looks after tasks and has none need not stay.
    fn leave(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

/// Most replicas of a gang of which each is told where all are.
pub const PEERS_MAX: u32 = 1_000;

/// Where an executor's reports go.
pub type Reports = mpsc::Sender<ExecutorReport>;

/// What an executor is told to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Start a task.
    Launch(Launch),
    /// Bring what a task will need to its node: it is promised to start there soon. A favour that
    /// an executor may pass over, and that its launch does not rely on.
    Stage(Launch),
    /// Signal a task now, and kill it at `until`.
    Stop {
        task: TaskId,
        /// When it is killed.
        until: Time,
    },
    /// Let a running task run longer than its launch said.
    Prolong {
        task: TaskId,
        /// When it is ended from now on.
        until: Time,
    },
    /// Tell a running gang how many replicas it has now.
    Resize {
        job: JobId,
        /// Which request of it.
        part: u16,
        attempt: u32,
        replicas: u32,
    },
}

/// All that is needed to start one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    pub task: TaskId,
    pub node: NodeId,
    /// What that node is called.
    pub node_name: String,
    pub gpus: Vec<u8>,
    /// What it may use.
    pub each: Resources,
    /// How many replicas its gang has.
    pub replicas: u32,
    /// When it is ended, whatever happens.
    pub until: Time,
    /// Where rank 0 of its gang runs, as all ranks reach it.
    pub master: String,
    /// Where each rank of its gang runs, as all ranks reach it; empty beyond [`PEERS_MAX`].
    #[serde(default)]
    pub peers: Vec<String>,
    /// What is run.
    pub spec: Arc<TaskSpec>,
}

impl Launch {
    /// The same as it may be written down: the values of its secrets are not in it.
    #[must_use]
    pub fn without_secrets(&self) -> Launch {
        let mut bare = self.clone();
        if !bare.spec.secrets.is_empty() {
            let spec = Arc::make_mut(&mut bare.spec);
            spec.secrets = spec.secrets.without_values();
        }
        bare
    }

    /// The same with its secrets among the other variables.
    #[must_use]
    pub(crate) fn with_secrets_as_variables(mut self) -> Launch {
        if !self.spec.secrets.is_empty() {
            let spec = Arc::make_mut(&mut self.spec);
            let secrets = std::mem::take(&mut spec.secrets);
            spec.env.extend(secrets.values().map(|(name, value)| (name.clone(), value.clone())));
        }
        self
    }
}

/// What is run, the same for every replica of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskSpec {
    pub user: UserId,
    /// What the account is called.
    pub user_name: String,
    /// What the job is called.
    pub job_name: Option<String>,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The user's environment variables.
    pub env: BTreeMap<String, String>,
    /// Variables that nobody else may see.
    #[serde(default, skip_serializing_if = "TaskSecrets::is_empty")]
    pub secrets: TaskSecrets,
    /// The code, which becomes the working folder: files to copy.
    pub code: Vec<Staged>,
    /// Data that it sees read-only: files or folders, by path in the working folder. Those under
    /// `inputs/` are what `ERA_INPUTS` points to.
    pub inputs: Vec<Staged>,
    /// The image, where the executor has images.
    pub image: Option<String>,
    /// The job's own folder: `outputs/`, `checkpoints/`, `logs/` and `work/` are kept there.
    pub folder: PathBuf,
    /// The folder of an earlier job, whose checkpoints this one begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints_of: Option<PathBuf>,
    /// Whether the job never has another task beside this one, so that nobody else uses its folder.
    #[serde(default)]
    pub alone: bool,
    /// Whether it reads from and prints to a terminal of its own rather than pipes.
    #[serde(default)]
    pub terminal: bool,
    /// Index in an array: the first job of it, this one's index, how many there are.
    pub array: Option<(JobId, u32, u32)>,
    /// Limits beside the resources.
    pub limits: TaskLimits,
}

/// A file or folder that is there before the task starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staged {
    /// Where it is kept. Never changed.
    pub from: PathBuf,
    /// Where the task sees it, relative to its working folder.
    pub to: String,
    /// Whether it may be executed.
    pub executable: bool,
}

/// Limits beside the resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLimits {
    /// Most processes and threads.
    pub processes: u32,
    /// Most bytes of log that are kept for a task; older ones go first.
    pub log_bytes: u64,
    /// Most bytes in its working folder, outputs and checkpoints.
    pub disk_bytes: u64,
}

impl Default for TaskLimits {
    fn default() -> TaskLimits {
        TaskLimits { processes: 4096, log_bytes: 256 << 20, disk_bytes: 64 << 30 }
    }
}

/// What an executor has to say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorReport {
    /// A task runs: its first instruction was at `at` or a moment later, and never before.
    Started {
        task: TaskId,
        at: Time,
        /// How long code and data took to be there.
        prepared: Span,
    },
    /// A task is over.
    Exited {
        task: TaskId,
        at: Time,
        /// Its code; 128 and the signal's number where a signal ended it.
        code: i32,
        ending: Ending,
    },
    /// A task is gone through no fault of its own, and certainly runs no more.
    Lost {
        task: TaskId,
        /// Why, in a word or two that a name can hold.
        reason: String,
    },
    /// A job saved its work: `era: checkpoint done=SECONDS` in its log.
    Checkpointed {
        task: TaskId,
        /// How much of its duration need not be run again.
        done: Span,
    },
    /// Its GPUs have been idle for long.
    GpusIdle { task: TaskId },
    /// Values that the job told, or what it uses. Not journaled, not acknowledged.
    Samples { task: TaskId, samples: Vec<Sample> },
    /// A node is there, or has come back, or has changed.
    Node(FoundNode),
    /// A node is gone.
    NodeLost {
        /// What it is called.
        name: String,
    },
    /// These are all the nodes that there are: whichever else the scheduler knows of this executor
    /// went while nobody looked.
    NodesAre {
        /// What they are called.
        names: Vec<String>,
    },
    /// A node takes no new work: its own administrator said so.
    NodeDrained {
        /// What it is called.
        name: String,
    },
    /// A node that was drained by its own administrator takes work again.
    NodeResumed {
        /// What it is called.
        name: String,
    },
}

impl ExecutorReport {
    /// Whose life it is about.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            ExecutorReport::Started { task, .. }
            | ExecutorReport::Exited { task, .. }
            | ExecutorReport::Lost { task, .. }
            | ExecutorReport::Checkpointed { task, .. }
            | ExecutorReport::GpusIdle { task }
            | ExecutorReport::Samples { task, .. } => Some(*task),
            ExecutorReport::Node(_)
            | ExecutorReport::NodeLost { .. }
            | ExecutorReport::NodeDrained { .. }
            | ExecutorReport::NodeResumed { .. }
            | ExecutorReport::NodesAre { .. } => None,
        }
    }

    /// Puts what is told of tasks that are over in the order in which they ended, those of which
    /// nobody knows when last: how a gang ended is how the first of it did that failed. What is
    /// told of one task stays as it is.
    pub fn put_in_order(told: &mut [ExecutorReport]) {
        let end = |report: &ExecutorReport| match report {
            ExecutorReport::Exited { task, at, .. } => Some((*task, *at)),
            _ => None,
        };
        let ends: BTreeMap<TaskId, Time> = told.iter().filter_map(end).collect();
        told.sort_by_key(|report| {
            let end = report.task().and_then(|task| ends.get(&task));
            end.copied().unwrap_or(Time::MAX)
        });
    }
}

/// What ended a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It ended by itself.
    Itself,
    /// It was told to stop.
    Stopped,
    /// It used more memory than it had asked for.
    OutOfMemory,
    /// It filled more disk than it may.
    OutOfDisk,
    /// Its time was over.
    Limit,
    /// It could not be started: what is wrong is in its log.
    NotStarted,
}

/// A value at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub name: String,
    /// The step that the job told; else a running number.
    pub step: u64,
    pub at: Time,
    pub value: f64,
}

/// A node as an executor found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundNode {
    /// What it is called.
    pub name: String,
    /// What it has.
    pub capacity: Capacity,
    pub labels: BTreeMap<String, String>,
    /// Where other nodes reach what runs on it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whether its tasks only sleep.
    pub simulated: bool,
}
