//! `era bench queue`: how long it takes to rank what waits, to go through it once, and to bring a
//! whole array through the core.

use std::hint::black_box;

use anyhow::Result;
use era_core::bid::{Request, Window};
use era_core::explain::queue_order;
use era_core::input::{Array, NewJob, Terms};
use era_core::job::QueueTerms;
use era_core::queue::PolicyRule;
use era_core::queue::formula::Formula;
use era_core::resources::Resources;
use era_core::units::{Span, Time, UserId};
use era_core::{Command, Effect, Reply, oracle};
use era_drive::{Engine, name};
use serde_json::json;

use super::world::{NOW, Scale, cluster, loaded, log_uniform, random_user, request, send};
use super::{cores, print};
use crate::clock::instant;
use era_sim::seeded::Seeded;

/// A formula of the usual size, over levels, age, size, prediction and fair share.
const FORMULA: &str = "100 * user_level + 10 * priority + wait / 3600 - 4 * log2(1 + gpus) \
                       - predicted / 7200 - 50 * debt + if(field == \"vision\", 2, 0)";

pub(super) fn run(json: bool, seed: u64) -> Result<()> {
    let report = json!({
        "rank_100k_ms": rank_100k_ms(seed)?,
        "cycle_10k_ms": cycle_10k_ms(seed),
        "drain_10k_per_second": drain_10k_per_second(),
        "oracle_ratio": against_oracle(seed),
        "cores": cores(),
        "seed": seed,
    });
    print(&report, json);
    Ok(())
}

fn enqueue(engine: &mut Engine, seeded: &mut Seeded) {
    let gpus = 1 << seeded.range(0, 7);
    let duration = log_uniform(seeded, 10.0, 1440.0);
    let window = Window { earliest: Time(0), deadline: Time::LATEST };
    let queue =
        QueueTerms { preemptible: seeded.range(0, 4) == 0, ..QueueTerms::new(name("default")) };
    let terms = Terms::Queue { request: request(gpus, duration, window), queue };
    let user = random_user(seeded);
    let job = NewJob { priority: seeded.range(0, 10) as i32, ..NewJob::new(user, terms) };
    let reply = send(engine, Command::Submit { key: None, job }).reply;
    assert!(matches!(reply, Reply::Accepted { .. }), "{reply:?}");
}

/// Milliseconds to order 100,000 waiting jobs by a formula: the median of several times.
fn rank_100k_ms(seed: u64) -> Result<f64> {
    let scale = Scale { nodes: 1000, reservations: 0, horizon: Span::from_days(30), load: 0.0 };
    let mut engine = cluster(scale);
    let mut seeded = Seeded::new(seed);
    for _ in 0..100_000 {
        enqueue(&mut engine, &mut seeded);
    }
    let rule = PolicyRule::Priority { formula: Formula::parse(FORMULA)? };
    let queue = name("default");
    Ok(median((0..11).map(|_| {
        let start = instant();
        let _ = black_box(queue_order(engine.state(), &queue, Some(&rule)));
        start.elapsed().as_secs_f64() * 1e3
    })))
}

/// Milliseconds of a pass over 10,000 waiting jobs on 1,000 nodes that promises and queue work
/// have filled, after a few jobs ended: the median of several.
fn cycle_10k_ms(seed: u64) -> f64 {
    let scale =
        Scale { nodes: 1000, reservations: 20_000, horizon: Span::from_days(30), load: 0.6 };
    let mut engine = loaded(scale, seed);
    let mut seeded = Seeded::new(seed ^ 0x9a55);
    let mut running = Vec::new();
    let fill = |engine: &mut Engine, running: &mut Vec<_>| {
        let start = instant();
        let output = send(engine, Command::Pass);
        let elapsed = start.elapsed().as_secs_f64() * 1e3;
        for effect in output.effects {
            if let Effect::Launch { task, .. } = effect {
                running.push(task);
            }
        }
        elapsed
    };
    while engine.state().waiting_in_line(&name("default")) < 10_000 {
        for _ in 0..2_000 {
            enqueue(&mut engine, &mut seeded);
        }
        fill(&mut engine, &mut running);
    }
    median((0..21).map(|_| {
        for _ in 0..8 {
            let at = seeded.range(0, running.len() as i64) as usize;
            let task = running.swap_remove(at);
            send(&mut engine, Command::Exited { task, code: 0, at: None });
        }
        while engine.state().waiting_in_line(&name("default")) < 10_000 {
            enqueue(&mut engine, &mut seeded);
        }
        fill(&mut engine, &mut running)
    }))
}

