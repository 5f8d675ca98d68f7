//! Given answers, the text that people see.

use era_api::Credits;
use era_api::quote::{DurationOffer, Hold, PartQuote, SizeOffer};

use super::*;

fn credits(text: &str) -> Credits {
    text.parse().unwrap()
}

fn at(text: &str) -> era_api::Timestamp {
    text.parse().unwrap()
}

fn quoted() -> Quoted {
    let (start, finish) = (at("2026-11-15T15:00:00Z"), at("2026-11-15T17:00:00Z"));
    let price = credits("40");
    let part = PartQuote { pool: "a".to_owned(), start, finish, price };
    let line = |by: &str, price: &str, start: &str| MenuLine {
        by: at(by),
        price: credits(price),
        start: at(start),
    };
    Quoted {
        quote: Quote { price, start, finish, alternative: 0, parts: vec![part] },
        hold: Some(Hold { id: 17, expires: at("2026-11-15T13:31:00Z") }),
        menu: vec![
            line("2026-11-15T17:00:00Z", "40", "2026-11-15T15:00:00Z"),
            line("2026-11-15T22:00:00Z", "31.5", "2026-11-15T20:00:00Z"),
            line("2026-11-16T05:00:00Z", "12", "2026-11-16T03:00:00Z"),
            line("2026-11-20T05:00:00Z", "0.5", "2026-11-20T03:00:00Z"),
        ],
    }
}

#[test]
fn a_quote_shows_price_slot_hold_and_menu() {
    insta::assert_snapshot!(render(&quoted(), &look::plain()));
}

#[test]
fn every_counter_offer_says_what_to_change() {
    let offer = Offer {
        start: at("2026-11-16T03:00:00Z"),
        finish: at("2026-11-16T05:00:00Z"),
        price: credits("12"),
    };
    let offers = CounterOffers {
        value: Some(credits("13.5")),
        window: Some(offer),
        size: Some(SizeOffer { replicas: 2, offer }),
        duration: Some(DurationOffer { duration_s: 5400, offer }),
    };
    insta::assert_snapshot!(counter_offers(&offers, &look::plain()).join("\n"));
}

#[test]
fn what_was_understood_is_told_in_a_line() {
    let draft = Draft {
        command: vec!["true".to_owned()],
        resources: [("gpu", "2"), ("gpu.model", "h100")].map(|(k, v)| (k.into(), v.into())).into(),
        replicas: Some(era_api::job::Replicas::Range { min: 2, max: 4 }),
        by: Some(at("2026-11-16T05:00:00Z")),
        value: Some(Value::Flat(credits("30"))),
        ..Draft::default()
    };
    insta::assert_snapshot!(understood(&draft, &look::plain()));
}
