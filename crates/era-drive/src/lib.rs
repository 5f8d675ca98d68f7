//! What drives the core, without IO.
//!
//! [`Engine`] numbers inputs, lets what is due happen and makes passes when they are due, one input
//! or one [`Batch`] at a time; [`Replay`] carries out once more what a journal has of them. A
//! [`Cursor`] says from where and when somebody who follows a journal reads on. [`Reconciler`]
//! decides what executors are told, [`lead::Tenure`] who leads, and [`ForwardTime`] what time it is.
//! The server performs what these decide. [`World`] is an engine on a virtual clock, with
//! [`VirtualExecutor`] in place of machines; a [`Scenario`] says how jobs behave there and looks on,
//! and a [`SiteBuilder`] what the site has. The laboratory, the demo and the benchmarks run these. So
//! what is measured is what runs.
//!
//! Nothing here reads a clock, a file or a socket: time arrives with each call.

mod batch;
mod clock;
mod cursor;
mod engine;
mod executor;
pub mod forward;
mod gather;
pub mod lead;
mod reconcile;
mod replay;
mod site;
pub mod tasks;
mod world;

pub use batch::{Answer, Batch, Released};
pub use clock::ForwardTime;
pub use cursor::{Cursor, FollowRules, FollowStep};
pub use engine::{Engine, EntryWriter};
pub use executor::{Conduct, ConductOf, JobReport, Pace, VirtualExecutor};
pub use gather::Gathering;
pub use reconcile::{Action, Assignment, LookedUp, Reconciler};
pub use replay::{Replay, ReplayError};
pub use site::{SiteBuilder, name};
pub use world::{Scenario, World};
