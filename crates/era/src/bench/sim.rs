//! `era bench sim`: whole traces through the core, on one thread each.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use era_core::placement::Scorer;
use era_core::settings::Backfill;
use era_sim::measure::{Measures, measure};
use era_sim::run::{Estimates, Like, Machines, Ratios, Setup, policy_named, run};
use era_sim::trace::{self, Trace};
use era_sim::workload::{PhillySpec, philly, philly_names};
use serde_json::{Map, Value, json};

use super::{cores, print, resident_mb};

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
        estimates: Estimates::Bucket,
        scorer: Scorer::Consolidate,
        preempt: policy == "las",
        ageing: true,
        like: Like::Era,
        ratios: Ratios::default(),
    })
}

fn timed(trace: &Trace, setup: &Setup) -> Result<(f64, Measures)> {
    let start = Instant::now();
    let ran = run(trace, setup, &|_| ())?;
    let wall_s = start.elapsed().as_secs_f64();
    Ok((wall_s, measure(trace, setup, &ran)))
}

/// What is measured: name, policy, backfill, whether on the generated million.
const RUNS: [(&str, &str, Backfill, bool); 4] = [
    ("philly_fifo", "fifo", Backfill::None, false),
    ("philly_easy", "fifo", Backfill::Easy, false),
    ("philly_las", "las", Backfill::None, false),
    ("million_easy", "fifo", Backfill::Easy, true),
];

pub(super) fn bench(json: bool, seed: u64, only: Option<&str>, jobs: u64) -> Result<()> {
    if let Some(only) = only.filter(|only| !RUNS.iter().any(|(name, ..)| name == only)) {
        bail!("no run `{only}`: give {}", RUNS.map(|(name, ..)| name).join(", "));
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
    report.insert("cores".into(), json!(cores()));
    report.insert("seed".into(), json!(seed));
    print(&Value::Object(report), json);
    Ok(())
}
