//! The book of what each user and group holds over time and has used and spent in each period,
//! and the checks of it against their quotas.
//!
//! Everything is booked twice, for the user and for the group that it belonged to then: who
//! moves on leaves the past with the old group, so a job remembers the group it was booked under
//! and names it again when it gives back. The book does not know why something was booked; that
//! it agrees with the jobs is for the scheduler's own check to re-derive.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::accounts::Accounts;
use crate::quota::steps::Steps;
use crate::quota::{Dimension, Quota, QuotaPeriod};
use crate::refusal::{QuotaScope, Refusal};
use crate::resources::{PerResource, Resource};
use crate::starts::Starts;
use crate::units::{GroupId, Money, Span, Time, UserId};

const MS_PER_HOUR: u128 = 3_600_000;

/// What users and groups hold and have used. A clone shares structure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    period: QuotaPeriod,
    /// Before this instant nothing is held any more; see [`Usage::forget_before`].
    kept_from: Time,
    #[serde(with = "as_list")]
    books: OrdMap<QuotaScope, Book>,
}

/// One user's or group's. Kept only while something stands in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Book {
    held: Arc<Steps>,
    /// By the number of the period; those with nothing in them are left out.
    used: Arc<BTreeMap<i64, PeriodUsage>>,
}

/// What was used in one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredUsed", into = "StoredUsed")]
pub struct PeriodUsage {
    /// Units times milliseconds.
    pub unit_ms: PerResource<u128>,
    /// What was spent. Wider than [`Money`], as the sum over a group may leave its range.
    pub micro_credits: u128,
}

impl Default for Usage {
    fn default() -> Usage {
        Usage::new(QuotaPeriod::default())
    }
}

impl Usage {
    /// An empty book.
    pub fn new(period: QuotaPeriod) -> Usage {
        Usage { period, kept_from: Time::MIN, books: OrdMap::new() }
    }

    /// The length of the periods in which hours and credits are counted.
    pub fn period(&self) -> QuotaPeriod {
        self.period
    }

    /// Changes the length of the periods. What was used counts no more: it was counted in
    /// periods that no longer exist. What is held stays.
    pub fn set_period(&mut self, period: QuotaPeriod) {
        if period != self.period {
            self.period = period;
            self.rewrite(|book| !book.used.is_empty(), |book| book.used = Arc::default());
        }
    }

    /// The most that somebody holds of each resource at any instant of `[from, to)`.
    pub fn held(&self, scope: QuotaScope, from: Time, to: Time) -> PerResource<u64> {
        self.books.get(&scope).map_or([0; 3], |book| book.held.peak(from, to))
    }

    /// What somebody has used in the period that holds an instant.
    pub fn used(&self, scope: QuotaScope, at: Time) -> PeriodUsage {
        let book = self.books.get(&scope);
        book.and_then(|book| book.used.get(&self.period.index(at))).copied().unwrap_or_default()
    }

    /// Books units over `[from, to)`; refused only if they cannot be counted.
    pub fn commit(
        &mut self,
        user: UserId,
        group: GroupId,
        from: Time,
        to: Time,
        units: PerResource<u64>,
    ) -> Result<(), Refusal> {
        let from = from.max(self.kept_from);
        let [user, group] = scopes(user, group);
        if !self.change(user, |book| Arc::make_mut(&mut book.held).add(from, to, units)) {
            return Err(Refusal::TooLarge);
        }
        if !self.change(group, |book| Arc::make_mut(&mut book.held).add(from, to, units)) {
            self.give_back(user, from, to, units);
            return Err(Refusal::TooLarge);
        }
        Ok(())
    }

    /// Gives back all or a part of what was committed, under the group of then.
    pub fn release(
        &mut self,
        user: UserId,
        group: GroupId,
        from: Time,
        to: Time,
        units: PerResource<u64>,
    ) {
        let from = from.max(self.kept_from);
        for scope in scopes(user, group) {
            self.give_back(scope, from, to, units);
        }
    }

    /// Counts use and spending in the period that holds `at`.
    pub fn charge(
        &mut self,
        user: UserId,
        group: GroupId,
        at: Time,
        unit_ms: PerResource<u128>,
        money: Money,
    ) {
        self.tally(user, group, at, unit_ms, money, u128::saturating_add);
    }

    /// Takes back what was counted in the period that holds `at`, never below zero.
    pub fn refund(
        &mut self,
        user: UserId,
        group: GroupId,
        at: Time,
        unit_ms: PerResource<u128>,
        money: Money,
    ) {
        self.tally(user, group, at, unit_ms, money, u128::saturating_sub);
    }

    /// Whether so much more use and spending in the period that holds `at` stays in the user's
    /// and the group's quota. What is not asked for is not looked at: who is over the limit in
    /// GPU hours may still use cores.
    pub fn check_period(
        &self,
        accounts: &Accounts,
        user: UserId,
        at: Time,
        unit_ms: PerResource<u128>,
        money: Money,
    ) -> Result<(), Refusal> {
        for (scope, quota) in accounts.quotas(user)? {
            let used = self.used(scope, at);
            for resource in Resource::ALL {
                let (used, asked) = (used.unit_ms[resource as usize], unit_ms[resource as usize]);
                let dimension = Dimension::Hours(resource);
                stays_in_period(scope, quota, dimension, used, asked, MS_PER_HOUR)?;
            }
            let spent = used.micro_credits;
            stays_in_period(scope, quota, Dimension::Credits, spent, micro(money), 1)?;
        }
        Ok(())
    }

