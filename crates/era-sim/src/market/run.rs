//! One stream of bids under one mechanism, from the first bid to the last exit.

use era_core::market::MarketRules;
use era_core::offer::Quote;
use era_core::settings::Settings;
use era_core::units::{Milli, Span, Time};

use super::driver::{Driver, GRACE};
use super::experiment::MarketExperiment;
use super::learn::LearningSchedule;
use super::stream::TraceBid;
use crate::BadInput;

/// How it is contested.
#[derive(Clone, Debug)]
pub struct MarketSetup {
    pub rules: MarketRules,
    pub lessons: LearningSchedule,
    /// Whether bids that are refused wait in the queue instead, preemptible, and fill the holes.
    pub fill: bool,
}

/// What a mechanism made of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct MarketOutcome {
    pub jobs: usize,
    pub accepted: usize,
    /// Their value as a share of what was asked for.
    pub value_captured: f64,
    /// Their value as a share of the bound.
    pub of_bound: f64,
    /// What was earned, in credits.
    pub revenue: f64,
    /// Promises that were kept, to the deadline.
    pub deadlines_met: u64,
    /// Promises that were not.
    pub promises_broken: u64,
    /// Share of the site in use from the first to the last submission.
    pub utilisation: f64,
    /// The part of it that is queue work in the holes between promises.
    pub filled: f64,
    /// Credits paid for a unit (or GPU) and hour that was delivered.
    pub unit_cost: f64,
    /// Real seconds that it took.
    pub wall_s: f64,
}

impl MarketExperiment {
    /// Runs the stream under a plan. `observe` is told of each bid and of the answer to it.
    #[expect(clippy::disallowed_methods, reason = "how long the run took is part of its report")]
    pub fn run(
        &self,
        plan: &MarketSetup,
        mut observe: impl FnMut(&TraceBid, Option<&Quote>),
    ) -> Result<MarketOutcome, BadInput> {
        let begun = std::time::Instant::now();
        let start = self.stream.first().map_or(Time(0), |a| a.submitted.floor_to(self.slot));
        let settings = Settings {
            slot: self.slot,
            horizon: self.horizon,
            grace: GRACE,
            run_min: Span::ZERO,
            // Nobody pays for queue work here: it changes nothing about promises.
            queue_density: Milli(0),
            remember: Span::from_s(1),
            // What fills holes starts when something happens.
            pass_every: Span::from_days(3660),
            ..Settings::default()
        };
        let mut driver = Driver::new(self.site, settings, plan.rules.clone(), start)?;
        let all: Vec<TraceBid> = self.past.iter().chain(&self.stream).copied().collect();
        let mut next_lesson = start;
        let mut tally = Tally::default();
        for asked in &self.stream {
            while next_lesson <= asked.submitted {
                driver.until(next_lesson);
                let lesson = plan.lessons.learn(self, &all, next_lesson)?;
                driver.publish(lesson)?;
                next_lesson = next_lesson + plan.lessons.every;
            }
            let quote = driver.bid(asked);
            if let Some(quote) = &quote {
                tally.accept(asked, quote.start, self.last());
            } else if plan.fill {
                driver.fill(asked, self.last());
            }
            observe(asked, quote.as_ref());
        }
        driver.finish();
        Ok(self.outcome(&tally, &driver, begun.elapsed().as_secs_f64()))
    }

    fn last(&self) -> Time {
        self.stream.last().map_or(Time(0), |a| a.submitted)
    }

    fn outcome(&self, tally: &Tally, driver: &Driver, wall_s: f64) -> MarketOutcome {
        let first = self.stream.first().map_or(Time(0), |a| a.submitted);
        let span = self.last().since(first).ms().max(1) as f64;
        let revenue = driver.revenue().0 as f64 / 1e6;
        let book = driver.book();
        MarketOutcome {
            jobs: self.stream.len(),
            accepted: tally.accepted,
            value_captured: tally.value as f64 / self.bound.asked.max(1) as f64,
            of_bound: tally.value as f64 / self.bound.value.max(1) as f64,
            revenue,
            deadlines_met: book.kept,
            promises_broken: book.broken,
            utilisation: (tally.used_within + book.filled) / (f64::from(self.site.size()) * span),
            filled: book.filled / (f64::from(self.site.size()) * span),
            unit_cost: revenue / (tally.used / 3_600_000.0).max(f64::MIN_POSITIVE),
            wall_s,
        }
    }
}

#[derive(Default)]
struct Tally {
    accepted: usize,
    value: u128,
    used: f64,
    used_within: f64,
}

impl Tally {
    fn accept(&mut self, asked: &TraceBid, start: Time, last: Time) {
        self.accepted += 1;
        self.value += u128::from(asked.value.0.unsigned_abs());
        let size = f64::from(asked.size);
        self.used += size * asked.duration.ms() as f64;
        let within = (start + asked.duration).min(last).since(start).ms().max(0);
        self.used_within += size * within as f64;
    }
}
