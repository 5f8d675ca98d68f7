//! What users and groups have spent and used in a period, found again in the journal: spending
//! exactly, posting by posting. Of hours it is known that what is paid for and not over counts.

use std::collections::BTreeMap;

use era_core::job::Job;
use era_core::ledger::{Posting, PostingReason};
use era_core::refusal::QuotaScope;
use era_core::resources::PerResource;
use era_core::units::{GroupId, JobId, Money, Span, Time, UserId};
use era_core::{Event, Output, State};

type Owner = (UserId, GroupId);

/// A part of a job, or growth of it by rank. Queue work is paid for each attempt anew.
type Key = (JobId, usize, u32, Option<u32>);

/// What is paid for and not settled.
#[derive(Clone, Copy, Debug)]
struct Use {
    owner: Owner,
    is_promise: bool,
    /// The instant in whose period it counts.
    counted: Time,
    from: Time,
    to: Time,
    units: PerResource<u64>,
    escrow: Money,
    /// The hours that were counted when it was paid and prolonged.
    hours: PerResource<u128>,
}

#[derive(Clone, Debug, Default)]
pub struct Periods {
    spent: BTreeMap<(QuotaScope, i64), i64>,
    uses: BTreeMap<Key, Use>,
    owners: BTreeMap<JobId, (Owner, Time)>,
    /// When periods were last given another length: what was counted before counts no more.
    anew: Option<Time>,
}

fn unit_ms(units: PerResource<u64>, span: Span) -> PerResource<u128> {
    units.map(|units| u128::from(units) * u128::try_from(span.0.max(0)).unwrap())
}

fn scopes((user, group): Owner) -> [QuotaScope; 2] {
    [QuotaScope::User(user), QuotaScope::Group(group)]
}

/// What a job has paid for.
fn uses(job: &Job) -> Vec<(Key, Use)> {
    let mut found = Vec::new();
    let is_promise = job.promise().is_some();
    let owner = (job.user, job.group);
    let mut add = |key, units, (is_promise, counted), (from, to): (Time, Time), escrow| {
        let hours = unit_ms(units, to.since(from));
        let paid = Use { owner, is_promise, counted, from, to, units, escrow, hours };
        found.push((key, paid));
    };
    for (index, part) in job.parts.iter().enumerate() {
        let (plan, run) = (part.plan(), part.run());
        if let Some(plan) = plan {
            let (key, counted) = match (is_promise, run) {
                (false, Some(run)) => ((job.id, index, part.attempt, None), (false, run.since)),
                _ => ((job.id, index, 0, None), (is_promise, job.submitted)),
            };
            add(key, part.request.units(), counted, (plan.from, plan.to), part.escrow());
        }
        for extra in part.extras() {
            let key = (job.id, index, part.attempt, Some(extra.rank));
            let units = part.request.each.units(1);
            add(key, units, (false, extra.since), (extra.since, extra.to), extra.escrow);
        }
    }
    found
}

impl Periods {
    /// Takes note of a step, and says in which period something else is counted.
    pub fn follow(&mut self, before: &State, state: &State, output: &Output) -> Result<(), String> {
        for job in before.jobs().chain(state.jobs()) {
            self.owners.insert(job.id, ((job.user, job.group), job.submitted));
        }
        let now: BTreeMap<Key, Use> = state.jobs().flat_map(|job| uses(job)).collect();
        let is_over = |key: &Key| !now.contains_key(key);
        let over: Vec<(Key, Use)> =
            self.uses.iter().filter(|(key, _)| is_over(key)).map(|(k, u)| (*k, *u)).collect();
        self.count_spending(before, state, output, &over)?;
        self.count_hours(now);
        self.compare(state)
    }

