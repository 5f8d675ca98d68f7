//! `era up`: the whole platform in one process. Beside it the layers by themselves: [`core`],
//! [`app`] (and what keeps files) and [`cloud`].

pub(crate) mod app;
pub(crate) mod cloud;
pub(crate) mod core;
mod local;
mod options;
mod trial;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use era_app::auth::first_start::FirstAccount;
use era_app::driver::SegmentRules;
use era_cloud::celery::names::RedisAddress;
use era_cloud::clock::MachineClock;
use era_server::boot::{self, Running, ServerOptions};
use era_store::StoreError;

use self::options::{
    ListenOptions, RetentionOptions, StorageOptions, TaskOptions, TlsOptions, TuningOptions,
    WebhookOptions, lesson_span, program,
};

use crate::logging::Logging;

/// Start the platform: this machine is its first node
#[derive(Args)]
pub(crate) struct Up {
    #[command(flatten)]
    kept: StorageOptions,
    #[command(flatten)]
    listeners: ListenOptions,
    #[command(flatten)]
    tasks: TaskOptions,
    /// Redis to share settings and accepted jobs through: redis://HOST:PORT/DATABASE
    #[arg(long, value_name = "URL", env = "ERA_REDIS", hide_env_values = true)]
    redis: Option<String>,
    #[command(flatten)]
    encryption: TlsOptions,
    #[command(flatten)]
    webhooks: WebhookOptions,
    #[command(flatten)]
    search: TuningOptions,
    /// Learn so often how long jobs take and what they use
    #[arg(long, value_name = "SPAN", default_value = "1d", value_parser = lesson_span)]
    learn_every: std::time::Duration,
    #[command(flatten)]
    retaining: RetentionOptions,
    /// Quote, submit and run a small training job, and tell what happened
    #[arg(long = "try")]
    trial: bool,
    #[command(flatten)]
    logging: Logging,
}

impl Up {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        options::run(self.logging, self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let clock = crate::clock::machine();
        let simulated = self.tasks.simulated()?;
        let data = self.kept.folder()?;
        let engines = self.tasks.engines(&data, simulated, clock.clone())?;
        let running = boot::start(self.settings(data.clone(), clock)?, engines).await?;
        let url = self.encryption.url(running.address);
        if let Err(error) = local::introduce(&running.app, &data, &url).await {
            // Logging in works all the same.
            tracing::warn!(%error, "this user's commands must log in");
        }
        self.greet(&running, &data, &url)?;
        if self.trial {
            let tried = tokio::select! {
                tried = trial::run(&running, &data) => tried,
                told = told_to_stop() => {
                    told?;
                    running.stop().await?;
                    writeln!(std::io::stdout(), "stopped; what runs goes on, and is found again")?;
                    return Ok(());
                }
            };
            // A script has seen what it wanted; a person may go on.
            if tried.is_err() || !std::io::stdout().is_terminal() {
                running.stop().await?;
                return tried;
            }
        }
        let failed = tokio::select! {
            () = running.failed() => true,
            told = told_to_stop() => {
                told?;
                false
            }
        };
        running.stop().await?;
        anyhow::ensure!(!failed, "the scheduler has stopped: its log says why");
        writeln!(std::io::stdout(), "stopped; what runs goes on, and is found again")?;
        Ok(())
    }

    fn settings(&self, folder: PathBuf, clock: MachineClock) -> anyhow::Result<ServerOptions> {
        Ok(ServerOptions {
            folder,
            database: self.kept.rows.database.clone(),
            replica: self.listeners.database_replica.clone(),
            listen: self.listeners.listen,
            tcp: self.listeners.tcp,
            serving: self.encryption.serving(),
            rules: SegmentRules::default(),
            egress: self.webhooks.egress(),
            laboratory: Some(Arc::new(crate::laboratory::Simulator)),
            redis: self.shared()?,
            influx: self.tasks.influx.clone(),
            limits: self.tasks.limits(),
            program: program()?,
            learn_every: self.learn_every,
            retention: self.retaining.retention(),
            one_account: self.tasks.serve_one(),
            tuning: self.search.tuning(),
            images: self.tasks.images.clone(),
            clock,
        })
    }

