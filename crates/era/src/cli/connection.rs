//! Which server, as whom, and how answers are shown: flags of every command that asks one.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use era_api::client::Client;

use super::clock;
use super::config::{self, Config};
use super::look::{Form, Look};
use crate::paint::Paint;

/// The address of a server that runs here with its defaults.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:7632";

/// Which server, and as whom.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection and output")]
pub(crate) struct Common {
    /// The server's address [default: where you logged in, else http://127.0.0.1:7632]
    #[arg(long, env = "ERA_URL", value_name = "ADDRESS", hide_env_values = true)]
    url: Option<String>,
    /// A token [default: the one of your login]
    #[arg(long, env = "ERA_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Trust the certificates in this PEM file, and no others
    #[arg(long, env = "ERA_CA", value_name = "FILE", hide_env_values = true)]
    ca: Option<PathBuf>,
    /// How the answer is written
    #[arg(short, long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: Form,
    /// Write plain text, as when NO_COLOR is set or the output is no terminal
    #[arg(long)]
    no_color: bool,
}

impl Common {
    /// The address that counts: flag or variable, then the login, then a server of our own here.
    pub(crate) fn url(&self) -> anyhow::Result<String> {
        if let Some(url) = &self.url {
            return Ok(url.clone());
        }
        if let Some(url) = Config::load()?.url {
            return Ok(url);
        }
        Ok(config::local_server().map_or_else(|| DEFAULT_URL.to_owned(), |local| local.url))
    }

    /// The client, with the token that goes with the address.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let url = self.url()?;
        let token = match &self.token {
            Some(token) => Some(token.clone()),
            None => config::token_for(&url)?,
        };
        self.client_with(&url, token.as_deref())
    }

    /// A client that nobody is logged in with yet.
    pub(crate) fn stranger(&self, url: &str) -> anyhow::Result<Client> {
        self.client_with(url, None)
    }

    /// A client of whoever has just got this token.
    pub(crate) fn known(&self, url: &str, token: &str) -> anyhow::Result<Client> {
        self.client_with(url, Some(token))
    }

    fn client_with(&self, url: &str, token: Option<&str>) -> anyhow::Result<Client> {
        let client = Client::new(url, token)?;
        Ok(match &self.ca {
            Some(path) => {
                let pem = std::fs::read(path)
                    .with_context(|| format!("the certificates in {}", path.display()))?;
                client.trusting(pem)
            }
            None => client,
        })
    }

    /// How standard output looks.
    pub(crate) fn look(&self) -> Look {
        let terminal = std::io::stdout().is_terminal();
        let width = if terminal { crossterm::terminal::size().ok().map(|(w, _)| w) } else { None };
        Look {
            width,
            paint: Paint::for_stdout(self.no_color),
            wide: self.output == Form::Wide,
            now: clock::now(),
        }
    }
}
