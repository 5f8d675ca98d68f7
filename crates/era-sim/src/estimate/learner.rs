//! Who learns: collects what ended, and publishes anew when there is enough that is new.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::estimate::feature::{Feature, Features};
use era_core::estimate::forest::Forest;
use era_core::estimate::history::log2_s;
use era_core::estimate::{DurationForests, Estimates};
use era_core::outlook::Prediction;
use era_core::queue::fixed::SCALE;
use era_core::resources::{PerResource, Resource};
use era_core::units::{Milli, Span};

use super::boost::{Boost, Loss};
use super::distribution::{DurationKnowledge, classes};
use super::table::{Cut, Table};

/// How a learner learns.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnerSettings {
    /// Least ended jobs to learn from.
    pub least: usize,
    /// Only so many are learned from, the newest.
    pub most: usize,
    /// How often at most, in seconds, unless half as many again have ended.
    pub every_s: i64,
    /// Whether what owners state may be asked for. Where limits were made out of durations it
    /// must not be, for it would tell what is to be predicted.
    pub stated: bool,
    /// How trees are grown.
    pub boost: Boost,
    /// And those that say what is used: habits of owners have little in common, so trees are deeper,
    /// and chance is large, so leaves are.
    pub boost_of_use: Boost,
}

impl Default for LearnerSettings {
    fn default() -> LearnerSettings {
        LearnerSettings {
            least: 50,
            most: 20_000,
            every_s: 86_400,
            stated: false,
            boost: Boost::default(),
            boost_of_use: Boost {
                trees: 100,
                depth: 7,
                rate: 0.15,
                least: 10,
                rows: 0.8,
                columns: 0.7,
                ..Boost::default()
            },
        }
    }
}

/// A job as it was when it was submitted.
struct Submitted {
    features: Features,
    predicted: Option<Span>,
    /// The low and the high prediction, before they were widened.
    bounds: Option<[f64; 2]>,
}

struct EndedJob {
    job: Submitted,
    took: Span,
    /// What it used of what it asked for, where that was measured.
    used: PerResource<Option<Milli>>,
}

/// The shares of jobs that the low and the high forest are to stay above.
const BOUNDS: [f64; 2] = [0.1, 0.9];
/// How many of the newest predictions say by how much the next ones are to be widened.
const JUDGED: usize = 2_000;

/// Collects what ended, and learns.
pub struct EstimateLearner {
    settings: LearnerSettings,
    /// By a number of the caller's.
    open: BTreeMap<usize, Submitted>,
    ended: Vec<EndedJob>,
    /// How many had ended, and when, the last time.
    learned_from: usize,
    learned_at_s: i64,
    /// What is added to the low and to the high forest: habits change, so both are too sure of
    /// themselves.
    widened: [f64; 2],
    published: Option<Arc<Estimates>>,
}

impl EstimateLearner {
    /// One that knows nothing yet.
    pub fn new(settings: LearnerSettings) -> EstimateLearner {
        EstimateLearner {
            settings,
            open: BTreeMap::new(),
            ended: Vec::new(),
            learned_from: 0,
            learned_at_s: i64::MIN / 2,
            widened: [0.0; 2],
            published: None,
        }
    }

    /// What was published last.
    pub fn published(&self) -> Option<&Arc<Estimates>> {
        self.published.as_ref()
    }

    /// A job was submitted, and this was predicted of it.
    pub fn submitted(&mut self, job: usize, features: Features, said: Option<&Prediction>) {
        let bounds =
            said.map(|said| [log2(said.low) - self.widened[0], log2(said.high) - self.widened[1]]);
        let predicted = said.map(|said| said.middle);
        self.open.insert(job, Submitted { features, predicted, bounds });
    }

    /// A job ended, after so long, having used so much of what it asked for.
    pub fn ended(&mut self, job: usize, took: Span, used: PerResource<Option<Milli>>) {
        if let Some(job) = self.open.remove(&job) {
            self.ended.push(EndedJob { job, took, used });
        }
    }

    /// A job will never end as jobs do: nothing is to be learned from it.
    pub fn gave_up(&mut self, job: usize) {
        self.open.remove(&job);
    }

