//! The production core on a virtual clock: bids go in, tasks start when they are launched and
//! exit when their time is over.
//!
//! The executor is as small as one can be: whatever is launched runs at once, for the whole time
//! that was promised. Its exit is reported just before the end, since at the end the core would
//! stop it as one that overran. Queue work that is told to make room saves what it did and is gone
//! at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::accounts::{Group, User};
use era_core::cluster::Pool;
use era_core::forecast::Forecast;
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::{Outcome, Overrun, QueueTerms, TaskId};
use era_core::ledger::Account;
use era_core::market::MarketRules;
use era_core::quota::Quota;
use era_core::quote::Quote;
use era_core::resources::{Capacity, Gpu};
use era_core::settings::Settings;
use era_core::units::{GroupId, JobId, Milli, Money, Name, Span, Time, UserId};
use era_core::{Command, Effect, Event, Input, Reply, State, next_wakeup, step};

use super::stream::{Asked, CORE, Site};
use crate::BadInput;

const BIDDER: UserId = UserId(0);

/// The name of the one pool.
pub(super) fn pool() -> Name {
    named("pool")
}

#[allow(clippy::expect_used)] // a name written in the source is one
fn named(text: &str) -> Name {
    Name::new(text).expect("a name written in the source is one")
}

/// The core, its clock and its executor.
pub(super) struct Driver {
    site: Site,
    state: State,
    now: Time,
    exits: BTreeMap<(Time, TaskId), ()>,
    told: BTreeMap<JobId, (Quote, Time)>,
    /// Bids that were refused and wait in the queue instead, or run from there.
    filling: BTreeMap<JobId, Filling>,
    /// Until when use is counted.
    last: Time,
    /// Unit-milliseconds that queue work has run until then.
    pub(super) filled: f64,
    /// Promises that ended well and by their deadline.
    pub(super) kept: u64,
    /// Promises that did not.
    pub(super) broken: u64,
}

/// Queue work: how large, how long, and how much of it is done.
struct Filling {
    size: u32,
    duration: Span,
    done: Span,
    since: Option<Time>,
}

/// From the word to stop to the end.
pub(super) const GRACE: Span = Span(1);

impl Driver {
    /// A site with nothing promised, at `now`.
    pub(super) fn new(
        site: Site,
        settings: Settings,
        rules: MarketRules,
        now: Time,
    ) -> Result<Driver, BadInput> {
        let mut driver = Driver {
            site,
            state: State::new(settings.clone(), rules.clone()),
            now,
            exits: BTreeMap::new(),
            told: BTreeMap::new(),
            filling: BTreeMap::new(),
            last: Time::MAX,
            filled: 0.0,
            kept: 0,
            broken: 0,
        };
        // Through `step`, so that what is out of range is refused and not taken as it is.
        driver.must(Command::SetSettings { settings })?;
        driver.must(Command::SetMarket { rules })?;
        let (name, rates) = (pool(), site.rates());
        let (closed_share, level_caps) = (Milli(0), BTreeMap::new());
        driver.must(Command::PutPool { pool: Pool { name, rates, closed_share, level_caps } })?;
        for some in nodes(site).chunks(4096) {
            driver.must(Command::Join { nodes: some.to_vec() })?;
        }
        let (id, quota) = (GroupId(0), Quota::default());
        driver.must(Command::PutGroup { group: Group { id, level: 0, quota } })?;
        let user = User { id: BIDDER, group: id, level: 0, group_admin: false, quota };
        driver.must(Command::PutUser { user })?;
        for _ in 0..1000 {
            driver.must(Command::Grant { user: BIDDER, amount: Money::MOST })?;
        }
        Ok(driver)
    }

    /// A bid, at the time of its submission.
    pub(super) fn bid(&mut self, asked: &Asked) -> Option<Quote> {
        self.until(asked.submitted);
        let bid = asked.bid(self.site, BIDDER);
        let terms =
            Terms::Bid { bid, most: None, overrun: Overrun::Stop, release_when_idle: false };
        let attributes = Default::default();
        let job = NewJob {
            user: BIDDER,
            name: None,
            attributes,
            priority: 0,
            terms,
            array: None,
            after: Vec::new(),
        };
        match self.send(Command::Submit { key: None, job }) {
            Reply::Accepted { job, quote: Some(quote), .. } => {
                self.told.insert(job, (quote.clone(), asked.deadline));
                Some(quote)
            }
            _ => None,
        }
    }

    /// A bid that was refused waits in the queue: preemptible, so that no promise is the worse for
    /// it. Use is counted until `last`.
    pub(super) fn fill(&mut self, asked: &Asked, last: Time) {
        self.last = last;
        let mut bid = asked.bid(self.site, BIDDER);
        let request = bid.one_of.swap_remove(0).all_of.swap_remove(0);
        let queue =
            QueueTerms { queue: named("default"), preemptible: true, release_when_idle: false };
        let (attributes, terms) = (Default::default(), Terms::Queue { request, queue });
        let job = NewJob {
            user: BIDDER,
            name: None,
            attributes,
            priority: 0,
            terms,
            array: None,
            after: Vec::new(),
        };
        if let Reply::Accepted { job, .. } = self.send(Command::Submit { key: None, job }) {
            let (size, duration) = (asked.size, asked.duration);
            self.filling.insert(job, Filling { size, duration, done: Span::ZERO, since: None });
            self.send(Command::Pass);
        }
    }

