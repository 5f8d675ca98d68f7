//! Somebody who follows a journal, on a model of it: however news, failures of which nobody knows how
//! far they came, lagging reads, a rival that writes the same place, and time interleave, every entry
//! is taken once and in order, nothing is asked again before its time, and nothing waits longer than
//! it may.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use era_drive::{Cursor, FollowRules, FollowStep};

const MS: Duration = Duration::from_millis(1);
const RETRY: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1)];
/// Most entries that are read at a time.
const PAGE: u64 = 20;

/// What the next looks come to.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Whole,
    /// It fails, and nothing was written.
    FailsBefore,
    /// It fails, and all was written.
    FailsAfter,
    /// What was just written cannot be seen yet.
    Lags,
    /// Somebody else writes this many entries first.
    Rival(u64),
}

struct Follower {
    cursor: Cursor,
    rules: FollowRules,
    now: Duration,
    /// The last entry of the journal, and the last that is told.
    written: u64,
    told: u64,
    /// Everything that was made of entries, which is kept with the place.
    kept: Vec<u64>,
    outcomes: Vec<Outcome>,
    /// When the last failure was, and how many there were in a row.
    failed: Option<(Duration, usize)>,
    /// Where it believes to be; nothing after a failure.
    believed: Option<u64>,
    /// Whether somebody else wrote since it was asked.
    is_rivalled: bool,
    /// When nothing was seen last, and what was told then.
    saw_nothing: Option<(Duration, u64)>,
    has_ended: bool,
}

impl Follower {
    fn new(rules: FollowRules) -> Follower {
        Follower {
            cursor: Cursor::new(rules),
            rules,
            now: Duration::ZERO,
            written: 0,
            told: 0,
            kept: Vec::new(),
            outcomes: Vec::new(),
            failed: None,
            believed: None,
            is_rivalled: false,
            saw_nothing: None,
            has_ended: false,
        }
    }

    fn place(&self) -> u64 {
        self.kept.len() as u64
    }

    fn keep(&mut self, to: u64) {
        self.kept.extend(self.place() + 1..=to);
    }

    fn fail(&mut self) {
        let before = self.failed.map_or(0, |(_, failures)| failures);
        self.failed = Some((self.now, before + 1));
        self.believed = None;
        self.cursor.failed(self.now);
    }

    fn may_ask(&self) {
        if let Some((at, failures)) = self.failed {
            let pause = RETRY[(failures - 1).min(RETRY.len() - 1)];
            assert!(self.now >= at + pause, "asked again {:?} after a failure", self.now - at);
        }
    }

    /// Does what it does next; whether that was anything but to wait.
    fn act(&mut self) -> bool {
        match self.cursor.next(self.now) {
            FollowStep::Wait(until) => {
                assert!(until.is_none_or(|until| until > self.now), "it waits for what is past");
                return false;
            }
            FollowStep::End => {
                assert_eq!((self.place(), self.rules.unprompted), (self.written, None));
                self.has_ended = true;
                return false;
            }
            FollowStep::Locate => {
                self.may_ask();
                if let Some(Outcome::FailsBefore | Outcome::FailsAfter) = self.outcomes.pop() {
                    self.fail();
                } else {
                    self.believed = Some(self.place());
                    self.is_rivalled = false;
                    self.cursor.located(self.place(), self.now);
                }
            }
            FollowStep::Take(after) => self.take(after),
        }
        true
    }

    fn take(&mut self, after: u64) {
        assert_eq!(Some(after), self.believed, "it is asked where it is first");
        assert!(after == self.place() || self.is_rivalled);
        assert_ne!(self.saw_nothing, Some((self.now, self.told)), "it looks again without a pause");
        self.may_ask();
        let to = self.written.min(after + PAGE);
        match self.outcomes.pop().unwrap_or(Outcome::Whole) {
            Outcome::FailsBefore => return self.fail(),
            Outcome::FailsAfter => {
                if after == self.place() {
                    self.keep(to);
                }
                return self.fail();
            }
            Outcome::Lags => {
                self.saw_nothing = Some((self.now, self.told));
                self.failed = None;
                return self.cursor.took(Some(after), self.now);
            }
            Outcome::Rival(many) => {
                self.is_rivalled = true;
                self.keep(self.written.min(self.place() + many));
            }
            Outcome::Whole => {}
        }
        if after != self.place() {
            self.believed = None;
            return self.cursor.took(None, self.now);
        }
        self.keep(to);
        self.failed = None;
        if to == after {
            self.saw_nothing = Some((self.now, self.told));
        }
        self.believed = Some(to);
        self.cursor.took(Some(to), self.now);
    }

    /// Acts until it waits; so much at one instant is a fault.
    fn settle(&mut self) {
        let most = 8 + self.outcomes.len() as u64 + 2 * (self.written - self.place()) / PAGE;
        for _ in 0..most {
            if !self.act() {
                return;
            }
        }
        panic!("it never waits");
    }

    fn pass(&mut self, until: Duration) {
        loop {
            self.settle();
            match self.cursor.next(self.now) {
                FollowStep::Wait(Some(due)) if due <= until => self.now = due,
                _ => break,
            }
        }
        self.now = until;
        self.settle();
    }

