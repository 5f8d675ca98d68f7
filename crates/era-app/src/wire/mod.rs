//! Between the wire and the core: what is read is parsed into the core's types or refused with the
//! field that is wrong, and what the core says is written as the wire has it.
//!
//! Pure functions of values. Who may ask is not known here.

mod ask;
mod cluster;
mod market;
mod queue;
mod quote;
mod settings;
#[cfg(test)]
mod tests;
mod words;
mod wrong;

use era_api::{Credits, Timestamp};
use era_core::units::{Money, Name, Span, Time, Title};

pub use ask::{bid, new_job, problems, request};
pub use cluster::{SIMULATED, bookings, domain, domain_put, is_simulated, node, pool, pool_put};
pub use market::{
    fare_calendar, mechanism, mechanism_put, ordering_resource, past_price, pool_price, price_row,
};
pub use queue::{policy, policy_versions, queue, queue_put, rule, rule_put, waiter};
pub use quote::{counter_offers, explanation, menu, parameters, quote, tagged, wallet};
pub use settings::{settings, settings_put};
pub use words::{kinds, unknown_word, words};
pub use wrong::Wrong;

/// Longest part of a stranger's name that is repeated.
const NAME_SHOWN: usize = 40;

/// As much of a stranger's text as is repeated.
pub fn shown(name: &str) -> String {
    name.chars().take(NAME_SHOWN).collect::<String>().escape_debug().collect()
}

/// What was read and makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct BadField {
    pub field: String,
    /// What is wrong, and what would be right.
    pub problem: Wrong,
}

impl BadField {
    /// This field, with this problem.
    pub fn new(field: &str, problem: impl Into<Wrong>) -> BadField {
        BadField { field: field.to_owned(), problem: problem.into() }
    }
}

/// An instant as the core counts it.
pub fn time(at: Timestamp) -> Time {
    Time(at.as_millisecond())
}

/// An instant as the wire writes it. What no calendar has is written as its last instant.
pub fn stamp(at: Time) -> Timestamp {
    let within = at.0.clamp(0, Time::LATEST.0);
    Timestamp::from_millisecond(within).unwrap_or(Timestamp::MAX)
}

/// Seconds as a span; what is too long becomes the longest.
pub fn span(seconds: u64) -> Span {
    Span(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))
}

/// A span as whole seconds, rounded up.
pub fn seconds(span: Span) -> u64 {
    u64::try_from(span.0.max(0)).unwrap_or(0).div_ceil(1000)
}

/// Credits as the core counts them.
pub fn money(credits: Credits) -> Money {
    Money(credits.0)
}

/// Money as the wire writes it.
pub fn credits(money: Money) -> Credits {
    Credits(money.0)
}

/// A name that the core accepts.
pub fn name(field: &str, text: &str) -> Result<Name, BadField> {
    Name::new(text).map_err(|bad| BadField::new(field, bad))
}

/// The same, where there is one.
pub fn optional_name(field: &str, text: Option<&str>) -> Result<Option<Name>, BadField> {
    text.map(|text| name(field, text)).transpose()
}

/// What people call a thing, where it is called anything. Blanks at its ends are no part of it.
pub fn optional_title(field: &str, text: Option<&str>) -> Result<Option<Title>, BadField> {
    let title = |text: &str| Title::new(text.trim()).map_err(|bad| BadField::new(field, bad));
    text.map(title).transpose()
}

/// Thousandths as a fraction.
pub fn fraction(milli: era_core::units::Milli) -> f64 {
    f64::from(milli.0) / 1000.0
}

/// A fraction as thousandths.
pub fn milli(field: &str, fraction: f64) -> Result<era_core::units::Milli, BadField> {
    let scaled = (fraction * 1000.0).round();
    if scaled < 0.0 {
        return Err(BadField::new(field, Wrong::Negative { given: fraction.to_string() }));
    }
    if !(0.0..=f64::from(u32::MAX)).contains(&scaled) {
        return Err(BadField::new(field, Wrong::Uncountable));
    }
    // Within range, as was just checked.
    Ok(era_core::units::Milli(scaled as u32))
}
