//! Several servers and one lease on a model of the database, with late and lost answers, pauses
//! and crashes: at most one of them holds the lease at any instant, and one does once faults end.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use era_drive::lead::{LOOK_EVERY, LeaseRules, RENEWAL_MAX, Renewal, Tenure, Verdict, may_take};

const SERVERS: usize = 3;
const NAMES: [&str; SERVERS] = ["a", "b", "c"];
const STEP: Duration = Duration::from_millis(20);

/// The row, as the database keeps it.
#[derive(Debug, Default)]
struct Row {
    holder: Option<usize>,
    generation: u64,
    expires: Duration,
}

impl Row {
    fn left(&self, now: Duration) -> Duration {
        self.expires.saturating_sub(now)
    }

    /// The statement that takes the lease: the database's own condition, not the candidate's.
    fn take(&mut self, server: usize, now: Duration, span: Duration) -> Option<u64> {
        if self.expires > now && self.holder != Some(server) {
            return None;
        }
        let generation = self.generation + 1;
        *self = Row { holder: Some(server), generation, expires: now + span };
        Some(generation)
    }

    fn renew(&mut self, generation: u64, now: Duration, span: Duration) -> Option<u64> {
        if self.generation != generation {
            return None;
        }
        self.expires = now + span;
        Some(generation)
    }
}

/// A question on its way: when it was asked by the server's clock, when it reaches the database,
/// and when its answer is back.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Duration,
    arrives: Duration,
    back: Duration,
    /// The generation that the database granted it, if it did; nothing before it arrived.
    granted: Option<Option<u64>>,
    /// Whether the answer is lost on its way.
    lost: bool,
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    /// Looks at the row next.
    Stands(Duration),
    Takes(Asked),
    Leads {
        tenure: Tenure,
        generation: u64,
        next: Duration,
        renewal: Option<Asked>,
    },
}

struct Server {
    /// How far its own clock is ahead of the database's.
    offset: Duration,
    doing: Doing,
    /// Until when it does nothing, by the database's clock.
    paused: Duration,
}

struct Model {
    now: Duration,
    row: Row,
    servers: Vec<Server>,
    faults: Vec<u16>,
    next: usize,
}

impl Model {
    fn new(faults: Vec<u16>) -> Model {
        let server = |n: usize| Server {
            offset: Duration::from_secs(1000 * n as u64),
            doing: Doing::Stands(Duration::ZERO),
            paused: Duration::ZERO,
        };
        let servers = (0..SERVERS).map(server).collect();
        Model { now: Duration::ZERO, row: Row::default(), servers, faults, next: 0 }
    }

    /// The next number that chance gives; nothing bad happens once they are used up.
    fn chance(&mut self) -> u16 {
        let fault = self.faults.get(self.next).copied().unwrap_or(1);
        self.next += 1;
        fault
    }

    fn ask(&mut self, server: usize) -> Asked {
        let (delay, answer) = (self.chance(), self.chance());
        let late = |n: u16| match n % 8 {
            0 => Duration::from_millis(u64::from(n % 6000)),
            _ => Duration::from_millis(u64::from(n % 40)),
        };
        let arrives = self.now + late(delay);
        let at = self.now + self.servers[server].offset;
        let back = arrives + late(answer);
        Asked { at, arrives, back, granted: None, lost: answer % 11 == 0 }
    }

    fn step(&mut self) {
        self.now += STEP;
        for server in 0..SERVERS {
            self.deliver(server);
            if self.servers[server].paused <= self.now {
                self.go_on(server);
            }
        }
        let holding: Vec<usize> = (0..SERVERS).filter(|server| self.holds(*server)).collect();
        assert!(holding.len() < 2, "{holding:?} hold the lease at {:?}: {:?}", self.now, self.row);
    }

    fn holds(&self, server: usize) -> bool {
        let Server { offset, doing, .. } = &self.servers[server];
        matches!(doing, Doing::Leads { tenure, .. } if tenure.holds(self.now + *offset))
    }

    /// What is on its way reaches the database, whatever its server does meanwhile.
    fn deliver(&mut self, server: usize) {
        let (now, row) = (self.now, &mut self.row);
        let span = LeaseRules::OF_THE_SCHEDULER.span;
        match &mut self.servers[server].doing {
            Doing::Takes(asked) if asked.granted.is_none() && asked.arrives <= now => {
                asked.granted = Some(row.take(server, now, span));
            }
            Doing::Leads { generation, renewal: Some(asked), .. }
                if asked.granted.is_none() && asked.arrives <= now =>
            {
                asked.granted = Some(row.renew(*generation, now, span));
            }
            _ => {}
        }
    }

