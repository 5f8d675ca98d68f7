//! Batches against the plain way, one input after the other: what a batch comes to is what its
//! inputs come to, all of it is in its record, and the record alone leads to the same state.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use proptest::collection::vec;
use proptest::prelude::*;

use era_core::accounts::Actor;
use era_core::bid::{Request, Shape, Window};
use era_core::cluster::Pool;
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::{QueueTerms, TaskId};
use era_core::resources::{Capacity, Resources};
use era_core::units::{GroupId, JobId, Money, Span, Time, UserId};
use era_core::{Command, Effect, Event, Input, Output, Reply, State, next_pass, next_wakeup, step};
use era_drive::{Batch, Engine, EntryWriter, SiteBuilder, name};

const START: Time = Time::from_s(1_800_000_000);
const USER: UserId = UserId(1);

/// A batch as a journal has it: inputs with their notes, and their events.
#[derive(Clone, Debug, Default)]
struct Entries(Vec<(Input, Option<u32>, Vec<Event>)>);

impl EntryWriter for Entries {
    type Note = u32;

    fn input(&mut self, input: &Input, note: Option<u32>) {
        self.0.push((input.clone(), note, Vec::new()));
    }

    fn output(&mut self, output: &Output, _: &State) {
        self.0.last_mut().unwrap().2.clone_from(&output.events);
    }
}

fn site() -> Engine {
    let capacity = Capacity { cpu: 4000, memory: 4096, ..Capacity::default() };
    let mut site = SiteBuilder {
        pools: vec![Pool::new(name("main"))],
        nodes: vec![NewNode::new(name("n1"), name("main"), capacity)],
        ..SiteBuilder::default()
    };
    site.user(USER, GroupId(1), Money::credits(1_000));
    Engine::of(&site, START, &mut ()).unwrap()
}

fn job(key: Option<u16>, minutes: i64) -> Command {
    let each = Resources { cpu: 2000, ..Resources::default() };
    let window = Window { earliest: Time(0), deadline: Time::LATEST };
    let request = Request::new(Shape::gang(1), each, Span::from_min(minutes), window);
    let terms = Terms::Queue { request, queue: QueueTerms::new(name("default")) };
    let key = key.map(|key| name(&format!("k{key}")));
    Command::Submit { key, job: NewJob::new(USER, terms) }
}

fn command((kind, arg): (u8, u16)) -> Command {
    let job_id = JobId(1 + u64::from(arg % 12));
    let task = TaskId { job: job_id, part: 0, attempt: 1, rank: 0 };
    match kind {
        0 | 1 => job(None, 1 + i64::from(arg % 50)),
        // The same key again and again: only the first makes a job.
        2 => job(Some(arg % 3), 5),
        3 => Command::Started { task },
        4 => Command::Exited { task, code: 0, at: None },
        5 => Command::Cancel { job: job_id, by: Actor::User(USER) },
        _ => Command::Tick,
    }
}

/// What the plain way comes to: every input by itself, then a pass where one is due.
struct Plain {
    state: State,
    answers: Vec<(u64, Reply, bool)>,
    accepted: Vec<(JobId, u32)>,
    effects: Vec<Effect>,
    inputs: Vec<Input>,
}

impl Plain {
    fn new(state: &State) -> Plain {
        let (answers, accepted, effects) = (Vec::new(), Vec::new(), Vec::new());
        Plain { state: state.clone(), answers, accepted, effects, inputs: Vec::new() }
    }

    fn one(&mut self, at: Time, command: Command) -> Output {
        let input = Input { seq: self.state.seq() + 1, at, command };
        self.inputs.push(input.clone());
        let output = step(&mut self.state, input);
        self.effects.extend(output.effects.iter().cloned());
        output
    }

    fn carry_out(&mut self, now: Time, asked: &[(Command, u32)]) {
        if asked.is_empty() && next_wakeup(&self.state).is_some_and(|due| due <= now) {
            self.one(now, Command::Tick);
        }
        for (command, note) in asked {
            let before: Vec<JobId> = self.state.jobs().map(|job| job.id).collect();
            let output = self.one(now, command.clone());
            // A job that was not there before was made by this.
            let made = match &output.reply {
                Reply::Accepted { job, .. } if !before.contains(job) => Some(*job),
                _ => None,
            };
            self.accepted.extend(made.map(|job| (job, *note)));
            self.answers.push((self.state.seq(), output.reply, made.is_some()));
        }
        if next_pass(&self.state).is_some_and(|due| due <= now) {
            self.one(now, Command::Pass);
        }
    }
}

