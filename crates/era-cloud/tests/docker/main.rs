//! The executor on real engines: Debian's Docker, started by the tests, alone and as a Swarm of
//! three nodes in network namespaces. Where no engine can be started, the tests say why and
//! are counted as skipped.

mod bed;
mod gpus;
mod images;
mod one;
mod plain;
mod registry;
#[path = "../../../skipped.rs"]
mod skipped;
mod swarm;
mod three;
mod worker;
