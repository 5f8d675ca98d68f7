//! `era admin queue`: makes, changes and removes queues.

use era_api::queue::QueueView;
use serde_json::json;

use crate::cli::connection::Common;
use crate::cli::look;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum QueueCommand {
    Put(Put),
    /// Take an empty queue away
    Remove {
        /// The queue
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

/// Make or change a queue
#[derive(Debug, clap::Args)]
pub(crate) struct Put {
    /// The queue
    name: String,
    /// The policy that orders it
    #[arg(short, long)]
    policy: String,
    /// Its level: lower ones are served first
    #[arg(short, long, default_value_t = 0)]
    level: u8,
    /// The part of the cluster that it may use while others wait, 0 to 1
    #[arg(short, long, default_value_t = 1.0)]
    share: f64,
    /// It may not use more than its share
    #[arg(long)]
    no_borrowing: bool,
    /// Jobs that it ranks higher may preempt those that allow it
    #[arg(long)]
    preempts: bool,
    /// Jobs that have waited for long do not go ahead
    #[arg(long)]
    no_ageing: bool,
    /// Most jobs that may wait
    #[arg(long, default_value_t = 1_000_000)]
    waiting_max: u32,
    /// Most jobs that may run
    #[arg(long, default_value_t = 1_000_000)]
    running_max: u32,
    /// Most GPUs that its jobs may hold at a time
    #[arg(long)]
    gpus_max: Option<f64>,
    #[command(flatten)]
    common: Common,
}

impl QueueCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            QueueCommand::Put(put) => {
                let queue = QueueView {
                    name: put.name,
                    level: put.level,
                    policy: put.policy,
                    share: put.share,
                    borrows: !put.no_borrowing,
                    preempts: put.preempts,
                    ages: !put.no_ageing,
                    waiting_max: put.waiting_max,
                    running_max: put.running_max,
                    gpus_max: put.gpus_max,
                    waiting: 0,
                    running: 0,
                };
                put.common.client()?.put_queue(&queue)?;
                look::print(put.common.output, &queue, |queue| {
                    format!("Queue {} is ordered by {}.\n", queue.name, queue.policy)
                })
            }
            QueueCommand::Remove { name, common } => {
                common.client()?.remove_queue(&name)?;
                look::print(common.output, &json!({ "removed": name }), |_| {
                    format!("Queue {name} is gone.\n")
                })
            }
        }
    }
}
