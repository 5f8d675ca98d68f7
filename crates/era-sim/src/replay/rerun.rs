//! A history under another rule: the same asks at the same times, with an executor of our own.

use std::collections::BTreeMap;

use era_core::input::Terms;
use era_core::job::{After, Outcome, When};
use era_core::units::{HoldId, JobId, Span, Time};
use era_core::{Command, Input, Output, Reply, State};
use era_drive::{Conduct, Pace, Scenario, World};

use super::book::Book;
use super::history::{RecordedHistory, RecordedInput};
use super::rules::RuleOverrides;
use crate::BadInput;

/// How long after the last ask the run goes on, so that what waits or runs then may end.
const DRAIN_MAX: Span = Span::from_days(90);

/// What came of a history under another rule.
#[derive(Clone, Debug, Default)]
pub struct Rerun {
    /// What became of each job, by its number here.
    pub book: Book,
    /// The number here of each job of the record.
    pub job_of: BTreeMap<JobId, JobId>,
    /// Jobs that were refused in the record: the place of the ask, and the number here.
    pub accepted_here: Vec<(usize, JobId)>,
    /// Jobs of the record that are refused here.
    pub refused_here: Vec<JobId>,
    /// When a submission or a bid was refused here.
    pub refusals: Vec<Time>,
    /// Asks that were granted in the record and cannot be here: the job they are about is not
    /// here, or is in another state by then.
    pub skipped: u64,
    /// How many inputs the core was given.
    pub inputs: u64,
}

/// What the record says of the jobs here, and what becomes of them.
struct RerunRecord<'a> {
    history: &'a RecordedHistory,
    /// Which job of the record a job here is, if it is one.
    links: BTreeMap<JobId, Option<JobId>>,
    book: Book,
}

impl Scenario for RerunRecord<'_> {
    /// As it did in the record, and as it was said to where that is not known.
    fn conduct(&self, state: &State, job: JobId, part: u16) -> Conduct {
        let recorded = self.links.get(&job).copied().flatten();
        let known = recorded.and_then(|recorded| self.history.conduct.get(&(recorded, part)));
        let mut conduct = known.cloned().unwrap_or_default();
        if conduct.work <= Span::ZERO {
            let part = |job: &era_core::job::Job| {
                job.parts.get(usize::from(part)).map(|part| part.request.duration)
            };
            conduct.work = state.job(job).ok().and_then(|job| part(job)).unwrap_or(Span(1));
        }
        conduct
    }

    fn follow(&mut self, input: &Input, output: &Output, state: &State) {
        self.book.follow(state, input, &output.events);
    }
}

/// Runs asks from a state of the record. `progress` is told how many asks are through.
pub fn rerun(
    history: &RecordedHistory,
    start: &State,
    asks: &[RecordedInput],
    rules: &RuleOverrides,
    progress: &dyn Fn(u64),
) -> Result<Rerun, BadInput> {
    let open: Vec<JobId> = start.jobs().map(|job| job.id).collect();
    let links = open.iter().map(|job| (*job, Some(*job))).collect();
    let record = RerunRecord { history, links, book: Book::of(start) };
    let mut again = RerunJob {
        world: World::new(start.clone(), Pace::default(), record),
        rules,
        holds: start.holds().map(|hold| (hold.id, hold.id)).collect(),
        bids: start.holds().map(|hold| (hold.id, hold.bid.clone())).collect(),
        rerun: Rerun { job_of: open.iter().map(|job| (*job, *job)).collect(), ..Rerun::default() },
    };
    for command in rules.opening(start) {
        if let Reply::Refused { refusal, .. } = again.world.send(start.now(), command).reply {
            return Err(refusal.into());
        }
    }
    again.run(asks, start.now(), progress);
    let RerunJob { world, mut rerun, .. } = again;
    rerun.inputs = world.state().seq() - start.seq();
    rerun.book = world.into_scenario().book;
    Ok(rerun)
}

struct RerunJob<'a> {
    world: World<RerunRecord<'a>>,
    rules: &'a RuleOverrides,
    /// The number here of each hold of the record.
    holds: BTreeMap<HoldId, HoldId>,
    /// What each hold of the record was for.
    bids: BTreeMap<HoldId, era_core::bid::Bid>,
    rerun: Rerun,
}

