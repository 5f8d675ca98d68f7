//! `era bench quote`: how fast a bid gets its answer, and how that grows.

use std::hint::black_box;

use anyhow::Result;
use era_core::bid::{Bid, Shape, Value};
use era_core::oracle::OracleAnswer;
use era_core::units::{Money, Span};
use era_core::{Refusal, Reply, State, oracle, quote};
use serde_json::json;

use super::world::{NOW, Scale, load_of, loaded, random_bid, send, submit, with_gpus};
use super::{Times, cores, print, resident_mb};
use era_sim::seeded::Seeded;

const MONTH: Span = Span::from_days(30);
const WEEK: Span = Span::from_days(7);

pub(super) fn run(json: bool, seed: u64, quick: bool) -> Result<()> {
    let scale = Scale { nodes: 1000, reservations: 20_000, horizon: MONTH, load: 0.6 };
    let before = resident_mb();
    let mut engine = loaded(scale, seed);
    let state_mb = resident_mb().zip(before).map(|(after, before)| after - before);
    let load = load_of(engine.state(), scale);

    let mut seeded = Seeded::new(seed ^ 0xb1d5);
    let bids: Vec<_> = (0..20_000).map(|_| random_bid(&mut seeded, MONTH, WEEK)).collect();
    let mut refused = 0u32;
    let times = Times::of(&bids, |bid| {
        refused += u32::from(black_box(quote(engine.state(), bid, NOW)).is_err());
    });
    let wide: Vec<_> = (0..2_000)
        .map(|_| {
            let mut bid = random_bid(&mut seeded, MONTH, WEEK);
            let window = &mut bid.one_of[0].all_of[0].window;
            (window.earliest, window.deadline) = (NOW, NOW + MONTH);
            bid
        })
        .collect();
    let wide_times = Times::of(&wide, |bid| {
        let _ = black_box(quote(engine.state(), bid, NOW));
    });
    // As the driver does: a snapshot for readers is out while inputs are stepped.
    let mut snapshot = engine.state().snapshot();
    let mut accepted = 0u32;
    let accept_times = Times::of(bids.iter().take(2_000).enumerate(), |(index, bid)| {
        let reply = send(&mut engine, submit(bid.clone())).reply;
        accepted += u32::from(matches!(reply, Reply::Accepted { .. }));
        if index % 256 == 255 {
            snapshot = engine.state().snapshot();
        }
    });
    drop(snapshot);
    let refusals = refusals(engine.state(), seed);
    let full_refusals = refusals_when_full(seed);
    let oracle = against_oracle(seed);
    let scaling = if quick { json!(null) } else { scaling(seed) };
    let report = json!({
        "p50_us": times.us(0.5),
        "p99_us": times.us(0.99),
        "per_second": times.per_second(),
        "wide_p50_us": wide_times.us(0.5),
        "wide_p99_us": wide_times.us(0.99),
        "refused_share": f64::from(refused) / bids.len() as f64,
        "oracle_ratio": oracle,
        "accept_p50_us": accept_times.us(0.5),
        "accept_p99_us": accept_times.us(0.99),
        "accepted": accepted,
        "refuse_p50_us": refusals.us(0.5),
        "refuse_p99_us": refusals.us(0.99),
        "refuse_full_p50_us": full_refusals.us(0.5),
        "refuse_full_p99_us": full_refusals.us(0.99),
        "state_mb": state_mb.map(f64::round),
        "load": (load * 1000.0).round() / 1000.0,
        "scaling": scaling,
        "cores": cores(),
        "seed": seed,
    });
    print(&report, json);
    Ok(())
}

/// Refusals with their counter-offers on the large cluster: three in four for lack of room, most
/// of them gangs of hundreds of nodes, and one in four because the bid is worth too little.
fn refusals(state: &State, seed: u64) -> Times {
    let mut seeded = Seeded::new(seed ^ 0x4ef5e);
    let no_room = std::iter::repeat_with(|| {
        let mut bid = random_bid(&mut seeded, MONTH, WEEK);
        bid.one_of[0].all_of[0].shape = Shape::gang(seeded.range(200, 1000) as u32);
        bid.one_of[0].all_of[0].each = with_gpus(8);
        bid
    });
    let mut bids = refused(state, no_room, 1_500, |r| *r == Refusal::NoRoom);
    let low_value = std::iter::repeat_with(|| {
        let mut bid = random_bid(&mut seeded, MONTH, WEEK);
        bid.value = Value::Flat(Money(1));
        bid
    });
    bids.extend(refused(state, low_value, 500, |r| matches!(r, Refusal::TooDear { .. })));
    Times::of(&bids, |bid| {
        let _ = black_box(quote(state, bid, NOW));
    })
}

