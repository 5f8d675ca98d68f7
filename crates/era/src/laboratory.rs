//! The laboratory that the server's reports ask: the same journal as it was, and first come first
//! served and on demand.

use std::path::Path;

use era_app::report::{Counterfactual, Laboratory, Replays};
use era_core::State;
use era_core::job::Outcome;
use era_core::market::MechanismChoice;
use era_core::queue::PolicyRule;
use era_core::units::{Name, Span, Time};
use era_sim::journal::Reader;
use era_sim::replay::{Book, RecordedHistory, RecordedInput, RuleOverrides, learn, rerun};

/// Replays on the simulator's core.
pub(crate) struct Simulator;

impl Laboratory for Simulator {
    fn replay(&self, journal: &Path, from: Time, to: Time) -> Result<Replays, String> {
        let reader = Reader::open(journal).map_err(|e| e.to_string())?;
        let (history, _) = learn(reader, &|_| ()).map_err(|e| e.to_string())?;
        let first = history.asks.partition_point(|ask| ask.at < from);
        let last = history.asks.partition_point(|ask| ask.at < to);
        let (mark, state) = history.mark_before(first);
        let period = Excerpt {
            history: &history,
            state,
            asks: &history.asks[mark..last.max(mark)],
            from,
            to,
        };
        let on_demand = Name::new("on-demand").map_err(|e| e.to_string())?;
        let rules = RuleOverrides {
            policy: Some(PolicyRule::Fifo),
            mechanism: Some(MechanismChoice::named(&on_demand).map_err(|e| e.to_string())?),
            ..RuleOverrides::default()
        };
        Ok(Replays {
            with: period.under(&RuleOverrides::default())?,
            without: period.under(&rules)?,
        })
    }
}

/// A period of a journal, to be replayed under other rules.
struct Excerpt<'a> {
    history: &'a RecordedHistory,
    /// What was there before the asks.
    state: &'a State,
    asks: &'a [RecordedInput],
    from: Time,
    to: Time,
}

impl Excerpt<'_> {
    fn under(&self, rules: &RuleOverrides) -> Result<Counterfactual, String> {
        let Excerpt { history, state, asks, from, to } = *self;
        let again = rerun(history, state, asks, rules, &|_| ()).map_err(|e| e.to_string())?;
        // What a replay makes of the time after the record has not happened: a promise for tomorrow,
        // a job that waits. The record knows nothing of it either.
        let mut found = figures(&again.book, from, to.min(history.end + Span(1)));
        found.refusals = again.refusals.iter().filter(|at| **at >= from).count() as u64;
        for stay in again.book.stays() {
            let ms = stay.to.min(to).since(stay.from.max(from)).0.max(0);
            let given = found.given.entry(stay.node).or_default();
            for (sum, units) in given.iter_mut().zip(stay.units) {
                let more = i64::try_from(units).unwrap_or(i64::MAX).saturating_mul(ms);
                *sum = sum.saturating_add(more);
            }
        }
        Ok(found)
    }
}

/// What happened in `[from, to)`: each thing counts at its own instant, as it does in the record.
fn figures(book: &Book, from: Time, to: Time) -> Counterfactual {
    let mut found = Counterfactual::default();
    let mut wait_ms: i128 = 0;
    let within = |at: Time| at >= from && at < to;
    for story in book.stories.values() {
        found.jobs += u64::from(within(story.submitted));
        if let (Some(_), Some(wait)) = (story.started.filter(|at| within(*at)), story.wait()) {
            found.started += 1;
            wait_ms += i128::from(wait.0);
        }
        let Some((_, outcome)) = story.ended.as_ref().filter(|(at, _)| within(*at)) else {
            continue;
        };
        if let Some(model) = &story.model {
            let (paid, gpu_ms) = found.by_model.entry(model.to_string()).or_default();
            *paid += story.paid.0;
            *gpu_ms += story.had;
        }
        if story.started.is_some() {
            let gave_up = matches!(outcome, Outcome::Cancelled | Outcome::Released);
            found.runs += u64::from(!gave_up);
            found.runs_ok += u64::from(*outcome == Outcome::Succeeded);
        }
    }
    found.wait_s = (found.started > 0).then(|| wait_ms as f64 / 1000.0 / found.started as f64);
    found
}

#[cfg(test)]
mod tests {
    use era_api::report::is_reproduced;
    use era_sim::replay::{SampleSpec, sample};

    use super::*;

    /// Days in which everything happens that can, looked at in part: what waits at their end, or is
    /// promised for later, has not happened.
    #[test]
    fn the_rules_in_force_replayed_come_to_what_the_record_has() {
        let folder = tempfile::tempdir().unwrap();
        for seed in 1..6 {
            let path = folder.path().join(seed.to_string());
            let mut file = std::fs::File::create(&path).unwrap();
            let spec = SampleSpec { seed, inputs: 3_000, segments: 2 };
            sample(spec, &mut file, &|_| ()).unwrap();
            let (history, _) = learn(Reader::open(&path).unwrap(), &|_| ()).unwrap();
            let begun = history.start.now();
            let from = begun + Span(history.end.since(begun).0 / 3);
            for from in [begun, from] {
                let recorded = figures(&history.book, from, history.end + Span(1));
                let found = Simulator.replay(&path, from, history.end + Span(1)).unwrap().with;
                let near = |what: &str, recorded: f64, found: f64| {
                    assert!(
                        is_reproduced(recorded, found),
                        "{what}: {recorded} {found}, seed {seed}"
                    );
                };
                near("jobs", recorded.jobs as f64, found.jobs as f64);
                near("starts", recorded.started as f64, found.started as f64);
                near("wait", recorded.wait_s.unwrap(), found.wait_s.unwrap());
                near("runs", recorded.runs as f64, found.runs as f64);
            }
        }
    }
}
