//! `era market`: prices now, and the fare calendar of a pool as a heat map of hours by days.

use std::collections::BTreeMap;

use era_api::Credits;
use era_api::client::TimeRange;
use era_api::market::{FareCalendar, MarketView, PricePoint};
use jiff::ToSpan;
use jiff::civil::Date;

use super::connection::Common;
use super::look::{self, Look, right};
use crate::paint::Tone;

/// Show prices now; with a pool, its fares by hour and day
#[derive(Debug, clap::Args)]
#[command(name = "market")]
pub(crate) struct MarketCommand {
    /// Show the fare calendar of this pool
    #[arg(value_name = "POOL")]
    pool: Option<String>,
    /// How many days of it
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(1..=30))]
    days: u8,
    #[command(flatten)]
    common: Common,
}

impl MarketCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let look = self.common.look();
        let Some(pool) = &self.pool else {
            return look::print(self.common.output, &client.market()?, |m| render(m, &look));
        };
        let from = look.now.timestamp();
        let to = from.checked_add((i64::from(self.days) * 24).hours())?;
        let period = TimeRange { from: Some(from), to: Some(to), step_s: Some(3600) };
        let fares = client.fares(pool, &period)?;
        look::print(self.common.output, &fares, |fares| heat_map(fares, &look))
    }
}

fn render(market: &MarketView, look: &Look) -> String {
    let headings =
        ["POOL", "GPU-HOUR", "CORE-HOUR", "GIB-HOUR", "PROMISED", "QUEUE WORK", "CHEAPEST", "WHEN"];
    let mut table = look.table(&headings);
    for pool in &market.pools {
        // By GPUs where it has any, else by cores, as its price is.
        let of = if pool.now.gpu.0 > 0 { 2 } else { 0 };
        let percent = |share: f64| right(format!("{:.0} %", share * 100.0));
        table.add_row(vec![
            pool.pool.clone().into(),
            right(pool.now.gpu),
            right(pool.now.cpu),
            right(pool.now.memory),
            percent(pool.now.promised[of]),
            percent(pool.queue_work[of]),
            right(fare(&pool.cheapest)),
            look.time(pool.cheapest.from).into(),
        ]);
    }
    let rules = &market.mechanism;
    let mut text = look::finish(&table);
    text += &format!(
        "{}, between {} and {} times the base rate",
        rules.name, rules.floor, rules.ceiling
    );
    if market.promises_due > 0 {
        let (kept, due) = (market.promises_kept, market.promises_due);
        text += &format!("; {kept} of {due} promises kept");
    }
    text + "; work for queues does not raise prices\n"
}

/// What a point is known by: its GPU-hour, or its core-hour where there are no GPUs.
fn fare(point: &PricePoint) -> Credits {
    if point.gpu.0 > 0 { point.gpu } else { point.cpu }
}

/// Shades from cheap to dear.
const SHADES: [&str; 5] = ["·", "░", "▒", "▓", "█"];

/// Hours by days: the darker, the dearer.
pub(crate) fn heat_map(fares: &FareCalendar, look: &Look) -> String {
    let mut days: BTreeMap<Date, [Option<Credits>; 24]> = BTreeMap::new();
    for point in &fares.points {
        let local = point.from.to_zoned(look.now.time_zone().clone());
        let hours = days.entry(local.date()).or_default();
        let hour = &mut hours[usize::try_from(local.hour()).unwrap_or(0) % 24];
        // Of several points in an hour the cheapest counts: that is the one to aim at.
        *hour = Some(hour.map_or(fare(point), |known| known.min(fare(point))));
    }
    let known = || days.values().flatten().flatten().map(|price| price.0);
    let (Some(low), Some(high)) = (known().min(), known().max()) else {
        return format!("There are no fares of {} in this time.\n", fares.pool);
    };
    let unit = if fares.points.iter().any(|p| p.gpu.0 > 0) { "GPU-hour" } else { "core-hour" };
    let title = format!("Fares of {}, credits a {unit}", fares.pool);
    let mut text = format!("{}\n", look.paint.tone(Tone::Title, &title));
    text += "             0     3     6     9     12    15    18    21\n";
    for (date, hours) in &days {
        text += &format!("  {} ", date.strftime("%a %d %b"));
        for price in hours {
            text += &match price {
                Some(price) => {
                    let level = level(price.0, low, high);
                    look.paint.heat(level, SHADES.len() - 1, &SHADES[level].repeat(2))
                }
                None => "  ".to_owned(),
            };
        }
        let cheapest = hours.iter().flatten().min();
        if let Some(cheapest) = cheapest {
            text += &look.paint.tone(Tone::Quiet, &format!("  from {cheapest}"));
        }
        text.push('\n');
    }
    let (low, high) = (Credits(low), Credits(high));
    text + &format!("  {} {low}  {} {high}\n", SHADES[0].repeat(2), SHADES[4].repeat(2))
}

fn level(price: i64, low: i64, high: i64) -> usize {
    let top = SHADES.len() - 1;
    if high <= low {
        return 0;
    }
    let share = (price - low) as f64 / (high - low) as f64;
    ((share * top as f64).round() as usize).min(top)
}

#[cfg(test)]
mod tests {
    use era_api::market::{MechanismView, PoolPrice};

    use super::*;

    fn point(hour: i64, gpu: i64) -> PricePoint {
        let start: era_api::Timestamp = "2026-11-15T13:00:00Z".parse().unwrap();
        PricePoint {
            from: start.checked_add(hour.hours()).unwrap(),
            to: start.checked_add((hour + 1).hours()).unwrap(),
            cpu: Credits(50_000),
            memory: Credits(10_000),
            gpu: Credits(gpu),
            promised: [0.1, 0.2, 0.625],
            forecast: [0.0; 3],
        }
    }

    #[test]
    fn prices_fit_in_a_table() {
        let market = MarketView {
            mechanism: MechanismView {
                name: "basic-econ".to_owned(),
                density: None,
                low: None,
                high: None,
                floor: 0.1,
                ceiling: 10.0,
            },
            pools: vec![PoolPrice {
                pool: "a".to_owned(),
                now: point(0, 2_500_000),
                cheapest: point(13, 400_000),
                queue_work: [0.9, 0.5, 0.375],
            }],
            promises_due: 200,
            promises_kept: 199,
        };
        insta::assert_snapshot!(render(&market, &look::plain()));
    }

    #[test]
    fn the_dearest_hours_are_the_darkest() {
        let points = (0..48).map(|hour| point(hour, (hour % 24 - 12).abs() * 100_000)).collect();
        let fares = FareCalendar { pool: "a".to_owned(), points };
        insta::assert_snapshot!(heat_map(&fares, &look::plain()));
    }

    #[test]
    fn no_fares_are_said_to_be_none() {
        let fares = FareCalendar { pool: "a".to_owned(), points: Vec::new() };
        assert!(heat_map(&fares, &look::plain()).contains("no fares"));
    }
}
