use super::*;
use crate::accounts::{Group, User};
use proptest::prelude::*;

const U: UserId = UserId(1);
const OTHER: UserId = UserId(2);
const G: GroupId = GroupId(1);
const HOUR_MS: u128 = 3_600_000;

/// Two users of one group; the second is unlimited.
fn accounts(own: Quota, shared: Quota) -> Accounts {
    let mut accounts = Accounts::default();
    accounts.put_group(Group { quota: shared, ..Group::new(G) }).unwrap();
    for (id, quota) in [(U, own), (OTHER, Quota::UNLIMITED)] {
        accounts.put_user(User { quota, ..User::new(id, G) }).unwrap();
    }
    accounts
}

fn gpus(milli: u64) -> Quota {
    Quota { concurrent: [None, None, Some(milli)], ..Quota::UNLIMITED }
}

fn say(result: Result<(), Refusal>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_request_larger_than_the_quota_itself_is_refused() {
    let accounts = accounts(gpus(4000), gpus(8000));
    assert!(Usage::check_size(&accounts, U, [9_000_000, 0, 4000]).is_ok());
    assert_eq!(
        say(Usage::check_size(&accounts, U, [0, 0, 5000])),
        "the user may hold 4 gpus at once: this asks for 5 beside 0: ask for less, or for another time"
    );
    assert_eq!(
        say(Usage::check_size(&accounts, OTHER, [0, 0, 8500])),
        "the group may hold 8 gpus at once: this asks for 8.5 beside 0: ask for less, or for another time"
    );
    assert!(Usage::check_size(&accounts, UserId(9), [0; 3]).is_err());
}

#[test]
fn room_counts_what_user_and_group_hold_at_the_same_time() {
    let accounts = accounts(gpus(4000), gpus(6000));
    let mut usage = Usage::default();
    usage.commit(U, G, Time(10), Time(20), [0, 0, 3000]).unwrap();
    usage.commit(OTHER, G, Time(15), Time(25), [0, 0, 2000]).unwrap();
    let room = |from, to, milli| usage.room(&accounts, U, Time(from), Time(to), [0, 0, milli]);
    assert!(room(0, 10, 4000).is_ok());
    assert!(room(0, 15, 1000).is_ok());
    assert_eq!(
        say(room(0, 11, 2000)),
        "the user may hold 4 gpus at once: this asks for 2 beside 3: ask for less, or for another time"
    );
    assert!(room(0, 30, 1000).is_ok());
    assert!(room(20, 30, 4000).is_ok());
    let unlimited = usage.room(&accounts, OTHER, Time(15), Time(16), [0, 0, 2000]);
    assert_eq!(
        say(unlimited),
        "the group may hold 6 gpus at once: this asks for 2 beside 5: ask for less, or for another time"
    );
}

#[test]
fn who_is_over_a_limit_may_still_ask_for_something_else() {
    let mut usage = Usage::default();
    usage.commit(U, G, Time(0), Time(10), [0, 0, 3000]).unwrap();
    usage.charge(U, G, Time(0), [0, 0, 9 * HOUR_MS], Money::ZERO);
    let quota = Quota { hours: [None, None, Some(1)], ..gpus(1000) };
    let accounts = accounts(quota, quota);
    assert!(usage.room(&accounts, U, Time(0), Time(5), [500, 10, 0]).is_ok());
    assert!(usage.room(&accounts, U, Time(0), Time(5), [0, 0, 1]).is_err());
    assert!(usage.check_period(&accounts, U, Time(0), [5, 5, 0], Money(5)).is_ok());
    assert!(usage.check_period(&accounts, U, Time(0), [0, 0, 1], Money(0)).is_err());
}

#[test]
fn hours_and_credits_are_refused_in_the_numbers_people_use() {
    let own = Quota { hours: [None, None, Some(100_000)], ..Quota::UNLIMITED };
    let shared = Quota { credits: Some(Money::credits(50)), ..Quota::UNLIMITED };
    let accounts = accounts(own, shared);
    let mut usage = Usage::default();
    usage.charge(U, G, Time(0), [0, 0, 95_500 * HOUR_MS], Money::ZERO);
    usage.charge(OTHER, G, Time(0), [0; 3], Money::credits(45));
    let check = |gpu_ms, money| usage.check_period(&accounts, U, Time(5), [0, 0, gpu_ms], money);
    assert!(check(4_500 * HOUR_MS, Money::credits(5)).is_ok());
    assert_eq!(
        say(check(4_500 * HOUR_MS + 1, Money::ZERO)),
        "the user may use 100 gpu hours in a period: 96 are used, this asks for 5: ask for less, or for more quota"
    );
    assert_eq!(
        say(check(0, Money(5_000_001))),
        "the group may use 50 credits in a period: 45 are used, this asks for 6: ask for less, or for more quota"
    );
}

#[test]
fn a_new_period_starts_at_zero_and_refunds_find_their_own() {
    let mut usage = Usage::new(QuotaPeriod::new(Span(100)).unwrap());
    let scope = QuotaScope::Group(G);
    usage.charge(U, G, Time(99), [7, 0, 0], Money::ZERO);
    usage.charge(U, G, Time(100), [5, 0, 0], Money::ZERO);
    usage.charge(U, G, Time(100), [0; 3], Money(8));
    usage.refund(U, G, Time(0), [2, 3, 0], Money::ZERO);
    usage.refund(U, G, Time(0), [0; 3], Money(8));
    assert_eq!(usage.used(scope, Time(50)), PeriodUsage { unit_ms: [5, 0, 0], micro_credits: 0 });
    assert_eq!(usage.used(scope, Time(199)), PeriodUsage { unit_ms: [5, 0, 0], micro_credits: 8 });
    assert_eq!(usage.used(scope, Time(200)), PeriodUsage::default());
    usage.check().unwrap();
}

#[test]
fn only_the_current_and_the_previous_period_are_kept() {
    let mut usage = Usage::new(QuotaPeriod::new(Span(100)).unwrap());
    for at in [50, 150, 250] {
        usage.charge(U, G, Time(at), [1, 0, 0], Money::ZERO);
    }
    usage.forget_before(Time(260));
    let used = [50, 150, 250].map(|at| usage.used(QuotaScope::User(U), Time(at)).unit_ms[0]);
    assert_eq!(used, [0, 1, 1]);
    usage.forget_before(Time(1000));
    assert_eq!(usage.books.len(), 0, "an empty book is closed");
}

#[test]
fn what_still_lasts_is_released_as_it_was_committed_even_when_its_past_is_forgotten() {
    let mut usage = Usage::default();
    usage.commit(U, G, Time(0), Time(100), [1, 2, 3]).unwrap();
    usage.forget_before(Time(60));
    assert_eq!(usage.held(QuotaScope::User(U), Time(0), Time(60)), [0; 3]);
    assert_eq!(usage.held(QuotaScope::User(U), Time(60), Time(61)), [1, 2, 3]);
    usage.check().unwrap();
    usage.release(U, G, Time(0), Time(100), [1, 2, 3]);
    assert_eq!(usage.books.len(), 0);
}

#[test]
fn a_commitment_that_cannot_be_counted_is_refused_and_changes_nothing() {
    let mut usage = Usage::default();
    usage.commit(OTHER, G, Time(0), Time(10), [1, 0, 0]).unwrap();
    let before = usage.clone();
    let refused = usage.commit(U, G, Time(5), Time(15), [u64::MAX, 0, 0]);
    assert_eq!(refused, Err(Refusal::TooLarge));
    assert_eq!(usage, before);
}

#[test]
fn another_length_of_period_counts_anew_and_keeps_what_is_held() {
    let mut usage = Usage::default();
    usage.commit(U, G, Time(0), Time(10), [1, 0, 0]).unwrap();
    usage.charge(U, G, Time(0), [0; 3], Money(5));
    let day = QuotaPeriod::new(Span::from_days(1)).unwrap();
    usage.set_period(day);
    assert_eq!(
        (usage.period(), usage.used(QuotaScope::User(U), Time(0))),
        (day, PeriodUsage::default())
    );
    assert_eq!(usage.held(QuotaScope::User(U), Time(0), Time(1)), [1, 0, 0]);
}

#[test]
fn without_a_quota_every_start_is_allowed() {
    let accounts = accounts(Quota::UNLIMITED, Quota::UNLIMITED);
    let mut usage = Usage::default();
    usage.commit(U, G, Time(0), Time(10), [9; 3]).unwrap();
    let starts = |range, duration| {
        usage.allowed_starts(&accounts, U, range, Span(duration), [9; 3]).unwrap()
    };
    assert_eq!(starts((Time(0), Time(10)), 5), Starts::All);
    assert!(starts((Time(10), Time(9)), 5).is_empty(), "a range without instants has no start");
}

#[test]
fn a_start_is_allowed_once_the_last_blocking_step_is_over() {
    let accounts = accounts(gpus(2000), Quota::UNLIMITED);
    let mut usage = Usage::default();
    usage.commit(U, G, Time(10), Time(20), [0, 0, 1500]).unwrap();
    let starts = |milli| {
        let range = (Time(0), Time(50));
        usage.allowed_starts(&accounts, U, range, Span(4), [0, 0, milli]).unwrap()
    };
    assert_eq!(starts(500), Starts::All);
    assert_eq!(starts(501), Starts::Only(vec![(Time(0), Time(6)), (Time(20), Time(50))]));
    assert_eq!(starts(2001), Starts::Only(vec![]));
}

#[test]
fn totals_of_any_width_are_written_and_read_back() {
    let mut usage = Usage::default();
    usage.charge(U, G, Time(0), [u128::MAX, 1, 0], Money::ZERO);
    usage.commit(U, G, Time(0), Time::MAX, [1, 0, 0]).unwrap();
    let json = serde_json::to_value(&usage).unwrap();
    assert_eq!(serde_json::from_value::<Usage>(json).unwrap(), usage);
}

/// User, start, length, units: small enough to try every instant.
type Piece = (bool, i64, i64, PerResource<u64>);

fn any_pieces() -> impl Strategy<Value = Vec<Piece>> {
    prop::collection::vec((any::<bool>(), 0..30i64, 1..9i64, [0..3u64, 0..3u64, 0..3u64]), 0..10)
}

fn any_quota() -> impl Strategy<Value = Quota> {
    let limit = || prop::option::of(0..6u64);
    [limit(), limit(), limit()].prop_map(|concurrent| Quota { concurrent, ..Quota::UNLIMITED })
}

fn who(first: bool) -> UserId {
    if first { U } else { OTHER }
}

fn commit_all(usage: &mut Usage, pieces: &[Piece]) {
    for &(first, from, len, units) in pieces {
        usage.commit(who(first), G, Time(from), Time(from + len), units).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn allowed_starts_are_exactly_those_with_room(
        pieces in any_pieces(),
        (own, shared) in (any_quota(), any_quota()),
        (earliest, width, duration) in (-3..35i64, -1..40i64, 0..12i64),
        units in [0..4u64, 0..4u64, 0..4u64],
    ) {
        // Accounts take no user's part that is larger than the group's whole.
        let own = Quota {
            concurrent: std::array::from_fn(|r| match (own.concurrent[r], shared.concurrent[r]) {
                (Some(part), Some(whole)) => Some(part.min(whole)),
                (part, _) => part,
            }),
            ..own
        };
        let accounts = accounts(own, shared);
        let mut usage = Usage::default();
        commit_all(&mut usage, &pieces);
        let range = (Time(earliest), Time(earliest + width));
        let starts = usage.allowed_starts(&accounts, U, range, Span(duration), units).unwrap();
        let mut any = false;
        for start in earliest..=earliest + width {
            let room = usage.room(&accounts, U, Time(start), Time(start + duration), units);
            prop_assert_eq!(starts.contains(Time(start)), room.is_ok(), "at {}", start);
            any |= room.is_ok();
        }
        prop_assert_eq!(starts.is_empty(), !any);
        if let Starts::Only(intervals) = starts {
            prop_assert!(intervals.iter().all(|(a, b)| range.0 <= *a && a <= b && *b <= range.1));
            prop_assert!(intervals.windows(2).all(|w| w[0].1 + Span(1) < w[1].0));
            prop_assert!(intervals != [range]);
        }
    }

    #[test]
    fn what_is_committed_and_released_leaves_no_trace(
        kept in any_pieces(), passing in any_pieces(), forgotten in 0..40i64
    ) {
        let (mut usage, mut only_kept) = (Usage::default(), Usage::default());
        commit_all(&mut only_kept, &kept);
        commit_all(&mut usage, &[kept, passing.clone()].concat());
        for book in [&mut usage, &mut only_kept] {
            book.forget_before(Time(forgotten));
        }
        let json = serde_json::to_string(&usage).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Usage>(&json).unwrap(), &usage);
        for (first, from, len, units) in passing {
            usage.release(who(first), G, Time(from), Time(from + len), units);
            prop_assert_eq!(usage.check(), Ok(()));
        }
        prop_assert_eq!(usage, only_kept);
    }

    #[test]
    fn a_refusal_tells_numbers_that_exceed_the_limit_it_tells(
        limit in 0..5_000u64, used in 0..5_000u128, asked in 1..5_000u128, finer in 1..5u128
    ) {
        let quota = Quota { hours: [None, Some(limit), None], ..Quota::UNLIMITED };
        let dimension = Dimension::Hours(Resource::Memory);
        let result = stays_in_period(QuotaScope::User(U), &quota, dimension, used, asked, finer);
        prop_assert_eq!(result.is_ok(), used + asked <= u128::from(limit) * finer);
        if let Err(Refusal::QuotaPeriod { limit, used, asked, .. }) = result {
            prop_assert!(used + asked > limit);
        }
    }
}