    /// Queue work stops running, now.
    fn pause(&mut self, job: JobId) -> Option<Span> {
        let filling = self.filling.get_mut(&job)?;
        let since = filling.since.take()?;
        filling.done = Span(filling.done.0 + self.now.since(since).0);
        let counted = self.now.min(self.last).since(since).ms().max(0);
        self.filled += f64::from(filling.size) * counted as f64;
        Some(filling.done)
    }

    /// A forecast, now.
    pub(super) fn publish(&mut self, forecast: Forecast) -> Result<(), BadInput> {
        self.must(Command::PublishForecast { forecast: Arc::new(forecast) })
    }

    /// Lets everything that is promised run to its end.
    pub(super) fn finish(&mut self) {
        while let Some((at, _)) = self.exits.keys().next().copied().or(self.next_promise()) {
            self.until(at);
        }
    }

    /// What was earned.
    pub(super) fn revenue(&self) -> Money {
        self.state.ledger().balance(Account::Revenue)
    }

    fn next_promise(&self) -> Option<(Time, TaskId)> {
        let (job, (quote, _)) = self.told.first_key_value()?;
        Some((quote.finish, TaskId { job: *job, part: 0, attempt: 0, rank: 0 }))
    }

    /// Lets time pass, whatever happens first coming first.
    pub(super) fn until(&mut self, time: Time) {
        loop {
            let exit = self.exits.keys().next().copied();
            let next = exit.map(|(at, _)| at).into_iter().chain(next_wakeup(&self.state)).min();
            let Some(next) = next.filter(|next| *next <= time) else { break };
            self.now = self.now.max(next);
            match exit.filter(|(at, _)| *at == next) {
                Some((at, task)) => {
                    self.exits.remove(&(at, task));
                    self.pause(task.job);
                    self.send(Command::Exited { task, code: 0, at: None });
                }
                None => {
                    self.send(Command::Tick);
                }
            }
            if !self.filling.is_empty() {
                self.send(Command::Pass);
            }
        }
        self.now = self.now.max(time);
    }

    fn must(&mut self, command: Command) -> Result<(), BadInput> {
        match self.send(command) {
            Reply::Refused { refusal, .. } => Err(BadInput::new(refusal.to_string())),
            _ => Ok(()),
        }
    }

    fn send(&mut self, command: Command) -> Reply {
        let input = Input { seq: self.state.seq() + 1, at: self.now, command };
        let output = step(&mut self.state, input);
        for event in &output.events {
            if let Event::Ended { job, outcome, .. } = event {
                self.filling.remove(job);
                self.ended(*job, outcome);
            }
        }
        for effect in output.effects {
            match effect {
                Effect::Launch { task, until, .. } => self.launch(task, until),
                Effect::Stop { task, .. } => self.stop(task),
                _ => {}
            }
        }
        output.reply
    }

    fn launch(&mut self, task: TaskId, until: Time) {
        let mut end = until - GRACE - Span(1);
        if let Some(filling) = self.filling.get_mut(&task.job) {
            filling.since = Some(self.now);
            end = (self.now + Span(filling.duration.0 - filling.done.0)).min(end).max(self.now);
        }
        self.exits.insert((end, task), ());
        self.send(Command::Started { task });
    }

    /// A task makes room: it saves its work, and is gone.
    fn stop(&mut self, task: TaskId) {
        self.exits.retain(|(_, running), ()| *running != task);
        if let Some(done) = self.pause(task.job).filter(|done| *done > Span::ZERO) {
            self.send(Command::Checkpointed { task, done });
        }
        self.send(Command::Exited { task, code: 143, at: None });
    }

    /// Compares what a promise came to with what was told.
    fn ended(&mut self, job: JobId, outcome: &Outcome) {
        let Some((quote, deadline)) = self.told.remove(&job) else { return };
        let in_time = quote.finish <= deadline && self.now <= quote.finish;
        if *outcome == Outcome::Succeeded && in_time {
            self.kept += 1;
        } else {
            self.broken += 1;
        }
    }
}

fn nodes(site: Site) -> Vec<NewNode> {
    let node = |index: u32, cpu, gpus: u32| NewNode {
        name: named(&format!("n{index}")),
        pool: pool(),
        capacity: Capacity {
            cpu,
            memory: 0,
            gpus: vec![Gpu { model: named("gpu"), memory: 0 }; gpus as usize],
            devices: BTreeMap::new(),
        },
        labels: BTreeMap::new(),
        rack: None,
        domain: None,
    };
    match site {
        Site::Gpus { total, per_node } => {
            (0..total / per_node).map(|index| node(index, 0, per_node)).collect()
        }
        Site::Units(units) => vec![node(0, units * CORE as u32, 0)],
    }
}
