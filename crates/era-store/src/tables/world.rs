//! A small cluster on a virtual clock whose inputs go into a real journal: the core decides, and
//! an executor that obeys at once reports back.

use std::collections::VecDeque;
use std::path::Path;

use era_core::accounts::{Group, User};
use era_core::bid::{Bid, Request, Shape, Window};
use era_core::cluster::Pool;
use era_core::input::{NewNode, Terms};
use era_core::job::{QueueTerms, TaskId};
use era_core::market::MarketRules;
use era_core::queue::{PolicyRule, Queue};
use era_core::resources::{Capacity, Gpu, Resources};
use era_core::settings::Settings;
use era_core::units::{GroupId, JobId, Money, Name, NodeId, Span, Time, UserId};
use era_core::{Command, Effect, Input, Reply, State, step};

use super::{Projector, Tables};
use crate::journal::Segment;
use crate::note::Observation;
use crate::{Note, Store};

/// A whole hour, so that buckets are easy to read.
pub(super) const START: Time = Time(1_800_000_000_000);
pub(super) const ADA: UserId = UserId(1);
pub(super) const BOB: UserId = UserId(2);

pub(super) struct World {
    pub(super) store: Store,
    pub(super) now: Time,
    state: State,
    launches: VecDeque<(TaskId, NodeId)>,
    written: Vec<(i64, i64, String, String, Option<String>)>,
}

pub(super) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A request of so many replicas with two GPUs each.
pub(super) fn gang(replicas: u32, minutes: i64, window: (Time, Time)) -> Request {
    let each = [("cpu", "4"), ("memory", "16Gi"), ("gpu", "2")];
    let (each, window) =
        (Resources::parse(each).unwrap(), Window { earliest: window.0, deadline: window.1 });
    Request::new(Shape::gang(replicas), each, Span::from_min(minutes), window)
}

impl World {
    /// Two nodes of 8 cores, 64 GiB and 4 GPUs, two users with credits, and a queue.
    pub(super) async fn new(folder: &Path) -> World {
        let store = crate::testing::open(folder).await;
        let mut world = World {
            store,
            now: START,
            state: State::new(Settings::default(), MarketRules::default()),
            launches: VecDeque::new(),
            written: Vec::new(),
        };
        world.furnish();
        world
    }

    /// Begins the journal with the state that all of it goes on from.
    pub(super) async fn begin(&self) {
        let first = State::new(Settings::default(), MarketRules::default());
        self.store.journal().begin_segment(&Segment::of(&first)).await.unwrap();
    }

    fn furnish(&mut self) {
        self.done(Command::PutPool { pool: Pool::new(name("main")) }, Note::default());
        let gpu = Gpu { model: name("h100"), memory: 81_920 };
        let capacity =
            Capacity { cpu: 8000, memory: 65_536, gpus: vec![gpu; 4], devices: Default::default() };
        let node = |called| NewNode::new(name(called), name("main"), capacity.clone());
        let nodes = vec![node("node-1"), node("node-2")];
        self.send(Command::Join { nodes }, Note::default());
        let group = Group::new(GroupId(7));
        let named = Note { group: Some("vision".into()), ..Note::default() };
        self.done(Command::PutGroup { group }, named);
        for (id, called) in [(ADA, "ada"), (BOB, "bob")] {
            let user = User::new(id, GroupId(7));
            let note = Note { user: Some(called.into()), ..Note::default() };
            self.done(Command::PutUser { user }, note);
            self.done(Command::Grant { user: id, amount: Money::credits(1000) }, Note::default());
        }
        self.done(
            Command::PublishPolicy { name: name("fifo"), rule: PolicyRule::Fifo },
            Note::default(),
        );
        self.done(
            Command::PutQueue { queue: Queue::new(name("default"), name("fifo")) },
            Note::default(),
        );
    }

    /// One input through the core and into the journal.
    pub(super) fn send(&mut self, command: Command, note: Note) -> Reply {
        let seq = self.state.seq() + 1;
        let input = Input { seq, at: self.now, command };
        let text = serde_json::to_string(&input).unwrap();
        let output = step(&mut self.state, input);
        let events = serde_json::to_string(&output.events).unwrap();
        let note = note.write().map(|note| note.get().to_owned());
        self.written.push((seq.cast_signed(), self.now.0, text, events, note));
        for effect in output.effects {
            if let Effect::Launch { task, node, .. } = effect {
                self.launches.push_back((task, node));
            }
        }
        output.reply
    }