/// The same on 20 nodes that are nearly full for a week, for bids of the usual kind.
fn refusals_when_full(seed: u64) -> Times {
    let scale = Scale { nodes: 20, reservations: 800, horizon: WEEK, load: 0.97 };
    let engine = loaded(scale, seed);
    let state = engine.state();
    let mut seeded = Seeded::new(seed ^ 0xf011);
    let day = Span::from_days(1);
    let bids = std::iter::repeat_with(|| random_bid(&mut seeded, WEEK, day));
    let bids = refused(state, bids, 1_000, |r| *r == Refusal::NoRoom);
    Times::of(&bids, |bid| {
        let _ = black_box(quote(state, bid, NOW));
    })
}

/// The first so many of the bids that are refused in this way; fewer if they are too rare.
fn refused(
    state: &State,
    bids: impl Iterator<Item = Bid>,
    count: usize,
    in_this_way: impl Fn(&Refusal) -> bool,
) -> Vec<Bid> {
    bids.take(count * 20)
        .filter(|bid| quote(state, bid, NOW).is_err_and(|declined| in_this_way(&declined.refusal)))
        .take(count)
        .collect()
}

/// How many times as fast as the naive oracle, on the same bids: 20 nodes and one day, where the
/// oracle is practical. Bids ask for GPUs only: unit by unit, MiB would take it minutes. Bids
/// that are refused are left out: there the oracle is done, while a quote goes on to rearrange
/// promises and to look for counter-offers.
fn against_oracle(seed: u64) -> f64 {
    let day = Span::from_days(1);
    let scale = Scale { nodes: 20, reservations: 200, horizon: day, load: 0.6 };
    let engine = loaded(scale, seed);
    let state = engine.state();
    let mut seeded = Seeded::new(seed ^ 0x0ac1e);
    let bids: Vec<_> = std::iter::repeat_with(|| {
        let mut bid = random_bid(&mut seeded, day, day);
        let each = &mut bid.one_of[0].all_of[0].each;
        (each.cpu, each.memory) = (0, 0);
        bid
    })
    .filter(|bid| matches!(oracle::quote(state, bid, NOW), OracleAnswer::Accept { .. }))
    .take(20)
    .collect();
    let naive = Times::of(&bids, |bid| {
        black_box(oracle::quote(state, bid, NOW));
    });
    // Often enough for the clock.
    let ours = Times::of(0..100, |_| {
        for bid in &bids {
            let _ = black_box(quote(state, bid, NOW));
        }
    });
    (100.0 * naive.total_s() / ours.total_s()).round()
}

/// The median of quotes over the number of nodes, and over that of reservations.
fn scaling(seed: u64) -> serde_json::Value {
    let p50 = |nodes, reservations| {
        let scale = Scale { nodes, reservations, horizon: MONTH, load: 0.6 };
        let engine = loaded(scale, seed);
        let mut seeded = Seeded::new(seed ^ 0x5ca1e);
        let bids: Vec<_> = (0..4_000).map(|_| random_bid(&mut seeded, MONTH, WEEK)).collect();
        let times = Times::of(&bids, |bid| {
            let _ = black_box(quote(engine.state(), bid, NOW));
        });
        times.us(0.5)
    };
    let by_nodes: Vec<_> =
        [100, 1_000, 10_000].map(|n| json!({ "nodes": n, "p50_us": p50(n, 20_000) })).into();
    let by_reservations: Vec<_> = [1_000, 10_000, 100_000]
        .map(|n| json!({ "reservations": n, "p50_us": p50(1_000, n) }))
        .into();
    json!({ "nodes": by_nodes, "reservations": by_reservations })
}
