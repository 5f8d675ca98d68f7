//! A world under test: the bench, an executor that obeys it, and a book of what users were told.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use era_core::explain::Explanation;
use era_core::job::{StopReason, TaskId};
use era_core::ledger::Account;
use era_core::reason::WaitReason;
use era_core::units::{JobId, Money, NodeId, Span, Time};
use era_core::{
    Command, Event, Input, Output, Reply, State, check, explain, next_pass, next_wakeup, step,
};

use super::commands::command;
use super::dice::Dice;
use super::executor::Executor;
use super::periods::Periods;
use super::told::Book;
use super::world::{self, Habits};
use crate::bed::{Bed, T0};

/// How many of the last inputs a failure tells.
const TOLD_MAX: usize = 400;
/// How many wakeups are kept before time jumps.
const TICKS_MAX: usize = 12;
/// How often everything is given a chance to end.
const ROUNDS_MAX: usize = 300;
/// How often a job may be tried again when nothing new arrives.
const ATTEMPTS_MORE: u32 = 3;
/// How many passes may change something when nothing new arrives.
const PASSES_MAX: usize = 600;
/// So many passes in a row that change nothing are rest.
const QUIET: usize = 8;

pub struct Rig {
    pub bed: Bed,
    pub executor: Executor,
    pub book: Book,
    periods: Periods,
    pub habits: Habits,
    pub last_submit: Option<Command>,
    /// Every input with what came out, as text: what a replay must give again.
    pub journal: Vec<(Input, String)>,
    granted: i64,
    /// How often each part was stopped for a promise that was to begin.
    cleared: BTreeMap<(JobId, usize), u32>,
    /// When a pass had nothing left to do, unless one has been due since.
    idle_at: Time,
}

impl Rig {
    /// A random world.
    pub fn new(dice: &mut Dice) -> Rig {
        let habits = world::habits(dice);
        let (settings, market) = (world::settings(dice), world::market(dice));
        let bed = Bed {
            state: State::new(settings, market),
            at: T0,
            inputs: Vec::new(),
            events: Vec::new(),
            effects: Default::default(),
            checks: false,
        };
        let mut rig = Rig {
            bed,
            executor: Executor::default(),
            book: Book::default(),
            periods: Periods::default(),
            habits,
            last_submit: None,
            journal: Vec::new(),
            granted: 0,
            cleared: BTreeMap::new(),
            idle_at: Time::MIN,
        };
        for command in world::build(dice, habits) {
            rig.send(command);
        }
        rig
    }

    pub fn now(&self) -> Time {
        self.bed.at
    }

    /// One step, after which everything must hold.
    pub fn send(&mut self, command: Command) -> Output {
        let before = self.bed.state.clone();
        let input = Input { seq: before.seq() + 1, at: self.bed.at, command: command.clone() };
        self.bed.inputs.push(input.clone());
        let (state, given) = (&mut self.bed.state, input.clone());
        let output = match catch_unwind(AssertUnwindSafe(|| step(state, given))) {
            Ok(output) => output,
            Err(_) => self.fail("the core panicked"),
        };
        self.journal.push((input, show(&output)));
        if matches!(command, Command::Submit { .. }) {
            self.last_submit = Some(command.clone());
        }
        self.count_cleared(&before, &output);
        let problem = self.examine(&before, &command, &output);
        if let Err(problem) = problem {
            self.fail(&problem);
        }
        output
    }

    /// A part that gives way to queue work has one yield more; one that gives way to a promise has
    /// not.
    fn count_cleared(&mut self, before: &State, out: &Output) {
        for event in &out.events {
            let Event::Stopping { job, part, why: StopReason::Preempted, .. } = event else {
                continue;
            };
            let run = (*job, usize::from(*part));
            let preemptions =
                |state: &State| state.job(run.0).map(|job| job.parts[run.1].preemptions).ok();
            if preemptions(before) == preemptions(&self.bed.state) {
                *self.cleared.entry(run).or_default() += 1;
            }
        }
    }

