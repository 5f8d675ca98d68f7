//! What goes over the wire: types, their document, and a typed client.
//!
//! Nothing here knows the core. A time is RFC 3339 in UTC; a length of time is whole seconds in a
//! field whose name ends in `_s`; money is a decimal string of credits; resources are written as
//! Kubernetes writes them. Whatever a stranger may send refuses unknown fields.

pub mod account;
pub mod client;
pub mod cluster;
pub mod data;
pub mod event;
pub mod file_service;
pub mod image;
pub mod job;
pub mod lab;
pub mod market;
pub mod page;
pub mod problem;
pub mod queue;
pub mod quote;
pub mod report;
pub mod secret;
pub mod settings;
pub mod terminal;

pub use era_spec::Credits;
pub use jiff::Timestamp;
pub use page::Page;
pub use problem::Problem;

/// What a code says besides itself, by name.
pub type Parameters = serde_json::Map<String, serde_json::Value>;

/// The prefix of every path.
pub const PREFIX: &str = "/api/v1";
