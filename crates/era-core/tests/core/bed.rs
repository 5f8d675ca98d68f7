//! A bench to test the core on: small verbs for inputs, and every effect must be taken out.

#![allow(dead_code, unreachable_pub)] // each test file uses a part of it

use std::collections::VecDeque;

use era_core::accounts::{Actor, Group, User};
use era_core::bid::{Bid, Request, Shape, Value, Window};
use era_core::cluster::Pool;
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::{QueueTerms, StopReason, TaskId};
use era_core::market::MarketRules;
use era_core::quota::Quota;
use era_core::resources::{Capacity, Gpu, Resources};
use era_core::settings::Settings;
use era_core::units::{GroupId, JobId, Money, Name, NodeId, Span, Time, UserId};
use era_core::{Command, Effect, Event, Input, Output, Refusal, Reply, State, check, step};

/// The user of most tests.
pub const ALICE: UserId = UserId(1);
/// Another user, of another group.
pub const BOB: UserId = UserId(2);
/// Alice's group.
pub const LAB: GroupId = GroupId(1);
/// Bob's group.
pub const OTHER_LAB: GroupId = GroupId(2);

/// A name that is known to be one.
pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// The start of all tests: a slot boundary.
pub const T0: Time = Time::from_s(1_800_000_000);

/// So many minutes after the start.
pub fn min(n: i64) -> Time {
    T0 + Span::from_min(n)
}

/// Resources as a person writes them: `cpu=4,memory=16Gi,gpu=2`.
pub fn resources(text: &str) -> Resources {
    let pairs = text.split(',').filter(|p| !p.is_empty());
    Resources::parse(pairs.map(|p| p.split_once('=').unwrap())).unwrap()
}

/// A rigid gang: `count` times `each` for `minutes`, within `[from, to)` minutes.
pub fn gang(count: u32, each: &str, minutes: i64, (from, to): (i64, i64)) -> Request {
    let window = Window { earliest: min(from), deadline: min(to) };
    Request::new(Shape::gang(count), resources(each), Span::from_min(minutes), window)
}

/// A bid of one request by Alice that is worth a lot.
pub fn bid(request: Request) -> Bid {
    Bid::single(ALICE, request, Money::credits(1_000_000))
}

/// A node of 8 GPUs, 64 cores and 512 GiB.
pub fn node(index: usize) -> NewNode {
    let gpus = vec![Gpu { model: name("h100"), memory: 81_920 }; 8];
    let capacity = Capacity { cpu: 64_000, memory: 512 * 1024, gpus, devices: Default::default() };
    NewNode::new(name(&format!("node{index}")), name("main"), capacity)
}

/// A pool without a closed part, at the default rates.
pub fn pool(of: &str) -> Pool {
    Pool::new(name(of))
}

/// The bench.
pub struct Bed {
    pub state: State,
    pub at: Time,
    pub inputs: Vec<Input>,
    pub events: Vec<Event>,
    pub effects: VecDeque<Effect>,
    /// Whether every step is followed by a check of all invariants.
    pub checks: bool,
}

impl Bed {
    /// Nodes of 8 GPUs in one pool; Alice and Bob with ten million credits each.
    pub fn new(nodes: usize) -> Bed {
        Bed::with(nodes, Settings::default(), MarketRules::default())
    }

    pub fn with(nodes: usize, settings: Settings, market: MarketRules) -> Bed {
        let mut bed = Bed {
            state: State::new(settings, market),
            at: T0,
            inputs: Vec::new(),
            events: Vec::new(),
            effects: VecDeque::new(),
            checks: true,
        };
        bed.done(Command::PutPool { pool: pool("main") });
        if nodes > 0 {
            let reply = bed.send(Command::Join { nodes: (0..nodes).map(node).collect() });
            assert!(matches!(reply, Reply::Joined { .. }), "{reply:?}");
        }
        for (user, group) in [(ALICE, LAB), (BOB, OTHER_LAB)] {
            let quota = Quota::default();
            bed.done(Command::PutGroup { group: Group { id: group, level: 1, quota } });
            let user = User { id: user, group, level: 1, group_admin: false, quota };
            let id = user.id;
            bed.done(Command::PutUser { user });
            bed.done(Command::Grant { user: id, amount: Money::credits(10_000_000) });
        }
        bed.events.clear();
        bed
    }

    /// One step, with all that comes out kept.
    pub fn step(&mut self, command: Command) -> Output {
        let input = Input { seq: self.state.seq() + 1, at: self.at, command };
        self.inputs.push(input.clone());
        let output = step(&mut self.state, input);
        if self.checks
            && let Err(problem) = check(&self.state)
        {
            panic!("after {:?}: {problem}", self.inputs.last().unwrap());
        }
        self.events.extend(output.events.iter().cloned());
        self.effects.extend(output.effects.iter().cloned());
        output
    }

