//! The house: accounts, quotas, credits, queues, policies, rules, and what is published.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::accounts::{Actor, Group, User};
use era_core::bid::{Bid, Shape};
use era_core::estimate::{Estimates, Ratio};
use era_core::forecast::{Curve, Forecast, Series};
use era_core::market::{MarketRules, MechanismChoice};
use era_core::queue::formula::Formula;
use era_core::queue::{PolicyRule, Queue};
use era_core::quota::{Quota, QuotaPeriod};
use era_core::reason::WaitReason;
use era_core::refusal::QuotaScope;
use era_core::settings::{Backfill, Settings};
use era_core::units::{GroupId, Milli, Money, Span, UserId};
use era_core::{Command, Refusal, Reply, quote};

use crate::bed::{ALICE, BOB, Bed, LAB, OTHER_LAB, bid, by, gang, min, name};
use crate::verbs::{credits, gpu_quota, user};

fn quota(by: Actor, scope: QuotaScope, quota: Quota) -> Command {
    Command::SetQuota { by, scope, quota, reason: None }
}

#[test]
fn a_user_needs_a_group_and_a_group_never_gives_more_than_it_has() {
    let mut bed = Bed::new(1);
    let nowhere = Command::PutUser { user: user(UserId(3), GroupId(9)) };
    assert_eq!(bed.refused(nowhere), Refusal::UnknownGroup { group: GroupId(9) });
    bed.lab_may(gpu_quota(8));
    bed.alice_may(gpu_quota(6));
    let third = User { quota: gpu_quota(3), ..user(UserId(3), LAB) };
    let refusal = bed.refused(Command::PutUser { user: third });
    let sum = Refusal::QuotaSum { group: LAB, what: "gpus".into(), sum: 9, limit: 8 };
    assert_eq!(refusal, sum);
    let less = Group { level: 1, quota: gpu_quota(5), ..Group::new(LAB) };
    assert!(matches!(bed.refused(Command::PutGroup { group: less }), Refusal::QuotaSum { .. }));
}

#[test]
fn a_group_administrator_divides_the_groups_quota_and_no_other() {
    let mut bed = Bed::new(1);
    bed.lab_may(gpu_quota(8));
    bed.bob_joins_the_lab();
    bed.done(Command::PutUser { user: User { group_admin: true, ..user(ALICE, LAB) } });
    bed.done(quota(by(ALICE), QuotaScope::User(BOB), gpu_quota(2)));
    bed.done(quota(by(ALICE), QuotaScope::User(ALICE), gpu_quota(6)));
    let more = bed.refused(quota(by(ALICE), QuotaScope::User(BOB), gpu_quota(3)));
    assert!(matches!(more, Refusal::QuotaSum { .. }));
    let denied = |user| Refusal::NotGroupAdmin { user, group: LAB };
    assert_eq!(bed.refused(quota(by(BOB), QuotaScope::User(BOB), gpu_quota(8))), denied(BOB));
    assert_eq!(bed.refused(quota(by(ALICE), QuotaScope::Group(LAB), gpu_quota(9))), denied(ALICE));
    bed.done(quota(Actor::Administrator, QuotaScope::Group(LAB), gpu_quota(9)));
    let unknown = quota(Actor::Administrator, QuotaScope::User(UserId(9)), gpu_quota(1));
    assert_eq!(bed.refused(unknown), Refusal::UnknownUser { user: UserId(9) });
}

#[test]
fn what_is_held_at_once_stays_within_the_users_and_the_groups_quota() {
    let mut bed = Bed::new(2);
    bed.bob_joins_the_lab();
    bed.lab_may(gpu_quota(8));
    bed.alice_may(gpu_quota(6));
    let never = bed.submit(bid(gang(1, "gpu=7", 60, (0, 600))));
    let own = Refusal::QuotaConcurrent {
        scope: QuotaScope::User(ALICE),
        what: "gpus".into(),
        limit: 6,
        held: 0,
        asked: 7,
    };
    assert!(matches!(never, Reply::Refused { refusal, .. } if refusal == own));
    bed.promise(gang(1, "gpu=6", 60, (0, 60)));
    // What does not fit beside it is promised after it.
    let told = quote(&bed.state, &bid(gang(1, "gpu=1", 30, (0, 600))), bed.at).unwrap();
    assert_eq!(told.start, min(60));
    let his = Bid { user: BOB, ..bid(gang(1, "gpu=3", 60, (0, 60))) };
    let group = Refusal::QuotaConcurrent {
        scope: QuotaScope::Group(LAB),
        what: "gpus".into(),
        limit: 8,
        held: 6,
        asked: 3,
    };
    let reply = bed.submit(his);
    let Reply::Refused { refusal, counter } = reply else { panic!("{reply:?}") };
    assert_eq!(refusal, group);
    assert_eq!(counter.size.map(|(n, _)| n), None, "one replica cannot be fewer");
    assert_eq!(counter.window.unwrap().start, min(60));
}

