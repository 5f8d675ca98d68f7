//! Quotes, refusals and explanations, from the core to the wire.

use era_api::job as wire_job;
use era_api::quote as wire;
use era_api::{Credits, Parameters};
use era_core::Snapshot;
use era_core::bid::{Bid, Value};
use era_core::explain::Explanation;
use era_core::ledger::Account;
use era_core::offer::{CounterOffers, Offer, Quote};
use era_core::quote::MenuLine;
use era_core::units::Money;

use super::{credits, seconds, stamp};

pub fn quote(quote: &Quote) -> wire::QuoteView {
    wire::QuoteView {
        price: credits(quote.price),
        start: stamp(quote.start),
        finish: stamp(quote.finish),
        alternative: quote.alternative,
        parts: quote
            .parts
            .iter()
            .map(|part| wire::PartQuoteView {
                pool: part.pool.to_string(),
                start: stamp(part.start),
                finish: stamp(part.finish),
                price: credits(part.price),
            })
            .collect(),
    }
}

/// What a wallet holds, where that is less than the price, or than what is offered.
pub fn wallet(snapshot: &Snapshot, bid: &Bid, price: Money) -> Option<Credits> {
    let balance = snapshot.ledger().balance(Account::Wallet(bid.user));
    let offered = match &bid.value {
        // Nothing was said.
        Value::Flat(Money::MOST) => Money::ZERO,
        Value::Flat(worth) => *worth,
        Value::Steps(steps) => steps.iter().map(|step| step.worth).max().unwrap_or_default(),
    };
    (price.max(offered) > balance).then(|| credits(balance))
}

/// The flexibility menu.
pub fn menu(lines: &[MenuLine]) -> Vec<wire::MenuLineView> {
    let line = |line: &MenuLine| wire::MenuLineView {
        by: stamp(line.by),
        price: credits(line.price),
        start: stamp(line.start),
    };
    lines.iter().map(line).collect()
}

/// Counter-offers, where there are any.
pub fn counter_offers(offers: &CounterOffers) -> Option<wire::CounterOffersView> {
    if *offers == CounterOffers::default() {
        return None;
    }
    Some(wire::CounterOffersView {
        value: offers.value.map(credits),
        window: offers.window.map(offer),
        size: offers
            .size
            .map(|(replicas, terms)| wire::SizeOffer { replicas, offer: offer(terms) }),
        duration: offers.duration.map(|(length, terms)| wire::DurationOffer {
            duration_s: seconds(length),
            offer: offer(terms),
        }),
        wallet: offers.wallet.map(credits),
    })
}

fn offer(offer: Offer) -> wire::OfferView {
    wire::OfferView {
        start: stamp(offer.start),
        finish: stamp(offer.finish),
        price: credits(offer.price),
    }
}

/// The code of something that is written with it as a tag, and what else it says.
pub fn tagged(value: &impl serde::Serialize, tag: &str) -> (Option<String>, Parameters) {
    let mut all = parameters(value);
    let code = all.remove(tag).and_then(|code| Some(code.as_str()?.to_owned()));
    (code, all)
}

/// What something says, for whoever puts it in words of their own.
pub fn parameters(value: &impl serde::Serialize) -> Parameters {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::Object(all)) => all,
        _ => Parameters::new(),
    }
}

/// Why a job waits, or when it runs.
pub fn explanation(explanation: &Explanation) -> wire_job::ExplanationView {
    let mut told = wire_job::ExplanationView {
        state: String::new(),
        sentence: String::new(),
        position: None,
        why: None,
        parameters: Parameters::new(),
        start: None,
        earliest: None,
        latest: None,
        ahead: Vec::new(),
    };
    match explanation {
        Explanation::Promised { start, finish } => {
            told.state = "promised".into();
            told.start = Some(stamp(*start));
            told.sentence =
                format!("It has a promise: from {} to {}.", stamp(*start), stamp(*finish));
        }
        Explanation::Running { since, until, begun } => {
            told.state = "running".into();
            told.start = Some(stamp(*since));
            told.sentence = match begun {
                true => {
                    format!("It runs since {}, until {} at most.", stamp(*since), stamp(*until))
                }
                false => format!(
                    "It was sent to its nodes at {}, and has not begun there yet: its log says \
                     what it waits for.",
                    stamp(*since)
                ),
            };
        }
        Explanation::Waiting { position, start, reason } => {
            told.state = "waiting".into();
            // What waits for other jobs has no place in its queue yet.
            told.position = Some(*position).filter(|position| *position > 0);
            (told.why, told.parameters) = tagged(reason, "why");
            told.start = start.map(|s| stamp(s.likely));
            told.earliest = start.map(|s| stamp(s.earliest));
            told.latest = start.map(|s| stamp(s.latest));
            told.sentence = match position {
                0 => format!("Not in its queue yet: {reason}."),
                _ => format!("It waits at position {position} of its queue: {reason}."),
            };
        }
        Explanation::Ended { at } => {
            told.state = "ended".into();
            told.sentence = format!("It ended at {}.", stamp(*at));
        }
    }
    told
}
