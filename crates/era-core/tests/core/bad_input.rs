//! Bad input: each is refused with a code, a field and a sentence that says what is wrong and
//! what would be right, and nothing changes.

use era_core::accounts::Actor;
use era_core::bid::{Alternative, Bid, Request, Shape, Value, ValueStep};
use era_core::input::{NewJob, NodeChange, Terms};
use era_core::job::{Overrun, QueueTerms};
use era_core::market::MechanismChoice;
use era_core::queue::PolicyRule;
use era_core::queue::formula::Formula;
use era_core::quote::{menu, price_calendar};
use era_core::refusal::QuotaScope;
use era_core::resources::Resources;
use era_core::units::{GroupId, HoldId, JobId, Money, NodeId, Span, Time, UserId};
use era_core::{Command, Input, Refusal, Reply, quote, step};

use crate::bed::{ALICE, Bed, T0, bid, gang, min, name, new_job, resources};
use crate::verbs::{credits, for_queue, queue_terms, with_bid};

fn ask() -> Request {
    gang(1, "gpu=1", 60, (10, 200))
}

fn submit(edit: impl FnOnce(&mut Request)) -> Command {
    let mut request = ask();
    edit(&mut request);
    of(bid(request))
}

fn of(bid: Bid) -> Command {
    Command::Submit { key: None, job: with_bid(bid, None, Overrun::Stop, false) }
}

fn worth(value: Value) -> Command {
    of(Bid { value, ..bid(ask()) })
}

fn queued(edit: impl FnOnce(&mut Request)) -> Command {
    let mut request = ask();
    edit(&mut request);
    Command::Submit { key: None, job: for_queue(ALICE, request, queue_terms("default")) }
}

