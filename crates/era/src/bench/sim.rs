//! `era bench sim`: whole traces through the core, on one thread each.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use era_core::market::{MarketRules, MechanismChoice};
use era_core::placement::Scorer;
use era_core::settings::Backfill;
use era_core::units::{Span, Time};
use era_sim::market::bound::Bound;
use era_sim::market::stream::{Assume, BidStream, MarketCluster, of_trace};
use era_sim::market::{ForecastLearner, LearningSchedule, MarketExperiment, MarketSetup, TrueAt};
use era_sim::measure::{RunFigures, measure};
use era_sim::run::{Like, Machines, Setup, StatedDurations, UtilisationWeights, policy_named, run};
use era_sim::trace::{self, Trace};
use era_sim::workload::{PhillySpec, philly, philly_names};
use serde_json::{Map, Value, json};

use super::{cores, print, resident_mb};
use crate::clock::instant;

/// The trace of a real cluster that stands beside the project.
fn philly_trace() -> Result<Option<Trace>> {
    let root = std::env::var_os("ERA_SHARED").map_or_else(|| "../shared".into(), PathBuf::from);
    let path = root.join("traces/philly.csv.gz");
    if !path.exists() {
        return Ok(None);
    }
    Ok(Some(trace::read(&path, None)?))
}

/// A generated workload.
fn generated(jobs: u64, gpus: u32, seed: u64) -> Result<Trace> {
    let (users, groups) = philly_names();
    let spec = PhillySpec { seed, jobs, gpus, load_milli: 900 };
    let jobs = philly(spec)?.collect();
    Ok(Trace { jobs, users, groups, ..Trace::default() })
}

fn setup(gpus: u32, policy: &str, backfill: Backfill) -> Result<Setup> {
    Ok(Setup {
        machines: Machines::nodes(gpus, 8)?,
        policy: policy_named(policy)?,
        backfill,
        estimates: StatedDurations::Bucket,
        scorer: Scorer::Consolidate,
        preempt: policy == "las",
        ageing: true,
        like: Like::Era,
        ratios: UtilisationWeights::default(),
    })
}

fn timed(trace: &Trace, setup: &Setup) -> Result<(f64, RunFigures)> {
    let start = instant();
    let ran = run(trace, setup, &|_| ())?;
    let wall_s = start.elapsed().as_secs_f64();
    Ok((wall_s, measure(trace, setup, &ran)))
}

/// Every job as a bid, with a forecast that is learned from what was bid before, once a day.
fn market(trace: &Trace) -> Result<Value> {
    let site = MarketCluster::Gpus { total: 2_816, per_node: 8 };
    let BidStream { bids: stream, never_fit } = of_trace(trace, site, &Assume::default(), Time(0))?;
    let (slot, horizon) = (Span::from_min(1), Span::from_days(30));
    // How much of the bound is attained is not asked here.
    let bound = Bound { value: 0, asked: 0, jobs: stream.len(), slot };
    let past = Vec::new();
    let contest =
        MarketExperiment { site, past, from: Time(0), stream, slot, horizon, bound, never_fit };
    let lessons = LearningSchedule {
        learner: ForecastLearner::Relaxation,
        every: Span::from_days(1),
        true_at: TrueAt::Publication,
        slot: Span::from_h(1),
        cycle: Span::from_days(7),
        memory: Span::from_days(28),
        grows: true,
    };
    let rules = MarketRules { mechanism: MechanismChoice::BasicEcon, ..MarketRules::default() };
    let outcome = contest.run(&MarketSetup { rules, lessons, fill: false }, |_, _| ())?;
    Ok(json!({
        "wall_s": (outcome.wall_s * 1e3).round() / 1e3,
        "jobs_per_second": (outcome.jobs as f64 / outcome.wall_s).round(),
        "jobs": outcome.jobs,
        "accepted": outcome.accepted,
        "promises_broken": outcome.promises_broken,
        "resident_mb": resident_mb(),
    }))
}

/// What is measured beside them: every job of the trace as a bid.
const MARKET: &str = "philly_market";

/// What is measured: name, policy, backfill, whether on the generated million.
const RUNS: [(&str, &str, Backfill, bool); 4] = [
    ("philly_fifo", "fifo", Backfill::None, false),
    ("philly_easy", "fifo", Backfill::Easy, false),
    ("philly_las", "las", Backfill::None, false),
    ("million_easy", "fifo", Backfill::Easy, true),
];

pub(super) fn bench(json: bool, seed: u64, only: Option<&str>, jobs: u64) -> Result<()> {
    let known = |only: &&str| *only == MARKET || RUNS.iter().any(|(name, ..)| name == only);
    if let Some(only) = only.filter(|only| !known(only)) {
        bail!("no run `{only}`: give {}, {MARKET}", RUNS.map(|(name, ..)| name).join(", "));
    }
    let recorded = philly_trace()?;
    let mut report = Map::new();
    for (name, policy, backfill, million) in RUNS {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let (trace, gpus) = match (&recorded, million) {
            (_, true) => (&generated(jobs, 8_000, seed)?, 8_000),
            (Some(trace), false) => (trace, 2_816),
            (None, false) => continue,
        };
        let (wall_s, measures) = timed(trace, &setup(gpus, policy, backfill)?)
            .with_context(|| format!("measuring {name}"))?;
        report.insert(
            name.to_owned(),
            json!({
                "wall_s": (wall_s * 1e3).round() / 1e3,
                "jobs_per_second": (trace.jobs.len() as f64 / wall_s).round(),
                "jobs": measures.jobs,
                "mean_wait_s": measures.mean_wait_s.round(),
                "utilisation": (measures.utilisation * 1e4).round() / 1e4,
                "resident_mb": resident_mb(),
            }),
        );
    }
    if let Some(trace) = recorded.filter(|_| only.is_none_or(|only| only == MARKET)) {
        report.insert(MARKET.to_owned(), market(&trace)?);
    }
    report.insert("cores".into(), json!(cores()));
    report.insert("seed".into(), json!(seed));
    print(&Value::Object(report), json);
    Ok(())
}
