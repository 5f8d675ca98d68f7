//! `era admin token`: tokens of one's own, for scripts and other machines.

use clap::ValueEnum;
use era_api::account::{NewToken, Scope, TokenInfo};
use serde_json::json;

use crate::cli::connection::Common;
use crate::cli::look::{self, Look};
use crate::job::SpanSpec;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum TokenCommand {
    /// List your tokens
    List {
        #[command(flatten)]
        common: Common,
    },
    Make(Make),
    /// Make a token good for nothing
    Revoke {
        /// Its public name, as `era admin token list` shows it
        id: String,
        #[command(flatten)]
        common: Common,
    },
}

/// Make a token; it is printed once
#[derive(Debug, clap::Args)]
pub(crate) struct Make {
    /// What it is for
    label: String,
    /// What it may be used for; may be repeated
    #[arg(short, long, value_enum, default_values = ["read", "write"])]
    scope: Vec<ScopeName>,
    /// How long it is good; at most a year
    #[arg(short, long, default_value = "30d", value_parser = |text: &str| text.parse::<SpanSpec>())]
    valid: SpanSpec,
    #[command(flatten)]
    common: Common,
}

/// What a token may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScopeName {
    /// To look
    Read,
    /// To submit and change jobs and data
    Write,
    /// What administrators may
    Admin,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Scope {
        match name {
            ScopeName::Read => Scope::Read,
            ScopeName::Write => Scope::Write,
            ScopeName::Admin => Scope::Admin,
        }
    }
}

impl TokenCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            TokenCommand::List { common } => {
                let client = common.client()?;
                let mut tokens = era_api::page::every(|page| client.tokens(page))?;
                // Their names are drawn at random, which is no order for people.
                tokens.sort_by_key(|token| token.created);
                look::print(common.output, &tokens, |tokens| render(tokens, &common.look()))
            }
            TokenCommand::Make(make) => {
                let made = make.common.client()?.make_token(&NewToken {
                    label: make.label,
                    scopes: make.scope.into_iter().map(Scope::from).collect(),
                    valid_s: make.valid.seconds,
                })?;
                look::print(make.common.output, &made, |made| {
                    let until = make.common.look().time(made.info.expires);
                    format!("{}\nGood until {until}; it is told once.\n", made.token)
                })
            }
            TokenCommand::Revoke { id, common } => {
                common.client()?.revoke_token(&id)?;
                look::print(common.output, &json!({ "revoked": id }), |_| {
                    format!("Token {id} is good for nothing now.\n")
                })
            }
        }
    }
}

fn render(tokens: &[TokenInfo], look: &Look) -> String {
    look.rows(&["TOKEN", "FOR", "SCOPES", "CREATED", "GOOD UNTIL", "LAST USED"], tokens, |token| {
        let scope = |scope: &Scope| match scope {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        };
        vec![
            token.id.clone(),
            token.label.clone(),
            token.scopes.iter().map(scope).collect::<Vec<_>>().join(", "),
            look.time(token.created),
            look.time(token.expires),
            look.time_or_dash(token.used),
        ]
    })
}