/// What is refused, with a word on what it is.
fn bids() -> Vec<(&'static str, Command)> {
    let huge = Time(i64::MAX);
    vec![
        ("no duration", submit(|r| r.duration = Span(0))),
        ("a negative duration", submit(|r| r.duration = Span(-60_000))),
        ("more than a year", submit(|r| r.duration = Span::from_days(367))),
        ("the longest number", submit(|r| r.duration = Span(i64::MAX))),
        ("no replicas", submit(|r| r.shape = Shape::gang(0))),
        ("replicas the wrong way", submit(|r| r.shape = Shape::Replicas { min: 3, max: 2 })),
        ("too many replicas", submit(|r| r.shape = Shape::gang(16_385))),
        ("no replicas on a node", submit(|r| r.constraints.per_node_max = Some(0))),
        ("no GPUs in all", submit(|r| r.shape = Shape::Gpus { total: 0 })),
        (
            "a total of halves",
            submit(|r| (r.shape, r.each) = (Shape::Gpus { total: 4 }, resources("gpu=0.5"))),
        ),
        ("nothing at all", submit(|r| r.each = Resources::default())),
        ("one and a half GPUs", submit(|r| r.each.gpu = 1500)),
        ("a model without GPUs", submit(|r| r.each = resources("cpu=1,gpu.model=h100"))),
        (
            "more than can be counted",
            submit(|r| (r.shape, r.each.memory) = (Shape::gang(16_384), u32::MAX)),
        ),
        ("a window that is empty", submit(|r| r.window.deadline = r.window.earliest)),
        ("a window before 1970", submit(|r| r.window.earliest = Time(-1))),
        ("a window without end", submit(|r| r.window.deadline = huge)),
        (
            "a window in the past",
            submit(|r| (r.window.earliest, r.window.deadline) = (min(-20), min(-10))),
        ),
        ("a window too short", submit(|r| r.window.deadline = min(69))),
        (
            "a start beyond the horizon",
            submit(|r| {
                r.window.earliest = T0 + Span::from_days(31);
                r.window.deadline = T0 + Span::from_days(40);
            }),
        ),
        (
            "an end beyond the horizon",
            submit(|r| {
                r.window.deadline = T0 + Span::from_days(400);
                r.duration = Span::from_days(31);
            }),
        ),
        ("no alternatives", of(Bid { one_of: vec![], ..bid(ask()) })),
        (
            "too many alternatives",
            of(Bid { one_of: vec![Alternative { all_of: vec![ask()] }; 9], ..bid(ask()) }),
        ),
        (
            "an alternative without requests",
            of(Bid { one_of: vec![Alternative { all_of: vec![] }], ..bid(ask()) }),
        ),
        (
            "too many requests",
            of(Bid { one_of: vec![Alternative { all_of: vec![ask(); 17] }], ..bid(ask()) }),
        ),
        ("an order that cannot be", submit(|r| r.after = vec![0])),
        ("a negative value", worth(Value::Flat(Money(-1)))),
        ("a value beyond money", worth(Value::Flat(Money(i64::MAX)))),
        ("no steps of value", worth(Value::Steps(vec![]))),
        (
            "a value that rises",
            worth(Value::Steps(vec![
                ValueStep { by: min(100), worth: credits(1) },
                ValueStep { by: min(200), worth: credits(2) },
            ])),
        ),
        (
            "steps out of order",
            worth(Value::Steps(vec![
                ValueStep { by: min(200), worth: credits(2) },
                ValueStep { by: min(100), worth: credits(1) },
            ])),
        ),
        (
            "too many steps of value",
            worth(Value::Steps(
                (0..17).map(|i| ValueStep { by: min(100 + i), worth: credits(1) }).collect(),
            )),
        ),
        ("a value below the price", worth(Value::Flat(credits(1)))),
        ("more GPUs than a node has", submit(|r| r.each = resources("gpu=9"))),
        ("more cores than a node has", submit(|r| r.each = resources("cpu=65"))),
        ("a device that nobody has", submit(|r| r.each = resources("fpga=1"))),
        (
            "a label that nobody has",
            submit(|r| drop(r.constraints.labels.insert(name("disk"), name("nvme")))),
        ),
        (
            "more nodes than there are",
            submit(|r| (r.shape, r.each) = (Shape::gang(3), resources("gpu=8"))),
        ),
        ("an unknown pool", submit(|r| r.constraints.pool = Some(name("spot")))),
        ("an unknown domain", submit(|r| r.constraints.domain = Some(name("east")))),
        ("an unknown model", submit(|r| r.each.gpu_model = Some(name("b200")))),
        ("more GPU memory than any has", submit(|r| r.each.gpu_memory = Some(1 << 20))),
        ("an unknown user", of(Bid { user: UserId(9), ..bid(ask()) })),
    ]
}

fn others() -> Vec<(&'static str, Command)> {
    let by = Actor::User(ALICE);
    let job = JobId(99);
    let nobody = UserId(9);
    let in_queue = |queue: &str| {
        let queue = QueueTerms { ..queue_terms(queue) };
        Command::Submit { key: None, job: for_queue(ALICE, ask(), queue) }
    };
    let held = Terms::Hold { hold: HoldId(9), overrun: Overrun::Stop, release_when_idle: false };
    vec![
        ("an unknown queue", in_queue("night")),
        ("a queued job before 1970", queued(|r| r.window.earliest = Time(-1))),
        ("a queued job after 9999", queued(|r| r.window.earliest = Time(i64::MAX))),
        ("a queued job of no length", queued(|r| r.duration = Span(0))),
        ("a queued job that never fits", queued(|r| r.each = resources("gpu=9"))),
        ("a queued job in order", queued(|r| r.after = vec![0])),
        (
            "a queued job of nobody",
            Command::Submit {
                key: None,
                job: NewJob { user: nobody, ..for_queue(ALICE, ask(), queue_terms("default")) },
            },
        ),
        ("an unknown hold", Command::Submit { key: None, job: new_job(ALICE, held) }),
        ("a hold of nothing", Command::DropHold { hold: HoldId(9), by }),
        ("an unknown job", Command::Cancel { job, by }),
        ("an unknown node", Command::Drain { node: NodeId(9), stop_at: None }),
        ("an unknown node to edit", Command::EditNode { node: NodeId(9), changes: Vec::new() }),
        (
            "too many changes of a node",
            Command::EditNode { node: NodeId(0), changes: vec![NodeChange::Cordon; 7] },
        ),
        (
            "changes of which the last one is refused",
            Command::EditNode {
                node: NodeId(0),
                changes: vec![
                    NodeChange::Drain { stop_at: None },
                    NodeChange::Domain { domain: Some(name("nowhere")) },
                ],
            },
        ),
        (
            "an unknown group",
            Command::SetQuota {
                by: Actor::Administrator,
                scope: QuotaScope::Group(GroupId(9)),
                quota: Default::default(),
                reason: None,
            },
        ),
        ("a grant to nobody", Command::Grant { user: nobody, amount: credits(1) }),
        ("a grant of nothing", Command::Grant { user: ALICE, amount: Money(0) }),
        ("a grant beyond money", Command::Grant { user: ALICE, amount: Money(i64::MAX) }),
        (
            "a withdrawal of more than there is",
            Command::Withdraw { user: ALICE, amount: credits(11_000_000) },
        ),
        (
            "a quota beyond money",
            Command::SetQuota {
                by: Actor::Administrator,
                scope: QuotaScope::User(ALICE),
                quota: era_core::quota::Quota {
                    credits: Some(Money(i64::MAX)),
                    ..Default::default()
                },
                reason: None,
            },
        ),
        (
            "an unknown policy",
            Command::PutQueue { queue: era_core::queue::Queue::new(name("night"), name("whim")) },
        ),
        (
            "limits that fall",
            Command::PublishPolicy {
                name: name("las"),
                rule: PolicyRule::Las { limits: vec![9, 1] },
            },
        ),
        ("no nodes", Command::Join { nodes: vec![] }),
    ]
}