#[test]
fn a_state_counts_in_the_periods_of_its_settings_from_the_beginning() {
    let period = Span::from_h(5);
    let settings = Settings { period, ..Settings::default() };
    let state = era_core::State::new(settings, MarketRules::default());
    assert_eq!(Ok(state.usage().period()), QuotaPeriod::new(period));
}

#[test]
fn resource_hours_and_credits_are_limited_in_a_period_and_counted_again_in_the_next() {
    let mut bed = Bed::new(1);
    let hours = [None, None, Some(2_000)];
    bed.alice_may(Quota { hours, ..Quota::UNLIMITED });
    bed.promise(gang(1, "gpu=1", 90, (0, 600)));
    let reply = bed.submit(bid(gang(1, "gpu=1", 60, (0, 600))));
    let Reply::Refused { refusal, .. } = reply else { panic!("{reply:?}") };
    assert!(matches!(refusal, Refusal::QuotaPeriod { .. }), "{refusal}");
    bed.promise(gang(1, "cpu=1", 600, (0, 6000)));
    bed.alice_may(Quota { credits: Some(credits(20)), ..Quota::UNLIMITED });
    // Six were spent on GPUs, and five on a core for ten hours.
    let reply = bed.submit(bid(gang(1, "gpu=8", 30, (0, 600))));
    let Reply::Refused { refusal, .. } = reply else { panic!("{reply:?}") };
    let spent = "the user may use 20 credits in a period: 11 are used, this asks for 16";
    assert!(refusal.to_string().starts_with(spent), "{refusal}");
    bed.at = min(60 * 24 * 30);
    bed.promise(gang(1, "gpu=8", 30, (60 * 24 * 30, 60 * 24 * 31)));
}

#[test]
fn queued_work_waits_for_quota_where_a_bid_is_refused() {
    let mut bed = Bed::new(1);
    bed.alice_may(gpu_quota(4));
    let first = bed.enqueue(ALICE, gang(1, "gpu=4", 60, (0, 1)), false);
    let second = bed.enqueue(ALICE, gang(1, "gpu=4", 60, (0, 1)), false);
    bed.pass();
    assert_eq!((bed.is(first), bed.is(second)), ("running", "waiting"));
    bed.finish(first);
    bed.pass();
    assert_eq!(bed.is(second), "running");
}

#[test]
fn queue_work_and_growth_stay_within_the_credits_of_a_period() {
    let mut bed = Bed::new(1);
    bed.alice_may(Quota { credits: Some(credits(10)), ..Quota::UNLIMITED });
    // Each may cost four; a third would pass ten if all of them ran until their limits.
    let jobs = [(); 3].map(|()| bed.enqueue(ALICE, gang(1, "gpu=1", 60, (0, 1)), false));
    bed.pass();
    assert_eq!(bed.running(), jobs[..2]);
    assert!(matches!(
        bed.reason(jobs[2]),
        WaitReason::Quota { refusal: Refusal::QuotaPeriod { .. } }
    ));
    bed.run(jobs[0]);
    bed.until(min(15));
    bed.finish(jobs[0]);
    bed.pass();
    assert_eq!(bed.is(jobs[2]), "running", "the first used one of its four");

    let mut bed = Bed::new(1);
    let mut elastic = gang(1, "gpu=1", 60, (0, 60));
    elastic.shape = Shape::Replicas { min: 1, max: 8 };
    let job = bed.promise(elastic);
    bed.run(job);
    bed.alice_may(Quota { credits: Some(credits(10)), ..Quota::UNLIMITED });
    bed.pass();
    assert_eq!(bed.state.job(job).unwrap().first_part().extras().len(), 1, "4 + 4 of 10");
}

#[test]
fn credits_are_granted_and_withdrawn_and_a_statement_shows_them() {
    let mut bed = Bed::new(1);
    let before = bed.wallet(ALICE);
    bed.done(Command::Grant { user: ALICE, amount: credits(5) });
    bed.done(Command::Withdraw { user: ALICE, amount: credits(2) });
    assert_eq!(bed.wallet(ALICE), before.plus(credits(3)).unwrap());
    let lines = bed.state.ledger().statement(ALICE);
    assert!(lines.into_iter().count() >= 3);
    for amount in [Money(0), Money(-1), Money(Money::MOST.0 + 1)] {
        let refusal = bed.refused(Command::Grant { user: ALICE, amount });
        assert_eq!(refusal, Refusal::BadAmount { given: amount, most: Money::MOST });
    }
    let much = before.plus(credits(4)).unwrap();
    let poor = bed.refused(Command::Withdraw { user: ALICE, amount: much });
    assert!(matches!(poor, Refusal::Funds { .. }), "{poor}");
    let nobody = Command::Grant { user: UserId(9), amount: credits(1) };
    assert_eq!(bed.refused(nobody), Refusal::UnknownUser { user: UserId(9) });
}

