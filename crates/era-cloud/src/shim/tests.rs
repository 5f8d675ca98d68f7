//! What tests of the supervisor share.

use std::sync::Arc;
use std::time::Instant;

use era_core::job::TaskId;
use era_core::resources::Resources;
use era_core::units::{JobId, NodeId, Time, UserId};

use crate::clock::MachineClock;
use crate::executor::{Launch, TaskLimits, TaskSpec};

/// Some instant, from which others are counted.
pub(crate) fn instant() -> Instant {
    MachineClock::system().steady()
}

/// A launch of a command, as small as can be.
pub(crate) fn launch(job: u64, command: &[&str]) -> Launch {
    Launch {
        task: TaskId { job: JobId(job), part: 0, attempt: 1, rank: 0 },
        node: NodeId(0),
        node_name: "here".into(),
        gpus: Vec::new(),
        each: Resources { cpu: 1000, memory: 256, ..Resources::default() },
        replicas: 1,
        until: Time::MAX,
        master: "127.0.0.1".into(),
        peers: vec!["127.0.0.1".into()],
        spec: Arc::new(TaskSpec {
            user: UserId(1),
            user_name: "ada".into(),
            job_name: None,
            command: command.iter().map(|&word| word.into()).collect(),
            env: Default::default(),
            secrets: Default::default(),
            code: Vec::new(),
            inputs: Vec::new(),
            image: None,
            folder: "/nowhere/job".into(),
            checkpoints_of: None,
            alone: true,
            terminal: false,
            array: None,
            limits: TaskLimits::default(),
        }),
    }
}