fn tell(what: &str, refusal: &Refusal) -> String {
    format!("{what}\n    {} ({}): {refusal}", refusal.code(), refusal.field().unwrap_or("-"))
}

#[test]
fn every_bad_input_is_refused_with_its_reason_and_changes_nothing() {
    let mut bed = Bed::new(2);
    let mut told = Vec::new();
    for (what, command) in bids().into_iter().chain(others()) {
        let bid = match &command {
            Command::Submit { job: NewJob { terms: Terms::Bid { bid, .. }, .. }, .. } => {
                Some(bid.clone())
            }
            _ => None,
        };
        let refusal = bed.refused(command);
        // A quote says the same as a submission, and a hold says the same as both.
        if let Some(bid) = bid {
            let declined = quote(&bed.state, &bid, bed.at).unwrap_err();
            assert_eq!(declined.refusal, refusal, "{what}");
            assert_eq!(bed.refused(Command::Hold { key: None, bid }), refusal, "{what}");
        }
        told.push(tell(what, &refusal));
    }
    insta::assert_snapshot!("bad_input", told.join("\n"));
}

#[test]
fn formulas_that_are_none_are_refused_with_the_place_and_what_is_known() {
    let sources = [
        "wiat / 60",
        "wait / nan",
        "inf",
        "1 / 0",
        "9000000000000 * 9000000000000",
        "99999999999999999999",
        "wait +",
        "wait wait",
        "field + 1",
        "field == 1",
        "max(1)",
        "",
    ];
    let told = |source: &&str| {
        let refusal = Refusal::from(Formula::parse(source).unwrap_err());
        // The same text comes from a command that carries it.
        let rule = format!(r#"{{"order":"priority","formula":"{source}"}}"#);
        let error = serde_json::from_str::<PolicyRule>(&rule).unwrap_err().to_string();
        let Refusal::BadFormula { problem, .. } = &refusal else { panic!() };
        assert!(error.contains(problem), "{error}");
        tell(&format!("`{source}`"), &refusal)
    };
    let deep = "(".repeat(100) + "1" + &")".repeat(100);
    let mut lines: Vec<String> = sources.iter().map(told).collect();
    lines.push(tell("a hundred parentheses", &Formula::parse(&deep).unwrap_err().into()));
    let long = "1 + ".repeat(2000) + "1";
    lines.push(tell("a long formula", &Formula::parse(&long).unwrap_err().into()));
    insta::assert_snapshot!("formulas", lines.join("\n"));
}

#[test]
fn resources_that_cannot_be_read_are_refused_with_an_example() {
    let told = |(key, text): (&str, &str)| match Resources::parse([(key, text)]) {
        Err(problem) => problem.to_string(),
        Ok(resources) => panic!("{key}={text} was read as {resources}"),
    };
    let lines: Vec<String> = [
        ("cpu", "many"),
        ("cpu", "-1"),
        ("cpu", "NaN"),
        ("cpu", "0.0001"),
        ("cpu", "99999999999"),
        ("memory", "16 GB"),
        ("memory", "16"),
        ("memory", "1e99"),
        ("gpu", "1.5"),
        ("gpu", "1500m"),
        ("gpu.model", "h 100"),
        ("fpga", "half"),
        ("a b", "1"),
    ]
    .into_iter()
    .map(told)
    .collect();
    insta::assert_snapshot!("quantities", lines.join("\n"));
}

#[test]
fn a_mechanism_that_nobody_knows_is_refused_with_the_known_ones() {
    let refusal = MechanismChoice::named(&name("whim")).unwrap_err();
    let sentence =
        "no mechanism is called `whim`: known are basic-econ, first-fit, on-demand, surge";
    assert_eq!((refusal.field(), refusal.to_string()), (Some("mechanism"), sentence.into()));
    for known in MechanismChoice::NAMES {
        assert_eq!(MechanismChoice::named(&name(known)).unwrap().name(), known);
    }
}

#[test]
fn an_input_out_of_order_or_out_of_time_is_refused_and_not_counted() {
    let mut bed = Bed::new(1);
    let before = bed.state.clone();
    let next = bed.state.seq() + 1;
    let mut refusal = |seq, at| {
        let output = step(&mut bed.state, Input { seq, at, command: Command::Tick });
        assert!(output.events.is_empty() && output.effects.is_empty());
        assert_eq!(bed.state, before, "not even the count of inputs moves");
        match output.reply {
            Reply::Refused { refusal, .. } => tell("", &refusal),
            reply => panic!("{reply:?}"),
        }
    };
    let told = [
        refusal(next - 1, T0),
        refusal(next + 1, T0),
        refusal(u64::MAX, T0),
        refusal(next, Time(-1)),
        refusal(next, Time(i64::MAX)),
    ];
    insta::assert_snapshot!("order_and_time", told.join("\n"));
}

#[test]
fn time_that_runs_backwards_counts_as_the_time_before() {
    let mut bed = Bed::new(1);
    bed.until(min(10));
    bed.at = min(5);
    bed.done(Command::Tick);
    assert_eq!(bed.state.now(), min(10));
}

#[test]
fn readers_refuse_what_they_cannot_answer() {
    let bed = Bed::new(1);
    let spot = price_calendar(&bed.state, &name("spot"), min(0), min(10)).unwrap_err();
    assert!(matches!(spot, Refusal::Unknown { .. }));
    for (from, to) in [(min(10), min(0)), (Time::MIN, Time::MIN), (Time::MAX, Time::MAX)] {
        assert_eq!(price_calendar(&bed.state, &name("main"), from, to), Ok(vec![]));
    }
    let two = Bid { one_of: vec![Alternative { all_of: vec![ask(), ask()] }], ..bid(ask()) };
    let declined = menu(&bed.state, &two, bed.at).unwrap_err();
    assert_eq!(declined.refusal.to_string(), "2 requests given: give 1 to 1");
    let bad = bid(gang(1, "gpu=9", 10, (0, 100)));
    assert!(matches!(
        menu(&bed.state, &bad, bed.at).unwrap_err().refusal,
        Refusal::NeverFits { .. }
    ));
}

#[test]
fn a_site_without_gpus_says_that_it_has_none() {
    let mut bed = Bed::new(0);
    let mut node = crate::bed::node(0);
    node.capacity.gpus.clear();
    bed.send(Command::Join { nodes: vec![node] });
    let told = bed.refused(submit(|_| {})).to_string();
    assert!(told.ends_with("the largest node has no GPUs, 64 cores and 512Gi of memory"), "{told}");
}