impl RerunJob<'_> {
    fn run(&mut self, asks: &[RecordedInput], start: Time, progress: &dyn Fn(u64)) {
        let last = asks.last().map_or(start, |ask| ask.at) + DRAIN_MAX;
        let mut next = 0;
        loop {
            let asked = asks.get(next).map(|ask| ask.at);
            let Some(now) = [asked, self.world.next()].into_iter().flatten().min() else { return };
            if asked.is_none() && now > last {
                return;
            }
            self.world.advance(now);
            while let Some(ask) = asks.get(next).filter(|ask| ask.at <= now) {
                self.ask(next, ask, now);
                next += 1;
            }
            progress(next as u64);
            self.world.settle(now);
        }
    }

    fn ask(&mut self, place: usize, ask: &RecordedInput, now: Time) {
        let Some(command) = self.translate(ask.command.clone()) else {
            self.rerun.skipped += u64::from(!ask.refused);
            return;
        };
        if let (Some(hold), Command::Hold { bid, .. }) = (ask.hold, &command) {
            self.bids.insert(hold, bid.clone());
        }
        let hands_in = matches!(command, Command::Submit { .. });
        let asks_for_room = hands_in || matches!(command, Command::Hold { .. });
        let reply = self.world.send(now, command).reply;
        if asks_for_room && matches!(reply, Reply::Refused { .. }) {
            self.rerun.refusals.push(now);
        }
        match (reply, ask.job) {
            (Reply::Accepted { job, count, .. }, recorded) => {
                // The jobs of an array follow one another, here as in the record.
                for nth in 0..u64::from(count) {
                    let job = JobId(job.0 + nth);
                    let recorded = recorded.map(|first| JobId(first.0 + nth));
                    self.world.scenario_mut().links.insert(job, recorded);
                    match recorded {
                        Some(recorded) => {
                            self.rerun.job_of.insert(recorded, job);
                        }
                        None => self.rerun.accepted_here.push((place, job)),
                    }
                }
            }
            (Reply::Held { hold, .. }, _) => {
                if let Some(recorded) = ask.hold {
                    self.holds.insert(recorded, hold);
                }
            }
            (Reply::Refused { .. }, Some(recorded)) if hands_in => {
                self.rerun.refused_here.push(recorded);
            }
            (Reply::Refused { .. }, None) => self.rerun.skipped += u64::from(!ask.refused),
            _ => {}
        }
    }

    /// A command of the record as it is said here; `None` if it is about what is not here.
    fn translate(&self, command: Command) -> Option<Command> {
        let job_of = |job: JobId| self.rerun.job_of.get(&job).copied();
        Some(match self.rules.change(command) {
            Command::Cancel { job, by } => Command::Cancel { job: job_of(job)?, by },
            Command::CancelArray { job, by } => Command::CancelArray { job: job_of(job)?, by },
            Command::Release { job, by } => Command::Release { job: job_of(job)?, by },
            Command::Extend { job, by, span, most } => {
                Command::Extend { job: job_of(job)?, by, span, most }
            }
            Command::Edit { job, by, priority, limit, queue } => {
                Command::Edit { job: job_of(job)?, by, priority, limit, queue }
            }
            Command::DropHold { hold, by } => {
                Command::DropHold { hold: self.holds.get(&hold).copied()?, by }
            }
            Command::Submit { key, mut job } => {
                job.terms = self.terms(job.terms);
                // Whoever waits for a job that is not here waits for nothing.
                job.after = job.after.iter().filter_map(|after| self.before(*after)).collect();
                Command::Submit { key, job }
            }
            command => command,
        })
    }

    /// What a job waits for, as it is here; nothing where that is not here, or cannot come about.
    fn before(&self, after: After) -> Option<After> {
        let job = self.rerun.job_of.get(&after.job).copied()?;
        let state = self.world.state();
        let known = state.job(job).ok();
        let spoiled = match state.array(job).filter(|book| book.first == job) {
            Some(book) => book.spoiled.is_some(),
            None => known?.ended.as_ref().is_some_and(|e| e.outcome != Outcome::Succeeded),
        };
        (after.when == When::Any || !spoiled).then_some(After { job, ..after })
    }

    /// The terms of a job as they are here. Who saw another price would have agreed to another,
    /// so the price that was agreed to is left out and the value alone decides. A job with a
    /// hold that is not here is handed in with the hold's bid.
    fn terms(&self, terms: Terms) -> Terms {
        match terms {
            Terms::Bid { bid, overrun, release_when_idle, .. } => {
                Terms::Bid { bid, most: None, overrun, release_when_idle }
            }
            Terms::Hold { hold, overrun, release_when_idle } => {
                let here = self.holds.get(&hold);
                let here = here.filter(|here| self.world.state().hold(**here).is_ok());
                match (here, self.bids.get(&hold)) {
                    (Some(here), _) => Terms::Hold { hold: *here, overrun, release_when_idle },
                    (None, Some(bid)) => {
                        Terms::Bid { bid: bid.clone(), most: None, overrun, release_when_idle }
                    }
                    (None, None) => Terms::Hold { hold, overrun, release_when_idle },
                }
            }
            terms => terms,
        }
    }
}
