//! How somebody follows a journal: from where to read on, and when.
//!
//! Whoever follows takes entries in order, a batch at a time, and remembers up to where; mostly in
//! the very transaction that keeps what it made of them. So what it remembers is asked first, and
//! again whenever it may be otherwise than was thought: after a failure, of which nobody knows how
//! far it came, and when somebody else has moved the place. What entries are, and what is made of
//! them, is not known here. Instants are counted from wherever the follower likes.

use std::time::Duration;

use crate::gather::Gathering;

/// How long it is until the next look where entries that are said to be there cannot be seen yet;
/// and once that has been so for many looks, since whoever makes them visible is away.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
const PATIENT_AFTER: u32 = 100;
const PATIENT: Duration = Duration::from_millis(200);

/// How somebody follows.
#[derive(Clone, Copy, Debug)]
pub struct FollowRules {
    /// Pauses after failures in a row, the last of which is repeated.
    pub retry: &'static [Duration],
    /// How often it is looked without news, where not all of them are told; such a follower never
    /// ends by itself.
    pub unprompted: Option<Duration>,
    /// How long news may wait for more to come while nobody attends.
    pub linger: Duration,
    /// So many entries in 50 ms are a load.
    pub load: usize,
    /// How long entries are gathered under load.
    pub gather: Duration,
    /// A batch of so many needs no more, and there may be more behind it.
    pub full: u64,
}

impl FollowRules {
    /// Everything is taken as it comes, and a failure is tried again after this.
    pub const fn at_once(retry: &'static [Duration]) -> FollowRules {
        FollowRules {
            retry,
            unprompted: None,
            linger: Duration::ZERO,
            load: usize::MAX,
            gather: Duration::ZERO,
            full: u64::MAX,
        }
    }
}

/// What a follower does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowStep {
    /// Ask up to where everything is taken: [`Cursor::located`].
    Locate,
    /// Take what comes after this entry: [`Cursor::took`].
    Take(u64),
    /// Wait for news, or until then.
    Wait(Option<Duration>),
    /// Nothing is left, and nothing comes any more.
    End,
}

/// A place in a journal that somebody follows.
#[derive(Clone, Debug)]
pub struct Cursor {
    rules: FollowRules,
    gathering: Gathering,
    /// Up to where everything is taken; `None` while that is not known.
    at: Option<u64>,
    /// The last entry that is known to be there.
    end: u64,
    is_closed: bool,
    is_attended: bool,
    is_wanted: bool,
    /// Nothing is done before.
    ready: Duration,
    /// Nothing is taken before while nobody attends.
    unhurried: Duration,
    /// When it was looked without news.
    looked: Option<Duration>,
    failures: usize,
    /// Looks in a row that saw nothing of what is there.
    fruitless: u32,
}

impl Cursor {
    /// One whose place is to be asked for.
    pub fn new(rules: FollowRules) -> Cursor {
        Cursor {
            gathering: Gathering::new(rules.load, rules.gather),
            rules,
            at: None,
            end: 0,
            is_closed: false,
            is_attended: false,
            is_wanted: false,
            ready: Duration::ZERO,
            unhurried: Duration::ZERO,
            looked: None,
            failures: 0,
            fruitless: 0,
        }
    }

    /// Entries up to this one are there.
    pub fn told(&mut self, last: u64, now: Duration) {
        if last <= self.end {
            return;
        }
        if self.at.is_some_and(|at| at >= self.end) {
            self.unhurried = self.ready.max(now) + self.rules.linger;
        }
        self.end = last;
    }

    /// Whether whatever comes is looked at as it comes.
    pub fn attended(&mut self, is_attended: bool) {
        self.is_attended = is_attended;
    }

    /// Somebody waits for what is there.
    pub fn wanted(&mut self) {
        self.is_wanted = true;
    }

    /// No more news are told.
    pub fn closed(&mut self) {
        self.is_closed = true;
    }

    /// What to do now.
    pub fn next(&self, now: Duration) -> FollowStep {
        let at = |instant: Duration, step| match now < instant {
            true => FollowStep::Wait(Some(instant)),
            false => step,
        };
        let Some(here) = self.at else { return at(self.ready, FollowStep::Locate) };
        if self.end > here {
            let is_urgent = self.is_attended || self.is_wanted || self.is_closed;
            let ready = if is_urgent { self.ready } else { self.unhurried };
            return at(ready, FollowStep::Take(here));
        }
        match self.rules.unprompted {
            Some(every) => {
                let due = self.looked.map_or(self.ready, |looked| self.ready.max(looked + every));
                at(due, FollowStep::Take(here))
            }
            None if self.is_closed => FollowStep::End,
            None => FollowStep::Wait(None),
        }
    }

    /// Everything up to this entry is taken.
    pub fn located(&mut self, at: u64, now: Duration) {
        self.at = Some(at);
        self.unhurried = now;
    }

    /// Everything up to this entry is taken now; `None` where somebody else had moved the place, and
    /// nothing was taken.
    pub fn took(&mut self, to: Option<u64>, now: Duration) {
        let (before, to) = match (self.at.take(), to) {
            (Some(before), Some(to)) => (before, to),
            _ => return,
        };
        self.at = Some(to);
        self.failures = 0;
        let count = to.saturating_sub(before);
        let is_full = count >= self.rules.full;
        self.looked = (!is_full).then_some(now);
        (self.ready, self.unhurried) = (now, now);
        if count > 0 {
            self.is_wanted = false;
            self.fruitless = 0;
            let wait = self.gathering.came(usize::try_from(count).unwrap_or(usize::MAX), now);
            if !is_full {
                self.ready += wait.unwrap_or_default();
                self.unhurried = self.ready + self.rules.linger;
            }
        } else if self.end > to {
            self.fruitless += 1;
            self.ready += if self.fruitless < PATIENT_AFTER { LOOK_AGAIN } else { PATIENT };
            self.unhurried = self.ready;
        }
    }

    /// What was asked for failed: how far it came is not known.
    pub fn failed(&mut self, now: Duration) {
        let last = self.rules.retry.len().saturating_sub(1);
        let pause = self.rules.retry.get(self.failures.min(last)).copied().unwrap_or(PATIENT);
        self.at = None;
        self.failures += 1;
        self.ready = now + pause;
    }
}
