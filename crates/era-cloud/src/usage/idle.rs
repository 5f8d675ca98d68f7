//! When GPUs count as idle for long. A decision over values; nothing is read here.

use era_core::units::{Span, Time};

use super::GpuUse;

/// What counts as idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdleRule {
    /// A GPU that is busy for less than this part of the time does nothing.
    pub busy_below: f64,
    /// For how long none of them must have done anything.
    pub after: Span,
}

impl Default for IdleRule {
    fn default() -> IdleRule {
        IdleRule { busy_below: 0.02, after: Span::from_min(15) }
    }
}

/// What is remembered of a task's GPUs between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    since: Option<Time>,
    told: bool,
}

impl Idle {
    /// Whether it is to be told now that a task's GPUs have been idle for long, and what to
    /// remember. It is told once for each stretch. A GPU of which nothing is known counts as busy:
    /// nobody loses one by a guess.
    #[must_use]
    pub fn look(self, gpus: &[GpuUse], at: Time, rule: IdleRule) -> (Idle, bool) {
        let is_idle = |gpu: &GpuUse| gpu.busy.is_some_and(|busy| busy < rule.busy_below);
        if gpus.is_empty() || !gpus.iter().all(is_idle) {
            return (Idle::default(), false);
        }
        let since = self.since.unwrap_or(at);
        let tell = !self.told && at.since(since) >= rule.after;
        (Idle { since: Some(since), told: self.told || tell }, tell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_at(looks: &[(i64, &[Option<f64>])]) -> Vec<i64> {
        let rule = IdleRule { busy_below: 0.05, after: Span::from_min(10) };
        let mut idle = Idle::default();
        let mut told = Vec::new();
        for (minute, busy) in looks {
            let gpus: Vec<GpuUse> = (0..)
                .zip(*busy)
                .map(|(gpu, busy)| GpuUse { gpu, busy: *busy, memory_bytes: None })
                .collect();
            let (next, tell) = idle.look(&gpus, Time::from_s(minute * 60), rule);
            idle = next;
            told.extend(tell.then_some(*minute));
        }
        told
    }

    const IDLE: &[Option<f64>] = &[Some(0.0), Some(0.04)];
    const BUSY: &[Option<f64>] = &[Some(0.0), Some(0.9)];

    #[test]
    fn it_is_told_once_when_all_gpus_did_nothing_for_long() {
        assert_eq!(told_at(&[(0, IDLE), (5, IDLE), (9, IDLE), (10, IDLE), (30, IDLE)]), [10]);
    }

    #[test]
    fn one_that_works_is_enough_to_begin_anew() {
        assert_eq!(told_at(&[(0, IDLE), (8, BUSY), (12, IDLE), (20, IDLE), (22, IDLE)]), [22]);
        assert_eq!(told_at(&[(0, IDLE), (10, IDLE), (11, BUSY), (12, IDLE), (22, IDLE)]), [10, 22]);
    }

    #[test]
    fn what_is_not_known_is_not_idle() {
        assert!(told_at(&[(0, &[None]), (60, &[None])]).is_empty());
        assert!(told_at(&[(0, &[]), (60, &[])]).is_empty());
    }
}
