//! What users were told: starts, gangs, ends and prices, and that they got it.
//!
//! Only lost hardware, and time that passed while nobody drove the core, may change what was told,
//! and then the core must say so; everything else that ends or stops a promise needs a cause that
//! this book has seen.

use std::collections::{BTreeMap, BTreeSet};

use era_core::bid::Shape;
use era_core::input::{NewJob, NodeChange, Terms};
use era_core::job::{Job, Outcome, StopReason};
use era_core::offer::Quote;
use era_core::units::{HoldId, JobId, Time};
use era_core::{Command, Effect, Event, Output, Refusal, Reply, State};

/// One request of a promise, as its owner knows it.
#[derive(Clone, Copy, Debug)]
struct Told {
    start: Time,
    end: Time,
    since: Option<Time>,
    over: bool,
    /// Whether it was told that its time is nearly over: that may be said again.
    stopping: bool,
}

/// All that was told.
#[derive(Clone, Debug, Default)]
pub struct Book {
    promises: BTreeMap<JobId, Vec<Told>>,
    holds: BTreeMap<HoldId, (Quote, Time)>,
    /// Jobs whose owners, or whose own tasks, gave a reason to stop.
    excused: BTreeSet<JobId>,
    /// Jobs under which hardware was lost.
    hit: BTreeSet<JobId>,
}

/// Whether a step takes hardware away: it is lost, or a node has to be empty by now.
fn loses_hardware(before: &State, now: Time, command: &Command) -> bool {
    let due = |at: Option<Time>| at.is_some_and(|at| at <= now);
    match command {
        Command::Lost { .. } | Command::SetCapacity { .. } | Command::TaskLost { .. } => true,
        Command::Drain { stop_at, .. } if due(*stop_at) => true,
        Command::EditNode { changes, .. } => changes
            .iter()
            .any(|change| matches!(change, NodeChange::Drain { stop_at } if due(*stop_at))),
        _ => before.cluster().nodes().any(|node| due(node.stop_at)),
    }
}

impl Book {
    /// Takes note of a step, and says what it breaks.
    pub fn follow(
        &mut self,
        before: &State,
        state: &State,
        command: &Command,
        output: &Output,
    ) -> Result<(), String> {
        self.note_cause(command, &output.reply);
        self.holds_are_honoured(before, state, command, output)?;
        for event in &output.events {
            self.note_event(before, state, command, event)?;
        }
        self.note_answer(command, &output.reply);
        for effect in &output.effects {
            self.stops_have_a_cause(before, state, effect)?;
        }
        self.starts_are_kept(state)?;
        self.gangs_are_whole(state, output)
    }

    fn note_cause(&mut self, command: &Command, reply: &Reply) {
        if *reply != Reply::Done {
            return;
        }
        match command {
            Command::Cancel { job, .. } | Command::Release { job, .. } => {
                self.excused.insert(*job);
            }
            Command::Exited { task, .. } | Command::UsageCrossed { task, .. } => {
                self.excused.insert(task.job);
            }
            Command::TaskLost { task, .. } => {
                self.hit.insert(task.job);
            }
            _ => {}
        }
    }