    pub(super) fn done(&mut self, command: Command, note: Note) {
        let reply = self.send(command.clone(), note);
        assert_eq!(reply, Reply::Done, "{command:?}");
    }

    pub(super) fn submit(&mut self, user: UserId, called: &str, terms: Terms) -> Reply {
        let project = (called == "promised").then_some("thesis");
        let spec = serde_json::json!({
            "name": called, "project": project, "work": { "command": ["true"] }
        });
        // By its written form: what is not said is as it is where nothing is said.
        let job = serde_json::json!({ "user": user, "name": called, "terms": terms });
        let job = serde_json::from_value(job).unwrap();
        let note = Note {
            user: Some(if user == ADA { "ada" } else { "bob" }.into()),
            group: Some("vision".into()),
            spec: serde_json::from_value(spec).unwrap(),
            received_ms: Some(self.now.0 - 3),
            quote_us: Some(500),
            ..Note::default()
        };
        self.send(Command::Submit { key: None, job }, note)
    }

    /// An array of queue work with a name of its own; the number of its first job.
    pub(super) fn array(&mut self, user: UserId, called: &str, count: u32) -> JobId {
        let request = gang(1, 10, (self.now, self.now + Span::from_days(2)));
        let terms = Terms::Queue { request, queue: QueueTerms::new(name("default")) };
        let job = serde_json::json!({
            "user": user, "name": called, "terms": terms, "array": { "count": count }
        });
        let job = serde_json::from_value(job).unwrap();
        let spec = serde_json::json!({ "array": { "from": 0, "to": count - 1 } });
        let spec = serde_json::from_value(spec).unwrap();
        match self.send(Command::Submit { key: None, job }, Note { spec, ..Note::default() }) {
            Reply::Accepted { job, .. } => job,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn bid(&mut self, user: UserId, request: Request, value: i64) -> Reply {
        let bid = Bid::single(user, request, Money::credits(value));
        self.submit(user, "promised", Terms::bid(bid))
    }

    pub(super) fn enqueue(&mut self, user: UserId, request: Request) -> JobId {
        let queue = QueueTerms::new(name("default"));
        match self.submit(user, "queued", Terms::Queue { request, queue }) {
            Reply::Accepted { job, .. } => job,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn pass(&mut self) {
        self.send(Command::Pass, Note::default());
    }

    pub(super) fn wait(&mut self, span: Span) {
        self.now = self.now + span;
        self.send(Command::Tick, Note::default());
    }

    /// All that was launched says that it runs, with a prepare time of 40 ms.
    pub(super) fn start_all(&mut self) -> Vec<TaskId> {
        let tasks: Vec<TaskId> = self.launches.drain(..).map(|(task, _)| task).collect();
        for task in &tasks {
            let parts = &self.state.job(task.job).unwrap().parts;
            let mut growth = parts[usize::from(task.part)].extras().iter();
            let seat = growth.find(|extra| extra.rank == task.rank).map(|extra| extra.seat);
            let seen = Observation {
                at_ms: self.now.0,
                prepared_ms: Some(40),
                seat,
                ..Observation::default()
            };
            let note = Note { task: Some(seen), ..Note::default() };
            self.send(Command::Started { task: *task }, note);
        }
        tasks
    }

    pub(super) fn exit(&mut self, task: TaskId, code: i32, cause: Option<&str>) {
        let cause = cause.map(str::to_owned);
        let seen = Observation { at_ms: self.now.0, cause, ..Observation::default() };
        let note = Note { task: Some(seen), ..Note::default() };
        self.send(Command::Exited { task, code, at: None }, note);
    }

    /// What a wallet holds by the core.
    pub(super) fn balance(&self, user: UserId) -> Money {
        self.state.ledger().balance(era_core::ledger::Account::Wallet(user))
    }

    /// What was sent so far, in the journal.
    pub(super) async fn flush(&mut self) {
        let mut transaction = self.store.durable().writer().begin().await.unwrap();
        for (seq, at, input, events, note) in self.written.drain(..) {
            sqlx::query("INSERT INTO journal (seq, at, input, events, note) VALUES (?,?,?,?,?)")
                .bind(seq)
                .bind(at)
                .bind(input)
                .bind(events)
                .bind(note)
                .execute(&mut *transaction)
                .await
                .unwrap();
        }
        transaction.commit().await.unwrap();
    }

    /// The tables, up to what was sent so far.
    pub(super) async fn project(&mut self) -> Tables {
        self.flush().await;
        let mut projector = Projector::open(&self.store).await.unwrap();
        while projector.advance().await.unwrap().is_some() {}
        Tables::new(&self.store)
    }
}
