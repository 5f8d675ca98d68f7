//! Another rule: what is changed in a history before it is run again.

use era_core::Command;
use era_core::State;
use era_core::market::{MarketRules, MechanismChoice};
use era_core::placement::Scorer;
use era_core::queue::PolicyRule;
use era_core::settings::{Backfill, Settings};
use era_core::units::Name;

use crate::BadInput;

/// What a replay overrides. `None` keeps what was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleOverrides {
    /// What orders every queue.
    pub policy: Option<PolicyRule>,
    /// Who sets prices.
    pub mechanism: Option<MechanismChoice>,
    /// No unit is cheaper than this times its base rate.
    pub floor: Option<era_core::units::Milli>,
    /// How work may start around what waits ahead of it.
    pub backfill: Option<Backfill>,
    /// How nodes are chosen.
    pub scorer: Option<Scorer>,
}

impl RuleOverrides {
    /// The name under which the other policy is published.
    fn policy_name() -> Option<Name> {
        Name::new("other-rule").ok()
    }

    /// The commands that put the other rules in force at the beginning.
    pub(super) fn opening(&self, state: &State) -> Vec<Command> {
        let mut commands = Vec::new();
        if let (Some(rule), Some(name)) = (&self.policy, RuleOverrides::policy_name()) {
            commands.push(Command::PublishPolicy { name, rule: rule.clone() });
            for queue in state.queues() {
                commands.push(self.change(Command::PutQueue { queue: queue.clone() }));
            }
        }
        if self.backfill.is_some() || self.scorer.is_some() {
            let settings = state.settings().clone();
            commands.push(self.change(Command::SetSettings { settings }));
        }
        if self.mechanism.is_some() || self.floor.is_some() {
            let rules = state.calendar().market().rules.clone();
            commands.push(self.change(Command::SetMarket { rules }));
        }
        commands
    }

    /// A command of the record, with what is to be other in it.
    pub(super) fn change(&self, command: Command) -> Command {
        match command {
            Command::PutQueue { mut queue } => {
                if let (Some(_), Some(name)) = (&self.policy, RuleOverrides::policy_name()) {
                    queue.policy = name;
                }
                Command::PutQueue { queue }
            }
            Command::SetSettings { settings } => Command::SetSettings {
                settings: Settings {
                    backfill: self.backfill.unwrap_or(settings.backfill),
                    scorer: self.scorer.unwrap_or(settings.scorer),
                    ..settings
                },
            },
            Command::SetMarket { rules } => Command::SetMarket { rules: self.market(rules) },
            command => command,
        }
    }

    fn market(&self, rules: MarketRules) -> MarketRules {
        let mechanism = self.mechanism.clone().unwrap_or(rules.mechanism);
        let floor = self.floor.unwrap_or(rules.floor).min(rules.ceiling);
        MarketRules { mechanism, floor, ceiling: rules.ceiling }
    }
}

pub fn mechanism_named(name: &str) -> Result<MechanismChoice, BadInput> {
    let unknown = || {
        let known = MechanismChoice::NAMES.join(", ");
        BadInput::new(format!("no mechanism `{name}`: give {known}")).field("--mechanism")
    };
    let name = Name::new(name).map_err(|_| unknown())?;
    MechanismChoice::named(&name).map_err(|_| unknown())
}

pub fn scorer_named(name: &str) -> Result<Scorer, BadInput> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).map_err(|_| {
        let known = "first-fit, best-fit, consolidate, fgd, least-stranded";
        BadInput::new(format!("no scorer `{name}`: give {known}")).field("--scorer")
    })
}