proptest! {
    #[test]
    fn a_batch_comes_to_what_its_inputs_come_to_and_its_record_leads_to_the_same_state(
        batches in vec((0i64..600, vec((0u8..7, any::<u16>()), 0..12)), 1..20),
    ) {
        let mut engine = site();
        let mut plain = Plain::new(engine.state());
        let mut replayed = engine.state().clone();
        let mut now = START;
        for (number, (passed, acts)) in batches.into_iter().enumerate() {
            now = now + Span::from_s(passed);
            let asked: Vec<(Command, u32)> =
                (0u32..).zip(acts).map(|(n, act)| (command(act), 100 * number as u32 + n)).collect();
            let callers = asked.iter().map(|(command, note)| (*note, command.clone(), Some(*note)));
            let batch = engine.carry_out(now, callers, Entries::default());
            let answers = plain.answers.len();
            let (accepted, effects) = (plain.accepted.len(), plain.effects.len());
            plain.carry_out(now, &asked);
            prop_assert_eq!(engine.state(), &plain.state);
            // Answers are in order, each for its caller, and name their input in the record.
            prop_assert_eq!(batch.answers.len(), asked.len());
            for ((caller, answer), told) in batch.answers.iter().zip(&plain.answers[answers..]) {
                prop_assert_eq!((answer.seq, &answer.reply, answer.made), (told.0, &told.1, told.2));
                let (input, note, _) =
                    batch.record.0.iter().find(|(input, ..)| input.seq == answer.seq).unwrap();
                prop_assert_eq!((input.at, *note), (answer.at, Some(*caller)));
            }
            prop_assert_eq!(&batch.released.accepted, &plain.accepted[accepted..]);
            prop_assert_eq!(&batch.released.effects, &plain.effects[effects..]);
            // The record is the whole of it.
            for (input, _, events) in batch.record.0 {
                prop_assert_eq!(&step(&mut replayed, input).events, &events);
            }
            prop_assert_eq!(&replayed, engine.state());
        }
    }
}

#[test]
fn an_idle_engine_records_nothing() {
    let mut engine = site();
    let first: Batch<Entries, ()> = engine.carry_out(START, [], Entries::default());
    let again: Batch<Entries, ()> = engine.carry_out(START, [], Entries::default());
    assert!(first.released.is_empty() && again.record.0.is_empty(), "{again:?}");
    let none: Batch<Entries, ()> = engine.catch_up(START, [], Entries::default());
    assert!(none.record.0.is_empty());
}

#[test]
fn what_ended_while_nobody_drove_the_core_ended_before_its_limit() {
    let mut engine = site();
    let asked = [((), job(None, 10), Some(7))];
    let batch = engine.carry_out(START, asked, Entries::default());
    assert_eq!(batch.released.accepted, [(JobId(1), 7)]);
    let task = TaskId { job: JobId(1), part: 0, attempt: 1, rank: 0 };
    // An hour later its limit is long over, and it is known that it exited by itself before.
    let (later, at) = (START + Span::from_h(1), START + Span::from_min(5));
    let ended = [(Command::Exited { task, code: 0, at: Some(at) }, None)];
    let batch: Batch<Entries, ()> = engine.catch_up(later, ended, Entries::default());
    assert_eq!(batch.record.0[0].0.at, START, "at the last instant that the core knows");
    let ended = engine.state().job(JobId(1)).unwrap().ended.clone().unwrap();
    assert_eq!(ended.outcome, era_core::job::Outcome::Succeeded);
}

#[test]
fn an_engine_says_how_long_it_may_sleep() {
    let mut engine = site();
    engine.carry_out::<(), ()>(START, [], ());
    engine.carry_out(START, [((), job(None, 10), None)], ());
    let idle = engine.idle_for(START).unwrap();
    assert!(idle > Span::ZERO && idle <= Span::from_min(10), "{idle:?}");
    assert_eq!(engine.idle_for(START + Span::from_h(9)), Some(Span::ZERO), "long due");
}