    /// What to publish now, if it is time. `ran` says how long an open job has run.
    pub fn publish(&mut self, now_s: i64, ran: impl Fn(usize) -> Span) -> Option<Arc<Estimates>> {
        let (count, before) = (self.ended.len(), self.learned_from);
        let a_day = now_s - self.learned_at_s >= self.settings.every_s;
        let enough = if a_day { before + before / 10 } else { before + before / 2 };
        if count < self.settings.least.max(enough) || count == before {
            return None;
        }
        self.learn_now(now_s, ran)
    }

    /// What to publish now, whether or not it is time: all that is known, if that is enough.
    pub fn learn_now(&mut self, now_s: i64, ran: impl Fn(usize) -> Span) -> Option<Arc<Estimates>> {
        if self.ended.len() < self.settings.least {
            return None;
        }
        (self.learned_from, self.learned_at_s) = (self.ended.len(), now_s);
        self.widened = self.missed();
        let estimates = Arc::new(self.learn(ran));
        self.published = Some(estimates.clone());
        Some(estimates)
    }

    fn learn(&self, ran: impl Fn(usize) -> Span) -> Estimates {
        let newest = &self.ended[self.ended.len().saturating_sub(self.settings.most)..];
        let rows: Vec<&Features> = newest.iter().map(|ended| &ended.job.features).collect();
        let targets: Vec<f64> = newest.iter().map(|ended| log2(ended.took)).collect();
        let table = Table::new(&rows, self.without(), Cut::Coarse);
        let forest = |share, widened: f64| -> Forest {
            let mut grown = self.settings.boost.grow(&table, &targets, Loss::Quantile(share));
            grown.shift(widened);
            grown.freeze()
        };
        let middle = forest(0.5, 0.0);
        let [low, high] = [0, 1].map(|side| forest(BOUNDS[side], self.widened[side]));
        let seen = newest.iter().map(|ended| (ended.job.predicted, ended.took, true));
        let open = self.open.iter().map(|(job, open)| (open.predicted, ran(*job), false));
        let seen: Vec<DurationKnowledge> = seen
            .chain(open)
            .map(|(predicted, ran, ended)| DurationKnowledge { predicted, ran, ended })
            .collect();
        Estimates {
            duration: Some(DurationForests { middle, low, high }),
            used: self.learn_use(newest),
            service: classes(&seen),
            ..Estimates::default()
        }
    }

    /// What jobs use of each resource, where that was measured often enough: the mean share.
    fn learn_use(&self, newest: &[EndedJob]) -> BTreeMap<Resource, Forest> {
        let forest = |resource: Resource| {
            let share = |used: Milli| f64::from(used.0) / f64::from(Milli::ONE.0);
            let measured = |e: &'_ EndedJob| e.used[resource as usize].map(share);
            let rows: Vec<&Features> =
                newest.iter().filter(|e| measured(e).is_some()).map(|e| &e.job.features).collect();
            let targets: Vec<f64> = newest.iter().filter_map(measured).collect();
            let table = Table::new(&rows, self.without(), Cut::Fine);
            let grown = || self.settings.boost_of_use.grow(&table, &targets, Loss::Square);
            (rows.len() >= self.settings.least).then(|| (resource, grown().freeze()))
        };
        Resource::ALL.into_iter().filter_map(forest).collect()
    }

    /// What may not be asked about.
    fn without(&self) -> &'static [u8] {
        const STATED: [u8; 2] = [Feature::Stated as u8, Feature::Error as u8];
        if self.settings.stated { &[] } else { &STATED }
    }

    /// By how much the low and the high forest missed of late, where enough is known.
    fn missed(&self) -> [f64; 2] {
        let newest = &self.ended[self.ended.len().saturating_sub(JUDGED)..];
        [0, 1].map(|side| {
            let miss = |ended: &EndedJob| Some(log2(ended.took) - ended.job.bounds?[side]);
            let mut misses: Vec<f64> = newest.iter().filter_map(miss).collect();
            misses.sort_by(f64::total_cmp);
            let at = (misses.len() as f64 * BOUNDS[side]) as usize;
            if misses.len() < self.settings.least { 0.0 } else { misses[at.min(misses.len() - 1)] }
        })
    }
}

fn log2(span: Span) -> f64 {
    log2_s(span).0 as f64 / SCALE as f64
}
