//! Who leads: what a server decides by a lease that a database keeps.
//!
//! The database decides who has the lease, by its own clock; a server counts from the moment at
//! which it asked, by a clock of its own that goes on while the process is paused or the machine
//! suspended. So a server that believes that it holds the lease is the only one, however late its
//! answers are. Which database, and how it is asked, is not known here: instants are readings of
//! the server's own clock.

use std::time::Duration;

/// How often whoever stands by looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a renewal may take.
pub const RENEWAL_MAX: Duration = Duration::from_secs(5);

/// How long a lease runs, and what a server does that cannot renew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRules {
    /// How long it runs from its last renewal.
    pub span: Duration,
    /// How long a server goes on without a renewal; `None` for as long as nobody else leads.
    pub silent_max: Option<Duration>,
}

impl LeaseRules {
    /// Beside SQLite's files: nobody waits for the lease, and the disk of an idle machine is left
    /// alone.
    pub const ON_FILES: LeaseRules = LeaseRules { span: Duration::from_secs(60), silent_max: None };

    /// On a database server, where another machine may wait for the lease.
    pub const ON_A_SERVER: LeaseRules =
        LeaseRules { span: Duration::from_secs(3), silent_max: None };

    /// The same for the scheduler: one that waits for the database for ever cannot say that it
    /// leads no more, so it ends.
    pub const OF_THE_SCHEDULER: LeaseRules =
        LeaseRules { silent_max: Some(Duration::from_secs(10)), ..LeaseRules::ON_A_SERVER };
}

/// Whether a candidate asks for a lease, by who has it and how long that still runs. While somebody
/// else has it, it is only looked at, so that nobody who leads has to wait for a lock. Whoever has
/// it by the same name is the same server before a restart, and is succeeded.
pub fn may_take(candidate: &str, holder: &str, left: Duration) -> bool {
    left.is_zero() || holder == candidate
}

/// How a renewal was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    Renewed,
    /// Somebody else has taken the lease.
    Deposed,
    /// The database did not answer in time, or failed.
    Unanswered,
}

/// What a leader does after a renewal was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on. What must not be done twice waits while it does not [hold](Tenure::holds) the
    /// lease.
    Keep,
    /// It ends: another one leads.
    Deposed,
    /// It ends: the lease could not be renewed for so long.
    Silent(Duration),
}

/// A lease that was taken, as its holder counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    rules: LeaseRules,
    /// When the last renewal that was granted was asked for.
    renewed: Duration,
}

impl Tenure {
    /// A lease that was asked for at this instant, and granted.
    pub fn new(rules: LeaseRules, asked: Duration) -> Tenure {
        Tenure { rules, renewed: asked }
    }

    /// How long it runs from each renewal.
    pub fn span(&self) -> Duration {
        self.rules.span
    }

    /// How long after an answer the next renewal is asked for.
    pub fn renew_every(&self) -> Duration {
        self.rules.span / 4
    }

    /// Whether nobody else can have the lease at this instant.
    pub fn holds(&self, now: Duration) -> bool {
        now.saturating_sub(self.renewed) < self.rules.span
    }

    /// A renewal that was asked for at an instant is answered now.
    pub fn answered(&mut self, asked: Duration, now: Duration, renewal: Renewal) -> Verdict {
        match renewal {
            Renewal::Deposed => return Verdict::Deposed,
            Renewal::Renewed => self.renewed = asked,
            Renewal::Unanswered => {}
        }
        let silent = |most: &Duration| now.saturating_sub(self.renewed) > *most;
        self.rules.silent_max.filter(silent).map_or(Verdict::Keep, Verdict::Silent)
    }
}