    fn examine(&mut self, before: &State, command: &Command, out: &Output) -> Result<(), String> {
        let state = &self.bed.state;
        check(state)?;
        self.executor.follow(before, state, command, out)?;
        self.book.follow(before, state, command, out)?;
        self.periods.follow(before, state, out)?;
        if matches!(out.reply, Reply::Refused { .. }) {
            // What time has brought is no doing of the refused input.
            let mut passed = before.clone();
            let tick = Input { seq: before.seq() + 1, at: self.bed.at, command: Command::Tick };
            step(&mut passed, tick);
            if !state.same_but_clock(&passed) {
                return Err("a refused input changed the state".into());
            }
        }
        self.passes_are_due(command)?;
        self.count_money(command, &out.reply)
    }

    /// Whoever makes a pass only when it is due misses nothing: at an instant at which a pass had
    /// nothing left to do, a later one that is not due changes nothing.
    fn passes_are_due(&mut self, command: &Command) -> Result<(), String> {
        let state = &self.bed.state;
        let now = state.now();
        let is_pass = matches!(command, Command::Pass);
        let is_due = next_pass(state).is_some_and(|due| due <= now);
        if !is_pass && (self.idle_at != now || is_due) {
            self.idle_at = Time::MIN;
            return Ok(());
        }
        let pass = Input { seq: state.seq() + 1, at: now, command: Command::Pass };
        let events = step(&mut state.clone(), pass).events;
        if is_pass {
            // One pass may leave something to the next, as where it may look at few jobs only.
            self.idle_at = if events.is_empty() { now } else { Time::MIN };
        } else if !events.is_empty() {
            let (command, events) = (to_json(command), to_json(&events));
            return Err(format!("after {command} no pass was due, and one did {events}"));
        }
        Ok(())
    }

    /// Invariant 6, from outside: what was granted and not withdrawn is somewhere.
    fn count_money(&mut self, command: &Command, reply: &Reply) -> Result<(), String> {
        match (command, reply) {
            (Command::Grant { amount, .. }, Reply::Done) => self.granted += amount.0,
            (Command::Withdraw { amount, .. }, Reply::Done) => self.granted -= amount.0,
            _ => {}
        }
        let balances = self.bed.state.ledger().balances();
        let held: i64 = balances.filter(|(a, _)| *a != Account::Mint).map(|(_, m)| m.0).sum();
        if held == self.granted {
            return Ok(());
        }
        Err(format!("{} were granted, {} are there", Money(self.granted), Money(held)))
    }

    pub fn fail(&self, problem: &str) -> ! {
        let inputs = &self.bed.inputs;
        let from = inputs.len().saturating_sub(TOLD_MAX);
        let lines: Vec<String> = inputs[from..]
            .iter()
            .map(|i| format!("{} {} {}", i.seq, i.at.0 - T0.0, to_json(&i.command)))
            .collect();
        panic!("{problem}\nat {}\n{}", self.bed.at.0 - T0.0, lines.join("\n"));
    }

    /// Lets random time pass, and sends a random command.
    pub fn play(&mut self, faces: &[u16]) -> Output {
        let mut dice = Dice::new(faces);
        self.pass_time(&mut dice);
        let command = command(&mut dice, self);
        self.send(command)
    }

    /// Ends all faults and lets everything run to its end.
    pub fn settle(&mut self) {
        let nodes: Vec<NodeId> = self.bed.state.cluster().nodes().map(|n| n.id).collect();
        for node in nodes {
            self.send(Command::Resume { node });
        }
        for _ in 0..ROUNDS_MAX {
            self.send(Command::Pass);
            for task in self.executor.reachable(&self.bed.state) {
                self.send(Command::Started { task });
                self.send(Command::Exited { task, code: 0, at: None });
            }
            let Some(wakeup) = next_wakeup(&self.bed.state) else { continue };
            self.bed.at = self.bed.at.max(wakeup);
            self.send(Command::Tick);
        }
        let state = &self.bed.state;
        if !self.executor.is_quiet() || !self.executor.live.is_empty() {
            self.fail("something still runs, or was told and not confirmed");
        }
        for job in state.jobs() {
            let escrow = state.ledger().balance(Account::Escrow(job.id));
            if escrow != Money::ZERO {
                self.fail(&format!("{} is over and {escrow} is in escrow", job.id));
            }
            if job.ended.is_none() {
                match explain(state, job.id) {
                    Ok(Explanation::Waiting { reason, .. }) if reason != WaitReason::NextPass => {}
                    told => {
                        self.fail(&format!("{} neither ends nor waits: {told:?}", to_json(job)))
                    }
                }
            }
        }
    }

