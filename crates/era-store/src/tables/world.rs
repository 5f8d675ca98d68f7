//! A small cluster on a virtual clock whose inputs go into a real journal: the core decides, and
//! an executor that obeys at once reports back.

use std::collections::VecDeque;
use std::path::Path;

use era_core::bid::{Bid, Request, Shape, Window};
use era_core::cluster::Pool;
use era_core::input::{NewNode, Terms};
use era_core::job::{QueueTerms, TaskId};
use era_core::queue::{PolicyRule, Queue};
use era_core::resources::{Capacity, Gpu, Resources};
use era_core::units::{GroupId, JobId, Money, NodeId, Span, Time, UserId};
use era_core::{Command, Effect, Input, Output, Reply, State};
use era_drive::{Engine, EntryWriter, SiteBuilder};

pub(super) use era_drive::name;

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
    engine: Engine,
    launches: VecDeque<(TaskId, NodeId)>,
    written: Written,
}

/// What goes into the journal next: number, time, input, events and note of each entry.
#[derive(Default)]
struct Written(Vec<(i64, i64, String, String, Option<String>)>);

impl EntryWriter for Written {
    type Note = Note;

    fn input(&mut self, input: &Input, note: Option<Note>) {
        let text = serde_json::to_string(input).unwrap();
        let note = note.and_then(|note| note.write()).map(|note| note.get().to_owned());
        self.0.push((input.seq.cast_signed(), input.at.0, text, String::new(), note));
    }

    fn output(&mut self, output: &Output, _: &State) {
        self.0.last_mut().unwrap().3 = serde_json::to_string(&output.events).unwrap();
    }
}

/// Two nodes of 8 cores, 64 GiB and 4 GPUs, two users with credits, and a queue.
fn site() -> SiteBuilder {
    let gpus = vec![Gpu { model: name("h100"), memory: 81_920 }; 4];
    let capacity = Capacity { cpu: 8000, memory: 65_536, gpus, ..Capacity::default() };
    let node = |called| NewNode::new(name(called), name("main"), capacity.clone());
    let mut site = SiteBuilder {
        pools: vec![Pool::new(name("main"))],
        nodes: ["node-1", "node-2"].map(node).into(),
        policies: vec![(name("fifo"), PolicyRule::Fifo)],
        queues: vec![Queue::new(name("default"), name("fifo"))],
        ..SiteBuilder::default()
    };
    for user in [ADA, BOB] {
        site.user(user, GroupId(7), Money::credits(1000));
    }
    site
}

fn login(user: UserId) -> String {
    if user == ADA { "ada" } else { "bob" }.to_owned()
}

/// A request of so many replicas with two GPUs each.
pub(super) fn gang(replicas: u32, minutes: i64, window: (Time, Time)) -> Request {
    let each = [("cpu", "4"), ("memory", "16Gi"), ("gpu", "2")];
    let (each, window) =
        (Resources::parse(each).unwrap(), Window { earliest: window.0, deadline: window.1 });
    Request::new(Shape::gang(replicas), each, Span::from_min(minutes), window)
}

impl World {
    pub(super) async fn new(folder: &Path) -> World {
        let store = crate::testing::open(folder).await;
        let mut world = World {
            store,
            now: START,
            engine: Engine::new(State::default()),
            launches: VecDeque::new(),
            written: Written::default(),
        };
        for command in site().commands() {
            let note = match &command {
                Command::PutGroup { .. } => {
                    Note { group: Some("vision".into()), ..Note::default() }
                }
                Command::PutUser { user } => Note { user: Some(login(user.id)), ..Note::default() },
                _ => Note::default(),
            };
            let reply = world.send(command.clone(), note);
            assert!(!matches!(reply, Reply::Refused { .. }), "{command:?}: {reply:?}");
        }
        world
    }

    /// Begins the journal with the state that all of it goes on from.
    pub(super) async fn begin(&self) {
        self.store.journal().begin_segment(&Segment::of(&State::default())).await.unwrap();
    }

    /// One input through the core and into the journal.
    pub(super) fn send(&mut self, command: Command, note: Note) -> Reply {
        let output = self.engine.send(self.now, command, Some(note), &mut self.written);
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
            user: Some(login(user)),
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
            let parts = &self.engine.state().job(task.job).unwrap().parts;
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
        self.engine.state().ledger().balance(era_core::ledger::Account::Wallet(user))
    }

    /// What was sent so far, in the journal.
    pub(super) async fn flush(&mut self) {
        let mut transaction = self.store.durable().writer().begin().await.unwrap();
        for (seq, at, input, events, note) in self.written.0.drain(..) {
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
        Projector::open(&self.store).await.unwrap().catch_up().await.unwrap();
        Tables::new(&self.store)
    }
}