    /// Whether a request could be held at all, by somebody who holds nothing else.
    pub fn check_size(
        accounts: &Accounts,
        user: UserId,
        units: PerResource<u64>,
    ) -> Result<(), Refusal> {
        let [own, shared] = accounts.quotas(user)?;
        stays_concurrent(own, [0; 3], units)?;
        stays_concurrent(shared, [0; 3], units)
    }

    /// Whether so many more units over `[from, to)` stay in the user's and the group's quota at
    /// every instant. For an empty interval they do.
    pub fn room(
        &self,
        accounts: &Accounts,
        user: UserId,
        from: Time,
        to: Time,
        units: PerResource<u64>,
    ) -> Result<(), Refusal> {
        for (scope, quota) in accounts.quotas(user)? {
            if from < to && quota.limits_concurrent() {
                stays_concurrent((scope, quota), self.held(scope, from, to), units)?;
            }
        }
        Ok(())
    }

    /// The starts in `[earliest, latest_start]` from which there is [`Usage::room`] for the whole
    /// duration.
    pub fn allowed_starts(
        &self,
        accounts: &Accounts,
        user: UserId,
        (earliest, latest_start): (Time, Time),
        duration: Span,
        units: PerResource<u64>,
    ) -> Result<Starts, Refusal> {
        let quotas = accounts.quotas(user)?;
        if earliest > latest_start {
            return Ok(Starts::Only(Vec::new()));
        }
        let binds = quotas.iter().any(|(_, quota)| quota.limits_concurrent());
        if !binds || duration <= Span::ZERO {
            return Ok(Starts::All);
        }
        if Usage::check_size(accounts, user, units).is_err() {
            return Ok(Starts::Only(Vec::new()));
        }
        let mut allowed = vec![(earliest, latest_start)];
        for (scope, quota) in quotas {
            let Some(book) = self.books.get(&scope) else { continue };
            let blocks = |level| first_over(quota, level, units).is_some();
            let mut still = Vec::new();
            for range in allowed {
                book.held.starts_clear_of(blocks, range, duration, &mut still);
            }
            allowed = still;
        }
        if allowed == [(earliest, latest_start)] {
            return Ok(Starts::All);
        }
        Ok(Starts::Only(allowed))
    }

    /// The same book with nothing held in it.
    pub(crate) fn with_nothing_held(&self) -> Usage {
        let mut fresh = self.clone();
        fresh.rewrite(|book| !book.held.is_empty(), |book| book.held = Arc::default());
        fresh
    }

    /// Forgets what was held before an instant, and the periods before the one that precedes it.
    /// To be called now and then, or the book would grow for ever. What still lasts can be
    /// released as it was committed.
    pub fn forget_before(&mut self, at: Time) {
        let at = at.max(self.kept_from);
        self.kept_from = at;
        // Saturates at the beginning of time, before which there is nothing to forget.
        let oldest = self.period.index(at).saturating_sub(1);
        self.rewrite(
            |book| {
                book.held.first().is_some_and(|first| first < at)
                    || book.used.keys().next().is_some_and(|first| *first < oldest)
            },
            |book| {
                Arc::make_mut(&mut book.held).forget_before(at);
                Arc::make_mut(&mut book.used).retain(|index, _| *index >= oldest);
            },
        );
    }

    /// Re-derives what must always hold: no book, and no period in it, is kept that is empty,
    /// and what was to be forgotten is.
    pub fn check(&self) -> Result<(), String> {
        for (scope, book) in &self.books {
            if book.is_empty() || book.used.values().any(|used| *used == PeriodUsage::default()) {
                return Err(format!("{scope} has an empty book or period"));
            }
            if book.held.first().is_some_and(|first| first < self.kept_from) {
                return Err(format!("{scope} holds something before {}", self.kept_from));
            }
        }
        Ok(())
    }

    fn give_back(&mut self, scope: QuotaScope, from: Time, to: Time, units: PerResource<u64>) {
        let was_held =
            self.change(scope, |book| Arc::make_mut(&mut book.held).remove(from, to, units));
        // A release without its commitment is a mistake of the caller. The book then stays as it
        // is: to refuse too much is the safer side.
        debug_assert!(was_held, "{scope} gives back {units:?} that it does not hold");
    }

    // Totals saturate: at the top every limit is exceeded anyway, at the bottom nothing is used.
    fn tally(
        &mut self,
        user: UserId,
        group: GroupId,
        at: Time,
        unit_ms: PerResource<u128>,
        money: Money,
        count: fn(u128, u128) -> u128,
    ) {
        let index = self.period.index(at);
        for scope in scopes(user, group) {
            self.change(scope, |book| {
                let periods = Arc::make_mut(&mut book.used);
                let used = periods.entry(index).or_default();
                used.unit_ms = [0, 1, 2].map(|r| count(used.unit_ms[r], unit_ms[r]));
                used.micro_credits = count(used.micro_credits, micro(money));
                if *used == PeriodUsage::default() {
                    periods.remove(&index);
                }
            });
        }
    }

