//! `era app` and `era files`: the application by itself.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use era_app::image_engine::ImageEngine;
use era_cloud::docker::EngineAddress;
use era_server::boot::app::{AppOptions, AppRole, start};

use super::options::{
    ListenOptions, RetentionOptions, StorageOptions, TlsOptions, TuningOptions, WebhookOptions,
    program, run,
};
use super::{local, told_to_stop};
use crate::logging::Logging;

/// Start a server of the application by itself; any number of them may run
#[derive(Args)]
pub(crate) struct Application {
    #[command(flatten)]
    kept: StorageOptions,
    #[command(flatten)]
    listeners: ListenOptions,
    #[command(flatten)]
    encryption: TlsOptions,
    #[command(flatten)]
    webhooks: WebhookOptions,
    /// Build and push images through this engine: `docker://` with a socket or HOST:PORT, and
    /// `?registry=`, `registry-auth=` and `tls=` behind it
    #[arg(long, value_name = "URL", env = "ERA_IMAGES", hide_env_values = true)]
    images: Option<String>,
    #[command(flatten)]
    search: TuningOptions,
    #[command(flatten)]
    logging: Logging,
}

/// Start what keeps files by itself: uploads, data sets and outputs; one is at work at a time
#[derive(Args)]
pub(crate) struct FileService {
    #[command(flatten)]
    kept: StorageOptions,
    /// Where HTTP listens
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7636")]
    listen: SocketAddr,
    #[command(flatten)]
    encryption: TlsOptions,
    #[command(flatten)]
    retaining: RetentionOptions,
    #[command(flatten)]
    logging: Logging,
}

impl Application {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let role = AppRole::Requests { tcp: self.listeners.tcp, tuning: self.search.tuning() };
        let folder = self.kept.folder()?;
        let clock = crate::clock::machine();
        let images = match &self.images {
            Some(url) => ImageEngine::at(EngineAddress::parse(url)?, folder.clone(), clock.clone()),
            None => ImageEngine::default(),
        };
        let settings = AppOptions {
            role,
            database: self.kept.place(&folder),
            folder,
            replica: self.listeners.database_replica,
            listen: self.listeners.listen,
            serving: self.encryption.serving(),
            egress: self.webhooks.egress(),
            laboratory: Some(Arc::new(crate::laboratory::Simulator)),
            program: program()?,
            images,
            clock,
        };
        run(self.logging, serve(settings, self.encryption, "ERA is up at", true))
    }
}

impl FileService {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let folder = self.kept.folder()?;
        let settings = AppOptions {
            role: AppRole::Files { retention: self.retaining.retention() },
            database: self.kept.place(&folder),
            folder,
            replica: None,
            listen: self.listen,
            serving: self.encryption.serving(),
            egress: era_app::egress::EgressPolicy::Public,
            laboratory: None,
            program: program()?,
            images: ImageEngine::default(),
            clock: crate::clock::machine(),
        };
        run(self.logging, serve(settings, self.encryption, "files are kept at", false))
    }
}

async fn serve(
    settings: AppOptions,
    encryption: TlsOptions,
    greeting: &str,
    introduces: bool,
) -> anyhow::Result<()> {
    let folder = settings.folder.clone();
    let answering = tokio::select! {
        answering = start(settings) => answering?,
        told = told_to_stop() => return told,
    };
    let url = encryption.url(answering.address);
    // Several may share the folder, and the token in it.
    if introduces && let Err(error) = local::introduce(&answering.app, &folder, &url).await {
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
