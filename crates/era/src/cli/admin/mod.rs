//! `era admin`: what administrators, and some of it group administrators, do.

mod audit;
mod config;
mod credit;
mod doctor;
mod domain;
mod group;
mod journal;
mod mechanism;
mod node;
mod policy;
mod pool;
mod queue;
mod quota;
mod report;
mod token;
mod user;
mod webhook;

/// One file each.
#[derive(Debug, clap::Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one of them, once
pub(crate) enum Admin {
    /// Accounts: list, add, change
    #[command(subcommand)]
    User(user::UserCommand),
    /// Groups: list, add
    #[command(subcommand)]
    Group(group::GroupCommand),
    Quota(quota::QuotaCommand),
    Credit(credit::Credit),
    /// Policies: list, check, publish, roll back
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Queues: make, change, take away
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    Mechanism(mechanism::MechanismCommand),
    /// Settings: list, show, set, watch
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Nodes: cordon, drain, resume, move, announce an absence, let go
    #[command(subcommand)]
    Node(node::NodeCommand),
    /// Pools: list, set rates
    #[command(subcommand)]
    Pool(pool::PoolCommand),
    /// Domains: list, draw, take away
    #[command(subcommand)]
    Domain(domain::DomainCommand),
    /// Tokens of your own: list, make, revoke
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Webhooks of your own: list, add, take away
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    Audit(audit::Audit),
    Report(report::ReportCommand),
    Journal(journal::Journal),
    Doctor(doctor::Doctor),
    #[cfg(unix)]
    Rebuild(crate::upkeep::Rebuild),
    #[cfg(unix)]
    Backup(crate::upkeep::Backup),
    #[cfg(unix)]
    Restore(crate::upkeep::Restore),
    #[cfg(unix)]
    Copy(crate::upkeep::CopyCommand),
}

impl Admin {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Admin::User(command) => command.run(),
            Admin::Group(command) => command.run(),
            Admin::Quota(command) => command.run(),
            Admin::Credit(command) => command.run(),
            Admin::Policy(command) => command.run(),
            Admin::Queue(command) => command.run(),
            Admin::Mechanism(command) => command.run(),
            Admin::Config(command) => command.run(),
            Admin::Node(command) => command.run(),
            Admin::Pool(command) => command.run(),
            Admin::Domain(command) => command.run(),
            Admin::Token(command) => command.run(),
            Admin::Webhook(command) => command.run(),
            Admin::Audit(command) => command.run(),
            Admin::Report(command) => command.run(),
            Admin::Journal(command) => command.run(),
            Admin::Doctor(command) => command.run(),
            #[cfg(unix)]
            Admin::Rebuild(command) => command.run(),
            #[cfg(unix)]
            Admin::Backup(command) => command.run(),
            #[cfg(unix)]
            Admin::Restore(command) => command.run(),
            #[cfg(unix)]
            Admin::Copy(command) => command.run(),
        }
    }
}
