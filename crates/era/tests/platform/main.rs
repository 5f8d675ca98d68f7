//! The platform as a user meets it: the real server on a free port, the real command line.

#![allow(clippy::unwrap_used)] // a test that cannot go on fails
#![allow(clippy::print_stderr)] // some say what they found
#![expect(clippy::disallowed_methods, reason = "real servers, in real time")]

mod accounts;
mod buying;
mod clock;
mod commands;
mod crash;
mod databases;
mod disk;
mod doors;
mod encrypted;
mod engines;
mod harness;
mod keeping;
mod laboratory;
mod layers;
mod learning;
mod lost_node;
mod marked;
mod promises;
mod report;
mod retry;
mod scripts;
mod secrets;
mod simulated;
#[path = "../../../skipped.rs"]
mod skipped;
mod story;
mod terminals;
mod trial;
mod webhooks;