    /// Invariant 3.
    fn holds_are_honoured(
        &mut self,
        before: &State,
        state: &State,
        command: &Command,
        output: &Output,
    ) -> Result<(), String> {
        if let Command::Submit { job: NewJob { user, terms, array, after, .. }, key } = command
            && let Terms::Hold { hold, .. } = terms
            && let Some((quote, expires)) = self.holds.get(hold)
            && before.hold(*hold).is_ok_and(|held| held.bid.user == *user)
            && state.now() < *expires
        {
            match &output.reply {
                Reply::Accepted { quote: Some(given), .. } if given == quote => {}
                Reply::Refused {
                    refusal: Refusal::Funds { .. } | Refusal::QuotaPeriod { .. },
                    ..
                } => {}
                // An array, or to wait for others, is for queues only.
                Reply::Refused {
                    refusal:
                        Refusal::NotWithBid { .. } | Refusal::BadArray { .. } | Refusal::TooMany { .. },
                    ..
                } if array.is_some() || !after.is_empty() => {}
                // The same key was used for something else.
                Reply::Refused { refusal: Refusal::KeyReused, .. } if key.is_some() => {}
                Reply::Accepted { .. } if key.is_some() => {}
                reply => return Err(format!("held {quote:?}, got {reply:?}")),
            }
        }
        for event in &output.events {
            let Event::HoldEnded { hold } = event else { continue };
            let Some((_, expires)) = self.holds.remove(hold) else {
                return Err(format!("{hold} ended and was not known"));
            };
            let given_up = match command {
                Command::DropHold { hold: dropped, .. } => dropped == hold,
                Command::Submit {
                    job: NewJob { terms: Terms::Hold { hold: h, .. }, .. }, ..
                } => h == hold,
                command => loses_hardware(before, state.now(), command),
            };
            if !given_up && expires > state.now() {
                return Err(format!("{hold} ended before it expired at {expires}"));
            }
        }
        Ok(())
    }

    fn note_answer(&mut self, command: &Command, reply: &Reply) {
        if let (Command::Hold { .. }, Reply::Held { hold, expires, quote }) = (command, reply) {
            // A repeated key repeats its answer.
            self.holds.entry(*hold).or_insert((quote.clone(), *expires));
        }
    }

    fn note_event(
        &mut self,
        before: &State,
        state: &State,
        command: &Command,
        event: &Event,
    ) -> Result<(), String> {
        let now = state.now();
        match event {
            Event::Promised { job, parts, .. } => {
                let told = |plan: &era_core::job::Plan| Told {
                    start: plan.from.max(now),
                    end: plan.to,
                    since: None,
                    over: false,
                    stopping: false,
                };
                self.promises.insert(*job, parts.iter().map(told).collect());
            }
            Event::Replanned { job, part, plan } => {
                if !loses_hardware(before, now, command) && !self.was_missed(*job, before, now) {
                    return Err(format!("{job} is re-planned and nothing was lost"));
                }
                self.hit.insert(*job);
                if let Some(told) = self.part(*job, *part) {
                    let (start, end) = (plan.from, plan.to);
                    *told = Told { start, end, since: None, over: false, stopping: false };
                }
            }
            Event::Broken { job, .. } => {
                if !loses_hardware(before, now, command) && !self.was_missed(*job, before, now) {
                    return Err(format!("{job} is broken and nothing was lost"));
                }
                self.hit.insert(*job);
            }
            Event::Extended { job, part, to, .. } => {
                if let Some(told) = self.part(*job, *part) {
                    told.end = *to;
                }
            }
            Event::Launched { job, part, .. } => {
                if let Some(told) = self.part(*job, *part) {
                    let late = now > told.start + before.settings().grace;
                    if told.since.is_some() || now < told.start || late {
                        return Err(format!("{job} was told {told:?}, is launched at {now}"));
                    }
                    told.since = Some(now);
                }
            }
            Event::PartDone { job, part } => {
                if let Some(told) = self.part(*job, *part) {
                    told.over = true;
                }
            }
            Event::Ended { job, outcome, .. } => return self.note_end(*job, outcome, now),
            _ => {}
        }
        Ok(())
    }

    /// Whether the start of a part passed while nobody drove the core.
    fn was_missed(&self, job: JobId, before: &State, now: Time) -> bool {
        let parts = self.promises.get(&job).map_or(&[][..], |parts| parts);
        let late = |t: &Told| t.since.is_none() && t.start + before.settings().grace < now;
        parts.iter().any(|told| !told.over && late(told))
    }

    fn part(&mut self, job: JobId, part: u16) -> Option<&mut Told> {
        self.promises.get_mut(&job)?.get_mut(usize::from(part))
    }

