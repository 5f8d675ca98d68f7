//! One task as its supervisor knows it: what it was told, how far it is, and what will have ended
//! it. Decisions only; nothing here touches a process.

use std::time::{Duration, Instant};

use era_core::units::{Span, Time};

use crate::executor::{Ending, ExecutorReport, Launch};
use crate::scalars::Scalars;
use crate::usage::Idle;

/// "Without end" for a clock that can only count so far.
const FAR: Duration = Duration::from_secs(10 * 365 * 86_400);

/// One task.
#[derive(Debug)]
pub(super) struct KeptTask {
    pub(super) launch: Launch,
    /// When it is killed: at the end of its time, or of its grace. By the steady clock: a wall
    /// clock that steps back must not prolong it.
    pub(super) until: Instant,
    /// When its time is over, be that a lease or a limit.
    lasts: Instant,
    /// When its grace is over, once it was told to stop.
    stop: Option<Instant>,
    /// Its keeper, once it has one.
    pub(super) keeper: Option<u64>,
    /// When its first instruction was, and how long it was prepared.
    pub(super) started: Option<(Time, Span)>,
    /// Why it is being ended.
    pub(super) doom: Option<Ending>,
    pub(super) killed: Option<Instant>,
    /// How often its slot had run out of memory before.
    pub(super) oom_kills_before: u64,
    /// When its disk use is looked at again; `None` while it is being looked at.
    pub(super) disk_due: Option<Instant>,
    /// What it had on disk when that was last looked at, and how much more than the time before.
    pub(super) disk: Option<(u64, u64)>,
    /// What it writes for TensorBoard, once it has a keeper.
    pub(super) scalars: Option<Scalars>,
    /// Since when its GPUs are idle.
    pub(super) idle: Idle,
    /// How often its use was sampled.
    pub(super) samples: u64,
    /// The newest checkpoint that it told.
    pub(super) checkpoint: Option<Span>,
}

/// An instant of the wall clock on the steady one.
pub(super) fn steady(until: Time, now: Time, instant: Instant) -> Instant {
    let left = u64::try_from(until.since(now).ms()).unwrap_or(0);
    instant + Duration::from_millis(left).min(FAR)
}

impl KeptTask {
    pub(super) fn new(launch: Launch, now: Time, instant: Instant) -> KeptTask {
        let lasts = steady(launch.until, now, instant);
        KeptTask {
            until: lasts,
            lasts,
            stop: None,
            launch,
            keeper: None,
            started: None,
            doom: None,
            killed: None,
            oom_kills_before: 0,
            disk_due: None,
            disk: None,
            scalars: None,
            idle: Idle::default(),
            samples: 0,
            checkpoint: None,
        }
    }

    /// The task's reports so far. They are sent again when a client connects, when the same order
    /// is repeated, and with the task's end.
    pub(super) fn so_far(&self) -> Vec<ExecutorReport> {
        let task = self.launch.task;
        let started = |(at, prepared)| ExecutorReport::Started { task, at, prepared };
        let saved = |done| ExecutorReport::Checkpointed { task, done };
        self.started.map(started).into_iter().chain(self.checkpoint.map(saved)).collect()
    }

    /// It was told to stop, and is killed at `until`. A later word does not give it more time.
    pub(super) fn stop(&mut self, until: Instant) {
        self.doom.get_or_insert(Ending::Stopped);
        self.stop = Some(self.stop.map_or(until, |before| before.min(until)));
        self.count();
    }

    /// Its time is over later than it was told, or at the latest when its grace is.
    pub(super) fn prolong(&mut self, until: Instant) {
        self.lasts = until;
        self.count();
    }

    fn count(&mut self) {
        // Once it was killed another clock runs.
        if self.killed.is_none() {
            self.until = self.stop.map_or(self.lasts, |stop| stop.min(self.lasts));
        }
    }

    /// Its time is over: it is to be killed.
    pub(super) fn is_due(&self, instant: Instant) -> bool {
        self.killed.is_none() && self.until <= instant
    }

    /// What it says at its end, whose exit code is known.
    pub(super) fn end(&self, at: Time, code: i32, out_of_memory: bool) -> ExecutorReport {
        let ending = match self.doom {
            Some(doom) => doom,
            None if out_of_memory && code != 0 => Ending::OutOfMemory,
            None => Ending::Itself,
        };
        ExecutorReport::Exited { task: self.launch.task, at, code, ending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::{instant, launch};

    fn task() -> KeptTask {
        KeptTask::new(launch(1, &["true"]), Time(0), instant())
    }

    fn ending(task: &KeptTask, code: i32, out_of_memory: bool) -> Ending {
        match task.end(Time(1), code, out_of_memory) {
            ExecutorReport::Exited { ending, .. } => ending,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn out_of_memory_is_told_apart_from_failure() {
        assert_eq!(ending(&task(), 137, true), Ending::OutOfMemory);
        assert_eq!(ending(&task(), 137, false), Ending::Itself);
        // A child was killed, and the task coped.
        assert_eq!(ending(&task(), 0, true), Ending::Itself);
    }

    #[test]
    fn who_was_told_to_stop_has_stopped_whatever_the_code() {
        let mut task = task();
        task.stop(instant());
        assert_eq!(ending(&task, 0, false), Ending::Stopped);
        assert_eq!(ending(&task, 143, true), Ending::Stopped);
    }

    #[test]
    fn a_stop_never_gives_more_time_and_nothing_prolongs_it() {
        let (mut task, now) = (task(), instant());
        let s = |s: u64| now + Duration::from_secs(s);
        task.prolong(s(5));
        task.stop(s(60));
        assert_eq!(task.until, s(5));
        task.stop(s(90));
        task.prolong(s(600));
        assert_eq!(task.until, s(60));
        task.killed = Some(now);
        task.until = s(1);
        task.prolong(s(600));
        assert_eq!(task.until, s(1));
    }

    #[test]
    fn a_lease_that_is_renewed_while_a_task_stops_leaves_it_its_whole_grace() {
        let (mut task, now) = (task(), instant());
        let s = |s: u64| now + Duration::from_secs(s);
        task.prolong(s(5));
        task.stop(s(30));
        for renewed in [15, 25, 35] {
            task.prolong(s(renewed));
            assert_eq!(task.until, s(renewed.min(30)));
        }
        assert!(task.is_due(s(30)) && !task.is_due(s(29)));
    }

    #[test]
    fn without_end_is_far_away_and_the_past_is_now() {
        let now = instant();
        assert_eq!(steady(Time::MAX, Time(0), now), now + FAR);
        assert_eq!(steady(Time(0), Time(9), now), now);
        assert_eq!(steady(Time(1009), Time(9), now), now + Duration::from_secs(1));
    }
}
