//! What a job is as its owner says it: one type, [`JobSpec`], for everybody who names a job, with
//! its defaults, its states, and the grammars of what people write by hand.
//!
//! The command line and its YAML files, REST, TCP, Python and the page all make a `JobSpec` that
//! says only what somebody said; one is laid over another with [`Overlay`]. The server fills in the
//! rest once, in [`JobSpec::complete`], and the journal keeps the result. Nothing here knows the
//! core, the network, a clock or a file.

#[macro_use]
mod layer;
pub mod after;
pub mod array;
mod ask;
pub mod credits;
mod job;
pub mod plain;
pub mod reading;
pub mod secret;
pub mod span;
mod state;
mod value;
pub mod when;
mod work;

pub use after::{AfterSpec, AfterWhen};
pub use array::ArraySpec;
pub use ask::{Ask, BadReplicas, ConstraintsSpec, Quantity, Replicas, ResourcesSpec, TopologySpec};
pub use credits::Credits;
pub use job::{AttributesSpec, JobSpec, OverrunSpec};
pub use layer::Overlay;
pub use span::SpanSpec;
pub use state::JobState;
pub use value::{ValueSpec, ValueStepSpec};
pub use work::{Work, WorkInput};
