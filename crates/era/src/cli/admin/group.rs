//! `era admin group`: groups.

use era_api::account::{GroupView, NewGroup, QuotaView};
use era_api::page::{NameFilter, PageAsk, every};

use crate::cli::connection::Common;
use crate::cli::look::{self, Look, right};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum GroupCommand {
    /// List groups
    List {
        /// Whose name has this in it
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Add a group; `era admin quota --group` sets its limits
    Add {
        /// The group
        name: String,
        /// How much it counts in policies
        #[arg(short, long, default_value_t = 0)]
        level: u8,
        #[command(flatten)]
        common: Common,
    },
}

impl GroupCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            GroupCommand::List { search, common } => {
                let client = common.client()?;
                let groups = every(|PageAsk { cursor, limit }| {
                    let (search, cursor) = (search.clone(), cursor.clone());
                    client.groups(&NameFilter { search, cursor, limit: *limit })
                })?;
                look::print(common.output, &groups, |groups| render(groups, &common.look()))
            }
            GroupCommand::Add { name, level, common } => {
                let group = NewGroup { name, level, quota: QuotaView::default() };
                let group = common.client()?.make_group(&group)?;
                look::print(common.output, &[group], |groups| render(groups, &common.look()))
            }
        }
    }
}

fn render(groups: &[GroupView], look: &Look) -> String {
    look.rows(&["GROUP", "LEVEL", "USERS", "GPUS", "GPU-HOURS", "CREDITS"], groups, |group| {
        let (quota, used) = (&group.quota, &group.used);
        let of = |used: String, most: Option<String>| {
            let used = if used.is_empty() { "0".to_owned() } else { used };
            format!("{used}/{}", most.unwrap_or_else(|| "∞".to_owned()))
        };
        vec![
            group.name.clone().into(),
            right(group.level),
            right(group.users),
            right(of(used.gpu.clone(), quota.gpu.clone())),
            right(of(format!("{:.1}", used.gpu_hours), quota.gpu_hours.map(|n| n.to_string()))),
            right(of(used.credits.to_string(), quota.credits.map(|n| n.to_string()))),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_listed_with_what_they_use() {
        let text = r#"[{"id": 1, "name": "vision", "level": 1, "users": 4,
            "quota": {"gpu": "16"}, "used": {"gpu": "3.5", "gpu_hours": 40.25}}]"#;
        let groups: Vec<GroupView> = serde_json::from_str(text).unwrap();
        insta::assert_snapshot!(render(&groups, &look::plain()));
    }
}
