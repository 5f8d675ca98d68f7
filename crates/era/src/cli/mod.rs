//! The commands of a user of the platform: one file each, with its arguments, what it asks the
//! server, and a pure function that renders the answer.
//!
//! Nothing here knows how the server works: only the wire types and the typed client. Nothing is
//! set up before a command is known, so that a command is over in a few milliseconds.

mod accept;
mod admin;
mod attach;
mod cancel;
pub(crate) mod clock;
mod code;
mod completions;
pub(crate) mod config;
pub(crate) mod connection;
mod cost;
pub(crate) mod data;
mod exit;
mod explain;
mod extend;
mod failure;
mod follow;
mod images;
mod job;
mod jobs;
mod login;
mod logout;
mod logs;
pub(crate) mod look;
mod man;
mod market;
mod metrics;
mod nodes;
mod outputs;
mod prompt;
mod queues;
mod quote;
pub(crate) mod reference;
mod release;
mod retry;
mod run;
mod secret;
mod submit;
mod terminal;
mod top;
mod waits;
mod wallet;
mod whoami;

pub(crate) use exit::BadUsage;
pub(crate) use failure::{told, verdict};

/// Each command is a type of arguments with a `run` of its own.
#[derive(clap::Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one of them, once
pub(crate) enum ClientCommand {
    Login(login::LogIn),
    Logout(logout::LogOut),
    Whoami(whoami::WhoAmI),
    Quote(quote::QuoteCommand),
    Submit(submit::Submit),
    Run(run::Run),
    Code(code::SendCode),
    Accept(accept::Accept),
    Jobs(jobs::Jobs),
    Job(job::JobCommand),
    Logs(logs::Logs),
    Attach(attach::Attach),
    Metrics(metrics::Metrics),
    Outputs(outputs::Outputs),
    Explain(explain::Explain),
    Cancel(cancel::Cancel),
    Retry(retry::Retry),
    Extend(extend::ExtendCommand),
    Release(release::Release),
    Top(top::Top),
    Market(market::MarketCommand),
    Nodes(nodes::Nodes),
    Queues(queues::Queues),
    Images(images::Images),
    Secret(secret::SecretCommand),
    Wallet(wallet::WalletCommand),
    /// For administrators: accounts, quotas, credits, policies, prices, nodes, and a check of all
    #[command(subcommand)]
    Admin(admin::Admin),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(hide = true)]
    Reference(reference::Reference),
}

impl ClientCommand {
    /// A command that is read without the others; see [`crate::command`].
    pub(crate) fn alone(
        name: &str,
        arguments: impl Iterator<Item = std::ffi::OsString>,
    ) -> Option<ClientCommand> {
        use crate::alone::one;
        Some(match name {
            "quote" => ClientCommand::Quote(one(arguments)?),
            "submit" => ClientCommand::Submit(one(arguments)?),
            "run" => ClientCommand::Run(one(arguments)?),
            "accept" => ClientCommand::Accept(one(arguments)?),
            "jobs" => ClientCommand::Jobs(one(arguments)?),
            "job" => ClientCommand::Job(one(arguments)?),
            "logs" => ClientCommand::Logs(one(arguments)?),
            "cancel" => ClientCommand::Cancel(one(arguments)?),
            _ => return None,
        })
    }

    /// Runs it. Some write about the `whole` command line.
    pub(crate) fn run(self, whole: fn() -> clap::Command) -> anyhow::Result<()> {
        clock::check()?;
        match self {
            ClientCommand::Login(command) => command.run(),
            ClientCommand::Logout(command) => command.run(),
            ClientCommand::Whoami(command) => command.run(),
            ClientCommand::Quote(command) => command.run(),
            ClientCommand::Submit(command) => command.run(),
            ClientCommand::Run(command) => command.run(),
            ClientCommand::Code(command) => command.run(),
            ClientCommand::Accept(command) => command.run(),
            ClientCommand::Jobs(command) => command.run(),
            ClientCommand::Job(command) => command.run(),
            ClientCommand::Logs(command) => command.run(),
            ClientCommand::Attach(command) => command.run(),
            ClientCommand::Metrics(command) => command.run(),
            ClientCommand::Outputs(command) => command.run(),
            ClientCommand::Explain(command) => command.run(),
            ClientCommand::Cancel(command) => command.run(),
            ClientCommand::Retry(command) => command.run(),
            ClientCommand::Extend(command) => command.run(),
            ClientCommand::Release(command) => command.run(),
            ClientCommand::Top(command) => command.run(),
            ClientCommand::Market(command) => command.run(),
            ClientCommand::Nodes(command) => command.run(),
            ClientCommand::Queues(command) => command.run(),
            ClientCommand::Images(command) => command.run(),
            ClientCommand::Secret(command) => command.run(),
            ClientCommand::Wallet(command) => command.run(),
            ClientCommand::Admin(command) => command.run(),
            ClientCommand::Completions(command) => command.run(whole()),
            ClientCommand::Man(command) => command.run(whole()),
            ClientCommand::Reference(command) => command.run(whole()),
        }
    }
}
