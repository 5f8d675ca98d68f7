//! What goes wrong in a run: nodes that fail and come back, runs that take longer than they
//! should, limits that people guess wrongly, and submissions that come all at once.
//!
//! Everything follows from a seed, so that a run can be had again. Nodes fail until the last
//! submission and not after it: what follows is the phase in which all must come to its end. What
//! a scheduler makes of it all is not known here.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::BadInput;
use crate::seeded::Seeded;
use crate::trace::{Trace, TraceJob};

/// What goes wrong, and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// Another seed gives other faults.
    pub seed: u64,
    /// Mean time from a node's start or repair to its failure, in seconds; none fails if absent.
    pub mtbf_s: Option<i64>,
    /// Mean time to repair a node, in seconds.
    pub repair_s: i64,
    /// The share of jobs that take longer than they should.
    pub straggler_share: f64,
    /// How many times as long those take.
    pub straggler_factor: f64,
    /// Limits are off by up to this factor, up or down; 1 leaves them as they are.
    pub misjudged: f64,
    /// So many times within the trace, all submissions of an hour come at once.
    pub bursts: u32,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            seed: 1,
            mtbf_s: None,
            repair_s: 3_600,
            straggler_share: 0.0,
            straggler_factor: 2.0,
            misjudged: 1.0,
            bursts: 0,
        }
    }
}

/// How long a burst gathers what would have come later, in seconds.
const BURST_S: i64 = 3_600;

/// What each number of a seed is drawn for, so that one kind of fault does not shift another.
#[derive(Clone, Copy)]
enum Purpose {
    Nodes = 1,
    Stragglers = 2,
    Limits = 3,
    Bursts = 4,
}

impl Faults {
    /// Reads `mtbf=7d,repair=2h,seed=3,stragglers=0.05,slowdown=2,misjudged=3,bursts=4`, any part
    /// of it.
    pub fn parse(text: &str) -> Result<Faults, BadInput> {
        let bad = |problem: String| BadInput::new(problem).field("--faults");
        let mut faults = Faults::default();
        for pair in text.split(',') {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(bad(format!("give pairs such as mtbf=7d,repair=2h, not `{pair}`")));
            };
            let number = |range: std::ops::RangeInclusive<f64>| {
                let (least, most) = (*range.start(), *range.end());
                let number: Option<f64> = value.parse().ok().filter(|n| range.contains(n));
                number.ok_or_else(|| bad(format!("{key}: give {least} to {most}, not `{value}`")))
            };
            let whole = || {
                value
                    .parse::<u64>()
                    .map_err(|_| bad(format!("{key}: give a number, not `{value}`")))
            };
            let span = || span_s(value).map_err(|problem| bad(format!("{key}: {problem}")));
            match key {
                "seed" => faults.seed = whole()?,
                "mtbf" => faults.mtbf_s = Some(span()?),
                "repair" => faults.repair_s = span()?,
                "stragglers" => faults.straggler_share = number(0.0..=1.0)?,
                "slowdown" => faults.straggler_factor = number(1.0..=100.0)?,
                "misjudged" => faults.misjudged = number(1.0..=100.0)?,
                "bursts" => faults.bursts = number(0.0..=1000.0)? as u32,
                _ => {
                    let known = "seed, mtbf, repair, stragglers, slowdown, misjudged and bursts";
                    return Err(bad(format!("no fault `{key}`: there are {known}")));
                }
            }
        }
        Ok(faults)
    }

    fn draws(&self, purpose: Purpose, of: u64) -> Seeded {
        let mut mixed = Seeded::new(self.seed ^ (purpose as u64) << 56);
        Seeded::new(mixed.next() ^ of.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// How long a job of the trace runs, given its place there.
    pub fn duration_s(&self, index: usize, job: &TraceJob) -> i64 {
        let mut draws = self.draws(Purpose::Stragglers, index as u64);
        if draws.unit() < self.straggler_share {
            (job.duration_s as f64 * self.straggler_factor).round() as i64
        } else {
            job.duration_s
        }
    }

    /// The limit that is given for a job whose right limit is this, given its place in the trace.
    pub fn limit_s(&self, index: usize, limit_s: i64) -> i64 {
        if self.misjudged <= 1.0 {
            return limit_s;
        }
        let exponent = self.draws(Purpose::Limits, index as u64).unit() * 2.0 - 1.0;
        ((limit_s as f64 * self.misjudged.powf(exponent)).round() as i64).max(1)
    }

    pub fn with_bursts(&self, mut trace: Trace) -> Trace {
        let last = trace.jobs.last().map_or(0, |job| job.submit_s);
        let mut draws = self.draws(Purpose::Bursts, 0);
        for _ in 0..self.bursts {
            let from = draws.range(0, last.max(1));
            let gathered =
                trace.jobs.iter_mut().filter(|job| (from..from + BURST_S).contains(&job.submit_s));
            gathered.for_each(|job| job.submit_s = from);
        }
        trace
    }

    /// When nodes fail and come back, for so many nodes; none fails from `until_s` on.
    pub fn weather(&self, nodes: usize, until_s: i64) -> FaultSchedule {
        let mut weather = FaultSchedule { faults: *self, until_s, coming: BinaryHeap::new() };
        for node in 0..nodes {
            let draws = self.draws(Purpose::Nodes, node as u64);
            weather.fails_next(node as u32, 0, draws);
        }
        weather
    }
}

/// A node fails or comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    pub second: i64,
    pub node: u32,
    /// Whether it is there from now on.
    pub is_up: bool,
}