    fn go_on(&mut self, server: usize) {
        match self.chance() % 500 {
            0 => {
                let span = Duration::from_millis(u64::from(self.chance() % 9000));
                self.servers[server].paused = self.now + span;
                return;
            }
            // It crashes, and is up again at once by the same name.
            7 => self.servers[server].doing = Doing::Stands(self.now),
            _ => {}
        }
        let now = self.now;
        let up = now + self.servers[server].offset;
        let again = Doing::Stands(now + LOOK_EVERY);
        self.servers[server].doing = match self.servers[server].doing {
            Doing::Stands(look) if look > now => return,
            Doing::Stands(_) => {
                let holder = self.row.holder.map_or("", |holder| NAMES[holder]);
                match may_take(NAMES[server], holder, self.row.left(now)) {
                    true => Doing::Takes(self.ask(server)),
                    false => again,
                }
            }
            Doing::Takes(asked) if asked.back > now => return,
            Doing::Takes(Asked { at, granted: Some(Some(generation)), lost: false, .. }) => {
                let tenure = Tenure::new(LeaseRules::OF_THE_SCHEDULER, at);
                let next = now + tenure.renew_every();
                Doing::Leads { tenure, generation, next, renewal: None }
            }
            Doing::Takes(_) => again,
            Doing::Leads { mut tenure, generation, next, renewal: Some(asked) } => {
                let late = up > asked.at + RENEWAL_MAX;
                if (asked.back > now || asked.lost) && !late {
                    return;
                }
                let renewal = match asked.granted {
                    _ if late => Renewal::Unanswered,
                    Some(Some(_)) => Renewal::Renewed,
                    Some(None) => Renewal::Deposed,
                    None => Renewal::Unanswered,
                };
                match tenure.answered(asked.at, up, renewal) {
                    Verdict::Keep => Doing::Leads {
                        tenure,
                        generation,
                        next: next.max(now) + tenure.renew_every(),
                        renewal: None,
                    },
                    Verdict::Deposed | Verdict::Silent(_) => again,
                }
            }
            Doing::Leads { next, .. } if next > now => return,
            Doing::Leads { tenure, generation, next, .. } => {
                let renewal = Some(self.ask(server));
                Doing::Leads { tenure, generation, next, renewal }
            }
        };
    }
}

proptest! {
    #[test]
    fn at_most_one_server_holds_the_lease_and_one_does_once_faults_end(
        faults in vec(any::<u16>(), 0..12_000),
    ) {
        let mut model = Model::new(faults);
        while model.next < model.faults.len() {
            model.step();
        }
        // A pause or an answer that is late may still be under way, then a lease runs out.
        let until = model.now + Duration::from_secs(30);
        while model.now < until {
            model.step();
        }
        let holding = (0..SERVERS).filter(|server| model.holds(*server)).count();
        prop_assert_eq!(holding, 1, "{:?} at {:?}", model.row, model.now);
    }
}

const S: Duration = Duration::from_secs(1);

#[test]
fn a_lease_is_counted_from_when_it_was_asked_for() {
    let mut tenure = Tenure::new(LeaseRules::ON_A_SERVER, 100 * S);
    assert!(tenure.holds(102 * S) && !tenure.holds(103 * S));
    // The answer came two seconds later: it holds for one more.
    assert_eq!(tenure.answered(102 * S, 104 * S, Renewal::Renewed), Verdict::Keep);
    assert!(tenure.holds(104 * S) && !tenure.holds(105 * S));
}

#[test]
fn a_scheduler_that_cannot_renew_its_lease_ends_and_other_servers_wait() {
    let silent = |rules| Tenure::new(rules, S).answered(12 * S, 17 * S, Renewal::Unanswered);
    assert_eq!(silent(LeaseRules::OF_THE_SCHEDULER), Verdict::Silent(10 * S));
    assert_eq!(silent(LeaseRules::ON_A_SERVER), Verdict::Keep);
    assert_eq!(silent(LeaseRules::ON_FILES), Verdict::Keep);
    // In time, however late the answer itself.
    let mut tenure = Tenure::new(LeaseRules::OF_THE_SCHEDULER, S);
    assert_eq!(tenure.answered(12 * S, 17 * S, Renewal::Renewed), Verdict::Keep);
    assert_eq!(tenure.answered(18 * S, 18 * S, Renewal::Deposed), Verdict::Deposed);
}

#[test]
fn a_server_succeeds_itself_at_once_and_others_once_their_lease_has_run_out() {
    assert!(may_take("a", "a", 2 * S));
    assert!(!may_take("a", "b", 2 * S));
    assert!(may_take("a", "b", Duration::ZERO));
}
