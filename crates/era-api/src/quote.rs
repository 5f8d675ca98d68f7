//! Quotes: what a bid would get.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Credits;
use era_spec::{Ask, JobSpec};

pub use era_spec::{ValueSpec, ValueStepSpec};

/// A question for a price: `ask`, or several joined. Alternatives are joined by *one of*, and
/// requests of an alternative by *all of*.
///
/// `ask`, `value`, `most` and `accept_price` are those of a job, and mean the same: a job that is
/// handed in on these terms gets what is told here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuoteAsk {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// Or several alternatives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<AllOf>,
    /// What it is worth; where nothing is said the price is told whatever it is, up to `most`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<ValueSpec>,
    /// The most that it may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<Credits>,
    /// Whether it takes the price. So does every question without a value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_price: bool,
    /// Whether the flexibility menu is wanted too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub menu: bool,
    /// Whether price and slot are to be set aside for a while.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
    /// A hold of one's own that is priced as if it were not there: what it sets aside makes nothing
    /// dearer for whoever holds it. Not together with `hold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<u64>,
}

impl QuoteAsk {
    /// What a job would get on its terms.
    pub fn of(job: &JobSpec) -> QuoteAsk {
        QuoteAsk {
            ask: Some(job.ask.clone()),
            value: job.value.clone(),
            most: job.most,
            accept_price: job.accept_price,
            ..QuoteAsk::default()
        }
    }
}

/// Requests that are accepted together or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AllOf {
    pub all_of: Vec<OrderedAsk>,
}

/// A request, and those before it in the list that must have finished first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderedAsk {
    pub ask: Ask,
    /// Indices of earlier requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u8>,
}

/// Price and slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Quote)]
pub struct QuoteView {
    /// The price of the whole.
    pub price: Credits,
    /// When the first part starts.
    pub start: Timestamp,
    /// When the last part finishes.
    pub finish: Timestamp,
    pub alternative: u8,
    /// One for each request of it.
    pub parts: Vec<PartQuoteView>,
}

/// What one request would get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = PartQuote)]
pub struct PartQuoteView {
    /// In which pool.
    pub pool: String,
    pub start: Timestamp,
    pub finish: Timestamp,
    /// For how much.
    pub price: Credits,
}

/// The answer to a question for a price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Quoted {
    /// Price and slot.
    pub quote: QuoteView,
    /// The hold, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldView>,
    /// Price for each deadline, where it was asked for; later lines are cheaper.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub menu: Vec<MenuLineView>,
    /// What the wallet holds, where the price or the value is more: no more than that can be paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wallet: Option<Credits>,
}

/// A quote that binds for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Hold)]
pub struct HoldView {
    pub id: u64,
    pub expires: Timestamp,
}

/// One line of the flexibility menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = MenuLine)]
pub struct MenuLineView {
    pub by: Timestamp,
    /// For how much.
    pub price: Credits,
    pub start: Timestamp,
}

/// What would be possible instead of a refused bid. Each stands alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
#[schema(as = CounterOffers)]
pub struct CounterOffersView {
    /// The least value that would win.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Credits>,
    /// The nearest run that fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<OfferView>,
    /// The most replicas, or GPUs of a total, that fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<SizeOffer>,
    /// The longest duration that fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<DurationOffer>,
    /// What the wallet holds, where one of these costs more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wallet: Option<Credits>,
}

/// A run that would be possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Offer)]
pub struct OfferView {
    pub start: Timestamp,
    pub finish: Timestamp,
    /// For how much.
    pub price: Credits,
}

/// A smaller run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SizeOffer {
    pub replicas: u32,
    /// At these terms.
    pub offer: OfferView,
}

/// A shorter run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DurationOffer {
    pub duration_s: u64,
    /// At these terms.
    pub offer: OfferView,
}
