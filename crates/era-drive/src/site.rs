//! A site as a value: its rules, machines, accounts and queues, which an administrator's inputs
//! then put there.
//!
//! What is asked for on a site is not known here.

use std::sync::Arc;

use era_core::accounts::{Group, User};
use era_core::cluster::{Domain, Pool};
use era_core::forecast::Forecast;
use era_core::input::NewNode;
use era_core::market::MarketRules;
use era_core::queue::{PolicyRule, Queue};
use era_core::settings::Settings;
use era_core::units::{GroupId, Money, Name, UserId};
use era_core::{Command, State};

/// Most nodes that join in one input.
const JOIN_MAX: usize = 4096;

/// A name that the source spells right; panics where it does not.
#[allow(clippy::expect_used)] // see the name of it
pub fn name(text: &str) -> Name {
    Name::new(text).expect("a name written in the source is one")
}

/// What a site has before anybody asks for anything.
#[derive(Clone, Debug, Default)]
pub struct SiteBuilder {
    /// The rules of scheduling.
    pub settings: Settings,
    pub market: MarketRules,
    pub pools: Vec<Pool>,
    pub domains: Vec<Domain>,
    /// Its nodes, each in one of the pools.
    pub nodes: Vec<NewNode>,
    pub groups: Vec<Group>,
    /// Its users, each in one of the groups, with what they are granted.
    pub users: Vec<(User, Money)>,
    /// Policies beside those that the core comes with.
    pub policies: Vec<(Name, PolicyRule)>,
    /// Its queues; there is one without, `default`.
    pub queues: Vec<Queue>,
    /// What demand is expected.
    pub forecast: Option<Forecast>,
}

impl SiteBuilder {
    /// Adds an unlimited user with credits, and its group where that is not there yet.
    pub fn user(&mut self, id: UserId, group: GroupId, credits: Money) {
        if self.groups.iter().all(|known| known.id != group) {
            self.groups.push(Group::new(group));
        }
        self.users.push((User::new(id, group), credits));
    }

    /// The state in which nothing has happened yet.
    pub fn state(&self) -> State {
        State::new(self.settings.clone(), self.market.clone())
    }

    /// What an administrator sends to that state, in order.
    pub fn commands(&self) -> Vec<Command> {
        let mut commands: Vec<Command> = Vec::new();
        commands.extend(self.pools.iter().cloned().map(|pool| Command::PutPool { pool }));
        commands.extend(self.domains.iter().cloned().map(|domain| Command::PutDomain { domain }));
        let nodes = self.nodes.chunks(JOIN_MAX);
        commands.extend(nodes.map(|nodes| Command::Join { nodes: nodes.to_vec() }));
        commands.extend(self.groups.iter().cloned().map(|group| Command::PutGroup { group }));
        for (user, amount) in &self.users {
            let (id, amount) = (user.id, *amount);
            commands.push(Command::PutUser { user: user.clone() });
            if amount > Money::ZERO {
                commands.push(Command::Grant { user: id, amount });
            }
        }
        let publish = |(name, rule)| Command::PublishPolicy { name, rule };
        commands.extend(self.policies.iter().cloned().map(publish));
        commands.extend(self.queues.iter().cloned().map(|queue| Command::PutQueue { queue }));
        let forecast = self.forecast.clone().map(Arc::new);
        commands.extend(forecast.map(|forecast| Command::PublishForecast { forecast }));
        commands
    }
}
