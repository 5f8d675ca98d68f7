//! The executor on real engines: Debian's Docker, started by the tests, alone and as a Swarm of
//! three nodes in network namespaces. Where no engine can be started, the tests say why and pass.

mod bed;
mod gpus;
mod images;
mod plain;
mod registry;
mod swarm;
mod three;
mod worker;