/// The failures and repairs to come. It keeps one of them a node.
pub struct FaultSchedule {
    faults: Faults,
    until_s: i64,
    coming: BinaryHeap<Reverse<(Change, u64)>>,
}

impl FaultSchedule {
    /// The second of the next change.
    pub fn next_second(&self) -> Option<i64> {
        self.coming.peek().map(|Reverse((change, _))| change.second)
    }

    /// Takes out the next change, if it is due by this second.
    pub fn take(&mut self, second: i64) -> Option<Change> {
        if self.next_second()? > second {
            return None;
        }
        let Reverse((change, state)) = self.coming.pop()?;
        let mut draws = Seeded::new(state);
        if change.is_up {
            self.fails_next(change.node, change.second, draws);
        } else {
            let second = change.second + exponential_s(&mut draws, self.faults.repair_s);
            let change = Change { second, is_up: true, ..change };
            self.coming.push(Reverse((change, draws.next())));
        }
        Some(change)
    }

    fn fails_next(&mut self, node: u32, from_s: i64, mut draws: Seeded) {
        let Some(mtbf_s) = self.faults.mtbf_s else { return };
        let second = from_s + exponential_s(&mut draws, mtbf_s);
        if second < self.until_s {
            let change = Change { second, node, is_up: false };
            self.coming.push(Reverse((change, draws.next())));
        }
    }
}

/// A span of at least a second with this mean, as likely to end in the next second as in any.
fn exponential_s(draws: &mut Seeded, mean_s: i64) -> i64 {
    let span = -(1.0 - draws.unit()).ln() * mean_s as f64;
    (span.round() as i64).max(1)
}

