//! Given answers, the text that people see.

use era_api::Credits;
use era_api::quote::{
    CounterOffersView, DurationOffer, HoldView, OfferView, PartQuoteView, SizeOffer,
};

use super::*;
use crate::cli::look::quote::counter_offers;

fn credits(text: &str) -> Credits {
    text.parse().unwrap()
}

fn at(text: &str) -> era_api::Timestamp {
    text.parse().unwrap()
}

fn quoted() -> Quoted {
    let (start, finish) = (at("2026-11-15T15:00:00Z"), at("2026-11-15T17:00:00Z"));
    let price = credits("40");
    let part = PartQuoteView { pool: "a".to_owned(), start, finish, price };
    let line = |by: &str, price: &str, start: &str| MenuLineView {
        by: at(by),
        price: credits(price),
        start: at(start),
    };
    Quoted {
        quote: QuoteView { price, start, finish, alternative: 0, parts: vec![part] },
        hold: Some(HoldView { id: 17, expires: at("2026-11-15T13:31:00Z") }),
        menu: vec![
            line("2026-11-15T17:00:00Z", "40", "2026-11-15T15:00:00Z"),
            line("2026-11-15T22:00:00Z", "31.5", "2026-11-15T20:00:00Z"),
            line("2026-11-16T05:00:00Z", "12", "2026-11-16T03:00:00Z"),
            line("2026-11-20T05:00:00Z", "0.5", "2026-11-20T03:00:00Z"),
        ],
        wallet: None,
    }
}

#[test]
fn a_quote_shows_price_slot_hold_and_menu() {
    insta::assert_snapshot!(render(&quoted(), &look::plain()));
}

#[test]
fn whoever_cannot_pay_a_price_or_a_value_is_told_at_once() {
    let beside = |wallet: &str| paid(&Quoted { wallet: Some(credits(wallet)), ..quoted() });
    let told = beside("5").unwrap();
    assert_eq!(
        told,
        "The wallet holds 5.00 credits and this costs 40.00: an administrator can grant credits"
    );
    assert_eq!(beside("50").unwrap(), "The wallet holds 50.00 credits: no more can be paid");
    assert_eq!(paid(&quoted()), None);
}

#[test]
fn every_counter_offer_says_what_to_change() {
    let offer = OfferView {
        start: at("2026-11-16T03:00:00Z"),
        finish: at("2026-11-16T05:00:00Z"),
        price: credits("12"),
    };
    let offers = CounterOffersView {
        value: Some(credits("13.5")),
        window: Some(offer),
        size: Some(SizeOffer { replicas: 2, offer }),
        duration: Some(DurationOffer { duration_s: 5400, offer }),
        wallet: Some(credits("3")),
    };
    insta::assert_snapshot!(counter_offers(&offers, &look::plain()).join("\n"));
}

#[test]
fn what_was_understood_is_told_in_a_line() {
    let spec = serde_json::json!({
        "work": {"command": ["true"]},
        "ask": {
            "resources": {"gpu": "2", "gpu.model": "h100"},
            "replicas": {"min": 2, "max": 4},
            "deadline": "2026-11-16T05:00:00Z",
        },
        "value": 30,
    });
    let spec = serde_json::from_value(spec).unwrap();
    insta::assert_snapshot!(understood(&spec, &look::plain()));
}
