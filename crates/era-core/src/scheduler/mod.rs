//! The state machine: one input in; events, effects and an answer out.
//!
//! A step lets time pass first, so that whatever was due happens in its order, then carries out
//! the command, and then does what is due at once because of it: nothing due is ever left over. A command is checked as a whole before anything is changed: a refusal leaves
//! the state as it was.

mod admin;
mod attained;
mod backfill;
mod change;
mod clear;
mod drain;
mod due;
mod edit_node;
mod estimate;
mod follow;
mod forget;
mod grow;
mod learned;
mod nodes;
mod order;
mod pass;
mod preempt;
mod rank;
mod replan;
mod submit;
mod tasks;

use std::sync::Arc;

pub(crate) use backfill::place_now;
pub use due::next_pass;
pub(crate) use estimate::{Planned, estimated_starts, funds};
pub(crate) use forget::kept_until;
pub(crate) use pass::{admission, running_of};
pub(crate) use rank::{free_now, ranked, ranked_by};

use crate::event::Event;
use crate::input::{Command, Input};
use crate::job::{Attempt, Job, Part, TaskId};
use crate::ledger::Posting;
use crate::offer::Declined;
use crate::output::{Effect, Output, Reply};
use crate::refusal::Refusal;
use crate::state::{Ending, Settlement, State};
use crate::timer::Timer;
use crate::units::{JobId, Name, Time};

/// Carries out one input.
pub fn step(state: &mut State, input: Input) -> Output {
    let expected = state.seq + 1;
    if input.seq != expected {
        return refused(Refusal::OutOfOrder { given: input.seq, expected });
    }
    if input.at < Time(0) || input.at > Time::LATEST {
        return refused(Refusal::BadTime { given: input.at });
    }
    state.seq = input.seq;
    state.now = state.now.max(input.at);
    state.calendar.advance(state.now);
    let mut step = Step::new(state);
    step.let_time_pass();
    let reply = match step.carry_out(input.command) {
        Ok(reply) => reply,
        Err(Declined { refusal, counter }) => {
            step.events.push(Event::Refused { refusal: refusal.clone() });
            Reply::Refused { refusal, counter }
        }
    };
    step.let_followers_know();
    step.let_time_pass();
    step.forget_surplus();
    step.note_openings();
    Output { events: step.events, effects: step.effects, reply }
}

fn refused(refusal: Refusal) -> Output {
    let reply = Reply::Refused { refusal, counter: Box::default() };
    Output { events: Vec::new(), effects: Vec::new(), reply }
}

/// What was sent out and is not yet confirmed, found again in the state alone.
pub fn outstanding(state: &State) -> Vec<Effect> {
    let mut effects = Vec::new();
    for id in &state.active {
        let Ok(job) = state.job(*id) else { continue };
        for (index, part) in job.parts.iter().enumerate().filter(|(_, p)| p.is_active()) {
            tasks::outstanding(job, index, part, &mut effects);
        }
    }
    // What was told to be gone by now is gone, even where its gang waits for others.
    effects.retain(|e| !matches!(e, Effect::Stop { until, .. } if *until <= state.now));
    effects
}

/// When something happens by itself next: a tick is needed then.
pub fn next_wakeup(state: &State) -> Option<Time> {
    let timer = state.timers.get_min().map(|(time, _)| *time);
    timer.into_iter().chain(forget::due(state)).min()
}

/// A step under way.
pub(crate) struct Step<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) events: Vec<Event>,
    pub(crate) effects: Vec<Effect>,
    /// Jobs that have ended, and whose followers were not looked at yet.
    over: Vec<JobId>,
    /// How many of the events a pass has seen.
    seen: usize,
}

