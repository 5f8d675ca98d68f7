//! One example of everything that goes in or comes out, for the wire format.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::accounts::{Actor, Group, User};
use era_core::bid::{
    Alternative, Attributes, Bid, Constraints, Request, Shape, Topology, Value, Window,
};
use era_core::calendar::Seat;
use era_core::cluster::{Domain, DomainKeep, NodeReservation, Pool, Rates};
use era_core::estimate::feature::Feature;
use era_core::estimate::service::ServiceClass;
use era_core::estimate::{DurationForests, Estimates, Ratio};
use era_core::forecast::{Curve, Forecast, Series};
use era_core::input::{Array, NewJob, NewNode, NodeChange, Terms, Threshold};
use era_core::job::{After, Outcome, Overrun, Plan, QueueTerms, StopReason, TaskId, When};
use era_core::ledger::{Account, Posting, PostingReason};
use era_core::market::{MarketRules, MechanismChoice};
use era_core::offer::{CounterOffers, Offer, PartQuote, Quote};
use era_core::output::Notification;
use era_core::queue::fixed::Fixed;
use era_core::queue::formula::Formula;
use era_core::queue::{PolicyRule, Queue};
use era_core::quota::Quota;
use era_core::refusal::QuotaScope;
use era_core::resources::Resource;
use era_core::settings::Settings;
use era_core::units::{GroupId, HoldId, JobId, Milli, Money, NodeId, Span, Time};
use era_core::{Command, Effect, Event, Refusal, Reply};

use crate::bed::{ALICE, BOB, LAB, gang, min, name, new_job, node, resources, steps};
use crate::predictions::stump;
use crate::verbs::credits;

pub(crate) const JOB: JobId = JobId(17);
const HOLD: HoldId = HoldId(3);
const NODE: NodeId = NodeId(4);
const TASK: TaskId = TaskId { job: JOB, part: 0, attempt: 2, rank: 1 };

fn plan() -> Plan {
    let seats = vec![Seat { node: NODE, gpus: 0b11 }];
    Plan { pool: name("main"), from: min(10), to: min(70), seats, gpus_per_node: 8 }
}

fn quote() -> Quote {
    let (start, finish, price) = (min(10), min(70), credits(8));
    let parts = vec![PartQuote { pool: name("main"), start, finish, price }];
    Quote { price, start, finish, alternative: 0, parts }
}

/// A bid that uses every field.
fn rich_bid() -> Bid {
    let train = Request {
        shape: Shape::Replicas { min: 2, max: 4 },
        each: resources("cpu=8,memory=64Gi,gpu=2,gpu.model=h100,gpu.memory=40Gi,nic=1"),
        duration: Span::from_min(60),
        window: Window { earliest: min(0), deadline: min(600) },
        constraints: Constraints {
            pool: Some(name("main")),
            domain: Some(name("east")),
            labels: BTreeMap::from([(name("disk"), name("nvme"))]),
            same: Some(Topology::Rack),
            per_node_max: Some(2),
            spread: true,
        },
        after: vec![0],
    };
    let prepare = gang(1, "cpu=500m,memory=1Gi", 10, (0, 100));
    let mut total = gang(1, "gpu=1", 30, (0, 600));
    total.shape = Shape::Gpus { total: 12 };
    let one_of =
        vec![Alternative { all_of: vec![prepare, train] }, Alternative { all_of: vec![total] }];
    Bid { user: ALICE, one_of, value: steps(&[(300, 100), (600, 40)]) }
}

fn job(terms: Terms) -> NewJob {
    let attributes = Attributes {
        field: Some(name("vision")),
        framework: Some(name("pytorch")),
        network: Some(name("resnet50")),
        parameters_k: Some(25_600),
        data_mib: Some(150_000),
    };
    NewJob { name: Some(name("train").into()), attributes, priority: 3, ..new_job(ALICE, terms) }
}

