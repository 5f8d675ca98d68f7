//! What is decided on a bid, as a value: plans, prices, and the promises that move for it; and what
//! was found on the way. How it is found is not known here.

use std::cmp::Reverse;

use crate::calendar::{BookingHolder, Seat};
use crate::job::Plan;
use crate::offer::{Offer, Quote};
use crate::units::{Money, Time};

/// What is decided on a bid that is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) alternative: usize,
    /// A plan and a price for each request. Seats are left out where they were not asked for.
    pub(crate) parts: Vec<(Plan, Money)>,
    /// Promises that have to move for it.
    pub(crate) moves: Vec<Move>,
}

/// A replica that has not started moves to another seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) holder: BookingHolder,
    pub(crate) from: Seat,
    pub(crate) to: Seat,
}

impl Decision {
    pub(crate) fn price(&self) -> Money {
        Money(self.parts.iter().map(|(_, price)| price.0).sum())
    }

    fn start(&self) -> Time {
        self.parts.iter().map(|(plan, _)| plan.from).min().unwrap_or_default()
    }

    pub(crate) fn quote(&self) -> Quote {
        Quote::of(self.alternative as u8, &self.parts)
    }

    /// What decides between two of them: the more it leaves of the value, then the cheaper, then
    /// the earlier.
    pub(super) fn merit(&self, worth: Money) -> (i64, Reverse<Money>, Reverse<Time>) {
        (worth.0.saturating_sub(self.price().0), Reverse(self.price()), Reverse(self.start()))
    }
}

/// What is found on the way to a refusal, and need not be looked for again by whoever looks for
/// counter-offers to a bid of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    /// The nearest run outside the window, where it was looked for.
    pub(super) window: Option<Option<Offer>>,
}
