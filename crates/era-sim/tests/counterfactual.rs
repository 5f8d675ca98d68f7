//! A journal under another rule, on small days whose outcome can be worked out by hand.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use era_core::accounts::{Actor, Group, User};
use era_core::bid::{Alternative, Bid, Request, Shape, Value, ValueStep, Window};
use era_core::cluster::{Pool, Rates};
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::{QueueTerms, TaskId};
use era_core::market::{MarketRules, MechanismChoice};
use era_core::quota::Quota;
use era_core::resources::{Capacity, Gpu, Resources};
use era_core::settings::Settings;
use era_core::units::{GroupId, JobId, Milli, Money, Name, NodeId, Span, Time, UserId};
use era_core::{Command, Effect, Reply, State};
use era_sim::journal::{Reader, Recorder};
use era_sim::replay::{
    ComparedParty, Comparison, RecordedHistory, RuleOverrides, compare, learn, rerun,
};
use era_sim::run::policy_named;

/// Ten in the morning, some day.
const START: i64 = 1_792_400_400;

fn at(second: i64) -> Time {
    Time::from_s(START + second)
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// A house with a journal, whose jobs start in the second in which they are launched and end
/// when the test says so.
struct Day {
    recorder: Recorder<Vec<u8>>,
    launched: Vec<TaskId>,
}

impl Day {
    fn new(gpus: usize, market: MarketRules) -> Day {
        let settings = Settings { queue_density: Milli(0), ..Settings::default() };
        let recorder = Recorder::new(State::new(settings, market), Vec::new()).expect("memory");
        let mut day = Day { recorder, launched: Vec::new() };
        let gpu_only = Rates { cpu: Money::ZERO, memory: Money::ZERO, gpu: Money::credits(1) };
        day.send(0, Command::PutPool { pool: Pool { rates: gpu_only, ..Pool::new(name("main")) } });
        let capacity = Capacity {
            cpu: 8_000,
            memory: 8_192,
            gpus: vec![Gpu { model: name("h100"), memory: 81_920 }; gpus],
            devices: BTreeMap::new(),
        };
        let node = NewNode::new(name("n"), name("main"), capacity);
        day.send(0, Command::Join { nodes: vec![node] });
        for id in 1..=3 {
            let group = GroupId(1 + id / 3);
            let quota = Quota::UNLIMITED;
            day.send(0, Command::PutGroup { group: Group { quota, ..Group::new(group) } });
            let user = User { quota, ..User::new(UserId(id), group) };
            day.send(0, Command::PutUser { user });
            day.send(0, Command::Grant { user: UserId(id), amount: Money::credits(1000) });
        }
        day
    }

    fn send(&mut self, second: i64, command: Command) -> Reply {
        let output = self.recorder.send(at(second), command).expect("memory");
        let tasks: Vec<TaskId> = output
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Launch { task, .. } => Some(*task),
                _ => None,
            })
            .collect();
        for task in tasks {
            self.launched.push(task);
            self.send(second, Command::Started { task });
        }
        output.reply
    }

    fn submit(&mut self, second: i64, user: u32, terms: Terms) -> Option<JobId> {
        let job = NewJob::new(UserId(user), terms);
        let reply = self.send(second, Command::Submit { key: None, job });
        self.send(second, Command::Pass);
        match reply {
            Reply::Accepted { job, .. } => Some(job),
            _ => None,
        }
    }

    fn exit(&mut self, second: i64, job: JobId) {
        let task = *self.launched.iter().rfind(|task| task.job == job).expect("it runs");
        self.send(second, Command::Exited { task, code: 0, at: None });
        self.send(second, Command::Pass);
    }

    fn history(self) -> RecordedHistory {
        let bytes = Cursor::new(self.recorder.into_inner());
        let reader = Reader::new(Path::new("day.jsonl"), Box::new(bytes));
        learn(reader, &|_| ()).unwrap_or_else(|error| panic!("{error}")).0
    }
}

fn request(duration_s: i64, deadline: i64) -> Request {
    Request::new(
        Shape::gang(1),
        Resources { gpu: 1000, ..Resources::default() },
        Span::from_s(duration_s),
        Window { earliest: Time(0), deadline: at(deadline) },
    )
}

fn queued(duration_s: i64) -> Terms {
    let queue = QueueTerms::new(name("default"));
    Terms::Queue { request: request(duration_s, 1_000_000), queue }
}

fn bid(user: u32, request: Request, value: Value) -> Terms {
    let one_of = vec![Alternative { all_of: vec![request] }];
    let bid = Bid { user: UserId(user), one_of, value };
    Terms::bid(bid)
}

fn under(history: &RecordedHistory, rules: &RuleOverrides) -> Comparison {
    let rerun = rerun(history, &history.start, &history.asks, rules, &|_| ())
        .expect("rules that the core takes");
    compare(history, &rerun)
}

fn party(parties: &[ComparedParty], id: u32) -> &ComparedParty {
    parties.iter().find(|party| party.id == id).expect("a party")
}