fn submissions() -> Vec<Command> {
    let most = Some(credits(90));
    let overrun = Overrun::Extend;
    let bid = Terms::Bid { bid: rich_bid(), most, overrun, release_when_idle: true };
    let hold = Terms::Hold { hold: HOLD, overrun: Overrun::Stop, release_when_idle: false };
    let queue = QueueTerms { queue: name("default"), preemptible: true, release_when_idle: true };
    let queue = Terms::Queue { request: gang(1, "gpu=0.5", 30, (0, 1)), queue };
    vec![
        Command::Submit { key: Some(name("key-1")), job: job(bid) },
        Command::Submit { key: None, job: new_job(ALICE, hold) },
        Command::Submit { key: None, job: new_job(BOB, queue.clone()) },
        Command::Submit { key: None, job: array(new_job(BOB, queue)) },
        Command::Hold {
            key: None,
            bid: Bid {
                value: Value::Flat(credits(50)),
                ..Bid::single(ALICE, gang(1, "gpu=1", 30, (0, 60)), credits(1))
            },
        },
    ]
}

fn array(job: NewJob) -> NewJob {
    let array = Some(Array { count: 10_000, running_max: Some(40) });
    let after =
        vec![After { job: JobId(3), when: When::Ok }, After { job: JobId(4), when: When::Any }];
    NewJob { array, after, ..job }
}

fn of_users_and_executors() -> Vec<Command> {
    let by = Actor::User(ALICE);
    vec![
        Command::DropHold { hold: HOLD, by },
        Command::Cancel { job: JOB, by },
        Command::CancelArray { job: JOB, by },
        Command::Release { job: JOB, by: Actor::Administrator },
        Command::Extend { job: JOB, by, span: Span::from_min(30), most: credits(5) },
        Command::Edit {
            job: JOB,
            by,
            priority: Some(-1),
            limit: Some(Span::from_min(20)),
            queue: Some(name("night")),
        },
        Command::Started { task: TASK },
        Command::Exited { task: TASK, code: 137, at: None },
        Command::Exited { task: TASK, code: 0, at: Some(Time(59_000)) },
        Command::TaskLost { task: TASK, reason: name("oom") },
        Command::Checkpointed { task: TASK, done: Span::from_min(10) },
        Command::UsageCrossed { task: TASK, threshold: Threshold::GpusIdle },
    ]
}

fn of_the_cluster() -> Vec<Command> {
    let mut new = NewNode { rack: Some(name("r1")), domain: Some(name("east")), ..node(1) };
    new.labels.insert(name("disk"), name("nvme"));
    new.capacity.devices.insert(name("nic"), 2);
    new.capacity.gpus.truncate(1);
    let capacity = new.capacity.clone();
    let keep = NodeReservation { gpus_min: 8000, level_min: 3 };
    let keep = Some(DomainKeep { share: Milli(250), keep });
    vec![
        Command::Join { nodes: vec![new] },
        Command::Leave { node: NODE },
        Command::Drain { node: NODE, stop_at: None },
        Command::Drain { node: NODE, stop_at: Some(min(90)) },
        Command::Cordon { node: NODE },
        Command::Resume { node: NODE },
        Command::Lost { node: NODE },
        Command::SetCapacity { node: NODE, capacity },
        Command::EditNode {
            node: NODE,
            changes: vec![
                NodeChange::Domain { domain: Some(name("east")) },
                NodeChange::Maintenance { windows: vec![(min(60), min(120))] },
                NodeChange::Drain { stop_at: Some(min(90)) },
                NodeChange::Cordon,
                NodeChange::Resume,
                NodeChange::Leave,
            ],
        },
        Command::SetMaintenance { node: NODE, windows: vec![(min(60), min(120))] },
        Command::SetDomain { node: NODE, domain: Some(name("east")) },
        Command::SetDomain { node: NODE, domain: None },
        Command::PutPool {
            pool: Pool {
                name: name("main"),
                rates: Rates::default(),
                closed_share: Milli(100),
                level_caps: BTreeMap::from([(1, Milli(500)), (9, Milli(1000))]),
            },
        },
        Command::PutDomain { domain: Domain { name: name("east"), keep } },
        Command::RemoveDomain { name: name("east") },
    ]
}

