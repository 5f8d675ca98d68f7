//! A world under test: the bench, an executor that obeys it, and a book of what users were told.

use std::panic::{AssertUnwindSafe, catch_unwind};

use era_core::explain::{Explanation, Reason};
use era_core::ledger::Account;
use era_core::units::{Money, NodeId, Span, Time};
use era_core::{Command, Input, Output, Reply, State, check, explain, next_wakeup, step};

use super::commands::command;
use super::dice::Dice;
use super::executor::Executor;
use super::told::Book;
use super::world;
use crate::bed::{Bed, T0};

/// How many of the last inputs a failure tells.
const TOLD_MAX: usize = 400;
/// How many wakeups are kept before time jumps.
const TICKS_MAX: usize = 12;
/// How often everything is given a chance to end.
const ROUNDS_MAX: usize = 300;

pub struct Rig {
    pub bed: Bed,
    pub executor: Executor,
    pub book: Book,
    pub last_submit: Option<Command>,
    /// Every input with what came out, as text: what a replay must give again.
    pub journal: Vec<(Input, String)>,
    granted: i64,
}

impl Rig {
    /// A random world.
    pub fn new(dice: &mut Dice) -> Rig {
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
            last_submit: None,
            journal: Vec::new(),
            granted: 0,
        };
        for command in world::build(dice) {
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
        let problem = self.examine(&before, &command, &output);
        if let Err(problem) = problem {
            self.fail(&problem);
        }
        output
    }

    fn examine(&mut self, before: &State, command: &Command, out: &Output) -> Result<(), String> {
        let state = &self.bed.state;
        check(state)?;
        self.executor.follow(before, state, command, out)?;
        self.book.follow(before, state, command, out)?;
        if matches!(out.reply, Reply::Refused { .. }) {
            // What time has brought is no doing of the refused input.
            let mut passed = before.clone();
            let tick = Input { seq: before.seq() + 1, at: self.bed.at, command: Command::Tick };
            step(&mut passed, tick);
            if !state.same_but_clock(&passed) {
                return Err("a refused input changed the state".into());
            }
        }
        self.count_money(command, &out.reply)
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
                    Ok(Explanation::Waiting { reason, .. }) if reason != Reason::NextPass => {}
                    told => {
                        self.fail(&format!("{} neither ends nor waits: {told:?}", to_json(job)))
                    }
                }
            }
        }
    }

    fn pass_time(&mut self, dice: &mut Dice) {
        let wakeup = next_wakeup(&self.bed.state).filter(|w| *w > self.bed.at);
        let later = match dice.below(16) {
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
