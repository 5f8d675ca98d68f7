//! What is answered to a bid: a quote, or a refusal with counter-offers. Values only; how they
//! are found is [`mod@crate::quote`]'s.

use serde::{Deserialize, Serialize};

use crate::job::Plan;
use crate::refusal::Refusal;
use crate::units::{Money, Name, Span, Time};

/// The answer to a bid that could be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// The price of the whole.
    pub price: Money,
    /// When the first part starts.
    pub start: Time,
    /// When the last part finishes.
    pub finish: Time,
    /// Which alternative of the bid.
    pub alternative: u8,
    /// One for each request of it.
    pub parts: Vec<PartQuote>,
}

/// What one request would get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartQuote {
    pub pool: Name,
    pub start: Time,
    pub finish: Time,
    /// For how much.
    pub price: Money,
}

impl Quote {
    /// What these plans and prices come to.
    pub(crate) fn of(alternative: u8, parts: &[(Plan, Money)]) -> Quote {
        let part = |(plan, price): &(Plan, Money)| PartQuote {
            pool: plan.pool.clone(),
            start: plan.from,
            finish: plan.to,
            price: *price,
        };
        Quote {
            price: Money(parts.iter().map(|(_, price)| price.0).sum()),
            start: parts.iter().map(|(plan, _)| plan.from).min().unwrap_or_default(),
            finish: parts.iter().map(|(plan, _)| plan.to).max().unwrap_or_default(),
            alternative,
            parts: parts.iter().map(part).collect(),
        }
    }
}

/// The answer to a bid that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declined {
    pub refusal: Refusal,
    /// What would be possible.
    pub counter: Box<CounterOffers>,
}

impl From<Refusal> for Declined {
    fn from(refusal: Refusal) -> Declined {
        Declined { refusal, counter: Box::default() }
    }
}

/// What would be possible instead. Each stands alone: the rest of the bid as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterOffers {
    /// The least value that would win.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Money>,
    /// The nearest run that fits, and its price: a later deadline, or an earlier start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Offer>,
    /// The most replicas (or GPUs of a total) that fit in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<(u32, Offer)>,
    /// The longest duration that fits in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<(Span, Offer)>,
    /// What the wallet holds, where one of these costs more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wallet: Option<Money>,
}

/// A run that would be possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub start: Time,
    pub finish: Time,
    /// For how much.
    pub price: Money,
}