#[test]
fn a_queue_names_a_policy_and_is_removed_when_nothing_uses_it() {
    let mut bed = Bed::new(1);
    let unknown = Queue::new(name("night"), name("whim"));
    let refusal = bed.refused(Command::PutQueue { queue: unknown });
    assert!(refusal.to_string().starts_with("no policy is called `whim`: known are fair-share"));
    let greedy = Queue { share: Milli(1001), ..Queue::new(name("night"), name("fifo")) };
    assert_eq!(bed.refused(Command::PutQueue { queue: greedy }).field(), Some("share"));
    bed.queue("night", "fifo", |q| q.level = 3);
    let job = bed.enqueue_in(ALICE, "night", gang(1, "gpu=1", 60, (0, 1)));
    let used = bed.refused(Command::RemoveQueue { name: name("night") });
    assert!(matches!(used, Refusal::InUse { .. }));
    bed.done(Command::Cancel { job, by: by(ALICE) });
    bed.done(Command::RemoveQueue { name: name("night") });
    let gone = bed.refused(Command::RemoveQueue { name: name("night") });
    assert!(matches!(gone, Refusal::Unknown { .. }));
}

#[test]
fn a_policy_has_versions_and_goes_back_to_any_that_is_kept() {
    let mut bed = Bed::new(1);
    bed.queue("ours", "fifo", |_| ());
    let publish = |text: &str| Command::PublishPolicy {
        name: name("mine"),
        rule: PolicyRule::Priority { formula: Formula::parse(text).unwrap() },
    };
    bed.done(publish("gpus"));
    bed.queue("ours", "mine", |_| ());
    let small = bed.enqueue_in(ALICE, "ours", gang(1, "gpu=1", 60, (0, 1)));
    let large = bed.enqueue_in(ALICE, "ours", gang(1, "gpu=2", 60, (0, 1)));
    assert_eq!(bed.order("ours"), [large, small]);
    bed.done(publish("0 - gpus"));
    assert_eq!(bed.order("ours"), [small, large], "it counts at once");
    let back = |version| Command::RollBackPolicy { name: name("mine"), version };
    bed.done(back(1));
    assert_eq!(bed.order("ours"), [large, small]);
    assert_eq!(bed.state.policies().history(&name("mine")).unwrap().0, 1);
    let refusal = bed.refused(back(7));
    assert_eq!(refusal.to_string(), "setting version: mine has no version 7: kept are [1, 2]");
    let unknown = Command::RollBackPolicy { name: name("yours"), version: 1 };
    assert!(matches!(bed.refused(unknown), Refusal::Unknown { .. }));
    for limits in [vec![], vec![5, 5], vec![9, 1], vec![1; 17]] {
        let rule = PolicyRule::Las { limits };
        let refusal = bed.refused(Command::PublishPolicy { name: name("las"), rule });
        assert_eq!(refusal.field(), Some("limits"));
    }
}

#[test]
fn settings_are_checked_one_by_one_and_count_at_once() {
    let mut bed = Bed::new(1);
    type Edit = fn(&mut Settings);
    let edits: [(&str, Edit); 12] = [
        ("slot", |s| s.slot = Span(0)),
        ("horizon", |s| s.horizon = Span::from_days(367)),
        ("horizon", |s| s.slot = Span::from_s(1)),
        ("grace", |s| s.grace = Span(-1)),
        ("lease", |s| s.lease = Span::from_days(2)),
        ("run_min", |s| s.run_min = Span(-1)),
        ("hold_for", |s| s.hold_for = Span(-1)),
        ("extend_by", |s| s.extend_by = Span(0)),
        ("patience", |s| s.patience = Span(0)),
        ("refund_unused", |s| s.refund_unused = Milli(1001)),
        ("refund_broken", |s| s.refund_broken = Milli(1001)),
        ("queue_density", |s| s.queue_density = Milli(1_000_001)),
    ];
    for (field, edit) in edits {
        let mut settings = bed.state.settings().clone();
        edit(&mut settings);
        let refusal = bed.refused(Command::SetSettings { settings });
        assert_eq!(refusal.field(), Some(field), "{refusal}");
    }
    bed.set(|s| (s.hold_for, s.backfill) = (Span::from_s(5), Backfill::None));
    let reply = bed.send(Command::Hold { key: None, bid: bid(gang(1, "gpu=1", 10, (0, 60))) });
    let Reply::Held { expires, .. } = reply else { panic!("{reply:?}") };
    assert_eq!(expires, bed.at + Span::from_s(5));
}

