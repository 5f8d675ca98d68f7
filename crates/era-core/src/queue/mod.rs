//! Who waits, and in which order.
//!
//! A queue names a policy; a policy is a rule, or an administrator's [`formula`] over what is
//! known about a waiting job, whose value, a [`fixed`]-point number, is the job's priority. Where
//! a job could run is not known here.

pub mod fair;
pub mod fixed;
pub mod formula;
mod policy;

pub use policy::{LAS_LIMITS_MAX, Policies, PolicyRule, QUEUES_MAX, Queue, VERSIONS_MAX};
