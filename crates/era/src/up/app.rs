//! `era app` and `era files`: the application by itself.

use std::io::Write;
use std::net::SocketAddr;

use clap::Args;
use era_cloud::docker::Address;
use era_server::boot::app::{Role, Settings, start};
use era_server::boot::executors::ImageEngine;
use era_server::tend::Tuning;
use era_store::Place;

use super::options::{Encryption, Kept, Webhooks, program, run, span};
use super::{local, told_to_stop};

/// Start a server of the application by itself; any number of them may run
#[derive(Args)]
pub(crate) struct Application {
    #[command(flatten)]
    kept: Kept,
    /// A replica of that database, for lists and reports, which may be a little behind
    #[arg(long, value_name = "URL", env = "ERA_DATABASE_REPLICA", hide_env_values = true)]
    database_replica: Option<Place>,
    /// Where HTTP listens
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7632")]
    listen: SocketAddr,
    /// Where lines of JSON are taken, pipelined: quote, submit, cancel, status
    #[arg(long, value_name = "ADDR")]
    tcp: Option<SocketAddr>,
    #[command(flatten)]
    encryption: Encryption,
    #[command(flatten)]
    webhooks: Webhooks,
    /// Build and push images through this engine: `docker://` with a socket or HOST:PORT, and
    /// `?registry=`, `registry-auth=` and `tls=` behind it
    #[arg(long, value_name = "URL", env = "ERA_IMAGES")]
    images: Option<String>,
    /// Search a better policy so often, such as 1d, and propose it to administrators
    #[arg(long, value_name = "SPAN", value_parser = span)]
    tune_every: Option<std::time::Duration>,
    /// What such a search is to make small
    #[arg(long, value_name = "EXPR", default_value = "mean_wait_s + 0.1 * p99_wait_s")]
    tune_objective: String,
}

/// Start what keeps files by itself: uploads, data sets and outputs; one is at work at a time
#[derive(Args)]
pub(crate) struct FileService {
    #[command(flatten)]
    kept: Kept,
    /// Where HTTP listens
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7636")]
    listen: SocketAddr,
    #[command(flatten)]
    encryption: Encryption,
}

impl Application {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let objective = self.tune_objective;
        let tuning = self.tune_every.map(|every| Tuning { every, objective });
        let role = Role::Requests { tcp: self.tcp, tuning };
        let folder = self.kept.folder()?;
        let images = match &self.images {
            Some(url) => ImageEngine::at(Address::parse(url)?, folder.clone()),
            None => ImageEngine::default(),
        };
        let settings = Settings {
            role,
            database: self.kept.place(&folder),
            folder,
            replica: self.database_replica,
            listen: self.listen,
            serving: self.encryption.serving(),
            reach: self.webhooks.reach(),
            laboratory: Some(Box::new(crate::laboratory::Simulator)),
            program: program()?,
            images,
        };
        run(serve(settings, self.encryption, "ERA is up at", true))
    }
}

impl FileService {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let folder = self.kept.folder()?;
        let settings = Settings {
            role: Role::Files,
            database: self.kept.place(&folder),
            folder,
            replica: None,
            listen: self.listen,
            serving: self.encryption.serving(),
            reach: era_server::webhook::address::Reach::Public,
            laboratory: None,
            program: program()?,
            images: ImageEngine::default(),
        };
        run(serve(settings, self.encryption, "files are kept at", false))
    }
}

async fn serve(
    settings: Settings,
    encryption: Encryption,
    greeting: &str,
    introduces: bool,
) -> anyhow::Result<()> {
    let folder = settings.folder.clone();
    let answering = tokio::select! {
        answering = start(settings) => answering?,
        told = told_to_stop() => return told,
    };
    let url = encryption.url(answering.address);
    // Several may share the folder: none ends the token of another.
    let label = format!("{}, by {url}", local::LABEL);
    if introduces && let Err(error) = local::introduce(&answering.app, &label, &folder, &url).await
    {
        // Logging in works all the same.
        tracing::warn!(%error, "this user's commands must log in");
    }
    let mut out = std::io::stdout();
    writeln!(out, "{greeting} {url}")?;
    if let Some(tcp) = answering.tcp {
        writeln!(out, "lines of JSON are taken at {tcp}")?;
    }
    tokio::select! {
        () = answering.failed() => return Err(answering.why().await.into()),
        told = told_to_stop() => told?,
    }
    answering.stop().await?;
    writeln!(out, "stopped")?;
    Ok(())
}