    /// Writes into somebody's book, which begins with the first entry and ends with the last.
    fn change<T>(&mut self, scope: QuotaScope, write: impl FnOnce(&mut Book) -> T) -> T {
        let book = self.books.entry(scope).or_default();
        let result = write(book);
        if book.is_empty() {
            self.books.remove(&scope);
        }
        result
    }

    /// Writes into every book that needs it; the others stay shared with older clones.
    fn rewrite(&mut self, needs: impl Fn(&Book) -> bool, write: impl Fn(&mut Book)) {
        let stale: Vec<QuotaScope> =
            self.books.iter().filter(|(_, book)| needs(book)).map(|(scope, _)| *scope).collect();
        for scope in stale {
            self.change(scope, &write);
        }
    }
}

impl Book {
    fn is_empty(&self) -> bool {
        self.held.is_empty() && self.used.is_empty()
    }
}

fn scopes(user: UserId, group: GroupId) -> [QuotaScope; 2] {
    [QuotaScope::User(user), QuotaScope::Group(group)]
}

/// Units times milliseconds.
pub(crate) fn unit_ms(units: &PerResource<u64>, ms: i64) -> PerResource<u128> {
    units.map(|u| u128::from(u) * u128::from(ms.max(0).unsigned_abs()))
}

// The ledger posts no amount below zero; one would count as nothing.
fn micro(money: Money) -> u128 {
    u128::try_from(money.0).unwrap_or(0)
}

/// The first resource in which a level and what is asked for beside it exceed a quota.
fn first_over(
    quota: &Quota,
    held: PerResource<u64>,
    units: PerResource<u64>,
) -> Option<(Resource, u64)> {
    Resource::ALL.into_iter().find_map(|resource| {
        let limit = quota.concurrent[resource as usize]?;
        let (held, asked) = (held[resource as usize], units[resource as usize]);
        let fits = asked == 0 || held.checked_add(asked).is_some_and(|sum| sum <= limit);
        (!fits).then_some((resource, limit))
    })
}

fn stays_concurrent(
    (scope, quota): (QuotaScope, &Quota),
    held: PerResource<u64>,
    units: PerResource<u64>,
) -> Result<(), Refusal> {
    let Some((resource, limit)) = first_over(quota, held, units) else { return Ok(()) };
    let (held, asked) = (held[resource as usize], units[resource as usize]);
    let unit = Dimension::Concurrent(resource).unit_for(&[limit, held, asked]);
    Err(Refusal::QuotaConcurrent {
        scope,
        what: unit.name.into(),
        limit: unit.limit(limit),
        held: unit.amount(held.into()),
        asked: unit.amount(asked.into()),
    })
}

/// `used` and `asked` are so many times finer than the limit.
fn stays_in_period(
    scope: QuotaScope,
    quota: &Quota,
    dimension: Dimension,
    used: u128,
    asked: u128,
    finer: u128,
) -> Result<(), Refusal> {
    let Some(limit) = quota.limit(dimension) else { return Ok(()) };
    if asked == 0 || used.saturating_add(asked) <= u128::from(limit) * finer {
        return Ok(());
    }
    let unit = dimension.unit_for(&[limit]);
    Err(Refusal::QuotaPeriod {
        scope,
        what: unit.name.into(),
        limit: unit.limit(limit),
        used: unit.amount(used.div_ceil(finer)),
        asked: unit.amount(asked.div_ceil(finer)),
    })
}

/// A map as a list of pairs: a [`QuotaScope`] is no text, and only texts can be keys in JSON.
mod as_list {
    use super::{Book, OrdMap, QuotaScope};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        books: &OrdMap<QuotaScope, Book>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(books)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<OrdMap<QuotaScope, Book>, D::Error> {
        Vec::deserialize(deserializer).map(|pairs| pairs.into_iter().collect())
    }
}

/// As written: wide numbers as decimal texts, since few JSON readers take more than 64 bits.
#[derive(Serialize, Deserialize)]
struct StoredUsed {
    unit_ms: PerResource<String>,
    micro_credits: String,
}

impl From<PeriodUsage> for StoredUsed {
    fn from(used: PeriodUsage) -> StoredUsed {
        StoredUsed {
            unit_ms: used.unit_ms.map(|wide| wide.to_string()),
            micro_credits: used.micro_credits.to_string(),
        }
    }
}

impl TryFrom<StoredUsed> for PeriodUsage {
    type Error = std::num::ParseIntError;
    fn try_from(stored: StoredUsed) -> Result<PeriodUsage, Self::Error> {
        let [cpu, memory, gpu] = stored.unit_ms.map(|text| text.parse());
        Ok(PeriodUsage {
            unit_ms: [cpu?, memory?, gpu?],
            micro_credits: stored.micro_credits.parse()?,
        })
    }
}

#[cfg(test)]
mod tests;
