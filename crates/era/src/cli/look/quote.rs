//! A price and what it is for in words: what was understood of a job, the quoted slot, what the
//! wallet has for it, and what a refused bid could change.

use era_api::quote::{CounterOffersView, OfferView, QuoteView, Quoted, ValueSpec};
use era_spec::JobSpec;

use super::{Look, span};
use crate::paint::Tone;

/// What was understood of a job, in a line.
pub(crate) fn understood(spec: &JobSpec, look: &Look) -> String {
    // With what it gets where nothing is said.
    let mut ask = spec.ask.clone();
    ask.complete();
    let mut words: Vec<String> = Vec::new();
    if let Some(total) = ask.gpus {
        words.push(format!("{total} GPUs in all, with each"));
    }
    for name in ["gpu", "cpu", "memory"] {
        if let Some(amount) = ask.resources.get(name) {
            words.push(format!("{name} {amount}"));
        }
    }
    let others =
        ask.resources.iter().filter(|(k, _)| !["gpu", "cpu", "memory"].contains(&k.as_str()));
    words.extend(others.map(|(name, amount)| format!("{name} {amount}")));
    match ask.replicas {
        Some(era_api::job::Replicas::Fixed(n)) if n > 1 => words.push(format!("{n} replicas")),
        Some(era_api::job::Replicas::Range { min, max }) => {
            words.push(format!("{min} to {max} replicas"));
        }
        _ => {}
    }
    let mut text = format!("{} for {}", words.join(", "), span(ask.duration_s.unwrap_or_default()));
    if let Some(from) = ask.earliest {
        text += &format!(", not before {}", look.time(from));
    }
    if let Some(by) = ask.deadline {
        text += &format!(", by {}", look.time(by));
    }
    if let Some(ValueSpec::Flat(value)) = &spec.value {
        text += &format!(", worth {value}");
    }
    if let Some(array) = &spec.array {
        text += &format!(", for each of {array}");
    }
    text
}

/// What is told where the wallet holds less than the price, or than the value.
pub(crate) fn paid(quoted: &Quoted) -> Option<String> {
    let (wallet, price) = (quoted.wallet?, quoted.quote.price);
    Some(match wallet < price {
        true => format!(
            "The wallet holds {wallet} credits and this costs {price}: an administrator can grant \
             credits"
        ),
        false => format!("The wallet holds {wallet} credits: no more can be paid"),
    })
}

/// Price and slot in a line.
pub(crate) fn line(quote: &QuoteView, look: &Look) -> String {
    let price = look.paint.tone(Tone::Title, &format!("{} credits", quote.price));
    let pools: Vec<&str> = quote.parts.iter().map(|part| part.pool.as_str()).collect();
    let place = if pools.is_empty() { String::new() } else { format!(" in {}", pools.join(", ")) };
    format!("{price}: {} to {}{place}\n", look.time(quote.start), look.time(quote.finish))
}

/// What would be possible instead, a line each.
pub(crate) fn counter_offers(offers: &CounterOffersView, look: &Look) -> Vec<String> {
    let at = |offer: &OfferView| {
        format!("{} to {} for {}", look.time(offer.start), look.time(offer.finish), offer.price)
    };
    let mut lines = Vec::new();
    if let Some(value) = offers.value {
        lines.push(format!("offer: it would be accepted at --value {value}"));
    }
    if let Some(offer) = &offers.window {
        let by = look.time(offer.finish);
        lines.push(format!("offer: {}, with --by '{by}'", at(offer)));
    }
    if let Some(size) = &offers.size {
        lines.push(format!("offer: {} replicas, {}", size.replicas, at(&size.offer)));
    }
    if let Some(duration) = &offers.duration {
        let time = span(duration.duration_s);
        lines.push(format!("offer: {}, with --time {time}", at(&duration.offer)));
    }
    if let Some(wallet) = offers.wallet {
        lines.push(format!(
            "hint: the wallet holds {wallet} credits, less than an offer costs; an administrator \
             can grant credits"
        ));
    }
    lines
}
