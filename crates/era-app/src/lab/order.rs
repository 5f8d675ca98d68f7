//! What is asked of the laboratory, checked, as commands.

use std::ffi::OsString;

use era_api::lab::LabAsk;

use crate::wire::Wrong;

/// The journal of this site as a run reads it, in the run's folder.
pub(super) const JOURNAL_FILE: &str = "journal.ndjson";
/// The workload of a simulation, in the same folder.
pub(super) const TRACE_FILE: &str = "trace.csv";
/// Most jobs of a simulated workload.
const JOBS_MAX: u64 = 1_000_000;
/// Most GPUs that it runs on.
const GPUS_MAX: u32 = 100_000;
/// Most policies that are compared.
const POLICIES_MAX: usize = 8;
/// Most candidates of a search.
const BUDGET_MAX: u32 = 10_000;
/// Longest formula or objective.
const TEXT_MAX: usize = 2_000;

/// What makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {problem}")]
pub struct BadAsk {
    pub what: &'static str,
    pub problem: Wrong,
}

/// The commands of a run in its folder, one after the other; the last one prints the result.
pub(super) fn commands(asked: &LabAsk) -> Vec<Vec<OsString>> {
    let text = |words: &[&str]| -> Vec<OsString> { words.iter().map(OsString::from).collect() };
    // By its name alone, which is what a report says of it: where the server keeps it is its own.
    let file = |flag: &str, name: &str| OsString::from(format!("{flag}{name}"));
    match asked {
        LabAsk::Simulate { policies, jobs, gpus, load, seed } => {
            let mut generate = text(&["sim", "generate", "--kind=philly", "--json"]);
            generate.extend([
                format!("--jobs={jobs}").into(),
                format!("--gpus={gpus}").into(),
                format!("--load={load}").into(),
                format!("--seed={seed}").into(),
                file("--out=", TRACE_FILE),
            ]);
            let mut compare = text(&["sim", "compare", "--json"]);
            compare.extend([
                file("--trace=", TRACE_FILE),
                format!("--gpus={gpus}").into(),
                format!("--policies={}", policies.join(",")).into(),
                file("--report=", super::REPORT_FOLDER),
            ]);
            vec![generate, compare]
        }
        LabAsk::Replay { policy, mechanism } => {
            let mut replay = text(&["replay", "--json"]);
            replay.extend(policy.iter().map(|policy| format!("--policy={policy}").into()));
            replay.extend(mechanism.iter().map(|name| format!("--mechanism={name}").into()));
            replay.push(file("", JOURNAL_FILE));
            vec![replay]
        }
        LabAsk::Tune { objective, budget, seed } => {
            let mut tune = text(&["tune", "--json"]);
            tune.extend([
                file("--journal=", JOURNAL_FILE),
                format!("--objective={objective}").into(),
                format!("--budget={budget}").into(),
                format!("--seed={seed}").into(),
            ]);
            vec![tune]
        }
    }
}

/// Refuses what no command could do, or what would do more than was meant.
pub(super) fn check(asked: &LabAsk) -> Result<(), BadAsk> {
    match asked {
        LabAsk::Simulate { policies, jobs, gpus, load, .. } => {
            within("jobs", *jobs, JOBS_MAX)?;
            within("gpus", u64::from(*gpus), u64::from(GPUS_MAX))?;
            within("policies", policies.len() as u64, POLICIES_MAX as u64)?;
            if !(0.01..=10.0).contains(load) {
                return Err(bad("load", Wrong::Load));
            }
            for policy in policies {
                check_policy("policies", policy)?;
                if policy.contains(',') {
                    return Err(bad("policies", Wrong::Comma));
                }
            }
            Ok(())
        }
        LabAsk::Replay { policy: None, mechanism: None } => {
            Err(bad("policy", Wrong::Neither { one: "policy", other: "mechanism" }))
        }
        LabAsk::Replay { policy, mechanism } => {
            policy.iter().try_for_each(|policy| check_policy("policy", policy))?;
            mechanism.iter().try_for_each(|name| check_word("mechanism", name))
        }
        LabAsk::Tune { objective, budget, .. } => {
            within("budget", u64::from(*budget), u64::from(BUDGET_MAX))?;
            check_text("objective", objective)
        }
    }
}

/// A policy is a word or a formula; the command line would take the name of a file too.
fn check_policy(what: &'static str, policy: &str) -> Result<(), BadAsk> {
    match policy.strip_prefix("formula:") {
        Some(formula) => check_text(what, formula),
        None => check_word(what, policy),
    }
}

fn check_word(what: &'static str, word: &str) -> Result<(), BadAsk> {
    let plain = |c: u8| c.is_ascii_lowercase() || c == b'-';
    if word.is_empty() || word.len() > 40 || word.starts_with('-') || !word.bytes().all(plain) {
        return Err(bad(what, Wrong::Word));
    }
    Ok(())
}

fn check_text(what: &'static str, text: &str) -> Result<(), BadAsk> {
    if text.trim().is_empty() || text.len() > TEXT_MAX || text.chars().any(char::is_control) {
        return Err(bad(what, Wrong::Line { most: TEXT_MAX }));
    }
    Ok(())
}

fn within(what: &'static str, given: u64, most: u64) -> Result<(), BadAsk> {
    if given == 0 || given > most {
        return Err(bad(what, Wrong::Range { least: 1, most }));
    }
    Ok(())
}

fn bad(what: &'static str, problem: Wrong) -> BadAsk {
    BadAsk { what, problem }
}
