//! Writes down what pools cost, whenever it changes.

use std::collections::BTreeMap;
use std::time::Duration;

use era_core::units::Span;
use era_store::StoreError;
use era_store::prices::PriceRow;

use crate::Services;
use crate::wire;

/// How often prices are looked at.
const EVERY: Duration = Duration::from_secs(10);
/// A pool's prices are written at most this often, so that a year of haste stays small.
const APART: Span = Span::from_min(1);
/// How long past prices are kept.
pub(super) const KEPT: Span = Span::from_days(90);

/// Follows the prices of all pools, forever.
pub(super) async fn follow(app: Services) {
    let mut last = None;
    loop {
        if let Err(error) = look(&app, &mut last).await {
            tracing::warn!(%error, "prices could not be written down");
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Writes what has changed since the last look.
async fn look(
    app: &Services,
    last: &mut Option<BTreeMap<String, PriceRow>>,
) -> Result<(), StoreError> {
    let prices = app.store.prices();
    let mut known = match last.take() {
        Some(known) => known,
        None => prices.newest().await?,
    };
    let (state, now) = (app.driver.snapshot(), app.clock.now());
    let mut news = Vec::new();
    for pool in state.cluster().pools() {
        let Ok(Some(row)) = wire::price_row(&state, pool, now) else { continue };
        if is_news(known.get(pool.name.as_str()), &row) {
            known.insert(pool.name.to_string(), row);
            news.push((pool.name.to_string(), row));
        }
    }
    if !news.is_empty() {
        prices.append(&news).await?;
    }
    *last = Some(known);
    Ok(())
}

/// Whether a price is to be written: it is the first, or another than the last and not too soon.
fn is_news(last: Option<&PriceRow>, row: &PriceRow) -> bool {
    last.is_none_or(|last| {
        let other = (last.price, last.promised) != (row.price, row.promised);
        other && row.at.since(last.at) >= APART
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_core::units::Time;

    #[test]
    fn a_price_is_written_once_and_then_when_it_changes_but_not_too_often() {
        let row = |at: i64, gpu: i64| PriceRow {
            at: Time(at * 1000),
            price: [1, 1, gpu],
            promised: [0; 3],
        };
        assert!(is_news(None, &row(0, 8)));
        assert!(!is_news(Some(&row(0, 8)), &row(3600, 8)), "it still holds");
        assert!(!is_news(Some(&row(0, 8)), &row(59, 9)), "too soon");
        assert!(is_news(Some(&row(0, 8)), &row(60, 9)));
    }
}
