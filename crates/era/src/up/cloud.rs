//! `era cloud`: what runs tasks, by itself.

use std::io::Write;
use std::net::SocketAddr;

use clap::Args;
use era_server::boot::cloud::{CloudOptions, start};

use super::options::{StorageOptions, TaskOptions, TlsOptions, run};
use super::told_to_stop;
use crate::logging::Logging;

/// Start what runs tasks by itself; one is at work at a time
#[derive(Args)]
pub(crate) struct Cloud {
    #[command(flatten)]
    kept: StorageOptions,
    #[command(flatten)]
    tasks: TaskOptions,
    /// Where it says how it stands: /healthz, /readyz
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7635")]
    listen: SocketAddr,
    /// What ran tasks before is gone for good, by the id that a refusal told: its tasks are lost
    #[arg(long, value_name = "ID")]
    abandon: Option<String>,
    #[command(flatten)]
    encryption: TlsOptions,
    #[command(flatten)]
    logging: Logging,
}

impl Cloud {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        run(self.logging, self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.tasks.serve_one(),
            "without root, or elsewhere than on Linux, nothing would keep the jobs of the site's \
             accounts apart, and each could read and change what all others have: start as root on \
             Linux, give an executor that keeps them apart, or, if all of them may, add \
             --insecure-shared-user"
        );
        let clock = crate::clock::machine();
        let simulated = self.tasks.simulated()?;
        let folder = self.kept.folder()?;
        let engines = self.tasks.engines(&folder, simulated, clock.clone())?;
        let settings = CloudOptions {
            database: self.kept.place(&folder),
            folder,
            listen: self.listen,
            serving: self.encryption.serving(),
            influx: self.tasks.influx.clone(),
            limits: self.tasks.limits(),
            abandon: self.abandon.clone(),
            clock,
        };
        let working = tokio::select! {
            working = start(settings, engines) => working?,
            told = told_to_stop() => return told,
        };
        let mut out = std::io::stdout();
        writeln!(out, "tasks are run; see {}", self.encryption.url(working.address))?;
        tokio::select! {
            () = working.failed() => return Err(working.why().await.into()),
            told = told_to_stop() => told?,
        }
        working.stop().await?;
        writeln!(out, "stopped; what runs goes on, and is found again")?;
        Ok(())
    }
}