/// One GPU. A runs until 100; B wants 1000 s from 10, C wants 20 s from 20.
fn a_short_job_behind_a_long_one() -> RecordedHistory {
    let mut day = Day::new(1, MarketRules::default());
    let a = day.submit(0, 1, queued(200)).expect("accepted");
    let b = day.submit(10, 2, queued(2000)).expect("accepted");
    let c = day.submit(20, 3, queued(60)).expect("accepted");
    day.exit(100, a);
    day.exit(1100, b);
    day.exit(1120, c);
    day.history()
}

#[test]
fn under_sjf_the_short_job_gains_what_the_long_one_loses() {
    let history = a_short_job_behind_a_long_one();
    let rules = RuleOverrides {
        policy: Some(policy_named("sjf").expect("a policy")),
        ..RuleOverrides::default()
    };
    let comparison = under(&history, &rules);
    let waits = |id| {
        let party = party(&comparison.users, id);
        (party.recorded.mean_wait_s, party.other.mean_wait_s, party.wait_change_s)
    };
    assert_eq!(waits(1), (0.0, 0.0, 0.0));
    // B really ran 1000 s and C 20 s: C goes first from 100 to 120.
    assert_eq!(waits(2), (90.0, 110.0, 20.0));
    assert_eq!(waits(3), (1080.0, 80.0, -1000.0));
    let order: Vec<u32> = comparison.users.iter().map(|party| party.id).collect();
    assert_eq!(order, [3, 1, 2], "who gains most stands first");
    let groups: Vec<(u32, u64)> = comparison.groups.iter().map(|g| (g.id, g.jobs)).collect();
    assert_eq!(groups, [(2, 1), (1, 2)]);
    assert!(comparison.not_comparable.is_empty(), "{:?}", comparison.not_comparable);
}

/// The scheduler was away, and hears of the end before time goes on.
#[test]
fn what_ended_after_the_last_known_instant_ran_until_it_ended() {
    let mut day = Day::new(1, MarketRules::default());
    let [good, bad] = [0, 7].map(|code| {
        let begun = if code == 0 { 0 } else { 4000 };
        let job = day.submit(begun, 1, queued(3600)).expect("accepted");
        let task = *day.launched.last().expect("it was launched");
        let ended = Some(at(begun + 3000));
        day.send(begun + 5, Command::Exited { task, code, at: ended });
        day.send(begun + 3500, Command::Tick);
        job
    });
    let history = day.history();
    for (job, begun, code) in [(good, 0, 0), (bad, 4000, 7)] {
        let conduct = &history.conduct[&(job, 0)];
        assert_eq!((conduct.work, conduct.code), (Span::from_s(3000), code));
        let story = &history.book.stories[&job];
        assert_eq!(story.ended.as_ref().map(|(at, _)| *at), Some(at(begun + 3000)));
        assert_eq!(story.had, 1000 * 3_000_000, "a GPU for so long");
    }
    let stays: Vec<_> = history.book.stays().map(|stay| (stay.from, stay.to)).collect();
    assert_eq!(stays, [(at(0), at(3000)), (at(4000), at(7000))]);
}

#[test]
fn under_the_rule_in_force_nothing_changes() {
    let history = a_short_job_behind_a_long_one();
    let comparison = under(&history, &RuleOverrides::default());
    for party in comparison.users.iter().chain([&comparison.total]) {
        assert_eq!(party.recorded, party.other);
        assert_eq!((party.net_change, party.wait_change_s), (0, 0.0));
    }
}

/// Two hours of one GPU, which user 1 wants for an hour and user 2 for an hour.
fn two_bids(value_1: Value, value_2: Value) -> RecordedHistory {
    let market = MarketRules { floor: Milli(500), ..MarketRules::default() };
    let mut day = Day::new(1, market);
    let a = day.submit(0, 1, bid(1, request(3600, 7200), value_1)).expect("accepted");
    let b = day.submit(1, 2, bid(2, request(3600, 14_400), value_2));
    day.send(3500, Command::Exited { task: day.launched[0], code: 0, at: None });
    assert_eq!(day.launched[0].job, a);
    if b.is_some() {
        day.send(3600, Command::Tick);
        let task = *day.launched.last().expect("it was launched");
        assert_eq!(Some(task.job), b);
        day.send(7000, Command::Exited { task, code: 0, at: None });
    }
    day.send(9_000, Command::Tick);
    day.history()
}

#[test]
fn a_price_that_doubles_costs_each_user_what_it_says() {
    let worth = Value::Flat(Money::credits(3));
    let history = two_bids(worth.clone(), worth);
    let first_fit = MechanismChoice::FirstFit { density: Milli(1000) };
    let rules = RuleOverrides { mechanism: Some(first_fit), ..RuleOverrides::default() };
    let comparison = under(&history, &rules);
    for id in [1, 2] {
        let party = party(&comparison.users, id);
        // Nobody is expected, so basic-econ asks for the floor: half the base rate of 1 an hour,
        // less what is given back of the last minutes.
        assert!((470_000..=500_000).contains(&party.recorded.paid), "{party:?}");
        let ratio = party.other.paid as f64 / party.recorded.paid as f64;
        assert!((ratio - 2.0).abs() < 1e-4, "{party:?}");
        assert_eq!(party.recorded.value, 3_000_000);
        assert_eq!(party.net_change, party.recorded.paid - party.other.paid);
    }
    let paid: i64 = comparison.users.iter().map(|party| party.other.paid).sum();
    assert_eq!(comparison.total.other.paid, paid);
}