fn of_the_house() -> Vec<Command> {
    let quota = Quota {
        concurrent: [None, Some(1024), Some(8000)],
        hours: [None, None, Some(100_000)],
        credits: Some(credits(500)),
    };
    let formula = Formula::parse("10 * user_level + wait / 60").unwrap();
    let curve = Curve::from_parts([(Milli(1000), 500), (Milli(5000), 200)]);
    let series = Series::from_curves([(min(0), curve)]);
    let pools = BTreeMap::from([(name("main"), [Series::default(), Series::default(), series])]);
    let ratio = Ratio { low: Milli(100), middle: Milli(500), high: Milli(1000) };
    let settings = Settings { typical: Vec::new(), ..Settings::default() };
    vec![
        Command::PutGroup { group: Group { id: LAB, level: 2, quota } },
        Command::PutUser {
            user: User { id: ALICE, group: LAB, level: 1, group_admin: true, quota },
        },
        Command::SetQuota {
            by: Actor::User(ALICE),
            scope: QuotaScope::User(BOB),
            quota,
            reason: Some(name("overspent")),
        },
        Command::SetQuota {
            by: Actor::Administrator,
            scope: QuotaScope::Group(LAB),
            quota: Quota::UNLIMITED,
            reason: None,
        },
        Command::Grant { user: ALICE, amount: credits(100) },
        Command::Withdraw { user: ALICE, amount: Money(1) },
        Command::PutQueue {
            queue: Queue { gpus_max: Some(4000), ..Queue::new(name("night"), name("sjf")) },
        },
        Command::RemoveQueue { name: name("night") },
        Command::PublishPolicy { name: name("ours"), rule: PolicyRule::Priority { formula } },
        Command::PublishPolicy { name: name("las"), rule: PolicyRule::Las { limits: vec![60] } },
        Command::RollBackPolicy { name: name("ours"), version: 1 },
        Command::SetSettings { settings },
        Command::SetMarket {
            rules: MarketRules {
                mechanism: MechanismChoice::Surge { low: Milli(500), high: Milli(5000) },
                ..MarketRules::default()
            },
        },
        Command::PublishForecast { forecast: Arc::new(Forecast { pools }) },
        Command::PublishEstimates {
            estimates: Arc::new(Estimates {
                users: BTreeMap::from([(ALICE, ratio)]),
                ..Default::default()
            }),
        },
        Command::PublishPolicy { name: name("ours"), rule: PolicyRule::Gittins },
        Command::PublishEstimates { estimates: Arc::new(learned()) },
        Command::Pass,
        Command::Tick,
    ]
}

/// Estimates that use every field.
fn learned() -> Estimates {
    let forest = |say| stump(Feature::SizedLast, 7, say, say + 2);
    let duration = DurationForests { middle: forest(8), low: forest(5), high: forest(11) };
    let durations = [Span::from_min(1), Span::from_min(30)];
    Estimates {
        users: BTreeMap::new(),
        duration: Some(duration),
        used: BTreeMap::from([(Resource::Gpu, forest(0))]),
        service: ServiceClass::of(Fixed::from_int(9), &durations).into_iter().collect(),
    }
}

pub(crate) fn commands() -> Vec<Command> {
    let mut all = submissions();
    all.extend(of_users_and_executors());
    all.extend(of_the_cluster());
    all.extend(of_the_house());
    all
}