    /// Invariant 10: with nothing new, every job is tried a few times more at most, and then
    /// passes change nothing. Only a promise that begins may send what is in its way back to its
    /// queue once more, and that is counted.
    pub fn come_to_rest(&mut self, answers: bool) {
        let before = self.attempts();
        let cleared = self.cleared.clone();
        let mut quiet = 0;
        for _ in 0..PASSES_MAX {
            let changed = !self.send(Command::Pass).events.is_empty();
            quiet = if changed { 0 } else { quiet + 1 };
            if answers {
                self.answer();
            }
            for (run, attempt) in self.attempts() {
                let of = |counts: &BTreeMap<_, u32>| counts.get(&run).copied().unwrap_or(0);
                let more = attempt - of(&before);
                if more > ATTEMPTS_MORE + of(&self.cleared) - of(&cleared) {
                    self.fail(&format!("{}.{} was tried {more} times more", run.0, run.1));
                }
            }
            if quiet == QUIET {
                return;
            }
            let later = self.bed.at + Span::from_min(5);
            let next = next_wakeup(&self.bed.state).map_or(later, |wakeup| wakeup.min(later));
            self.bed.at = self.bed.at.max(next);
            self.end_promises();
            self.send(Command::Tick);
        }
        self.fail("passes go on to change something, and nothing new arrived");
    }

    /// Tasks begin and stop as soon as they are told to, as on a machine that is well.
    fn answer(&mut self) {
        for task in self.executor.reachable(&self.bed.state) {
            match self.executor.live.get(&task) {
                Some(live) if live.stop.is_some() => {
                    self.send(Command::Exited { task, code: 143, at: None });
                }
                Some(live) if !live.confirmed => {
                    self.send(Command::Started { task });
                }
                _ => {}
            }
        }
    }

    /// How often each part was tried.
    fn attempts(&self) -> BTreeMap<(JobId, usize), u32> {
        let jobs = self.bed.state.jobs();
        let parts = jobs.flat_map(|job| job.parts.iter().enumerate().map(|part| (job.id, part)));
        parts.map(|(job, (index, part))| ((job, index), part.attempt)).collect()
    }

    /// Promises end in their time: whoever pays for more may go on for as long as he likes.
    fn end_promises(&mut self) {
        let state = &self.bed.state;
        let signal = self.bed.at + state.settings().grace;
        let promised = |task: &TaskId| state.job(task.job).is_ok_and(|j| j.promise().is_some());
        let live = self.executor.live.iter();
        let over = live.filter(|(task, live)| promised(task) && live.until <= signal);
        for task in over.map(|(task, _)| *task).collect::<Vec<_>>() {
            self.send(Command::Exited { task, code: 0, at: None });
        }
    }

    fn pass_time(&mut self, dice: &mut Dice) {
        let wakeup = next_wakeup(&self.bed.state).filter(|w| *w > self.bed.at);
        let kind = dice.below(16);
        let later = match kind {
            6.. if self.habits.is_crowded && dice.below(8) > 0 => {
                self.bed.at + Span(dice.within(0, 2000))
            }
            0..=5 => self.bed.at,
            6..=9 => wakeup.unwrap_or(self.bed.at),
            10 => wakeup.map_or(self.bed.at, |w| w - Span(1)),
            11 => self.bed.at + Span(dice.within(0, 2)),
            12 | 13 => self.bed.at + Span(dice.within(0, 60_000)),
            14 => self.bed.at + Span::from_s(dice.within(0, 600)),
            _ => match dice.once_in(4) {
                true => self.bed.at + Span::from_s(dice.within(0, 20_000)),
                false => Time(self.bed.at.0 - 1000),
            },
        };
        // Someone who keeps time ticks at every wakeup; someone who does not, jumps.
        if !dice.once_in(4) {
            for _ in 0..TICKS_MAX {
                let wakeup = next_wakeup(&self.bed.state).filter(|w| *w < later);
                let Some(wakeup) = wakeup else { break };
                self.bed.at = self.bed.at.max(wakeup);
                self.send(Command::Tick);
            }
        }
        self.bed.at = later;
    }
}

/// What came out of a step, as text.
pub fn show(output: &Output) -> String {
    let Output { events, effects, reply } = output;
    format!("{} {} {}", to_json(events), to_json(effects), to_json(reply))
}

pub fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|e| e.to_string())
}
