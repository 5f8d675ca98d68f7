//! The first job of a new platform: a small real training, from its price to its outputs.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use era_api::job::{Ask, JobSpec, Work};
use era_api::quote::{QuoteAsk, ValueSpec};
use era_app::submit::{Owner, submit};
use era_app::wire;
use era_core::job::Outcome;
use era_core::units::{JobId, Time};
use era_server::boot::Running;
use era_spec::when;
use era_store::samples::SeriesAsk;
use jiff::Zoned;

use crate::cli::clock;
use crate::cli::look::stamps;

/// What is run.
const SCRIPT: &str = include_str!("train.py");
/// How long this machine may take to join, and the job to end.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many losses it tells.
const STEPS: usize = 60;
/// How wide the loss curve is drawn.
const CURVE_WIDTH: usize = 60;

/// Quotes, submits, runs and tells.
pub(super) async fn run(running: &Running, data: &Path) -> anyhow::Result<()> {
    let app = &running.app;
    let directory = app.auth.directory();
    let Some(user) = directory.users().next() else { bail!("there is no account to try with") };
    let owner =
        Owner { user: user.id, name: user.name.clone(), group: directory.group_name(user.group) };
    tokio::time::timeout(PATIENCE, joined(running)).await.context("this machine did not join")?;
    let ask = ask();
    let asked = QuoteAsk { ask: Some(ask.clone()), ..QuoteAsk::default() };
    let snapshot = app.driver.snapshot();
    let now = app.clock.now().max(snapshot.now());
    let bid = wire::bid(owner.user, &asked)?;
    let here = clock::now();
    let quote = era_core::quote(&snapshot, &bid, now).map_err(|declined| {
        let why = stamps::local(&declined.refusal.to_string(), &here);
        anyhow::anyhow!("the bid was refused: {why}")
    })?;
    let mut out = std::io::stdout();
    writeln!(out, "\na small training: one core, 256 MiB, at most a minute")?;
    writeln!(out, "  price  {} credits", quote.price)?;
    writeln!(out, "  slot   {}", slot(quote.start, quote.finish, &here))?;
    let price = wire::credits(quote.price);
    let job = JobSpec {
        name: Some("first-training".to_owned()),
        work: Work {
            command: ["python3", "-c", SCRIPT].map(str::to_owned).to_vec(),
            ..Work::default()
        },
        value: Some(ValueSpec::Flat(era_api::Credits(price.0.saturating_mul(2).max(1_000_000)))),
        ask,
        ..JobSpec::default()
    };
    let submitted = submit(app, &owner, job, None, None).await?;
    writeln!(out, "  job    {}", submitted.job)?;
    let outcome = tokio::time::timeout(PATIENCE, ended(running, JobId(submitted.job)))
        .await
        .context("the job did not end in time")?;
    let folder = JobId(submitted.job).folder(data);
    if outcome != Outcome::Succeeded {
        bail!("the job did not succeed ({outcome:?}): its log is under {}", folder.display());
    }
    let losses = losses(running, JobId(submitted.job)).await?;
    writeln!(out, "\n{}", curve(&losses))?;
    let spent = app.driver.snapshot();
    let balance = spent.ledger().balance(era_core::ledger::Account::Wallet(owner.user));
    writeln!(out, "settled: {balance} credits are left in the wallet of {}", owner.name)?;
    let outputs = folder.join("outputs");
    let model = outputs.join("model.json");
    anyhow::ensure!(model.is_file(), "the job left no model in {}", outputs.display());
    writeln!(out, "outputs: {}", model.display())?;
    Ok(())
}

/// From when to when, as somebody at `now` says it.
fn slot(start: Time, finish: Time, now: &Zoned) -> String {
    let [start, finish] = [start, finish].map(|at| when::show(wire::stamp(at), now));
    format!("{start} to {finish}")
}

fn ask() -> Ask {
    Ask {
        resources: [("cpu".to_owned(), "1".into()), ("memory".to_owned(), "256Mi".into())].into(),
        duration_s: Some(60),
        ..Ask::default()
    }
}

/// Waits until a node is there.
async fn joined(running: &Running) {
    let mut committed = running.app.driver.committed();
    while running.app.driver.snapshot().cluster().is_empty() {
        if committed.changed().await.is_err() {
            return;
        }
    }
}

/// Waits until a job is over.
async fn ended(running: &Running, job: JobId) -> Outcome {
    let mut committed = running.app.driver.committed();
    loop {
        let snapshot = running.app.driver.snapshot();
        match snapshot.job(job) {
            Ok(job) => {
                if let Some(ended) = &job.ended {
                    return ended.outcome.clone();
                }
            }
            Err(refusal) => return Outcome::Broken { reason: refusal.to_string() },
        }
        if committed.changed().await.is_err() {
            return Outcome::Broken { reason: "the scheduler has stopped".to_owned() };
        }
    }
}

/// The losses that the job told, in order.
async fn losses(running: &Running, job: JobId) -> anyhow::Result<Vec<f64>> {
    // Values are gathered for a moment before they are recorded.
    let ask = SeriesAsk { names: vec!["loss".to_owned()], ..SeriesAsk::default() };
    let mut losses = Vec::new();
    for _ in 0..40 {
        let lines = running.app.store.samples().lines(job, &ask, STEPS).await?;
        losses = lines.iter().flat_map(|line| &line.points).map(|point| point.value).collect();
        if losses.len() >= STEPS {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(losses)
}

/// A curve as text: one line a step of the sample, longer for more.
fn curve(losses: &[f64]) -> String {
    let most = losses.iter().copied().fold(0.0_f64, f64::max);
    let mut text = String::from("loss");
    let every = losses.len().div_ceil(12).max(1);
    for (index, loss) in losses.iter().enumerate() {
        if index % every != 0 && index + 1 != losses.len() {
            continue;
        }
        let share = if most > 0.0 { (loss / most).clamp(0.0, 1.0) } else { 0.0 };
        // Between 0 and the width, as the share is between 0 and 1.
        let bar = "█".repeat((share * CURVE_WIDTH as f64).round() as usize);
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  step {:>3}  {loss:.4}  {bar}", index + 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_is_told_in_the_readers_zone() {
        let now = "2027-01-15T16:00:00+08:00[Asia/Shanghai]".parse().unwrap();
        let told = slot(Time(1_800_000_000_000), Time(1_800_000_060_000), &now);
        assert_eq!(told, "today 16:00 to today 16:01");
    }
}
