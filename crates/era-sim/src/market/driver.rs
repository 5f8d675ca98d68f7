//! A site on a virtual clock: bids go in, tasks start when they are launched and exit when their
//! time is over.
//!
//! Whatever is launched runs at once, for the whole time that was promised. Its exit is reported
//! just before the end, since at the end the core would stop it as one that overran. Queue work
//! that is told to make room saves what it did and is gone at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::cluster::Pool;
use era_core::forecast::Forecast;
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::{Outcome, QueueTerms};
use era_core::ledger::Account;
use era_core::market::MarketRules;
use era_core::offer::Quote;
use era_core::resources::{Capacity, Gpu};
use era_core::settings::Settings;
use era_core::units::{GroupId, JobId, Money, Name, Span, Time, UserId};
use era_core::{Command, Effect, Event, Input, Output, Reply, State};
use era_drive::{Conduct, Pace, Scenario, SiteBuilder, World, name};

use super::stream::{CORE, MarketCluster, TraceBid};
use crate::BadInput;

const BIDDER: UserId = UserId(0);

pub(super) fn pool() -> Name {
    name("pool")
}

/// A site, and what came of the bids so far.
pub(super) struct Driver {
    site: MarketCluster,
    world: World<Book>,
    now: Time,
}

/// What came of bids.
#[derive(Default)]
pub(super) struct Book {
    /// What was promised and is not over: the quote, and until when it was wanted.
    told: BTreeMap<JobId, (Quote, Time)>,
    /// Bids that were refused and wait in the queue instead, or run from there: how large, and
    /// since when they run.
    filling: BTreeMap<JobId, (u32, Option<Time>)>,
    /// Until when use is counted.
    last: Time,
    /// Unit-milliseconds that queue work has run until then.
    pub(super) filled: f64,
    /// Promises that ended well and by their deadline.
    pub(super) kept: u64,
    /// Promises that did not.
    pub(super) broken: u64,
}

impl Book {
    /// Queue work stops running.
    fn pause(&mut self, job: JobId, now: Time) {
        let Some((size, since)) = self.filling.get_mut(&job) else { return };
        let Some(since) = since.take() else { return };
        let counted = now.min(self.last).since(since).ms().max(0);
        self.filled += f64::from(*size) * counted as f64;
    }

    /// Compares what a promise came to with what was told.
    fn ended(&mut self, job: JobId, outcome: &Outcome, now: Time) {
        let Some((quote, deadline)) = self.told.remove(&job) else { return };
        let in_time = quote.finish <= deadline && now <= quote.finish;
        if *outcome == Outcome::Succeeded && in_time {
            self.kept += 1;
        } else {
            self.broken += 1;
        }
    }
}

/// The market's own book is kept of its world.
impl Scenario for Book {
    /// Runs for as long as was asked, and is over just before it would be told to stop.
    fn conduct(&self, state: &State, job: JobId, part: u16) -> Conduct {
        let part = state.job(job).ok().and_then(|job| job.parts.get(usize::from(part)));
        let asked = part.map_or(Span(1), |part| part.request.duration);
        let work = Span(asked.0 - GRACE.0 - 1);
        Conduct { work, saves_on_stop: true, ..Conduct::default() }
    }

    fn follow(&mut self, input: &Input, output: &Output, _: &State) {
        for effect in &output.effects {
            if let Effect::Launch { task, .. } = effect
                && let Some((_, since)) = self.filling.get_mut(&task.job)
            {
                *since = Some(input.at);
            }
        }
        if let Command::Exited { task, .. } = input.command {
            self.pause(task.job, input.at);
        }
        for event in &output.events {
            if let Event::Ended { job, outcome, .. } = event {
                self.filling.remove(job);
                self.ended(*job, outcome, input.at);
            }
        }
    }
}

/// From the word to stop to the end.
pub(super) const GRACE: Span = Span(1);

