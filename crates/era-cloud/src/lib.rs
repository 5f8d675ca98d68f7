//! What runs tasks: executors on local processes, Docker and Swarm, and simulated nodes.
//!
//! The scheduler decides; an [`Executor`] carries out. Orders are idempotent by
//! ([`TaskId`](era_core::job::TaskId)), so an order that is given again after a crash changes
//! nothing, and what an executor has to say comes back as [`ExecutorReport`]s, each until it is
//! acknowledged. Prices, queues and users' rights are not known here.

pub mod celery;
pub mod clock;
pub mod discover;
pub mod docker;
mod executor;
pub mod isolate;
pub mod limits;
pub mod local;
pub mod log;
pub mod scalars;
mod secrets;
pub mod settings;
pub mod shim;
pub mod simulated;
#[cfg(test)]
#[path = "../../skipped.rs"]
mod skipped;
pub mod task;
mod terminal;
pub mod usage;

pub use executor::{
    Ending, Executor, ExecutorReport, FoundNode, Launch, Order, PEERS_MAX, Reports, Sample, Staged,
    TaskLimits, TaskSpec,
};
pub use secrets::TaskSecrets;
pub use terminal::{Attached, Attaching, NoTerminal, Shown, Typed};