    fn count_spending(
        &mut self,
        before: &State,
        state: &State,
        output: &Output,
        over: &[(Key, Use)],
    ) -> Result<(), String> {
        let mut period = before.usage().period();
        let mut open: Vec<(JobId, Time, i64)> = over
            .iter()
            .filter(|(_, paid)| !paid.is_promise)
            .map(|(key, paid)| (key.0, paid.counted, paid.escrow.0))
            .collect();
        let mut earned = None;
        for event in &output.events {
            if matches!(event, Event::Changed { .. }) && state.usage().period() != period {
                period = state.usage().period();
                self.anew = Some(state.now());
                self.spent.clear();
            }
            let Event::Posted { job: Some(job), posting } = event else { continue };
            let Some((owner, submitted)) = self.owners.get(job).copied() else { continue };
            let Posting { amount: Money(amount), reason, .. } = *posting;
            let just_earned = earned.take().filter(|(id, _)| id == job);
            let (at, spent) = match reason {
                PostingReason::Charge => (state.now(), amount),
                PostingReason::QueueEscrow => {
                    open.push((*job, state.now(), amount));
                    (state.now(), amount)
                }
                PostingReason::Extension => (submitted, amount),
                PostingReason::RefundUnused | PostingReason::RefundBroken => (submitted, -amount),
                PostingReason::Earned => {
                    earned = Some((*job, amount));
                    continue;
                }
                PostingReason::Returned => {
                    let wholes = just_earned.map(|(_, earned)| earned + amount);
                    let of = |whole| open.iter().position(|o| (o.0, o.2) == (*job, whole));
                    let found = wholes.and_then(of).or_else(|| of(amount));
                    let Some(found) = found else {
                        return Err(format!("{job} was returned {amount} of {open:?}"));
                    };
                    (open.remove(found).1, -amount)
                }
                PostingReason::Grant | PostingReason::Withdraw => continue,
            };
            for scope in scopes(owner) {
                let spending = self.spent.entry((scope, period.index(at))).or_default();
                *spending = (*spending + spent).max(0);
            }
        }
        Ok(())
    }

    /// Takes note of what is paid for now.
    fn count_hours(&mut self, mut now: BTreeMap<Key, Use>) {
        // What goes on elsewhere is counted once, what is prolonged for as long as it is longer.
        for (key, paid) in &mut now {
            let Some(was) = self.uses.get(key) else { continue };
            let longer = match was.from == paid.from {
                true => unit_ms(paid.units, paid.to.since(was.to)),
                false => [0; 3],
            };
            paid.hours = [0, 1, 2].map(|r| was.hours[r] + longer[r]);
        }
        self.uses = now;
    }

    /// This period and the one before are kept.
    fn compare(&self, state: &State) -> Result<(), String> {
        let period = state.usage().period();
        let current = period.index(state.now());
        let mut live: BTreeMap<(QuotaScope, i64), PerResource<u128>> = BTreeMap::new();
        for paid in self.uses.values() {
            for scope in scopes(paid.owner) {
                let sum = live.entry((scope, period.index(paid.counted))).or_default();
                *sum = [0, 1, 2].map(|r| sum[r] + paid.hours[r]);
            }
        }
        let accounts = state.accounts();
        let users = accounts.users().map(|user| QuotaScope::User(user.id));
        for scope in users.chain(accounts.groups().map(|group| QuotaScope::Group(group.id))) {
            for index in [current - 1, current] {
                let length = state.settings().period;
                let used = state.usage().used(scope, Time(index * length.0));
                let spent = self.spent.get(&(scope, index)).copied().unwrap_or_default();
                if i128::try_from(used.micro_credits) != Ok(i128::from(spent)) {
                    let told = used.micro_credits;
                    return Err(format!("{scope} spent {spent} in period {index}, not {told}"));
                }
                let least = live.get(&(scope, index)).copied().unwrap_or_default();
                // What was counted in periods of another length is taken back from these.
                if self.anew.is_some_and(|anew| index <= period.index(anew)) {
                    continue;
                }
                let told = used.unit_ms;
                if (0..3).any(|r| told[r] < least[r]) {
                    return Err(format!("{scope} used {told:?} in period {index}, not {least:?}"));
                }
            }
        }
        Ok(())
    }
}
