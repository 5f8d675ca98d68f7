//! What is learned from the bids so far, and when it is published.

use era_core::forecast::history::{DemandHistory, Wanted};
use era_core::forecast::{Forecast, relaxation, spread};
use era_core::units::{Span, Time};

use super::bound;
use super::experiment::MarketExperiment;
use super::stream::TraceBid;
use crate::BadInput;

/// How a forecast is made of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForecastLearner {
    /// None is published.
    Nothing,
    /// Each request spread over its window.
    Spread,
    /// Where the best fractional schedule puts it, and what that has no room for is forgotten: as
    /// the paper has it.
    Placed,
    /// Where the best fractional schedule puts it, and what that has no room for spread over its
    /// window.
    Relaxation,
}

/// A forecast does not shrink as its demand arrives, so it can be true at one instant only of the
/// time until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrueAt {
    /// When it is published: what arrives later is expected and promised at once, which protects
    /// what is dense where demand is uncertain.
    Publication,
    /// Half-way to the next one: too low before, too high after, right in the mean.
    Middle,
}

/// When and from what to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearningSchedule {
    pub learner: ForecastLearner,
    /// How often a forecast is published.
    pub every: Span,
    /// Of which instant until the next one it is true.
    pub true_at: TrueAt,
    /// The slot of the learner.
    pub slot: Span,
    /// After how long demand repeats itself.
    pub cycle: Span,
    /// How far back history is read.
    pub memory: Span,
    /// Whether what comes from the first bid on is learned from too.
    pub grows: bool,
}

impl LearningSchedule {
    /// The forecast as of `now`, from those of `bids` that came before, refused ones included.
    pub(super) fn learn(
        &self,
        contest: &MarketExperiment,
        bids: &[TraceBid],
        now: Time,
    ) -> Result<Forecast, BadInput> {
        let start = contest.stream.first().map_or(now, |asked| asked.submitted);
        let known = if self.grows { now } else { now.min(start.floor_to(contest.slot)) };
        let since = contest.from.max(known - self.memory);
        let first = bids.partition_point(|a| a.submitted < since);
        let last = bids.partition_point(|a| a.submitted < known);
        let history = DemandHistory {
            from: since,
            to: known,
            reach: contest.horizon,
            ..bound::history(&bids[first..last], contest.site, self.slot)
        };
        let horizon = Span(contest.horizon.ms() + self.every.ms());
        let from = match self.true_at {
            TrueAt::Publication => now,
            TrueAt::Middle => now + Span(self.every.ms() / 2),
        };
        let wanted = Wanted { from, horizon, cycle: self.cycle };
        let forecast = match self.learner {
            ForecastLearner::Nothing => return Ok(Forecast::default()),
            ForecastLearner::Spread => spread::forecast(&history, &wanted),
            ForecastLearner::Placed => relaxation::forecast_of_placed(&history, &wanted),
            ForecastLearner::Relaxation => relaxation::forecast(&history, &wanted),
        };
        forecast.map_err(|e| BadInput::new(e.to_string()))
    }
}
