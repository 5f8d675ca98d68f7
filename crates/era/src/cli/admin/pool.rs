//! `era admin pool`: what machines alike cost.

use era_api::Credits;
use era_api::cluster::PoolView;

use crate::cli::connection::Common;
use crate::cli::look::{self, Look, right};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum PoolCommand {
    /// List pools and their base rates
    List {
        #[command(flatten)]
        common: Common,
    },
    Put(Put),
}

/// Make a pool, or set its base rates
#[derive(Debug, clap::Args)]
pub(crate) struct Put {
    /// The pool
    name: String,
    /// Credits for a core-hour
    #[arg(long, value_name = "CREDITS")]
    cpu_rate: Credits,
    /// Credits for a GiB-hour
    #[arg(long, value_name = "CREDITS")]
    memory_rate: Credits,
    /// Credits for a GPU-hour
    #[arg(long, value_name = "CREDITS")]
    gpu_rate: Credits,
    /// The share of its nodes that promises never use, 0 to 1
    #[arg(long, default_value_t = 0.1)]
    closed_share: f64,
    #[command(flatten)]
    common: Common,
}

impl PoolCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            PoolCommand::List { common } => {
                let pools = common.client()?.pools()?;
                look::print(common.output, &pools, |pools| render(pools, &common.look()))
            }
            PoolCommand::Put(put) => {
                let client = put.common.client()?;
                // What this command does not say stays as it is.
                let known = client.pools()?.into_iter().find(|pool| pool.name == put.name);
                let pool = PoolView {
                    name: put.name,
                    cpu_rate: put.cpu_rate,
                    memory_rate: put.memory_rate,
                    gpu_rate: put.gpu_rate,
                    closed_share: put.closed_share,
                    level_caps: known.map(|pool| pool.level_caps).unwrap_or_default(),
                    nodes: 0,
                };
                client.put_pool(&pool)?;
                look::print(put.common.output, &pool, |pool| {
                    format!("Pool {} costs {} a GPU-hour.\n", pool.name, pool.gpu_rate)
                })
            }
        }
    }
}

fn render(pools: &[PoolView], look: &Look) -> String {
    look.rows(
        &["POOL", "NODES", "GPU-HOUR", "CORE-HOUR", "GIB-HOUR", "CLOSED TO PROMISES"],
        pools,
        |pool| {
            vec![
                pool.name.clone().into(),
                right(pool.nodes),
                right(pool.gpu_rate),
                right(pool.cpu_rate),
                right(pool.memory_rate),
                right(format!("{:.0} %", pool.closed_share * 100.0)),
            ]
        },
    )
}
