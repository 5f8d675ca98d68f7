//! A task that is looked after: how far it is, and what is to be done about it next. Decisions
//! over values; whoever asks carries them out.

use std::time::Duration;

use era_core::units::Time;
use tokio::time::Instant;

use super::instance::InstanceState;
use super::lease::{EndCause, GuardReport, LeaseOrder, LeaseTimes};
use crate::executor::{Ending, ExecutorReport, Launch};

/// The exit code of what could not be started, as shells have it.
const NOT_STARTED: i32 = 126;
/// Why a task is lost that its engine ended as it came back, or never started.
pub(super) const ENGINE_AWAY: &str = "its-engine-went-away";
/// Why a task is lost whose node has no room for it.
pub(super) const NODE_FULL: &str = "the-disk-of-its-node-is-full";
/// Why a task is lost whose node the engine does not know.
pub(super) const NODE_UNKNOWN: &str = "its-node-is-not-known";
/// Why a task is lost that was to be launched after a newer attempt of its gang.
pub(super) const SUPERSEDED: &str = "a-newer-attempt-took-its-place";
/// Why a task is lost whose secrets went with the server that began it.
pub(super) const FORGOTTEN: &str = "its-secrets-are-not-known";
/// How long an engine may be away, as it is while it is upgraded, before what was to start on it is
/// given up; and where the engine is the machine, the machine too.
pub(super) const AWAY_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 30 });
/// The exit code of what was killed.
const KILLED: i32 = 128 + 9;
/// How long a killed task may be seen to run before its instance is removed.
const KILL_PATIENCE: Duration = Duration::from_secs(8);
/// How long a node may have no room for a task.
const ROOM_PATIENCE: Duration = Duration::from_secs(60);
/// The longest time that a lease says: a guard counts in whole seconds.
const RUN_MAX_S: i64 = 10 * 365 * 86_400;

/// A task that is looked after.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) launch: Launch,
    pub(super) phase: Phase,
    /// When it is ended, whatever happens.
    pub(super) until: Time,
    /// When it is killed, once it was told to stop.
    pub(super) stop: Option<Time>,
    /// The same by no clock that can be set: a guard counts that long without a word from us.
    pub(super) stop_by: Option<Instant>,
    /// What ends it, where that is not its own doing.
    pub(super) doom: Option<Ending>,
    /// When it was killed, and whether its instance was removed since.
    pub(super) killed: Option<(Instant, bool)>,
    /// Nothing renews its lease any more: by then it is certainly gone.
    pub(super) cut_off: Option<Instant>,
    /// The engine did not answer since it was last seen to run.
    pub(super) engine_away: bool,
    /// An older attempt that a newer one waits for. Nobody is told about it.
    pub(super) stray: bool,
    /// It was to be launched once more although it is a stray: that it is gone is told.
    pub(super) asked_again: bool,
    pub(super) generation: u64,
    /// Whether its lease was said to be over.
    pub(super) said_over: bool,
    pub(super) renewed: Option<Instant>,
    /// When the order came.
    pub(super) ordered: Instant,
    /// Since when it cannot be started for what may pass.
    pub(super) trouble: Option<Instant>,
    /// When its instance was known to be there.
    pub(super) made: Option<Instant>,
}

/// How far a task is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Phase {
    /// An older attempt is not known to be gone.
    Blocked,
    /// It is being made.
    Beginning,
    /// It was made, and is not known to run.
    Waits,
    /// It runs since then.
    Runs(Time),
    /// It is over; its log is still being read.
    Ending,
    /// It is over: what is told until it is acknowledged.
    Ended(ExecutorReport),
}

/// What is to be done about a task now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Say this in its lease.
    Say(LeaseOrder),
    Kill,
    /// Remove its instance: it does not go by itself.
    Remove,
    /// It is gone: tell it, by this reason.
    Lost(&'static str),
}

impl Held {
    pub(super) fn new(launch: Launch, phase: Phase, generation: u64) -> Held {
        Held {
            until: launch.until,
            launch,
            phase,
            stop: None,
            stop_by: None,
            doom: None,
            killed: None,
            cut_off: None,
            engine_away: false,
            stray: false,
            asked_again: false,
            generation,
            said_over: false,
            renewed: None,
            ordered: Instant::now(),
            trouble: None,
            made: None,
        }
    }

    /// Whether something of it may run.
    pub(super) fn is_live(&self) -> bool {
        !matches!(self.phase, Phase::Ended(_) | Phase::Ending)
    }

    /// Whether it was seen to run.
    pub(super) fn runs(&self) -> bool {
        matches!(self.phase, Phase::Runs(_))
    }