#[test]
fn market_rules_are_checked_and_count_at_once() {
    let mut bed = Bed::new(1);
    let rules = |mechanism, floor, ceiling| Command::SetMarket {
        rules: MarketRules { mechanism, floor: Milli(floor), ceiling: Milli(ceiling) },
    };
    let surge = |low, high| MechanismChoice::Surge { low: Milli(low), high: Milli(high) };
    let fixed = |density| MechanismChoice::FirstFit { density: Milli(density) };
    for (command, field) in [
        (rules(MechanismChoice::BasicEcon, 2000, 1000), "market.floor"),
        (rules(MechanismChoice::BasicEcon, 0, 1_000_001), "market.ceiling"),
        (rules(surge(0, 10), 0, 1000), "market.surge"),
        (rules(surge(20, 10), 0, 1000), "market.surge"),
        (rules(fixed(1_000_001), 0, 1000), "market.density"),
    ] {
        assert_eq!(bed.refused(command).field(), Some(field));
    }
    bed.done(rules(fixed(3000), 500, 100_000));
    let told = quote(&bed.state, &bid(gang(1, "gpu=1", 60, (0, 600))), bed.at).unwrap();
    assert_eq!(told.price, credits(24));
}

#[test]
fn a_forecast_that_is_published_sets_prices_and_a_wrong_one_is_refused() {
    let mut bed = Bed::new(1);
    let forecast = |pool: &str, series: Series| {
        let pools = BTreeMap::from([(name(pool), [Series::default(), Series::default(), series])]);
        Command::PublishForecast { forecast: Arc::new(Forecast { pools }) }
    };
    let curve = Curve::from_parts([(Milli(4000), 8000)]);
    let all_day = Series::from_curves([(min(0), curve.clone())]);
    assert!(matches!(bed.refused(forecast("spot", all_day.clone())), Refusal::Unknown { .. }));
    let dangling = Series { curves: vec![], runs: vec![(min(0), 0)] };
    let refusal = bed.refused(forecast("main", dangling));
    assert_eq!(refusal.to_string(), "forecast: a run names a curve that is not there");
    let unordered = Series { curves: vec![curve], runs: vec![(min(5), 0), (min(0), 0)] };
    assert!(matches!(bed.refused(forecast("main", unordered)), Refusal::BadForecast { .. }));
    bed.done(forecast("main", all_day));
    let told = quote(&bed.state, &bid(gang(1, "gpu=1", 60, (0, 600))), bed.at).unwrap();
    assert_eq!(told.price, credits(32), "eight GPUs are wanted at four times the base rate");
    bed.done(Command::PublishForecast { forecast: Arc::default() });
}

#[test]
fn estimates_that_are_published_rank_and_wrong_ones_are_refused() {
    let mut bed = Bed::new(1);
    let publish = |low, middle, high| {
        let ratio = Ratio { low: Milli(low), middle: Milli(middle), high: Milli(high) };
        let estimates = Estimates { users: BTreeMap::from([(BOB, ratio)]), ..Default::default() };
        Command::PublishEstimates { estimates: Arc::new(estimates) }
    };
    for wrong in [publish(500, 400, 600), publish(1, 9, 8), publish(1, 2, 1_000_001)] {
        assert_eq!(bed.refused(wrong).field(), Some("estimates"));
    }
    bed.queue("short", "sjf", |_| ());
    let hers = bed.enqueue_in(ALICE, "short", gang(1, "gpu=1", 50, (0, 1)));
    let his = bed.enqueue_in(BOB, "short", gang(1, "gpu=1", 60, (0, 1)));
    assert_eq!(bed.order("short"), [hers, his]);
    bed.done(publish(100, 500, 900));
    assert_eq!(bed.order("short"), [his, hers], "half of an hour is less than fifty minutes");
}

#[test]
fn a_pass_and_a_tick_on_an_empty_house_do_nothing() {
    let mut bed = Bed::new(1);
    let before = bed.state.clone();
    bed.done(Command::Pass);
    bed.done(Command::Tick);
    // A pass forgets that capacity came free when the node joined.
    bed.done(Command::PutGroup { group: Group { level: 1, ..Group::new(OTHER_LAB) } });
    assert_eq!(bed.state.jobs().count(), before.jobs().count());
    assert!(bed.effects.is_empty());
    assert_eq!(era_core::next_wakeup(&bed.state), None);
}

#[test]
fn ended_jobs_are_forgotten_after_a_day() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=1", 10, (0, 60)));
    bed.run(job);
    bed.finish(job);
    bed.until(min(24 * 60 - 1));
    assert!(bed.state.job(job).is_ok());
    bed.until(min(24 * 60));
    assert_eq!(bed.state.job(job).unwrap_err(), Refusal::UnknownJob { job });
}