#[test]
fn who_is_refused_under_the_other_rule_loses_the_value_and_is_counted() {
    let poor = Value::Flat(Money(700_000));
    let history = two_bids(Value::Flat(Money::credits(3)), poor);
    let first_fit = MechanismChoice::FirstFit { density: Milli(1000) };
    let rules = RuleOverrides { mechanism: Some(first_fit), ..RuleOverrides::default() };
    let comparison = under(&history, &rules);
    let second = party(&comparison.users, 2);
    assert_eq!((second.recorded.accepted, second.other.accepted), (1, 0));
    assert_eq!((second.recorded.value, second.other.value, second.other.paid), (700_000, 0, 0));
    assert_eq!(comparison.not_comparable["accepted_there_refused_here"], 1);
}

#[test]
fn who_was_refused_may_be_accepted_and_is_counted() {
    let poor = Value::Flat(Money(300_000));
    let history = two_bids(Value::Flat(Money::credits(3)), poor);
    let cheap = MechanismChoice::FirstFit { density: Milli(200) };
    let rules =
        RuleOverrides { mechanism: Some(cheap), floor: Some(Milli(0)), ..RuleOverrides::default() };
    let comparison = under(&history, &rules);
    let second = party(&comparison.users, 2);
    assert_eq!((second.recorded.accepted, second.other.accepted), (0, 1));
    assert_eq!(comparison.not_comparable["refused_there_accepted_here"], 1);
    assert!(second.net_change > 0);
    // Had the record ended before it could end, there would be nothing to compare with.
    let cut = RecordedHistory { end: at(4_000), ..history };
    let comparison = under(&cut, &rules);
    assert!(comparison.users.iter().all(|party| party.id != 2));
    let what = "refused_there_still_running_here_when_the_record_ends";
    assert_eq!(comparison.not_comparable[what], 1);
}

#[test]
fn value_is_what_the_finish_is_worth() {
    // The second finishes after the first step of its value.
    let steps = Value::Steps(vec![
        ValueStep { by: at(3_700), worth: Money::credits(9) },
        ValueStep { by: at(14_400), worth: Money::credits(2) },
    ]);
    let history = two_bids(Value::Flat(Money::credits(3)), steps);
    let comparison = under(&history, &RuleOverrides::default());
    assert_eq!(party(&comparison.users, 2).recorded.value, 2_000_000);
    assert_eq!(party(&comparison.users, 2).other.value, 2_000_000);
}

#[test]
fn what_was_still_running_or_cut_short_is_named() {
    let mut day = Day::new(2, MarketRules::default());
    let a = day.submit(0, 1, queued(500)).expect("accepted");
    day.submit(0, 2, queued(500)).expect("accepted");
    day.submit(5, 3, queued(500)).expect("accepted");
    day.send(50, Command::Cancel { job: a, by: Actor::User(UserId(1)) });
    day.exit(51, a);
    day.send(60, Command::Tick);
    let comparison = under(&day.history(), &RuleOverrides::default());
    let notes: Vec<(&str, u64)> =
        comparison.not_comparable.iter().map(|(what, count)| (*what, *count)).collect();
    assert_eq!(
        notes,
        [("length_unknown_cut_short_there", 1), ("still_running_when_the_record_ends", 2)]
    );
    assert_eq!(comparison.total.jobs, 1);
}

#[test]
fn a_lost_node_is_lost_under_the_other_rule_too() {
    let mut day = Day::new(1, MarketRules::default());
    let a = day.submit(0, 1, queued(300)).expect("accepted");
    day.send(100, Command::Lost { node: NodeId(0) });
    day.send(200, Command::Resume { node: NodeId(0) });
    day.send(231, Command::Pass);
    day.exit(400, a);
    let history = day.history();
    let rerun = rerun(&history, &history.start, &history.asks, &RuleOverrides::default(), &|_| ());
    let rerun = rerun.expect("rules that the core takes");
    let story = &rerun.book.stories[&rerun.job_of[&a]];
    assert_eq!(story.requeued, 1, "{story:?}");
    // Its last attempt ran 169 s in the record; here it starts as soon as the node is back.
    let recorded = &history.book.stories[&a];
    assert_eq!(recorded.ended.as_ref().map(|(time, _)| *time), Some(at(400)));
    let ended = story.ended.as_ref().map(|(time, _)| *time).expect("it ended");
    assert!(ended >= at(200 + 169) && ended <= at(400), "{story:?}");
}