    pub fn send(&mut self, command: Command) -> Reply {
        self.step(command).reply
    }

    /// A command that must succeed.
    pub fn done(&mut self, command: Command) {
        let reply = self.send(command);
        assert_eq!(reply, Reply::Done);
    }

    /// A command that must be refused, and change nothing.
    pub fn refused(&mut self, command: Command) -> Refusal {
        let before = self.state.clone();
        match self.send(command) {
            Reply::Refused { refusal, .. } => {
                assert!(self.state.same_but_clock(&before), "a refusal changed the state");
                refusal
            }
            reply => panic!("should have been refused: {reply:?}"),
        }
    }

    /// Lets time pass until so many minutes after the start, wakeup by wakeup.
    pub fn until(&mut self, time: Time) {
        while let Some(wakeup) = era_core::next_wakeup(&self.state).filter(|w| *w <= time) {
            self.at = self.at.max(wakeup);
            self.send(Command::Tick);
        }
        self.at = time;
        self.send(Command::Tick);
    }

    pub fn submit(&mut self, bid: Bid) -> Reply {
        self.send(Command::Submit { key: None, job: NewJob::new(bid.user, Terms::bid(bid)) })
    }

    /// A bid that must be accepted.
    pub fn promise(&mut self, request: Request) -> JobId {
        match self.submit(bid(request)) {
            Reply::Accepted { job, .. } => job,
            reply => panic!("should have been accepted: {reply:?}"),
        }
    }

    /// A job for the default queue that must be accepted.
    pub fn enqueue(&mut self, user: UserId, request: Request, preemptible: bool) -> JobId {
        let queue = QueueTerms { preemptible, ..QueueTerms::new(name("default")) };
        let terms = Terms::Queue { request, queue };
        match self.send(Command::Submit { key: None, job: new_job(user, terms) }) {
            Reply::Accepted { job, .. } => job,
            reply => panic!("should have been accepted: {reply:?}"),
        }
    }

    pub fn pass(&mut self) {
        self.done(Command::Pass);
    }

    /// Takes the next launch out.
    pub fn take_launch(&mut self) -> (TaskId, NodeId) {
        match self.effects.pop_front() {
            Some(Effect::Launch { task, node, .. }) => (task, node),
            other => panic!("expected a launch, found {other:?}"),
        }
    }

    /// Takes all launches of a job out, and reports them started.
    pub fn run(&mut self, job: JobId) -> Vec<TaskId> {
        let mut tasks = Vec::new();
        self.effects.retain(|effect| match effect {
            Effect::Launch { task, .. } if task.job == job => {
                tasks.push(*task);
                false
            }
            Effect::Notify { .. } => false,
            _ => true,
        });
        for task in &tasks {
            self.done(Command::Started { task: *task });
        }
        self.effects.retain(|effect| !matches!(effect, Effect::Notify { .. }));
        tasks
    }

    /// Takes the next stop out.
    pub fn take_stop(&mut self) -> (TaskId, StopReason, Time) {
        self.skip_news();
        match self.effects.pop_front() {
            Some(Effect::Stop { task, why, until, .. }) => (task, why, until),
            other => panic!("expected a stop, found {other:?}"),
        }
    }

    fn skip_news(&mut self) {
        while matches!(self.effects.front(), Some(Effect::Notify { .. })) {
            self.effects.pop_front();
        }
    }

    /// No effect is left but news.
    pub fn assert_quiet(&mut self) {
        self.skip_news();
        assert_eq!(self.effects, VecDeque::new());
    }

    pub fn exit(&mut self, tasks: &[TaskId], code: i32) {
        for task in tasks {
            self.done(Command::Exited { task: *task, code, at: None });
        }
    }

    pub fn wallet(&self, user: UserId) -> Money {
        self.state.ledger().balance(era_core::ledger::Account::Wallet(user))
    }

    pub fn start_of(&self, job: JobId) -> Time {
        self.state.job(job).unwrap().first_part().plan().unwrap().from
    }
}

pub fn new_job(user: UserId, terms: Terms) -> NewJob {
    NewJob::new(user, terms)
}

/// On whose authority tests act.
pub fn by(user: UserId) -> Actor {
    Actor::User(user)
}

/// A value that falls in steps of (minutes, credits).
pub fn steps(steps: &[(i64, i64)]) -> Value {
    let step =
        |(m, c): &(i64, i64)| era_core::bid::ValueStep { by: min(*m), worth: Money::credits(*c) };
    Value::Steps(steps.iter().map(step).collect())
}
