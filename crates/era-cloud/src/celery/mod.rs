//! Celery and Redis: tasks as messages that workers on other machines take.
//!
//! The protocol comes first and is pure: [`queue`] (lists and steps of priority), [`body`] (JSON,
//! MessagePack, YAML), [`envelope`] (how a message is wrapped), [`message`] (a task, protocol 2),
//! [`result`] (what is kept of it). [`bus`] is Redis itself, and thin; [`fence`] says who may write
//! there for a site.
//!
//! On it stand two sides. The executor ([`CeleryExecutor`]) turns launches into messages and results into
//! reports. A [`node`] serves one machine: it takes launches by id and runs them through the local
//! supervisor; a [`worker`] feeds it from the queues, and a Celery worker in Python can do the same
//! over a socket. Only ERA's own tasks are served here, [`RUN`] and [`EXEC`]; canvases, remote control
//! and autoscaling are Celery's, and so its worker's (decision 0026).
//!
//! **At most one run.** A launch may start only while its description is in Redis, and only on a
//! node that holds a lease. The node renews the lease, and with every renewal lets its supervisor
//! run the tasks for one lease more: if it cannot renew, its tasks are ended by the supervisor
//! whatever else happens. The executor gives a node up only after it has seen no renewal for longer
//! than a lease, and in the same step takes back all that the node could still start. So a message
//! that comes twice, late, or to a node that was cut off starts nothing a second time. While Redis
//! itself is away, what nobody has begun is given up by a word in the job's folder (`verdict`).
//!
//! Whoever can write to this Redis can run programs on the workers: keep it private.

pub mod body;
pub mod bus;
pub mod envelope;
mod executor;
pub mod fence;
mod handed;
pub mod message;
pub mod names;
pub mod node;
pub mod outcome;
pub mod queue;
pub mod result;
mod unacked;
mod verdict;
pub mod worker;

pub use executor::{CeleryError, CeleryExecutor, CeleryOptions, site};

/// The task that runs a launch by its id.
pub const RUN: &str = "era.run";
/// The task that runs a command on whichever worker takes it.
pub const EXEC: &str = "era.exec";
