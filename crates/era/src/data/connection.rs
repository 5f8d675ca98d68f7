//! Which server, as whom, and how answers are written.

use std::io::Write;

use clap::{Args, ValueEnum};
use era_api::client::Client;
use serde::Serialize;

/// Which server, and as whom.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection and output")]
pub(crate) struct Common {
    /// The server's address
    #[arg(
        long,
        env = "ERA_URL",
        value_name = "ADDRESS",
        default_value = "http://127.0.0.1:7632",
        hide_env_values = true
    )]
    url: String,
    /// A token
    #[arg(long, env = "ERA_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// How the answer is written
    #[arg(short, long, value_enum, default_value_t, value_name = "FORM")]
    output: Form,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    #[default]
    Table,
    /// For programs, as the API gives it
    Json,
}

impl Common {
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.url, self.token.as_deref())?)
    }

    /// Writes an answer: for people by `render`, for programs as it is.
    pub(crate) fn print<T: Serialize + ?Sized>(
        &self,
        value: &T,
        render: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        let text = match self.output {
            Form::Table => render(value),
            Form::Json => serde_json::to_string_pretty(value)? + "\n",
        };
        Ok(std::io::stdout().write_all(text.as_bytes())?)
    }
}