pub(crate) fn events() -> Vec<Event> {
    let (job, part, attempt) = (JOB, 0, 2);
    let (from, to) = (Seat { node: NODE, gpus: 1 }, Seat { node: NodeId(5), gpus: 2 });
    let posting = Posting {
        from: Account::Wallet(ALICE),
        to: Account::Escrow(JOB),
        amount: credits(8),
        reason: PostingReason::Charge,
    };
    let until = min(71);
    vec![
        Event::Refused { refusal: Refusal::NoRoom },
        Event::BidDeclined { user: ALICE, price: Some(credits(9)) },
        Event::Promised { job, user: ALICE, price: credits(8), parts: vec![plan()] },
        Event::Queued { job, user: ALICE, queue: name("default"), count: 1 },
        Event::Queued { job, user: ALICE, queue: name("default"), count: 10_000 },
        Event::Ready { jobs: vec![job] },
        Event::Held { hold: HOLD, user: ALICE, price: credits(8), expires: min(1) },
        Event::HoldEnded { hold: HOLD },
        Event::Moved { job, part, rank: 0, from, to },
        Event::HoldMoved { hold: HOLD, part, rank: 0, to },
        Event::Launched { job, part, attempt, plan: plan() },
        Event::Running { job, part, attempt },
        Event::Stopping { job, part, attempt, why: StopReason::Failed { code: 1 }, until },
        Event::TaskEnded { task: TASK, code: Some(0) },
        Event::PartDone { job, part },
        Event::Requeued { job, not_before: min(5) },
        Event::Replanned { job, part, plan: plan() },
        Event::Broken { job, reason: "its node was lost".into() },
        Event::Extended { job, part, to: min(80), price: credits(2) },
        Event::Resized { job, part, replicas: 4 },
        Event::Ended {
            job,
            outcome: Outcome::Broken { reason: "its node was lost".into() },
            at: None,
        },
        Event::Ended { job, outcome: Outcome::Succeeded, at: Some(Time(59_000)) },
        Event::Ended { job, outcome: Outcome::Unfulfilled { job: JobId(3) }, at: None },
        Event::Posted { job: Some(job), posting },
        Event::Edited { job },
        Event::Checkpointed { job, part, done_ms: 600_000 },
        Event::IdleReported { job, released: true },
        Event::Ignored { task: TASK },
        Event::NodesChanged { nodes: vec![NODE] },
        Event::Changed { what: name("queue"), name: Some(name("night")) },
        Event::Forgotten { jobs: vec![job] },
    ]
}

pub(crate) fn effects() -> Vec<Effect> {
    let (task, node, until) = (TASK, NODE, min(70));
    let each = resources("cpu=8,gpu=2");
    let mut effects = vec![
        Effect::Launch { task, node, gpus: vec![0, 1], each, replicas: 2, until },
        Effect::Prolong { task, node, until },
        Effect::Resize { job: JOB, part: 0, attempt: 2, replicas: 4 },
    ];
    for why in [
        StopReason::Cancelled,
        StopReason::Released,
        StopReason::Limit,
        StopReason::Preempted,
        StopReason::Lost,
        StopReason::Drained,
        StopReason::Failed { code: 1 },
    ] {
        effects.push(Effect::Stop { task, node, until, why });
    }
    for news in [
        Notification::Started,
        Notification::Ended,
        Notification::Broken,
        Notification::Replanned,
        Notification::Preempted,
        Notification::Idle,
    ] {
        effects.push(Effect::Notify { user: ALICE, job: JOB, notification: news });
    }
    effects
}

pub(crate) fn replies() -> Vec<Reply> {
    let offer = Offer { start: min(60), finish: min(90), price: credits(4) };
    let counter = CounterOffers {
        value: Some(credits(9)),
        window: Some(offer),
        size: Some((2, offer)),
        duration: Some((Span::from_min(20), offer)),
        wallet: Some(credits(2)),
    };
    vec![
        Reply::Done,
        Reply::Accepted { job: JOB, quote: Some(quote()), count: 1 },
        Reply::Accepted { job: JOB, quote: None, count: 1 },
        Reply::Accepted { job: JOB, quote: None, count: 10_000 },
        Reply::Held { hold: HOLD, expires: min(1), quote: quote() },
        Reply::Joined { nodes: vec![NODE] },
        Reply::Ignored,
        Reply::Refused { refusal: Refusal::NoRoom, counter: Box::new(counter) },
        Reply::Refused { refusal: Refusal::KeyReused, counter: Box::default() },
    ]
}