    /// Whether a look that began then must have seen its instance.
    pub(super) fn must_be_seen(&self, begun: Instant) -> bool {
        let there = matches!(self.phase, Phase::Waits | Phase::Runs(_));
        there && self.made.is_some_and(|made| made < begun)
    }

    /// What its lease says while it may run.
    pub(super) fn word(&self, now: Time) -> LeaseOrder {
        let left_ms = self.until.since(now).ms();
        LeaseOrder::Run(u64::try_from((left_ms / 1000 + 1).clamp(0, RUN_MAX_S)).unwrap_or(0))
    }

    /// It cannot be reached: its lease is not renewed, and by then it is gone.
    pub(super) fn cut_off(&mut self, times: &LeaseTimes, instant: Instant) {
        let since = self.renewed.unwrap_or(instant).max(self.ordered);
        let lapsed = since + times.gone_after();
        let stopped = self.stop_by.map(|by| by + times.late());
        self.cut_off.get_or_insert(stopped.map_or(lapsed, |stopped| stopped.max(lapsed)));
    }

    pub(super) fn due(&self, times: &LeaseTimes, now: Time, instant: Instant) -> Option<Act> {
        if !self.is_live() || matches!(self.phase, Phase::Blocked | Phase::Beginning) {
            return None;
        }
        if let Some(gone) = self.cut_off {
            return (gone <= instant).then_some(Act::Lost("cut-off-until-its-lease-lapsed"));
        }
        if let Some((at, removed)) = self.killed {
            let late = at + KILL_PATIENCE <= instant;
            return (late && !removed).then_some(Act::Remove);
        }
        if self.until <= now || self.stop.is_some_and(|at| at <= now) {
            return Some(Act::Kill);
        }
        let every = times.renewed_every()?;
        let due = self.renewed.is_none_or(|at| at + every <= instant);
        (due && self.stop.is_none()).then(|| Act::Say(self.word(now)))
    }

    /// Whether it has waited too long for room on its node, by the engine's own words.
    pub(super) fn waits_in_vain(&self, says: &str, instant: Instant) -> bool {
        let no_room = says.contains("no suitable node") || says.contains("insufficient resources");
        no_room && instant.duration_since(self.ordered) > ROOM_PATIENCE
    }

