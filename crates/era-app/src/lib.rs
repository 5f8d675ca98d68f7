//! The application: what users, administrators and jobs can ask for, as functions over
//! [`Services`] and a [`auth::Caller`], and what goes on by itself beside them.
//!
//! One thread owns the scheduler's state ([`driver`]); everyone else reads snapshots of it or asks
//! that thread. What is asked is authorised here, and answered from the store's tables or the
//! newest snapshot. By which protocol it is asked is not known here: whatever is not done is an
//! [`AppError`].

pub mod answer;
pub mod asks;
pub mod audit;
pub mod auth;
pub mod background;
pub mod bus;
pub mod clock;
pub mod driver;
pub mod egress;
pub mod error;
pub mod events;
pub mod feed;
pub mod files;
mod follow;
pub mod groups;
pub mod idempotency;
pub mod image_builds;
pub mod image_engine;
pub mod images;
pub mod influx;
pub mod jobs;
pub mod journal;
pub mod lab;
pub mod lab_runs;
pub mod launch;
pub mod lead;
pub mod machine;
pub mod market;
pub mod measures;
pub mod nodes;
pub mod paging;
pub mod queues;
pub mod quota;
pub mod quotes;
pub mod recorder;
pub mod replica;
pub mod report;
pub mod secrets;
pub mod services;
pub mod sessions;
pub mod settings;
#[cfg(test)]
#[path = "../../skipped.rs"]
mod skipped;
pub mod spending;
pub mod staging;
pub mod statement;
pub mod submit;
pub mod upkeep;
pub mod users;
pub mod visibility;
pub mod webhook;
pub mod what_if;
pub mod wire;

pub use error::AppError;
pub use services::{Parts, Services};