    /// Where Redis is, if this site has one.
    fn shared(&self) -> anyhow::Result<Option<RedisAddress>> {
        Ok(self.redis.as_deref().or(self.tasks.redis()).map(RedisAddress::read).transpose()?)
    }

    fn greet(&self, running: &Running, data: &Path, url: &str) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "ERA is up at {url}")?;
        if let Some(tcp) = running.tcp {
            writeln!(out, "lines of JSON are taken at {tcp}")?;
        }
        writeln!(out, "everything is kept under {}", data.display())?;
        if let Some(database) = &self.kept.rows.database {
            writeln!(out, "rows are kept in {database}")?;
        }
        tell_of_first(&mut out, running.first.as_ref())?;
        if self.tasks.share_user() {
            let then = match self.tasks.serve_one() {
                true => "there can be one account only",
                false => "every account can read and change what all others have",
            };
            let why = match rustix::process::geteuid().is_root() {
                true => "on this system jobs see each other's files",
                false => "without root, every job runs as this user",
            };
            writeln!(out, "{why}: {then}")?;
        }
        out.flush()?;
        Ok(())
    }
}

/// The exit code of a server whose place another one has taken: to be started again, it stands by.
/// Other programs call it a failure that passes.
pub(crate) const DEPOSED: u8 = 75;

/// Whether that is why a server ended.
pub(crate) fn is_deposed(error: &anyhow::Error) -> bool {
    use boot::BootError::{Deposed, Store};
    let error = error.downcast_ref();
    matches!(error, Some(Deposed(_) | Store(StoreError::Deposed { .. })))
}

/// The account that was made at the first start of all.
fn tell_of_first(out: &mut impl Write, first: Option<&FirstAccount>) -> anyhow::Result<()> {
    let Some(first) = first else { return Ok(()) };
    writeln!(out, "account: {}", first.name)?;
    writeln!(out, "one-time password: {}", first.password)?;
    writeln!(out, "log in with `era login`, which asks for a password of your own")?;
    Ok(())
}

/// Comes back at Ctrl-C, and when a service manager asks. Whoever asks a second time does not want
/// to wait: the program then ends at once.
pub(crate) async fn told_to_stop() -> anyhow::Result<()> {
    told().await?;
    tokio::spawn(async {
        if told().await.is_ok() {
            std::process::exit(INTERRUPTED);
        }
    });
    Ok(())
}

/// The exit code of a program that was interrupted, as shells have it.
const INTERRUPTED: i32 = 130;

async fn told() -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::{CommandFactory, Parser};
    use era_cloud::simulated::EXAMPLE;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        up: Up,
    }

    fn settings(words: &[&str]) -> ServerOptions {
        let line = Line::try_parse_from([&["up"], words].concat()).unwrap();
        line.up.settings("data".into(), crate::clock::machine()).unwrap()
    }

    #[test]
    fn a_bad_file_of_nodes_is_bad_input_and_shows_what_a_good_one_looks_like() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes.yaml");
        let refused = || {
            let line = Line::try_parse_from(["up", "--nodes", file.to_str().unwrap()]).unwrap();
            let error = anyhow::Error::from(line.up.tasks.simulated().unwrap_err());
            (crate::cli::verdict(&error).map(|verdict| verdict.code), error.to_string())
        };
        let (code, told) = refused();
        assert!(code == Some(2) && told.contains("cannot be read"), "{told}");
        std::fs::write(&file, "- name: a\n").unwrap();
        let (code, told) = refused();
        assert!(code == Some(2) && told.contains(EXAMPLE.trim_end()), "{told}");
    }

    #[test]
    fn all_of_the_help_shows_a_file_of_nodes() {
        let help = Line::command().render_long_help().to_string();
        for line in EXAMPLE.lines() {
            assert!(help.contains(line), "{line:?} in {help}");
        }
    }

    #[test]
    fn what_is_kept_how_long_reaches_the_server() {
        assert_eq!(settings(&[]).retention, Default::default());
        let told = settings(&["--keep-outputs", "90d", "--keep-samples", "1h"]).retention;
        assert_eq!(told.outputs, Some(Duration::from_secs(90 * 86_400)));
        assert_eq!(told.samples, Some(Duration::from_secs(3600)));
        assert!(Line::try_parse_from(["up", "--keep-outputs", "59m"]).is_err());
    }
}
