//! `era admin node`: what is done to nodes.

use era_api::Timestamp;
use era_api::cluster::{Absence, NodeAction, NodeEdit};

use crate::cli::connection::Common;
use crate::cli::look;
use era_spec::when;

use crate::job::JobError;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum NodeCommand {
    /// Start nothing new; what runs or is promised there stays
    Cordon(Named),
    Drain(Drain),
    /// Take work again, after a cordon or a drain
    #[command(visible_alias = "uncordon")]
    Resume(Named),
    /// Let the node go for good
    Leave(Named),
    /// Move a node into a domain, or out of its own
    Move {
        /// The node
        name: String,
        /// The domain; out of any where nothing is said
        domain: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    Away(AnnounceAbsence),
}

/// A node.
#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The node
    name: String,
    #[command(flatten)]
    common: Common,
}

/// Start nothing new, and move promises elsewhere; what runs may finish
#[derive(Debug, clap::Args)]
pub(crate) struct Drain {
    /// The node
    name: String,
    /// Tell whatever still runs there to stop, with grace, and to go on elsewhere: `now`, or such
    /// as 'friday 18:00'
    #[arg(long, value_name = "WHEN")]
    stop: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Announce when a node will be away; this replaces what was announced before
#[derive(Debug, clap::Args)]
pub(crate) struct AnnounceAbsence {
    /// The node
    name: String,
    /// From when, such as 'friday 18:00'
    #[arg(long, value_name = "WHEN", requires = "to")]
    from: Option<String>,
    /// Until when
    #[arg(long, value_name = "WHEN", requires = "from")]
    to: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl NodeCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let act = |action| NodeEdit { action: Some(action), ..NodeEdit::default() };
        let (name, edit, common) = match self {
            NodeCommand::Cordon(Named { name, common }) => (name, act(NodeAction::Cordon), common),
            NodeCommand::Drain(drain) => {
                let stop_at = drain.stop.as_deref().map(|text| read(&drain.common, "--stop", text));
                let edit = NodeEdit { stop_at: stop_at.transpose()?, ..act(NodeAction::Drain) };
                (drain.name, edit, drain.common)
            }
            NodeCommand::Resume(Named { name, common }) => (name, act(NodeAction::Resume), common),
            NodeCommand::Leave(Named { name, common }) => (name, act(NodeAction::Leave), common),
            NodeCommand::Move { name, domain, common } => {
                let domain = Some(domain.unwrap_or_default());
                (name, NodeEdit { domain, ..NodeEdit::default() }, common)
            }
            NodeCommand::Away(away) => {
                let edit = away.edit()?;
                (away.name, edit, away.common)
            }
        };
        let (client, look) = (common.client()?, common.look());
        client.edit_node(&name, &edit)?;
        if edit.action == Some(NodeAction::Leave) {
            let told = serde_json::json!({ "removed": name });
            return look::print(common.output, &told, |_| format!("Node {name} is gone.\n"));
        }
        let node = client.node(&name)?;
        look::print(common.output, &node, |node| {
            let stops = node.stop_at.map(|at| format!(" until {}", look.time(at)));
            format!("Node {} is {}{}.\n", node.name, node.health, stops.unwrap_or_default())
        })
    }
}

/// A time as people write it.
fn read(common: &Common, flag: &'static str, text: &str) -> Result<Timestamp, JobError> {
    let now = common.look().now;
    when::read(text, &now).map_err(|e| JobError::Flag { flag, what: e.to_string() })
}

impl AnnounceAbsence {
    fn edit(&self) -> anyhow::Result<NodeEdit> {
        let read = |flag, text| read(&self.common, flag, text);
        let maintenance = match (&self.from, &self.to) {
            (Some(from), Some(to)) => {
                vec![Absence { from: read("--from", from)?, to: read("--to", to)? }]
            }
            _ => Vec::new(),
        };
        Ok(NodeEdit { maintenance: Some(maintenance), ..NodeEdit::default() })
    }
}