impl<'a> Step<'a> {
    fn new(state: &'a mut State) -> Step<'a> {
        Step { state, events: Vec::new(), effects: Vec::new(), over: Vec::new(), seen: 0 }
    }

    fn carry_out(&mut self, command: Command) -> Result<Reply, Declined> {
        let done = |result: Result<(), Refusal>| result.map(|()| Reply::Done);
        match command {
            Command::Submit { key, job } => return self.submit_once(key, job),
            Command::Hold { key, bid } => return self.hold_once(key, bid),
            Command::DropHold { hold, by } => done(self.drop_hold(hold, by)),
            Command::Cancel { job, by } => done(self.cancel(job, by)),
            Command::CancelArray { job, by } => done(self.cancel_array(job, by)),
            Command::Release { job, by } => done(self.release(job, by)),
            Command::Extend { job, by, span, most } => done(self.extend(job, by, span, most)),
            Command::Edit { job, by, priority, limit, queue } => {
                done(self.edit(job, by, priority, limit, queue))
            }
            Command::Started { task } => Ok(self.started(task)),
            Command::Exited { task, code, at } => Ok(self.exited(task, code, at)),
            Command::TaskLost { task, reason } => Ok(self.task_lost(task, &reason)),
            Command::Checkpointed { task, done } => Ok(self.checkpointed(task, done)),
            Command::UsageCrossed { task, threshold } => Ok(self.usage_crossed(task, threshold)),
            Command::Join { nodes } => self.join(nodes),
            Command::Leave { node } => done(self.leave(node)),
            Command::Drain { node, stop_at } => done(self.drain(node, stop_at)),
            Command::Cordon { node } => done(self.cordon(node)),
            Command::Resume { node } => done(self.resume(node)),
            Command::Lost { node } => done(self.lost(node)),
            Command::SetCapacity { node, capacity } => done(self.set_capacity(node, capacity)),
            Command::EditNode { node, changes } => done(self.edit_node(node, changes)),
            Command::SetMaintenance { node, windows } => done(self.set_maintenance(node, windows)),
            Command::SetDomain { node, domain } => done(self.set_domain(node, domain)),
            Command::PutPool { pool } => done(self.put_pool(pool)),
            Command::PutDomain { domain } => done(self.put_domain(domain)),
            Command::RemoveDomain { name } => done(self.remove_domain(&name)),
            Command::PutGroup { group } => done(self.put_group(group)),
            Command::PutUser { user } => done(self.put_user(user)),
            Command::SetQuota { by, scope, quota, .. } => done(self.set_quota(by, scope, quota)),
            Command::Grant { user, amount } => done(self.grant(user, amount)),
            Command::Withdraw { user, amount } => done(self.withdraw(user, amount)),
            Command::PutQueue { queue } => done(self.put_queue(queue)),
            Command::RemoveQueue { name } => done(self.remove_queue(&name)),
            Command::PublishPolicy { name, rule } => done(self.publish_policy(name, rule)),
            Command::RollBackPolicy { name, version } => {
                done(self.roll_back_policy(&name, version))
            }
            Command::SetSettings { settings } => done(self.set_settings(settings)),
            Command::SetMarket { rules } => done(self.set_market(rules)),
            Command::PublishForecast { forecast } => done(self.publish_forecast(forecast)),
            Command::PublishEstimates { estimates } => done(self.publish_estimates(estimates)),
            Command::Pass => {
                self.pass();
                Ok(Reply::Done)
            }
            Command::Tick => Ok(Reply::Done),
        }
        .map_err(Declined::from)
    }

    /// Does all that was due until now, in the order in which it was due.
    fn let_time_pass(&mut self) {
        let now = self.state.now;
        loop {
            let timer = self.state.timers.get_min().copied().filter(|(time, _)| *time <= now);
            let forget = forget::due(self.state).filter(|time| *time <= now);
            match (timer, forget) {
                (None, None) => return,
                // What happens at the same instant comes before what is forgotten.
                (Some((time, timer)), forget) if forget.is_none_or(|forget| time <= forget) => {
                    self.state.timers.remove(&(time, timer));
                    self.ring(timer);
                    self.let_followers_know();
                }
                _ => self.forget_oldest(),
            }
        }
    }

    fn ring(&mut self, timer: Timer) {
        match timer {
            Timer::ExtraGone { job, part } => self.extras_gone(job, part),
            Timer::StopOver { job, part } => self.stop_over(job, part),
            Timer::Vacate(node) => self.vacate(node),
            Timer::Hold(hold) => self.end_hold(hold),
            Timer::ClearHeld { hold, part } => self.clear_held(hold, part),
            Timer::Clear { job, part } => self.clear_seats(job, part),
            Timer::Start { job, part } => self.promise_due(job, part),
            Timer::Overrun { job, part } => self.overrun(job, part),
        }
    }

    /// A job as it is now.
    fn job(&self, id: JobId) -> Option<Arc<Job>> {
        self.state.jobs.get(&id).cloned()
    }

    /// A part of a job as it is now.
    fn part(&self, id: JobId, index: usize) -> Option<&Part> {
        self.state.jobs.get(&id)?.parts.get(index)
    }

    /// Changes a job, and with it every book in which it stands. Whatever of it the change takes
    /// out ends now.
    fn edit_job<T>(&mut self, id: JobId, change: impl FnOnce(&mut Job) -> T) -> Option<T> {
        let ending = Ending { at: self.state.now, how: Settlement::Used };
        self.end_by(id, ending, change)
    }

    /// The same, where what the change takes out ends otherwise.
    fn end_by<T>(
        &mut self,
        id: JobId,
        ending: Ending,
        change: impl FnOnce(&mut Job) -> T,
    ) -> Option<T> {
        let (result, postings) = self.state.edit(id, ending, change)?;
        self.posted(id, postings);
        Some(result)
    }

    fn posted(&mut self, id: JobId, postings: Vec<Posting>) {
        let posted = postings.into_iter().map(|posting| Event::Posted { job: Some(id), posting });
        self.events.extend(posted);
    }

    /// Changes a part of a job, and with it every book in which it stands.
    fn edit_part<T>(
        &mut self,
        id: JobId,
        index: usize,
        change: impl FnOnce(&mut Part) -> T,
    ) -> Option<T> {
        self.edit_job(id, |job| change(&mut job.parts[index]))
    }

    /// Changes the attempt at a part that is under way.
    fn edit_run<T>(
        &mut self,
        id: JobId,
        index: usize,
        change: impl FnOnce(&mut Attempt) -> T,
    ) -> Option<T> {
        self.edit_part(id, index, |part| part.run_mut().map(change)).flatten()
    }

    /// The newest attempt's part that a report is about; `None` if the report is too late.
    fn reported(&self, task: TaskId) -> Option<(Arc<Job>, usize)> {
        let job = self.state.jobs.get(&task.job)?;
        let index = usize::from(task.part);
        let part: &Part = job.parts.get(index)?;
        // Only what runs has tasks.
        let current = part.attempt == task.attempt && part.task(task.rank).is_some();
        (current && job.ended.is_none()).then(|| (job.clone(), index))
    }

    fn ignore(&mut self, task: TaskId) -> Reply {
        self.events.push(Event::Ignored { task });
        Reply::Ignored
    }

    fn changed(&mut self, what: &str, name: Option<Name>) {
        if let Ok(what) = Name::new(what) {
            self.events.push(Event::Changed { what, name });
        }
    }
}
