//! What a command would do: the core's own step on a copy of its state, which is then thrown away.
//! There is no second rule here that could come to say something else.

use std::borrow::Cow;

use era_core::accounts::Actor;
use era_core::input::NewJob;
use era_core::job::TaskId;
use era_core::ledger::{Account, Posting};
use era_core::units::{HoldId, JobId, Money, Time};
use era_core::{Command, Effect, Event, Input, Output, Refusal, Reply, Snapshot, State, step};

/// What comes of a command at `now`.
fn carried_out(copy: &mut State, now: Time, command: Command) -> Result<Output, Refusal> {
    let output = step(copy, Input { seq: copy.seq() + 1, at: now, command });
    match output.reply {
        Reply::Refused { refusal, .. } => Err(refusal),
        _ => Ok(output),
    }
}

/// What there is, but for a hold, where one is named.
pub fn without_hold(
    snapshot: &Snapshot,
    hold: Option<u64>,
    by: Actor,
    now: Time,
) -> Result<Cow<'_, Snapshot>, Refusal> {
    let Some(hold) = hold.map(HoldId) else { return Ok(Cow::Borrowed(snapshot)) };
    let mut copy = snapshot.clone();
    carried_out(&mut copy, now, Command::DropHold { hold, by })?;
    Ok(Cow::Owned(copy))
}

/// Whether a job would be taken in if it were handed in at `now`.
pub fn handed_in(snapshot: &Snapshot, job: NewJob, now: Time) -> Result<(), Refusal> {
    let mut copy = snapshot.clone();
    carried_out(&mut copy, now, Command::Submit { key: None, job }).map(|_| ())
}

/// What becomes of the money of jobs that are given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// What comes back to their owner.
    pub back: Money,
    /// What stays paid.
    pub kept: Money,
    /// Whether something of them runs: then this is what there would be if it were gone at once.
    pub runs: bool,
}

/// What would come back if a job were given up at `now`, or all that is left of its array.
pub fn given_up(
    snapshot: &Snapshot,
    job: JobId,
    array: bool,
    by: Actor,
    now: Time,
) -> Result<GivenUp, Refusal> {
    let book = snapshot.array(job).filter(|_| array);
    let whose = |other: JobId| book.map_or(other == job, |book| book.jobs().contains(&other));
    let command = match array {
        true => Command::CancelArray { job, by },
        false => Command::Cancel { job, by },
    };
    let mut copy = snapshot.clone();
    let Output { mut events, effects, .. } = carried_out(&mut copy, now, command)?;
    let stopped = |effect: Effect| match effect {
        Effect::Stop { task, .. } if whose(task.job) => Some(task),
        _ => None,
    };
    let stopped: Vec<TaskId> = effects.into_iter().filter_map(stopped).collect();
    for &task in &stopped {
        let gone = Command::Exited { task, code: 0, at: Some(now) };
        events.extend(carried_out(&mut copy, now, gone)?.events);
    }
    let mut sum = GivenUp { runs: !stopped.is_empty(), ..GivenUp::default() };
    for event in events {
        match event {
            Event::Posted { job: Some(job), posting: Posting { to, amount, .. } } if whose(job) => {
                match to {
                    Account::Wallet(_) => sum.back.0 += amount.0,
                    Account::Revenue => sum.kept.0 += amount.0,
                    Account::Mint | Account::Escrow(_) => {}
                }
            }
            _ => {}
        }
    }
    Ok(sum)
}