/// A span such as `90s`, `30m`, `2h` or `7d`, in seconds.
pub fn span_s(text: &str) -> Result<i64, String> {
    let problem = || format!("give a span such as 90s, 30m, 2h or 7d, not `{text}`");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_s = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(problem()),
    };
    let number: i64 = digits.parse().map_err(|_| problem())?;
    let span = number.checked_mul(unit_s).filter(|span| (1..=10_000_000_000).contains(span));
    span.ok_or_else(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(faults: &Faults, nodes: usize, until_s: i64) -> Vec<Change> {
        let mut weather = faults.weather(nodes, until_s);
        std::iter::from_fn(|| weather.take(i64::MAX)).collect()
    }

    #[test]
    fn the_same_seed_brings_the_same_weather_and_another_seed_another() {
        let faults = Faults { mtbf_s: Some(86_400), ..Faults::default() };
        let first = changes(&faults, 20, 864_000);
        assert_eq!(first, changes(&faults, 20, 864_000));
        assert_ne!(first, changes(&Faults { seed: 2, ..faults }, 20, 864_000));
    }

    #[test]
    fn a_node_fails_as_often_as_it_is_said_to() {
        let faults = Faults { mtbf_s: Some(9_000), repair_s: 1_000, ..Faults::default() };
        let changes = changes(&faults, 100, 1_000_000);
        let failures = changes.iter().filter(|change| !change.is_up).count();
        // 100 nodes that live 10,000 seconds from failure to failure: 10,000 failures.
        assert!((9_700..10_300).contains(&failures), "{failures}");
    }

    #[test]
    fn every_node_that_fails_comes_back_and_none_fails_after_the_last_submission() {
        let faults = Faults { mtbf_s: Some(5_000), repair_s: 50_000, ..Faults::default() };
        let mut up = [true; 30];
        for change in changes(&faults, 30, 100_000) {
            assert_ne!(up[change.node as usize], change.is_up, "{change:?}");
            assert!(change.is_up || change.second < 100_000, "{change:?}");
            up[change.node as usize] = change.is_up;
        }
        assert!(up.iter().all(|up| *up));
    }

    #[test]
    fn limits_are_off_both_ways_within_the_factor() {
        let faults = Faults { misjudged: 4.0, ..Faults::default() };
        let limits: Vec<i64> = (0..1000).map(|index| faults.limit_s(index, 4_000)).collect();
        assert!(limits.iter().all(|limit| (1_000..=16_000).contains(limit)));
        let low = limits.iter().filter(|limit| **limit < 4_000).count();
        assert!((400..600).contains(&low), "{low}");
    }

    #[test]
    fn a_share_of_jobs_takes_longer() {
        let faults = Faults { straggler_share: 0.1, straggler_factor: 3.0, ..Faults::default() };
        let job = TraceJob { duration_s: 100, ..TraceJob::default() };
        let slow = (0..10_000).filter(|index| faults.duration_s(*index, &job) == 300).count();
        assert!((900..1_100).contains(&slow), "{slow}");
    }

    #[test]
    fn a_burst_brings_an_hour_at_once_and_keeps_the_order() {
        let job = |submit_s| TraceJob { submit_s, duration_s: 1, ..TraceJob::default() };
        let trace = Trace { jobs: (0..500).map(|n| job(n * 60)).collect(), ..Trace::default() };
        let burst = Faults { bursts: 2, ..Faults::default() }.with_bursts(trace);
        assert!(burst.jobs.is_sorted_by_key(|job| job.submit_s));
        let most = burst.jobs.chunk_by(|a, b| a.submit_s == b.submit_s).map(<[_]>::len).max();
        assert!(most >= Some(59), "{most:?}");
    }

    #[test]
    fn what_is_no_fault_is_named() {
        let parsed = Faults::parse("mtbf=7d,repair=2h,seed=3").expect("faults");
        assert_eq!((parsed.mtbf_s, parsed.repair_s, parsed.seed), (Some(604_800), 7_200, 3));
        for (text, expected) in [
            ("mtbf", "give pairs"),
            ("mtbf=7y", "7y"),
            ("mtbf=0", "give a span"),
            ("mtbf=-5h", "give a span"),
            ("stragglers=2", "give 0 to 1"),
            ("stragglers=nan", "give 0 to 1"),
            ("weather=bad", "no fault `weather`"),
        ] {
            let problem = Faults::parse(text).expect_err(text).to_string();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
