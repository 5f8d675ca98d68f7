//! Submissions and holds: a bid becomes a promise, a job goes into a queue.

use std::sync::Arc;

use super::Step;
use crate::accounts::Actor;
use crate::bid::{Bid, Request, units_in_range};
use crate::calendar::BookingHolder;
use crate::cluster::Purpose;
use crate::estimate::feature::Subject;
use crate::event::Event;
use crate::input::{Array, NewJob, Terms};
use crate::job::{Hold, Job, JobTerms, Member, Part, Plan, Promise, QueueTerms};
use crate::ledger::Account;
use crate::offer::{Declined, Quote};
use crate::output::Reply;
use crate::quote::{Decision, Move, counter_offers, decide, within};
use crate::refusal::Refusal;
use crate::state::UsedKey;
use crate::units::{HoldId, JobId, Money, Name, Time, UserId};
use crate::usage::{Usage, unit_ms};
use crate::waiting::ArrayBook;

/// Most jobs that may be in the state at a time.
const JOBS_MAX: usize = 4_000_000;

impl Step<'_> {
    pub(super) fn submit_once(
        &mut self,
        key: Option<Name>,
        job: NewJob,
    ) -> Result<Reply, Declined> {
        let fingerprint = key.as_ref().map_or(0, |_| fingerprint(&job));
        if let Some(reply) = self.seen(job.user, key.as_ref(), fingerprint)? {
            return Ok(reply);
        }
        let user = job.user;
        let reply = self.submit(job)?;
        self.remember(user, key, fingerprint, &reply);
        Ok(reply)
    }

    pub(super) fn hold_once(&mut self, key: Option<Name>, bid: Bid) -> Result<Reply, Declined> {
        let fingerprint = key.as_ref().map_or(0, |_| fingerprint(&bid));
        if let Some(reply) = self.seen(bid.user, key.as_ref(), fingerprint)? {
            return Ok(reply);
        }
        let user = bid.user;
        let reply = self.make_hold(bid)?;
        self.remember(user, key, fingerprint, &reply);
        Ok(reply)
    }

    /// The answer that a key got before.
    fn seen(
        &self,
        user: UserId,
        key: Option<&Name>,
        fingerprint: u64,
    ) -> Result<Option<Reply>, Declined> {
        let Some(key) = key else { return Ok(None) };
        match self.state.keys.get(&(user, key.clone())) {
            None => Ok(None),
            Some(used) if used.at + self.state.settings.remember <= self.state.now => Ok(None),
            Some(used) if used.fingerprint == fingerprint => Ok(Some(used.reply.clone())),
            Some(_) => Err(Refusal::KeyReused.into()),
        }
    }

    fn remember(&mut self, user: UserId, key: Option<Name>, fingerprint: u64, reply: &Reply) {
        if let Some(key) = key {
            let at = self.state.now;
            let used = UsedKey { at, fingerprint, reply: reply.clone() };
            self.state.key_ages.insert((at, user, key.clone()));
            let before = self.state.keys.insert((user, key.clone()), Arc::new(used));
            // A key whose time was over may be used anew.
            if let Some(before) = before.filter(|before| before.at != at) {
                self.state.key_ages.remove(&(before.at, user, key));
            }
        }
    }

    fn submit(&mut self, new: NewJob) -> Result<Reply, Declined> {
        self.state.accounts.user(new.user)?;
        new.check_number()?;
        let count = new.array.map_or(1, |array| array.count as usize);
        if self.state.jobs.len() + count > JOBS_MAX {
            return Err(Refusal::Limit { what: "jobs".into(), limit: JOBS_MAX }.into());
        }
        match new.terms.clone() {
            Terms::Bid { bid, most, overrun, release_when_idle } => {
                if bid.user != new.user {
                    let (user, bidder) = (new.user, bid.user);
                    return Err(Refusal::OthersBid { user, bidder }.into());
                }
                let decision = self.decide(&bid, most)?;
                let requests = &bid.one_of[decision.alternative].all_of;
                self.can_pay(bid.user, requests, &decision.parts)?;
                self.make_moves(&decision.moves);
                let alternative = decision.alternative as u8;
                let terms = Promise { bid, alternative, overrun, release_when_idle };
                Ok(self.promise(new, terms, decision.parts))
            }
            Terms::Hold { hold, overrun, release_when_idle } => {
                let held = self.state.hold(hold)?.clone();
                if held.bid.user != new.user {
                    return Err(Refusal::UnknownHold { hold }.into());
                }
                self.can_pay(new.user, held.requests(), &held.parts)?;
                self.end_hold(hold);
                let Hold { bid, alternative, parts, .. } = Hold::clone(&held);
                let terms = Promise { bid, alternative, overrun, release_when_idle };
                Ok(self.promise(new, terms, parts))
            }
            Terms::Queue { request, queue } => Ok(self.enqueue(new, request, queue)?),
        }
    }

    /// Decides on a bid; what is refused is told with counter-offers, and recorded as demand.
    fn decide(&mut self, bid: &Bid, most: Option<Money>) -> Result<Decision, Declined> {
        let now = self.state.now;
        let decision = match decide(self.state, bid, now, true) {
            Ok(decision) => decision,
            Err(refusal) => {
                let counter = counter_offers(self.state, bid, now, &refusal);
                let price = counter.value;
                self.events.push(Event::BidDeclined { user: bid.user, price });
                return Err(Declined { refusal, counter: Box::new(counter) });
            }
        };
        let price = decision.price();
        within(price, most).inspect_err(|_| {
            self.events.push(Event::BidDeclined { user: bid.user, price: Some(price) });
        })?;
        Ok(decision)
    }

    /// Whether the wallet and the quotas of the period cover it.
    fn can_pay(
        &self,
        user: UserId,
        requests: &[Request],
        parts: &[(Plan, Money)],
    ) -> Result<(), Refusal> {
        let price = Money(parts.iter().map(|(_, price)| price.0).sum());
        let mut hours = [0u128; 3];
        for (request, (plan, _)) in requests.iter().zip(parts) {
            let part = unit_ms(&request.units(), plan.to.since(plan.from).0);
            hours = [0, 1, 2].map(|r| hours[r] + part[r]);
        }
        let (usage, accounts) = (&self.state.usage, &self.state.accounts);
        usage.check_period(accounts, user, self.state.now, hours, price)?;
        let balance = self.state.ledger.balance(Account::Wallet(user));
        if balance < price {
            return Err(Refusal::Funds { balance, needed: price });
        }
        Ok(())
    }

    fn promise(&mut self, new: NewJob, terms: Promise, parts: Vec<(Plan, Money)>) -> Reply {
        let id = JobId(self.state.next_job);
        self.state.next_job += 1;
        let now = self.state.now;
        let user = new.user;
        let group = self.state.group_of(user);
        let requests = terms.bid.one_of[usize::from(terms.alternative)].all_of.clone();
        let alternative = terms.alternative;
        let mut job = Job {
            id,
            user,
            group,
            name: new.name,
            attributes: new.attributes,
            priority: new.priority,
            submitted: now,
            array: None,
            after: Vec::new(),
            ready: None,
            terms: JobTerms::Promise(terms),
            outlook: Default::default(),
            parts: Vec::new(),
            verdict: None,
            ended: None,
        };
        let plans: Vec<Plan> = parts.iter().map(|(plan, _)| plan.clone()).collect();
        let quote = Quote::of(alternative, &parts);
        for ((plan, price), request) in parts.into_iter().zip(requests) {
            job.parts.push(Part::booked(request, plan, price));
        }
        let starts_now: Vec<u16> = (0..job.parts.len() as u16)
            .filter(|i| job.parts[usize::from(*i)].plan().is_some_and(|p| p.from <= now))
            .collect();
        let postings = self.state.add_job(job);
        self.posted(id, postings);
        let price = quote.price;
        self.events.push(Event::Promised { job: id, user, price, parts: plans });
        for part in starts_now {
            self.start_promise(id, part);
        }
        Reply::Accepted { job: id, quote: Some(quote), count: 1 }
    }

    fn make_hold(&mut self, bid: Bid) -> Result<Reply, Declined> {
        self.state.accounts.user(bid.user)?;
        let most = self.state.settings.holds_max;
        let mine = self.state.holds.values().filter(|h| h.bid.user == bid.user).count();
        if mine >= most as usize {
            return Err(Refusal::TooManyHolds { most }.into());
        }
        let decision = self.decide(&bid, None)?;
        let requests = &bid.one_of[decision.alternative].all_of;
        self.can_pay(bid.user, requests, &decision.parts)?;
        let quote = decision.quote();
        self.make_moves(&decision.moves);
        let id = HoldId(self.state.next_hold);
        self.state.next_hold += 1;
        let expires = self.state.now + self.state.settings.hold_for;
        let (user, alternative) = (bid.user, decision.alternative as u8);
        let group = self.state.group_of(user);
        let (parts, cleared) = (decision.parts, Default::default());
        let hold = Hold { id, group, bid, alternative, parts, expires, cleared };
        self.events.push(Event::Held { hold: id, user, price: quote.price, expires });
        self.state.add_hold(hold);
        Ok(Reply::Held { hold: id, expires, quote })
    }

    pub(super) fn drop_hold(&mut self, hold: HoldId, by: Actor) -> Result<(), Refusal> {
        let held = self.state.hold(hold)?;
        if by != Actor::Administrator && by != Actor::User(held.bid.user) {
            return Err(Refusal::UnknownHold { hold });
        }
        self.end_hold(hold);
        Ok(())
    }

    /// A hold is over: its capacity is free again.
    pub(super) fn end_hold(&mut self, id: HoldId) {
        if self.state.remove_hold(id).is_some() {
            self.events.push(Event::HoldEnded { hold: id });
        }
    }

    /// Moves promises that have not started to the seats that were found for them.
    pub(super) fn make_moves(&mut self, moves: &[Move]) {
        for Move { holder, to, .. } in moves {
            match *holder {
                BookingHolder::Job { job, part, rank, .. } => {
                    let index = usize::from(part);
                    let from = self.edit_part(job, index, |part| {
                        let (plan, cleared) = part.coming_mut()?;
                        let seat = plan.seats.get_mut(rank as usize)?;
                        *cleared = false;
                        Some(std::mem::replace(seat, *to))
                    });
                    let moved = |from| Event::Moved { job, part, rank, from, to: *to };
                    self.events.extend(from.flatten().map(moved));
                }
                BookingHolder::Hold { hold, part, rank } => {
                    self.state.edit_hold(hold, |hold| {
                        hold.parts[usize::from(part)].0.seats[rank as usize] = *to;
                        hold.cleared.remove(&part);
                    });
                    self.events.push(Event::HoldMoved { hold, part, rank, to: *to });
                }
                BookingHolder::Maintenance => {}
            }
        }
    }

    fn enqueue(
        &mut self,
        new: NewJob,
        request: Request,
        terms: QueueTerms,
    ) -> Result<Reply, Refusal> {
        let queue = self.state.queue(&terms.queue)?.clone();
        check_queue_request(self.state, new.user, &request)?;
        let after = self.still_to_come(&new.after)?;
        let count = new.array.map_or(1, |array| array.count);
        let waiting = self.state.waiting_count(&queue.name) + count as usize;
        if waiting > queue.waiting_max as usize {
            let limit = queue.waiting_max as usize;
            return Err(Refusal::Limit { what: "waiting jobs".into(), limit });
        }
        let id = JobId(self.state.next_job);
        self.state.next_job += u64::from(count);
        let now = self.state.now;
        let group = self.state.accounts.user(new.user)?.group;
        let not_before = request.window.earliest.max(Time(0));
        let mut job = Job {
            id,
            user: new.user,
            group,
            name: new.name,
            attributes: new.attributes,
            priority: new.priority,
            submitted: now,
            array: new.array.map(|_| Member { first: id, edited: false }),
            after,
            ready: None,
            terms: JobTerms::Queue(terms),
            outlook: Default::default(),
            parts: vec![Part::waiting(request, not_before)],
            verdict: None,
            ended: None,
        };
        job.outlook.arrivals = Subject::from(&job).arrive(&mut self.state.histories);
        job.outlook.prediction = self.prediction(&job);
        self.events.push(Event::Queued { job: id, user: job.user, queue: queue.name, count });
        if let Some(Array { count, running_max }) = new.array {
            let book = ArrayBook::new(id, count, running_max);
            self.state.arrays.insert(id, book);
            for next in id.0 + 1..id.0 + u64::from(count) {
                // An array has come once, so what was predicted of one holds for all.
                self.state.add_job(Job { id: JobId(next), ..job.clone() });
            }
        }
        self.state.add_job(job);
        Ok(Reply::Accepted { job: id, quote: None, count })
    }
}

/// What no waiting could mend about a job for a queue.
pub(super) fn check_queue_request(
    state: &crate::state::State,
    user: UserId,
    request: &Request,
) -> Result<(), Refusal> {
    request.check_shape()?;
    if request.window.earliest > Time::LATEST || request.window.earliest < Time(0) {
        return Err(Refusal::BadTime { given: request.window.earliest });
    }
    if !request.after.is_empty() {
        return Err(Refusal::BadOrder { request: 0 });
    }
    if !units_in_range(request) {
        return Err(Refusal::TooLarge);
    }
    state.cluster.check_request(&state.eligibility(request, user, Purpose::Queue))?;
    Usage::check_size(&state.accounts, user, request.units())
}

/// FNV-1a of the canonical serialisation: tells a repeated request from another one under the
/// same key. Only a user's own requests are compared, so nothing is gained by a collision.
fn fingerprint(value: &impl serde::Serialize) -> u64 {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