impl Driver {
    /// A site with nothing promised, at `now`.
    pub(super) fn new(
        site: MarketCluster,
        settings: Settings,
        market: MarketRules,
        now: Time,
    ) -> Result<Driver, BadInput> {
        let mut built = SiteBuilder {
            settings,
            market,
            pools: vec![Pool { rates: site.rates(), ..Pool::new(pool()) }],
            nodes: nodes(site),
            ..SiteBuilder::default()
        };
        built.user(BIDDER, GroupId(0), Money::MOST);
        let book = Book { last: Time::MAX, ..Book::default() };
        let world = World::of(&built, now, Pace::AT_ONCE, book)?;
        let mut driver = Driver { site, world, now };
        for _ in 1..1000 {
            driver.must(Command::Grant { user: BIDDER, amount: Money::MOST })?;
        }
        Ok(driver)
    }

    /// A bid, at the time of its submission.
    pub(super) fn bid(&mut self, asked: &TraceBid) -> Option<Quote> {
        self.until(asked.submitted);
        let job = NewJob::new(BIDDER, Terms::bid(asked.bid(self.site, BIDDER)));
        match self.send(Command::Submit { key: None, job }) {
            Reply::Accepted { job, quote: Some(quote), .. } => {
                let told = (quote.clone(), asked.deadline);
                self.world.scenario_mut().told.insert(job, told);
                Some(quote)
            }
            _ => None,
        }
    }

    /// A bid that was refused waits in the queue: preemptible, so that no promise is the worse for
    /// it. Use is counted until `last`.
    pub(super) fn fill(&mut self, asked: &TraceBid, last: Time) {
        self.world.scenario_mut().last = last;
        let mut bid = asked.bid(self.site, BIDDER);
        let request = bid.one_of.swap_remove(0).all_of.swap_remove(0);
        let queue = QueueTerms { preemptible: true, ..QueueTerms::new(name("default")) };
        let job = NewJob::new(BIDDER, Terms::Queue { request, queue });
        if let Reply::Accepted { job, .. } = self.send(Command::Submit { key: None, job }) {
            self.world.scenario_mut().filling.insert(job, (asked.size, None));
            self.world.settle(self.now);
        }
    }

    /// A forecast, now.
    pub(super) fn publish(&mut self, forecast: Forecast) -> Result<(), BadInput> {
        self.must(Command::PublishForecast { forecast: Arc::new(forecast) })
    }

    /// Lets everything that is promised, and all that runs, go on to its end.
    pub(super) fn finish(&mut self) {
        let runs = |book: &Book| book.filling.values().any(|(_, since)| since.is_some());
        let is_open = |book: &Book| !book.told.is_empty() || runs(book);
        while is_open(self.book()) {
            let Some(next) = self.world.next() else { break };
            self.until(next);
        }
    }

    /// What came of the bids so far.
    pub(super) fn book(&self) -> &Book {
        self.world.scenario()
    }

    /// What was earned.
    pub(super) fn revenue(&self) -> Money {
        self.world.state().ledger().balance(Account::Revenue)
    }

    /// Lets time pass, whatever happens first coming first.
    pub(super) fn until(&mut self, time: Time) {
        self.world.until(time);
        self.now = self.now.max(time);
    }

    fn must(&mut self, command: Command) -> Result<(), BadInput> {
        match self.send(command) {
            Reply::Refused { refusal, .. } => Err(refusal.into()),
            _ => Ok(()),
        }
    }

    fn send(&mut self, command: Command) -> Reply {
        self.world.send(self.now, command).reply
    }
}

fn nodes(site: MarketCluster) -> Vec<NewNode> {
    let node = |index: u32, cpu, gpus: u32| {
        let gpus = vec![Gpu { model: name("gpu"), memory: 0 }; gpus as usize];
        let capacity = Capacity { cpu, gpus, ..Capacity::default() };
        NewNode::new(name(&format!("n{index}")), pool(), capacity)
    };
    match site {
        MarketCluster::Gpus { total, per_node } => {
            (0..total / per_node).map(|index| node(index, 0, per_node)).collect()
        }
        MarketCluster::Units(units) => vec![node(0, units * CORE as u32, 0)],
    }
}
