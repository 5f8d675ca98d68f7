//! A task as any engine is told about it, and what an engine says of one. Values only: how they
//! are said to a plain engine or to a Swarm is in [`plain`](super::plain) and
//! [`swarm`](super::swarm).

use std::collections::HashMap;

use era_core::job::TaskId;

/// Something to be run by an engine.
#[derive(Clone, PartialEq, Eq)]
pub struct Instance {
    /// What it is called: nothing else on the engine is.
    pub name: String,
    /// How it is found again.
    pub labels: HashMap<String, String>,
    /// The image's reference.
    pub image: String,
    /// The program and its arguments, whatever the image would run by itself.
    pub command: Vec<String>,
    /// Environment variables, beside the image's.
    pub env: Vec<(String, String)>,
    /// A file of secrets, at `/run/secrets/era` on a Swarm. Elsewhere it is not used.
    pub secrets: Option<String>,
    /// The user and group ids that it runs under; `None` for the image's own user.
    pub user: Option<(u32, u32)>,
    /// The folder that it starts in.
    pub folder: String,
    /// What it sees of the world outside.
    pub mounts: Vec<Mounted>,
    /// Whether what its image holds can only be read.
    pub read_only: bool,
    /// Thousandths of a core; 0 for as many as there are.
    pub cpu_milli: u32,
    /// Bytes of memory; 0 for as much as there is.
    pub memory_bytes: u64,
    /// Most processes; 0 for as many as there may be.
    pub processes: u32,
    /// Whether a Swarm keeps that much of the node for it, too.
    pub reserved: bool,
    /// Bytes of shared memory.
    pub shm_bytes: u64,
    /// The GPUs that it sees, by the ids that the NVIDIA runtime reads.
    pub gpus: Vec<String>,
    /// The network that it joins, and what it is called there.
    pub network: Option<(String, String)>,
    /// The engine's id of the node that it must run on; `None` for any.
    pub node: Option<String>,
    /// Seconds from the signal to the kill when the engine stops it.
    pub grace_s: u32,
    /// Most bytes of log that the engine keeps.
    pub log_bytes: u64,
}

// Secrets are not shown, wherever this is.
impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance")
            .field("name", &self.name)
            .field("image", &self.image)
            .field("command", &self.command)
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

/// Something that an instance sees of the world outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    pub volume: Volume,
    /// At which path.
    pub target: String,
    /// Whether it can only be read.
    pub read_only: bool,
}

/// Where files are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Volume {
    /// A folder of the node.
    Bind { path: String },
    /// An export of an NFS server.
    Nfs {
        server: String,
        /// The path that it exports.
        path: String,
    },
    /// A named volume that the node keeps.
    Local {
        /// What it is called.
        name: String,
    },
}

impl Volume {
    /// How Docker's own volume driver mounts it.
    pub(super) fn driver_options(&self) -> HashMap<String, String> {
        let options: &[(&str, String)] = &match self {
            Volume::Local { .. } => return HashMap::new(),
            Volume::Bind { path } => {
                [("type", "none".into()), ("o", "bind".into()), ("device", path.clone())]
            }
            Volume::Nfs { server, path } => [
                ("type", "nfs".into()),
                ("o", format!("addr={server},rw,hard")),
                ("device", format!(":{path}")),
            ],
        };
        options.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    }
}

/// What an engine says of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceStatus {
    pub task: TaskId,
    /// The engine's id of the node that it is on, once there is one.
    pub node: Option<String>,
    /// How it is.
    pub state: InstanceState,
}

/// How an instance is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// It was made, and does not run yet: what it waits for.
    Waits(String),
    Runs,
    /// It has ended with this code.
    Ended(i32),
    /// It could not be started: why.
    Failed(String),
    /// The engine ended it, or took it for lost.
    Removed,
}

impl InstanceState {
    /// Whether nothing of it runs any more.
    pub fn is_over(&self) -> bool {
        matches!(self, InstanceState::Ended(_) | InstanceState::Failed(_) | InstanceState::Removed)
    }
}

/// A node as an engine describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineNode {
    /// The engine's id of it.
    pub id: String,
    /// What its system is called.
    pub host: String,
    /// When it joined, as the engine writes it.
    pub since: String,
    /// Whether it answers.
    pub ready: bool,
    /// Whether it takes new work.
    pub active: bool,
    /// Billionths of a core.
    pub nano_cpus: i64,
    pub memory_bytes: i64,
    /// The GPUs that it advertises, by id.
    pub gpus: Vec<String>,
    /// What was said of it.
    pub labels: HashMap<String, String>,
    /// Its system and architecture.
    pub platform: (String, String),
}