    fn tell(&mut self) {
        self.told = self.written;
        self.cursor.told(self.told, self.now);
    }
}

fn rules() -> impl Strategy<Value = FollowRules> {
    let all = FollowRules::at_once(&RETRY);
    prop_oneof![
        Just(all),
        Just(FollowRules { unprompted: Some(100 * MS), full: PAGE, ..all }),
        Just(FollowRules { linger: 50 * MS, load: 8, gather: 15 * MS, full: 16, ..all }),
        Just(FollowRules { load: 0, gather: 10 * MS, ..all }),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Whole),
        Just(Outcome::FailsBefore),
        Just(Outcome::FailsAfter),
        Just(Outcome::Lags),
        (0..5u64).prop_map(Outcome::Rival),
    ]
}

#[derive(Clone, Debug)]
enum Act {
    /// So many entries are written.
    Write(u64),
    Tell,
    Pass(u32),
    Fault(Outcome),
    Attend(bool),
    Want,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (1..30u64).prop_map(Act::Write),
        4 => Just(Act::Tell),
        4 => (0..200u32).prop_map(Act::Pass),
        3 => outcome().prop_map(Act::Fault),
        1 => any::<bool>().prop_map(Act::Attend),
        1 => Just(Act::Want),
    ]
}

proptest! {
    #[test]
    fn every_entry_is_taken_once_and_in_order_whatever_fails(
        rules in rules(),
        acts in vec(act(), 1..120),
    ) {
        let mut follower = Follower::new(rules);
        for act in acts {
            match act {
                Act::Write(many) => follower.written += many,
                Act::Tell => follower.tell(),
                Act::Pass(ms) => follower.pass(follower.now + MS * ms),
                Act::Fault(outcome) => follower.outcomes.push(outcome),
                Act::Attend(is_attended) => follower.cursor.attended(is_attended),
                Act::Want => follower.cursor.wanted(),
            }
        }
        // Faults end: what they have left is taken soon.
        follower.outcomes.clear();
        follower.tell();
        follower.cursor.closed();
        let pages = follower.written.div_ceil(PAGE) as u32;
        follower.pass(follower.now + Duration::from_secs(2) + rules.gather * pages);
        prop_assert_eq!(&follower.kept, &(1..=follower.written).collect::<Vec<_>>());
        prop_assert_eq!(follower.has_ended, rules.unprompted.is_none());
    }

    #[test]
    fn nothing_waits_longer_than_it_may_and_what_is_wanted_waits_for_a_batch_at_most(
        rules in rules(),
        writes in vec((1..30u64, 0..90u32, any::<bool>(), any::<bool>()), 1..80),
    ) {
        let mut follower = Follower::new(rules);
        for (many, ms, is_attended, is_wanted) in writes {
            follower.cursor.attended(is_attended);
            follower.written += many;
            follower.tell();
            if is_wanted {
                follower.cursor.wanted();
            }
            let begun = follower.now;
            // A batch of before may be the cause of a pause, and this one may wait for more.
            let gather = rules.gather;
            let most = if is_attended || is_wanted { gather } else { gather + rules.linger };
            let last = follower.written;
            // As long as full pages follow each other there is no pause; each other one may bring one.
            let pages = many.div_ceil(PAGE) as u32;
            follower.pass(begun + most + gather * pages);
            prop_assert!(follower.place() >= last, "{} of {last}", follower.place());
            follower.pass(follower.now.max(begun + MS * ms));
        }
    }
}

#[test]
fn news_do_not_shorten_the_pause_after_a_failure() {
    let mut cursor = Cursor::new(FollowRules::at_once(&RETRY));
    cursor.located(0, Duration::ZERO);
    cursor.told(3, Duration::ZERO);
    assert_eq!(cursor.next(Duration::ZERO), FollowStep::Take(0));
    cursor.failed(Duration::ZERO);
    cursor.told(4, 10 * MS);
    assert_eq!(cursor.next(10 * MS), FollowStep::Wait(Some(50 * MS)));
    assert_eq!(cursor.next(50 * MS), FollowStep::Locate);
    cursor.failed(50 * MS);
    assert_eq!(cursor.next(60 * MS), FollowStep::Wait(Some(300 * MS)));
}

#[test]
fn what_is_told_and_not_to_be_seen_is_looked_for_less_and_less() {
    let mut cursor = Cursor::new(FollowRules::at_once(&RETRY));
    cursor.located(0, Duration::ZERO);
    cursor.told(1, Duration::ZERO);
    let (mut now, mut looks) = (Duration::ZERO, 0);
    while now < Duration::from_secs(60) {
        match cursor.next(now) {
            FollowStep::Take(0) => {
                looks += 1;
                cursor.took(Some(0), now);
            }
            FollowStep::Wait(Some(until)) => now = until,
            other => panic!("{other:?}"),
        }
    }
    assert!((350..450).contains(&looks), "{looks}");
    cursor.took(Some(1), now);
    assert_eq!(cursor.next(now), FollowStep::Wait(None));
}
