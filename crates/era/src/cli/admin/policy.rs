//! `era admin policy`: who goes first.

use era_api::queue::{Policy, Rule, RuleCheck, RuleChecked};

use crate::cli::connection::Common;
use crate::cli::exit::{BAD_INPUT, ExitWith};
use crate::cli::look::{self, Look, right};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum PolicyCommand {
    /// List policies and their versions
    List {
        #[command(flatten)]
        common: Common,
    },
    Check(Check),
    /// Publish the next version of a policy; it counts at once
    Publish {
        /// The policy
        name: String,
        #[command(flatten)]
        rule: RuleFlags,
        #[command(flatten)]
        common: Common,
    },
    /// Put an earlier version in force again
    RollBack {
        /// The policy
        name: String,
        /// The version
        version: u32,
        #[command(flatten)]
        common: Common,
    },
    /// List what tuning proposes
    Proposals {
        #[command(flatten)]
        common: Common,
    },
}

/// Who goes first.
#[derive(Debug, clap::Args)]
pub(crate) struct RuleFlags {
    /// fifo, sjf, srtf, las, gittins, fair-share or priority
    #[arg(long, default_value = "priority")]
    order: String,
    /// For las: a rising limit in GPU-seconds; may be repeated
    #[arg(long, value_name = "N")]
    limit: Vec<u64>,
    /// For priority: the formula
    formula: Option<String>,
}

impl RuleFlags {
    fn rule(self) -> Rule {
        Rule { order: self.order, formula: self.formula, limits: self.limit }
    }
}

/// Check a rule, and show what it would do to a queue; exits with 2 if it is wrong
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    #[command(flatten)]
    rule: RuleFlags,
    /// The queue whose order it would change
    #[arg(short, long)]
    queue: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl PolicyCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            PolicyCommand::List { common } => {
                let policies = common.client()?.policies()?;
                look::print(common.output, &policies, |policies| render(policies, &common.look()))
            }
            PolicyCommand::Check(check) => check.run(),
            PolicyCommand::Publish { name, rule, common } => {
                let policy = common.client()?.publish_policy(&name, &rule.rule())?;
                look::print(common.output, &[policy], |policies| render(policies, &common.look()))
            }
            PolicyCommand::RollBack { name, version, common } => {
                let policy = common.client()?.roll_back_policy(&name, version)?;
                look::print(common.output, &[policy], |policies| render(policies, &common.look()))
            }
            PolicyCommand::Proposals { common } => {
                let client = common.client()?;
                let proposals = era_api::page::every(|page| client.proposals(page))?;
                let look = common.look();
                look::print(common.output, &proposals, |proposals| {
                    look.rows(
                        &["PROPOSAL", "POLICY", "MADE", "RULE", "GAIN"],
                        proposals,
                        |proposal| {
                            vec![
                                right(proposal.id),
                                proposal.policy.clone().into(),
                                look.time(proposal.at).into(),
                                told(&proposal.rule).into(),
                                proposal.gain.clone().into(),
                            ]
                        },
                    )
                })
            }
        }
    }
}

impl Check {
    fn run(self) -> anyhow::Result<()> {
        let rule = self.rule.rule();
        let formula = rule.formula.clone().unwrap_or_default();
        let check = RuleCheck { rule, queue: self.queue };
        let checked = self.common.client()?.check_policy(&check)?;
        look::print(self.common.output, &checked, |checked| render_check(checked, &formula))?;
        if checked.ok { Ok(()) } else { Err(ExitWith(BAD_INPUT).into()) }
    }
}

fn told(rule: &Rule) -> String {
    match &rule.formula {
        Some(formula) => format!("{}: {formula}", rule.order),
        None => rule.order.clone(),
    }
}

fn render(policies: &[Policy], look: &Look) -> String {
    look.rows(&["POLICY", "VERSION", "RULE", "EARLIER VERSIONS"], policies, |policy| {
        let earlier: Vec<String> = policy.versions.iter().map(u32::to_string).collect();
        vec![
            policy.name.clone().into(),
            right(policy.version),
            told(&policy.rule).into(),
            earlier.join(", ").into(),
        ]
    })
}

/// A check as people read it: a mark under what is wrong.
fn render_check(checked: &RuleChecked, formula: &str) -> String {
    if !checked.ok {
        let mut text = String::new();
        if let Some(at) = checked.at {
            let before = " ".repeat(usize::try_from(at).unwrap_or(0).min(formula.len()));
            text += &format!("  {formula}\n  {before}^\n");
        }
        text += checked.problem.as_deref().unwrap_or("It cannot be published.");
        return text + &format!("\nKnown names: {}\n", checked.names.join(", "));
    }
    let mut text = "It can be published.\n".to_owned();
    let order = |jobs: &[u64]| jobs.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    if !checked.order_now.is_empty() {
        text += &format!(
            "  now   {}\n  then  {}\n",
            order(&checked.order_now),
            order(&checked.order_then)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_formula_is_marked_where_it_is_wrong() {
        let text = r#"{"ok": false, "problem": "there is no name `wate`", "at": 10,
            "names": ["wait", "size"]}"#;
        let checked = serde_json::from_str(text).unwrap();
        insta::assert_snapshot!(render_check(&checked, "2 * size + wate"));
    }

    #[test]
    fn a_good_formula_shows_the_order_that_it_would_give() {
        let text = r#"{"ok": true, "names": [], "order_now": [1, 2, 3], "order_then": [3, 1, 2]}"#;
        insta::assert_snapshot!(render_check(&serde_json::from_str(text).unwrap(), "size"));
    }

    #[test]
    fn policies_are_listed_with_their_versions() {
        let text = r#"[{"name": "fair", "version": 3, "rule": {"order": "priority",
            "formula": "wait - debt"}, "versions": [1, 2]}]"#;
        let policies: Vec<Policy> = serde_json::from_str(text).unwrap();
        insta::assert_snapshot!(render(&policies, &look::plain()));
    }
}
