//! What was asked for, taken or not: demand that a forecast wants to know of.
//!
//! Whoever moves a slider asks a hundred times and wants one thing. So the last question of a user
//! for the same resources and duration stands for all of them, and is written only once it has
//! been left alone for a while. A bid that is handed in takes its question away and counts itself,
//! each time. Nothing here is on a quote's path but one short lock.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use era_core::bid::Bid;
use era_core::units::{Money, Span, Time};
use era_store::journal::{AskedQuote, Asks};

/// A question that nobody followed for so long was not taken.
const LEFT_ALONE: Span = Span::from_min(2);
/// Most questions that are remembered at a time; more are not counted.
const MOST: usize = 50_000;

/// Questions that may still be taken. A clone shares.
#[derive(Clone, Default)]
pub struct Asking {
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    recent: HashMap<u64, Recent>,
    handed_in: Vec<AskedQuote>,
}

struct Recent {
    at: Time,
    bid: Bid,
    price: Option<Money>,
    took: Duration,
}

impl Asking {
    /// A quote was asked, and this price was told, or none, after so long.
    pub fn asked(&self, bid: &Bid, at: Time, price: Option<Money>, took: Duration) {
        let recent = &mut self.known.lock().unwrap_or_else(PoisonError::into_inner).recent;
        let key = key(bid);
        let full = recent.len() >= MOST;
        match recent.get_mut(&key) {
            Some(known) if known.bid == *bid => {
                (known.at, known.price, known.took) = (at, price, took);
            }
            Some(known) => *known = Recent { at, bid: bid.clone(), price, took },
            None if full => {}
            None => {
                recent.insert(key, Recent { at, bid: bid.clone(), price, took });
            }
        }
    }

    /// A bid was handed in, whatever came of it: its question was taken. Gives how long that
    /// question took to be answered, where there was one.
    pub fn taken(&self, bid: &Bid, at: Time) -> Option<Duration> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let question = known.recent.remove(&key(bid));
        if known.handed_in.len() < MOST {
            let price = question.as_ref().and_then(|question| question.price);
            known.handed_in.push(AskedQuote::new(at, bid, price));
        }
        question.map(|question| question.took)
    }

    /// Writes what was handed in, and the questions that were left alone; says how many.
    pub async fn write(&self, asks: &Asks, now: Time) -> Result<usize, era_store::StoreError> {
        let left = self.left_alone(now);
        if !left.is_empty() {
            asks.append(&left).await?;
        }
        Ok(left.len())
    }

    fn left_alone(&self, now: Time) -> Vec<AskedQuote> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = std::mem::take(&mut known.handed_in);
        known.recent.retain(|_, known| {
            let alone = known.at + LEFT_ALONE <= now;
            if alone {
                left.push(AskedQuote::new(known.at, &known.bid, known.price));
            }
            !alone
        });
        left.sort_by_key(|asked| asked.at);
        left
    }
}

/// The same for all questions of a user for the same resources and durations, whatever the window
/// and the value.
fn key(bid: &Bid) -> u64 {
    let mut hasher = DefaultHasher::new();
    bid.user.0.hash(&mut hasher);
    for request in bid.one_of.iter().flat_map(|alternative| &alternative.all_of) {
        request.each.hash(&mut hasher);
        request.shape.promised().hash(&mut hasher);
        request.duration.0.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use era_core::bid::{Constraints, Request, Shape, Window};
    use era_core::resources::Resources;
    use era_core::units::UserId;

    use super::*;

    const TOOK: Duration = Duration::from_micros(40);

    fn bid(user: u32, cpu: u32, deadline: i64) -> Bid {
        let request = Request {
            shape: Shape::gang(1),
            each: Resources { cpu, ..Resources::default() },
            duration: Span::from_min(5),
            window: Window { earliest: Time(0), deadline: Time::from_s(deadline) },
            constraints: Constraints::default(),
            after: Vec::new(),
        };
        Bid::single(UserId(user), request, Money::credits(1))
    }

    #[test]
    fn many_questions_for_one_thing_count_once_and_only_when_left_alone() {
        let asking = Asking::default();
        for second in 0..100 {
            asking.asked(&bid(1, 1000, 9000 + second), Time::from_s(second), None, TOOK);
        }
        asking.asked(&bid(2, 1000, 9000), Time::from_s(0), Some(Money::credits(2)), TOOK);
        assert_eq!(asking.left_alone(Time::from_s(119)).len(), 0);
        let first = asking.left_alone(Time::from_s(120));
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].price, Some(Money::credits(2)));
        let second = asking.left_alone(Time::from_s(300));
        assert_eq!(second.len(), 1);
        assert_eq!(second[0].bid().unwrap(), bid(1, 1000, 9099), "the last one stands for all");
        assert_eq!(asking.left_alone(Time::from_s(999)).len(), 0, "nothing is told twice");
    }

    #[test]
    fn what_is_handed_in_counts_each_time_and_in_place_of_its_question() {
        let asking = Asking::default();
        asking.asked(&bid(1, 1000, 9000), Time::from_s(0), Some(Money::credits(3)), TOOK);
        asking.asked(&bid(1, 2000, 9000), Time::from_s(0), None, TOOK);
        assert_eq!(asking.taken(&bid(1, 1000, 7777), Time::from_s(5)), Some(TOOK));
        assert_eq!(asking.taken(&bid(1, 1000, 7777), Time::from_s(6)), None);
        let told = asking.left_alone(Time::from_s(999));
        let handed_in: Vec<_> = told.iter().filter(|a| a.at > Time::from_s(0)).collect();
        assert_eq!((told.len(), handed_in.len()), (3, 2));
        assert_eq!(handed_in[0].price, Some(Money::credits(3)), "what was told before");
        assert_eq!(asking.left_alone(Time::from_s(9999)).len(), 0, "nothing is told twice");
    }
}
