//! What is read from the wire becomes what the core means, or is refused by its field.

use era_api::job as wire;
use era_api::quote::{QuoteAsk, ValueSpec};
use era_core::bid::{Shape, Value};
use era_core::input::Terms;
use era_core::units::{Money, Span, Time, UserId};
use serde_json::json;

use super::{bid, credits, explanation, milli, money, new_job, seconds, span, stamp, time};

fn ask(value: serde_json::Value) -> wire::Ask {
    serde_json::from_value(value).unwrap()
}

fn job(value: serde_json::Value) -> Result<era_core::input::NewJob, String> {
    let given: wire::JobSpec = serde_json::from_value(value).map_err(|e| e.to_string())?;
    new_job(UserId(7), &given).map_err(|bad| format!("{}: {}", bad.field, bad.problem))
}

#[test]
fn what_is_not_said_about_times_is_left_open_and_always_the_same() {
    let asked = ask(json!({"resources": {"cpu": 2, "memory": "4Gi"}, "duration_s": 60}));
    let request = super::request(&asked).unwrap();
    assert_eq!(request.window.earliest, Time(0));
    assert_eq!(request.window.deadline, Time::LATEST);
    assert_eq!((request.each.cpu, request.each.memory), (2000, 4096));
    assert_eq!(request.shape, Shape::gang(1));
    assert_eq!(request.duration, Span::from_s(60));
}

#[test]
fn a_number_and_its_text_are_the_same_amount() {
    let number = ask(json!({"resources": {"gpu": 0.5}, "duration_s": 1}));
    let text = ask(json!({"resources": {"gpu": "0.5"}, "duration_s": 1}));
    let read = |asked: &wire::Ask| super::request(asked).unwrap().each;
    assert_eq!(read(&number), read(&text));
    assert_eq!(read(&number).gpu, 500);
}

#[test]
fn a_question_without_a_value_is_worth_anything() {
    let asked = QuoteAsk {
        ask: Some(ask(json!({"resources": {"cpu": 1}, "duration_s": 1}))),
        ..QuoteAsk::default()
    };
    assert_eq!(bid(UserId(1), &asked).unwrap().value, Value::Flat(Money::MOST));
    let valued = QuoteAsk { value: Some(ValueSpec::Flat(credits(Money::credits(3)))), ..asked };
    let valued = bid(UserId(1), &valued).unwrap();
    assert_eq!(valued.value, Value::Flat(Money::credits(3)));
}

#[test]
fn a_question_for_a_price_and_a_job_on_the_same_terms_are_the_same_bid() {
    for terms in [
        json!({"value": "3"}),
        json!({"most": "3"}),
        json!({"value": "3", "most": "2"}),
        json!({"accept_price": true}),
        json!({"ask": {"earliest": "2030-01-01T00:00:00Z", "deadline": "2030-01-01T09:00:00Z"}}),
        json!({"value": [{"by": "2030-01-01T00:00:00Z", "worth": "3"}], "most": "2"}),
    ] {
        let mut given = json!({"work": {"command": ["true"]}, "ask": {"duration_s": 60}});
        given.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
        let given: wire::JobSpec = serde_json::from_value(given).unwrap();
        let asked = bid(UserId(7), &QuoteAsk::of(&given)).unwrap();
        let Terms::Bid { bid, .. } = new_job(UserId(7), &given).unwrap().terms else {
            panic!("no bid: {terms}")
        };
        assert_eq!(asked, bid, "{terms}");
    }
}

#[test]
fn a_value_makes_a_bid_and_its_absence_a_place_in_the_default_queue() {
    let base = json!({"work": {"command": ["true"]},
        "ask": {"resources": {"cpu": 1}, "duration_s": 60}});
    let Terms::Queue { request, queue } = job(base.clone()).unwrap().terms else {
        panic!("no queue")
    };
    assert_eq!(queue.queue.as_str(), "default");
    assert_eq!(request.window.deadline, Time::LATEST);
    let mut valued = base;
    valued["value"] = json!("12.5");
    let Terms::Bid { bid, .. } = job(valued).unwrap().terms else { panic!("no bid") };
    assert_eq!(bid.value, Value::Flat(Money(12_500_000)));
}

#[test]
fn what_contradicts_itself_is_refused_by_its_field() {
    let refused = |extra: serde_json::Value| {
        let mut given = json!({"work": {"command": ["true"]},
            "ask": {"resources": {"cpu": 1}, "duration_s": 60}});
        for (key, value) in extra.as_object().unwrap() {
            given[key] = value.clone();
        }
        job(given).unwrap_err()
    };
    assert!(refused(json!({"value": 1, "queue": "default"})).starts_with("queue: "));
    assert!(refused(json!({"value": 1, "hold": 3})).starts_with("hold: "));
    assert!(refused(json!({"name": "a\nb"})).starts_with("name: "));
    let both = json!({"resources": {"gpu": 1}, "duration_s": 1, "gpus": 2, "replicas": 2});
    assert!(refused(json!({"ask": both})).starts_with("gpus: "));
    let amount = json!({"resources": {"memory": "16 gigs"}, "duration_s": 1});
    assert!(refused(json!({"ask": amount})).contains("16Gi"));
    assert!(refused(json!({"valeu": 3})).contains("unknown field `valeu`"));
}

#[test]
fn times_lengths_and_money_survive_the_way_there_and_back() {
    for ms in [0, 1, 1_800_000_000_123] {
        assert_eq!(time(stamp(Time(ms))), Time(ms));
    }
    assert_eq!(seconds(span(90)), 90);
    assert_eq!(seconds(Span(1)), 1, "a part of a second is not lost");
    assert_eq!(span(u64::MAX), Span(i64::MAX), "what is too long is the longest");
    assert_eq!(money(credits(Money(-5))), Money(-5));
    assert!(milli("share", -0.1).is_err() && milli("share", f64::NAN).is_err());
}

#[test]
fn what_waits_for_another_job_has_no_place_in_its_queue() {
    use era_core::explain::Explanation;
    use era_core::job::When;
    use era_core::reason::WaitReason;
    let reason = WaitReason::After { job: era_core::units::JobId(1), when: When::Ok };
    let told = explanation(&Explanation::Waiting { position: 0, start: None, reason });
    assert_eq!(told.position, None);
    assert_eq!(told.sentence, "Not in its queue yet: it waits for the success of job 1.");
}
