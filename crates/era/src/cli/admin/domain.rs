//! `era admin domain`: named parts of the cluster.

use era_api::cluster::DomainView;
use serde_json::json;

use crate::cli::connection::Common;
use crate::cli::look::{self, Look, right};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum DomainCommand {
    /// List domains and their nodes
    List {
        #[command(flatten)]
        common: Common,
    },
    Put(Put),
    /// Take a domain away; its nodes stay
    Remove {
        /// The domain
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

/// Draw a domain, or change what it keeps; `era admin node move` puts nodes into it
#[derive(Debug, clap::Args)]
pub(crate) struct Put {
    /// The domain
    name: String,
    /// The share of its nodes that is kept for large or high-level jobs, 0 to 1
    #[arg(long, default_value_t = 0.0)]
    keep_share: f64,
    /// For jobs of at least so many GPUs
    #[arg(long, default_value_t = 0)]
    keep_gpus_min: u64,
    /// Or users of at least this level
    #[arg(long, default_value_t = 0)]
    keep_level_min: u8,
    #[command(flatten)]
    common: Common,
}

impl DomainCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            DomainCommand::List { common } => {
                let domains = common.client()?.domains()?;
                look::print(common.output, &domains, |domains| render(domains, &common.look()))
            }
            DomainCommand::Put(put) => {
                let domain = DomainView {
                    name: put.name,
                    keep_share: put.keep_share,
                    keep_gpus_min: put.keep_gpus_min,
                    keep_level_min: put.keep_level_min,
                    nodes: Vec::new(),
                };
                put.common.client()?.put_domain(&domain)?;
                look::print(put.common.output, &domain, |domain| {
                    format!("Domain {} is drawn.\n", domain.name)
                })
            }
            DomainCommand::Remove { name, common } => {
                common.client()?.remove_domain(&name)?;
                look::print(common.output, &json!({ "removed": name }), |_| {
                    format!("Domain {name} is gone; its nodes stay.\n")
                })
            }
        }
    }
}

fn render(domains: &[DomainView], look: &Look) -> String {
    look.rows(&["DOMAIN", "KEPT", "FOR GPUS", "OR LEVEL", "NODES"], domains, |domain| {
        vec![
            domain.name.clone().into(),
            right(format!("{:.0} %", domain.keep_share * 100.0)),
            right(domain.keep_gpus_min),
            right(domain.keep_level_min),
            domain.nodes.join(", ").into(),
        ]
    })
}
