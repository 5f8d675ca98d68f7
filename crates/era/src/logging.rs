//! The log of whatever serves: where it goes, how much of it, and for whom it is written.

use clap::{Args, ValueEnum};

/// How a log is written.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Logging {
    /// How the log on standard error is written; ERA_LOG says how much of it, such as info
    #[arg(long, value_enum, default_value_t, value_name = "FORM", env = "ERA_LOG_FORMAT")]
    log_format: Form,
}

/// For whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    #[default]
    Text,
    /// For programs: one JSON object a line, with the request's id in `span`
    Json,
}

impl Logging {
    /// Begins to log. Once for a process.
    pub(crate) fn start(self) -> anyhow::Result<()> {
        let filter = tracing_subscriber::EnvFilter::try_from_env("ERA_LOG")
            .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"))
            // What is sent to an engine holds users' secrets: its client shows all of it.
            .add_directive("bollard=warn".parse()?);
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            // Nobody wants colours in a file.
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
        match self.log_format {
            Form::Text => log.init(),
            Form::Json => log.json().flatten_event(true).init(),
        }
        Ok(())
    }
}