pub(crate) fn refusals() -> Vec<Refusal> {
    let (job, user, group) = (JOB, ALICE, LAB);
    let scope = QuotaScope::User(ALICE);
    let hour = Span::from_h(1);
    vec![
        Refusal::BadDuration { given: Span(0), most: Span::from_days(366) },
        Refusal::BadReplicas { min: 4, max: 2, most: 16_384 },
        Refusal::BadGpuTotal { each: 500 },
        Refusal::NothingAsked,
        Refusal::BrokenGpu { given: 1500 },
        Refusal::GpuFilterWithoutGpu,
        Refusal::TooLarge,
        Refusal::BadWindow { earliest: min(10), deadline: min(10) },
        Refusal::WindowPast { deadline: min(0), now: min(10) },
        Refusal::BeyondHorizon { earliest: min(99_999), limit: min(43_200) },
        Refusal::WindowTooShort { window: Span::from_min(10), duration: hour },
        Refusal::TooMany { what: "alternatives".into(), given: 9, most: 8 },
        Refusal::BadOrder { request: 0 },
        Refusal::BadArray { count: 0, running: 0, most: 100_000 },
        Refusal::NotWithBid {
            what: "after".into(),
            hint: "order the requests inside one bid, or hand the job to a queue".into(),
        },
        Refusal::UnknownBefore { job },
        Refusal::FailedBefore { job },
        Refusal::NoArray { job },
        Refusal::BadValue { given: Money(-1), most: Money::MOST },
        Refusal::RisingValue,
        Refusal::OthersBid { user, bidder: BOB },
        Refusal::Unknown {
            kind: "pool".into(),
            name: name("nowhere"),
            known: vec![name("main"), name("spot")],
        },
        Refusal::UnknownUser { user },
        Refusal::UnknownGroup { group: GroupId(9) },
        Refusal::UnknownNode { node: NODE },
        Refusal::UnknownJob { job },
        Refusal::UnknownHold { hold: HOLD },
        Refusal::NeverFits {
            asked: "gpu: 16".into(),
            best: "the largest node has 8 GPUs of 80Gi, 64 cores and 512Gi of memory".into(),
        },
        Refusal::GangNeverFits {
            asked: 80,
            most: 56,
            each: None,
            pool: name("main"),
            pools: 1,
            within: Vec::new(),
        },
        Refusal::GangNeverFits {
            asked: 8,
            most: 3,
            each: Some("gpu: 5".into()),
            pool: name("main"),
            pools: 2,
            within: vec!["in domain west".into(), "on one node".into()],
        },
        Refusal::NoRoom,
        Refusal::TooDear { price: credits(9), value: credits(8) },
        Refusal::PriceRose { price: credits(9), most: credits(8) },
        Refusal::LevelShare { level: 1, share: Milli(500), pool: name("main") },
        Refusal::QuotaConcurrent { scope, what: "gpus".into(), limit: 8, held: 4, asked: 6 },
        Refusal::QuotaPeriod { scope, what: "credits".into(), limit: 500, used: 450, asked: 60 },
        Refusal::QuotaSum { group, what: "gpus".into(), sum: 10, limit: 8 },
        Refusal::Funds { balance: credits(1), needed: credits(9) },
        Refusal::BadAmount { given: Money(0), most: Money::MOST },
        Refusal::TooManyHolds { most: 4 },
        Refusal::NotYours { job },
        Refusal::NotGroupAdmin { user, group },
        Refusal::WrongState { job, state: "promised".into(), hint: "cancel it instead".into() },
        Refusal::Exists { what: "node".into(), name: name("node1") },
        Refusal::NodeBusy { node: NODE, jobs: vec![job] },
        Refusal::InUse {
            what: "domain".into(),
            name: name("east"),
            hint: "move its nodes out first".into(),
        },
        Refusal::BadSetting { field: "slot".into(), problem: "give 1s to 1d".into() },
        Refusal::BadFormula { at: 4, problem: "`wiat` is not known".into() },
        Refusal::BadForecast { problem: "runs must come in order of time".into() },
        Refusal::KeyReused,
        Refusal::OutOfOrder { given: 9, expected: 8 },
        Refusal::BadTime { given: Time(-1) },
        Refusal::Limit { what: "queues".into(), limit: 256 },
    ]
}
