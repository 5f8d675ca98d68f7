//! `era core`: the scheduler by itself.

use std::io::Write;
use std::net::SocketAddr;

use clap::Args;
use era_app::driver::SegmentRules;
use era_cloud::celery::names::RedisAddress;
use era_server::boot::core::{CoreOptions, Scheduler};

use super::options::{StorageOptions, TlsOptions, WebhookOptions, lesson_span, program, run};
use super::told_to_stop;
use crate::logging::Logging;

/// Start a scheduler by itself; with several on one database one leads, and the others stand by
#[derive(Args)]
pub(crate) struct Core {
    #[command(flatten)]
    kept: StorageOptions,
    /// Where it says how it stands: /healthz, /readyz, /metrics
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7634")]
    listen: SocketAddr,
    /// Where the other layers ask it
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7633")]
    inbox: SocketAddr,
    /// How they reach that from their machines, such as scheduler-1:7633
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    #[command(flatten)]
    encryption: TlsOptions,
    #[command(flatten)]
    webhooks: WebhookOptions,
    /// Redis to share settings and accepted jobs through: redis://HOST:PORT/DATABASE
    #[arg(long, value_name = "URL", env = "ERA_REDIS", hide_env_values = true)]
    redis: Option<String>,
    /// Learn so often how long jobs take and what they use
    #[arg(long, value_name = "SPAN", default_value = "1d", value_parser = lesson_span)]
    learn_every: std::time::Duration,
    #[command(flatten)]
    logging: Logging,
}

impl Core {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        run(self.logging, self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let folder = self.kept.folder()?;
        let settings = CoreOptions {
            database: self.kept.place(&folder),
            folder,
            listen: self.listen,
            serving: self.encryption.serving(),
            inbox: self.inbox,
            advertise: self.advertise,
            rules: SegmentRules::default(),
            egress: self.webhooks.egress(),
            redis: self.redis.as_deref().map(RedisAddress::read).transpose()?,
            program: program()?,
            learn_every: self.learn_every,
            clock: crate::clock::machine(),
        };
        let mut out = std::io::stdout();
        let scheduler = tokio::select! {
            scheduler = Scheduler::open(settings) => scheduler?,
            told = told_to_stop() => return told,
        };
        writeln!(out, "a scheduler stands by at {}", self.encryption.url(scheduler.address))?;
        let leading = tokio::select! {
            leading = scheduler.lead() => leading?,
            told = told_to_stop() => return told,
        };
        writeln!(out, "it leads")?;
        super::tell_of_first(&mut out, leading.first.as_ref())?;
        tokio::select! {
            () = leading.failed() => return Err(leading.why().await.into()),
            told = told_to_stop() => told?,
        }
        leading.stop().await?;
        writeln!(out, "stopped; whoever stands by leads")?;
        Ok(())
    }
}