    /// How it ended, from what the engine saw and what the guard told.
    pub(super) fn end(
        &self,
        seen: &InstanceState,
        told: Option<GuardReport>,
        at: Time,
    ) -> ExecutorReport {
        let task = self.launch.task;
        let why = told.map(|told| told.why);
        if why == Some(EndCause::Lapsed) && self.doom.is_none() {
            return ExecutorReport::Lost { task, reason: "its-lease-lapsed".into() };
        }
        // An engine that goes or comes back ends what ran: nobody but the engine was at fault.
        let forced = matches!(seen, InstanceState::Ended(code) if *code != 0)
            && matches!(why, None | Some(EndCause::Stopped));
        if self.engine_away && forced && self.doom.is_none() {
            return ExecutorReport::Lost { task, reason: ENGINE_AWAY.into() };
        }
        let (code, natural) = match seen {
            InstanceState::Ended(code) => (*code, Ending::Itself),
            InstanceState::Failed(_) => (NOT_STARTED, Ending::NotStarted),
            _ if self.doom.is_some() => (KILLED, Ending::Itself),
            _ => return ExecutorReport::Lost { task, reason: "removed-from-its-engine".into() },
        };
        let ending = match (self.doom, why) {
            (Some(doom), _) => doom,
            (None, Some(EndCause::NotStarted)) => Ending::NotStarted,
            (None, _) if code != 0 && told.is_some_and(|told| told.oom) => Ending::OutOfMemory,
            (None, Some(EndCause::Stopped)) => Ending::Stopped,
            (None, _) => natural,
        };
        ExecutorReport::Exited { task, at, code, ending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::launch;
    use era_core::units::Span;

    fn held() -> Held {
        let mut launch = launch(1, &["true"]);
        launch.until = Time::from_s(1000);
        Held::new(launch, Phase::Runs(Time(0)), 1)
    }

    fn times() -> LeaseTimes {
        LeaseTimes::within(Span::from_s(30))
    }

    fn later(s: u64) -> Instant {
        Instant::now() + Duration::from_secs(s)
    }

    #[test]
    fn a_lease_is_renewed_while_the_task_may_run_and_never_once_it_is_cut_off() {
        let mut held = held();
        let now = Time::from_s(10);
        let renew = Some(Act::Say(LeaseOrder::Run(991)));
        assert_eq!(held.due(&times(), now, Instant::now()), renew);
        held.renewed = Some(Instant::now());
        assert_eq!(held.due(&times(), now, later(1)), None);
        assert_eq!(held.due(&times(), now, later(6)), renew);
        held.cut_off(&times(), later(6));
        assert_eq!(held.due(&times(), now, later(12)), None);
        let lost = held.due(&times(), now, later(31));
        assert!(matches!(lost, Some(Act::Lost(_))), "{lost:?}");
    }

    #[test]
    fn what_was_made_while_the_engine_was_looked_at_need_not_be_seen() {
        let mut held = held();
        let begun = Instant::now();
        assert!(!held.must_be_seen(begun), "it is not known to be there");
        held.made = Some(begun + Duration::from_millis(5));
        assert!(!held.must_be_seen(begun));
        assert!(held.must_be_seen(later(1)));
        held.phase = Phase::Beginning;
        assert!(!held.must_be_seen(later(1)));
    }

    #[test]
    fn a_task_that_is_cut_off_again_is_not_gone_later_for_that() {
        let mut held = held();
        held.renewed = Some(Instant::now());
        held.cut_off(&times(), Instant::now());
        let first = held.cut_off;
        held.cut_off(&times(), later(20));
        assert_eq!(held.cut_off, first);
    }

    #[test]
    fn a_task_that_has_its_grace_is_not_gone_before_that_is_over() {
        let mut held = held();
        held.renewed = Some(Instant::now());
        held.stop_by = Some(later(100));
        held.cut_off(&times(), Instant::now());
        assert_eq!(held.due(&times(), Time::from_s(10), later(99)), None);
        let lost = held.due(&times(), Time::from_s(10), later(110));
        assert!(matches!(lost, Some(Act::Lost(_))), "{lost:?}");
    }

    #[test]
    fn time_that_is_over_kills_and_what_does_not_go_is_removed() {
        let mut held = held();
        held.renewed = Some(Instant::now());
        assert_eq!(held.due(&times(), Time::from_s(1000), Instant::now()), Some(Act::Kill));
        held.killed = Some((Instant::now(), false));
        assert_eq!(held.due(&times(), Time::from_s(1001), later(1)), None);
        assert_eq!(held.due(&times(), Time::from_s(1009), later(9)), Some(Act::Remove));
        held.killed = Some((Instant::now(), true));
        assert_eq!(held.due(&times(), Time::from_s(1009), later(9)), None);
    }

    #[test]
    fn a_stop_is_a_kill_when_its_grace_is_over_and_the_lease_then_says_nothing_else() {
        let mut held = held();
        held.stop = Some(Time::from_s(40));
        assert_eq!(held.due(&times(), Time::from_s(39), later(20)), None);
        assert_eq!(held.due(&times(), Time::from_s(40), later(20)), Some(Act::Kill));
    }

    #[test]
    fn the_engines_word_counts_and_the_guards_explains_it() {
        let held = held();
        let told = |why, oom| Some(GuardReport { why, oom });
        let ending = |seen: &InstanceState, told| match held.end(seen, told, Time(9)) {
            ExecutorReport::Exited { code, ending, .. } => (code, Some(ending)),
            _ => (0, None),
        };
        assert_eq!(ending(&InstanceState::Ended(3), None), (3, Some(Ending::Itself)));
        let oom = told(EndCause::Itself, true);
        assert_eq!(ending(&InstanceState::Ended(137), oom), (137, Some(Ending::OutOfMemory)));
        assert_eq!(ending(&InstanceState::Ended(0), oom), (0, Some(Ending::Itself)));
        let absent = told(EndCause::NotStarted, false);
        assert_eq!(ending(&InstanceState::Ended(127), absent), (127, Some(Ending::NotStarted)));
        assert_eq!(
            ending(&InstanceState::Failed("x".into()), None),
            (126, Some(Ending::NotStarted))
        );
        assert_eq!(
            ending(&InstanceState::Ended(143), told(EndCause::Lapsed, false)).1,
            None,
            "it is lost"
        );
        assert_eq!(ending(&InstanceState::Removed, None).1, None, "it is lost");
    }

    #[test]
    fn what_an_engine_ended_as_it_came_back_is_lost_and_not_failed() {
        let mut held = held();
        let itself = Some(GuardReport { why: EndCause::Itself, oom: false });
        let is_lost = |report: ExecutorReport| matches!(report, ExecutorReport::Lost { .. });
        assert!(!is_lost(held.end(&InstanceState::Ended(137), None, Time(9))));
        held.engine_away = true;
        assert!(is_lost(held.end(&InstanceState::Ended(137), None, Time(9))));
        assert!(!is_lost(held.end(&InstanceState::Ended(0), None, Time(9))), "it was done");
        assert!(!is_lost(held.end(&InstanceState::Ended(3), itself, Time(9))), "its guard tells");
        held.doom = Some(Ending::Stopped);
        assert!(
            !is_lost(held.end(&InstanceState::Ended(137), None, Time(9))),
            "it was told to stop"
        );
    }
}
