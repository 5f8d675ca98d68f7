//! The laboratory that the server's reports ask: the same journal as it was, and first come first
//! served and on demand.

use std::path::Path;

use era_core::State;
use era_core::job::Outcome;
use era_core::market::MechanismChoice;
use era_core::queue::PolicyRule;
use era_core::units::{Name, Time};
use era_server::report::{Counterfactual, Laboratory, Replays};
use era_sim::journal::Reader;
use era_sim::replay::{Ask, Book, History, Rules, Story, learn, rerun};

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
        let rules = Rules {
            policy: Some(PolicyRule::Fifo),
            mechanism: Some(MechanismChoice::named(&on_demand).map_err(|e| e.to_string())?),
            ..Rules::default()
        };
        Ok(Replays { with: period.under(&Rules::default())?, without: period.under(&rules)? })
    }
}

/// A period of a journal, to be replayed under other rules.
struct Excerpt<'a> {
    history: &'a History,
    /// What was there before the asks.
    state: &'a State,
    asks: &'a [Ask],
    from: Time,
    to: Time,
}

impl Excerpt<'_> {
    fn under(&self, rules: &Rules) -> Result<Counterfactual, String> {
        let Excerpt { history, state, asks, from, to } = *self;
        let again = rerun(history, state, asks, rules, &|_| ()).map_err(|e| e.to_string())?;
        let mut found = figures(&again.book, from, to);
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

fn within(book: &Book, from: Time, to: Time) -> impl Iterator<Item = &Story> {
    book.stories.values().filter(move |story| story.submitted >= from && story.submitted < to)
}

fn figures(book: &Book, from: Time, to: Time) -> Counterfactual {
    let mut found = Counterfactual::default();
    let mut wait_ms: i128 = 0;
    for story in within(book, from, to) {
        found.jobs += 1;
        if let Some(model) = &story.model {
            let (paid, gpu_ms) = found.by_model.entry(model.to_string()).or_default();
            *paid += story.paid.0;
            *gpu_ms += story.had;
        }
        if let Some(wait) = story.wait() {
            found.started += 1;
            wait_ms += i128::from(wait.0);
        }
        if let (Some(_), Some((_, outcome))) = (story.started, &story.ended) {
            let gave_up = matches!(outcome, Outcome::Cancelled | Outcome::Released);
            found.runs += u64::from(!gave_up);
            found.runs_ok += u64::from(*outcome == Outcome::Succeeded);
        }
    }
    found.wait_s = (found.started > 0).then(|| wait_ms as f64 / 1000.0 / found.started as f64);
    found
}
