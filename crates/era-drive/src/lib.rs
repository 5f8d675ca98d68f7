//! What drives the core, without IO.
//!
//! [`Engine`] numbers inputs, lets what is due happen and makes passes when they are due. The
//! server's driver is an engine with a journal, a clock and callers around it. [`World`] is an
//! engine on a virtual clock, with [`Executor`] in place of machines; a [`Scenario`] says how jobs
//! behave there and looks on, and a [`SiteBuilder`] what the site has. The laboratory, the demo and
//! the benchmarks run these. So what is measured is what runs.
//!
//! Nothing here reads a clock, a file or a socket: time arrives with each call.

mod batch;
mod engine;
mod executor;
mod site;
mod world;

pub use batch::{Answer, Batch, Released};
pub use engine::{Engine, Record};
pub use executor::{Conduct, ConductOf, Executor, Pace, Report};
pub use site::{SiteBuilder, name};
pub use world::{Scenario, World};
