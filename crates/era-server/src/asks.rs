//! Quotes that were asked, noted for the forecast: demand is what people wanted, and not only what
//! they took.
//!
//! A quote never waits for this. Questions go into a bounded channel, and what does not fit is
//! left out: when so many are asked that the writer falls behind, a part of them tells the
//! forecast as much as all.

use std::time::Duration;

use era_core::bid::Bid;
use era_core::quote::Quote;
use era_core::units::{Money, Span, Time};
use era_store::journal;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::App;

/// Most questions that are written at a time.
const BATCH_MAX: usize = 2048;
/// How often they are written.
const EVERY: Duration = Duration::from_secs(2);
/// How long they are kept: a forecast looks back over some weeks.
const KEEP: Span = Span::from_days(90);

type Question = (Time, Bid, Option<Money>);

/// Where quotes that were asked are noted. A clone shares; one by default notes nothing.
#[derive(Clone, Debug, Default)]
pub struct Asks(Option<mpsc::Sender<Question>>);

impl Asks {
    /// Notes them in this table, until every clone is dropped.
    pub fn start(table: journal::Asks) -> (Asks, JoinHandle<()>) {
        let (sender, questions) = mpsc::channel(BATCH_MAX);
        (Asks(Some(sender)), tokio::spawn(write(table, questions)))
    }

    fn note(&self, bid: &Bid, now: Time, price: Option<Money>) {
        let Some(sender) = &self.0 else { return };
        // Room first: a copy for nothing would be paid by the quote.
        if let Ok(room) = sender.try_reserve() {
            room.send((now, bid.clone(), price));
        }
    }
}

impl App {
    /// Notes that a quote was asked, and what was answered.
    pub fn asked(&self, bid: &Bid, now: Time, quote: Option<&Quote>) {
        self.asks.note(bid, now, quote.map(|quote| quote.price));
    }
}

async fn write(table: journal::Asks, mut questions: mpsc::Receiver<Question>) {
    let mut batch = Vec::new();
    while questions.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let last = batch.last().map_or(Time::MIN, |(at, ..)| *at);
        let rows: Vec<journal::Asked> =
            batch.drain(..).map(|(at, bid, price)| journal::Asked::new(at, &bid, price)).collect();
        let mut written = table.append(&rows).await;
        if written.is_ok() {
            written = table.forget_before(last - KEEP).await;
        }
        if let Err(error) = written {
            tracing::warn!(%error, "quotes that were asked could not be noted");
        }
        tokio::time::sleep(EVERY).await;
    }
}