/// Tasks a second of an array of 10,000 short ones on one node that runs 64 at a time, from its
/// submission to the last end, through the core alone. As in a server, inputs come in batches, a
/// batch ends with a pass where one is due, and readers hold a snapshot of every one.
fn drain_10k_per_second() -> f64 {
    const TASKS: u32 = 10_000;
    let scale = Scale { nodes: 1, reservations: 0, horizon: Span::from_days(30), load: 0.0 };
    let mut engine = cluster(scale);
    let start = instant();
    let job = NewJob { array: Some(Array { count: TASKS, running_max: None }), ..small_job() };
    let mut asked = vec![Command::Submit { key: None, job }];
    let mut snapshot = engine.state().snapshot();
    let (mut ended, mut now) = (0, NOW);
    loop {
        now = now + Span(1);
        let inputs = asked.drain(..).map(|command| ((), command, None));
        let batch = engine.carry_out(now, inputs, ());
        drop(std::mem::replace(&mut snapshot, black_box(engine.state().snapshot())));
        for effect in batch.released.effects {
            if let Effect::Launch { task, .. } = effect {
                asked.push(Command::Started { task });
                asked.push(Command::Exited { task, code: 0, at: None });
                ended += 1;
            }
        }
        if asked.is_empty() {
            break;
        }
    }
    assert_eq!(ended, TASKS, "every task ran");
    (f64::from(TASKS) / start.elapsed().as_secs_f64()).round()
}

/// One core for a minute.
fn small_job() -> NewJob {
    let window = Window { earliest: Time(0), deadline: Time::LATEST };
    let each = Resources { cpu: 1000, ..Resources::default() };
    let request = Request { each, ..request(1, Span::from_min(1), window) };
    let queue = QueueTerms::new(name("default"));
    NewJob::new(UserId(0), Terms::Queue { request, queue })
}

/// How many times as fast as asking the naive oracle about every waiting job, on 20 full nodes.
fn against_oracle(seed: u64) -> f64 {
    let scale = Scale { nodes: 20, reservations: 200, horizon: Span::from_days(1), load: 0.6 };
    let mut engine = loaded(scale, seed);
    let mut seeded = Seeded::new(seed ^ 0x0ac1e);
    for _ in 0..1_000 {
        enqueue(&mut engine, &mut seeded);
    }
    send(&mut engine, Command::Pass);
    let waiting: Vec<_> = engine
        .state()
        .waiting(&name("default"))
        .filter_map(|id| engine.state().job(id).ok())
        .map(|job| job.first_part().request.clone())
        .collect();
    let naive = median((0..5).map(|_| {
        let start = instant();
        for request in &waiting {
            black_box(oracle::has_room_now(engine.state(), request, 0));
        }
        start.elapsed().as_secs_f64() * 1e6
    }));
    let ours = median((0..11).map(|_| {
        let start = instant();
        send(&mut engine, Command::Pass);
        start.elapsed().as_secs_f64() * 1e6
    }));
    (naive / ours).round()
}

fn median(times: impl Iterator<Item = f64>) -> f64 {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    (times.get(times.len() / 2).copied().unwrap_or(0.0) * 100.0).round() / 100.0
}