    fn note_end(&mut self, job: JobId, outcome: &Outcome, now: Time) -> Result<(), String> {
        let Some(told) = self.promises.remove(&job) else { return Ok(()) };
        let right = match outcome {
            Outcome::Succeeded | Outcome::Failed { .. } => self.excused.contains(&job),
            Outcome::Cancelled | Outcome::Released => self.excused.contains(&job),
            Outcome::LimitReached => {
                told.iter().any(|t| t.since.is_some() && t.end <= now)
                // All its tasks ended by themselves after the signal.
                || self.excused.contains(&job) || self.hit.contains(&job)
            }
            Outcome::Broken { .. } => self.hit.contains(&job),
            // Promises wait for nobody.
            Outcome::Unfulfilled { .. } => false,
        };
        if right { Ok(()) } else { Err(format!("{job} ended as {outcome:?} without a cause")) }
    }

    /// Invariant 2: a promised rank is stopped only for a cause, and not before its time.
    fn stops_have_a_cause(
        &mut self,
        before: &State,
        state: &State,
        effect: &Effect,
    ) -> Result<(), String> {
        let Effect::Stop { task, why, .. } = effect else { return Ok(()) };
        let Ok(job) = state.job(task.job) else { return Ok(()) };
        let excused = self.excused.contains(&task.job);
        let hit = self.hit.contains(&task.job);
        let Some(told) = self.part(task.job, task.part).copied() else { return Ok(()) };
        let part = &job.parts[usize::from(task.part)];
        // Whatever is beyond what was promised; the part itself may be over by now.
        let growth = match part.request.shape {
            Shape::Replicas { min, .. } => task.rank >= min,
            Shape::Gpus { .. } => false,
        };
        let right = match why {
            StopReason::Limit => {
                let since = told.since.unwrap_or(told.start);
                let half = Time(since.0 + (told.end.0 - since.0) / 2);
                // Time passes before the grace period is changed.
                let grace = state.settings().grace.max(before.settings().grace);
                told.stopping || state.now() >= half.max(told.end - grace)
            }
            StopReason::Preempted => growth,
            StopReason::Lost | StopReason::Drained => hit,
            StopReason::Cancelled | StopReason::Released | StopReason::Failed { .. } => {
                excused || hit
            }
        };
        if right || growth {
            if let (StopReason::Limit, Some(told)) = (why, self.part(task.job, task.part)) {
                told.stopping = true;
            }
            return Ok(());
        }
        Err(format!("{task} is stopped for {why:?} though it was told {told:?}"))
    }

    /// Invariant 2: whatever was told to start by now has started.
    fn starts_are_kept(&self, state: &State) -> Result<(), String> {
        for (job, parts) in &self.promises {
            for (index, told) in parts.iter().enumerate() {
                let due = told.start <= state.now() && !told.over && told.since.is_none();
                let stopping = state.job(*job).is_ok_and(|j| j.is_ending());
                if due && !stopping {
                    return Err(format!("{job} part {index} was told {told:?} and has not begun"));
                }
            }
        }
        Ok(())
    }

    /// Invariant 2: a gang starts whole.
    fn gangs_are_whole(&self, state: &State, output: &Output) -> Result<(), String> {
        for event in &output.events {
            let Event::Launched { job: id, part, attempt, plan } = event else { continue };
            let Ok(job) = state.job(*id) else { continue };
            let job: &Job = job;
            let mut gpus = 0;
            let mut ranks = BTreeSet::new();
            for effect in &output.effects {
                let Effect::Launch { task, each, .. } = effect else { continue };
                if (task.job, task.part, task.attempt) == (*id, *part, *attempt) {
                    gpus += each.gpu / 1000;
                    ranks.insert(task.rank);
                }
            }
            let whole = match job.parts[usize::from(*part)].request.shape {
                Shape::Replicas { min, .. } => (0..min).all(|rank| ranks.contains(&rank)),
                Shape::Gpus { total } => gpus == total && ranks.len() == plan.seats.len(),
            };
            if !whole {
                return Err(format!("{id} was launched with ranks {ranks:?}: {plan:?}"));
            }
        }
        Ok(())
    }
}
