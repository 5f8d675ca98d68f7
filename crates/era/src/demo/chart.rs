//! The pictures: price by deadline, the fares of a day, and who had which GPUs when.

use std::collections::BTreeMap;

use era_core::job::Job;
use era_core::quote::{MenuLine, SlotPrice};
use era_core::units::{JobId, Money, Span, Time};

use super::text::{Page, clock, credits, stretch};
use super::world::{Stint, World};
use crate::paint::Tone;

const BLOCKS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// Columns of the longest bar of a menu.
const BAR: i64 = 40;
/// A column of the day's picture.
const COLUMN: Span = Span::from_min(10);

/// The flexibility menu: the price for each of these deadlines.
pub(super) fn menu(page: &mut Page, menu: &[MenuLine], deadlines: &[Time]) {
    let dearest = menu.iter().map(|line| line.price.0).max().unwrap_or(1).max(1);
    for by in deadlines {
        let best = menu.iter().filter(|line| line.by <= *by).min_by_key(|line| line.price);
        let Some(line) = best else { continue };
        let cells = (line.price.0 * BAR / dearest).max(1);
        let bar = "█".repeat(usize::try_from(cells).unwrap_or(0));
        let level = usize::try_from(line.price.0 * 8 / dearest).unwrap_or(0);
        let gap = " ".repeat(usize::try_from(BAR - cells).unwrap_or(0));
        let bar = page.paint.heat(level, 8, &bar);
        let runs = page.paint.tone(Tone::Quiet, &format!("runs {}", stretch(line.start, line.by)));
        page.line(&format!(
            "      by {}  {bar}{gap} {:>9}  {runs}",
            clock(*by),
            credits(line.price)
        ));
    }
}

/// The fares of a day, an hour a cell: what the next GPU costs an hour at base rate `rate`.
pub(super) fn fares(page: &mut Page, slots: &[SlotPrice], rate: Money) {
    let mut hours: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for slot in slots {
        let prices = hours.entry(slot.from.0.div_euclid(3_600_000)).or_default();
        // A slot with no GPU left has no fare.
        if slot.capacity[2].saturating_sub(slot.promised[2]) >= 1000 {
            prices.push(i64::from(slot.density[2].0) * rate.0 / 1000);
        }
    }
    let mean = |p: &Vec<i64>| (!p.is_empty()).then(|| p.iter().sum::<i64>() / p.len() as i64);
    let fares: Vec<_> = hours.iter().map(|(hour, p)| (hour.rem_euclid(24), mean(p))).collect();
    let dearest = fares.iter().filter_map(|(_, fare)| *fare).max().unwrap_or(1).max(1);
    let (mut bars, mut prices, mut labels) = (String::new(), String::new(), String::new());
    for (hour, fare) in fares {
        labels.push_str(&format!("{hour:02} "));
        let Some(fare) = fare else {
            bars.push_str(&page.paint.tone(Tone::Quiet, "×× "));
            prices.push_str(" - ");
            continue;
        };
        let level = usize::try_from(fare * 7 / dearest).unwrap_or(0).min(7);
        bars.push_str(&page.paint.heat(level, 7, &BLOCKS[level].repeat(2)));
        bars.push(' ');
        prices.push_str(&format!("{:>2} ", (fare + 500_000) / 1_000_000));
    }
    page.line(&format!("      {bars}"));
    page.line(&format!("      {prices}"));
    page.line(&format!("      {}", page.paint.tone(Tone::Quiet, &labels)));
}

/// Letters for jobs: capitals for promises, small ones for queue work, in the order of arrival.
pub(super) struct Letters(BTreeMap<JobId, (usize, char)>);

impl Letters {
    pub(super) fn of<'a>(jobs: impl Iterator<Item = &'a Job>) -> Letters {
        let (mut promises, mut queued) = ('A'..='Z', 'a'..='z');
        let letters = jobs.enumerate().map(|(index, job)| {
            let letter = match job.promise() {
                Some(_) => promises.next(),
                None => queued.next(),
            };
            (job.id, (index, letter.unwrap_or('?')))
        });
        Letters(letters.collect())
    }

    pub(super) fn bar(&self, page: &Page, job: JobId, cells: usize) -> String {
        let (index, letter) = self.0.get(&job).copied().unwrap_or((0, '?'));
        page.paint.bar(index, letter, cells)
    }
}

/// What a column of a line shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Idle,
    Lost,
    Job(JobId),
}

/// Who had which GPUs of each node between two instants, two GPUs a line.
pub(super) fn day(page: &mut Page, world: &World, letters: &Letters, from: Time, to: Time) {
    let chronicle = world.chronicle();
    let stints: Vec<Stint> = chronicle.stints(world.now).collect();
    let columns = to.since(from).0 / COLUMN.0;
    let mut hours = String::new();
    for column in (0..columns).step_by(6) {
        let time = clock(from + Span(column * COLUMN.0));
        hours.push_str(&format!("{:<6}", &time[..2]));
    }
    page.quiet(&format!("{:11}{hours}", ""));
    for node in world.state().cluster().nodes() {
        let gpus = node.capacity.gpus.len() as u8;
        for pair in (0..gpus.max(1)).step_by(2) {
            let cell = |column: i64| {
                let at = from + Span(column * COLUMN.0 + COLUMN.0 / 2);
                let lost =
                    |o: &super::world::Outage| o.node == node.id && o.from <= at && at < o.to;
                if chronicle.outages.iter().any(lost) {
                    return Cell::Lost;
                }
                let here = |s: &&Stint| {
                    let sits = s.gpus.is_empty() && gpus == 0 || s.gpus.contains(&pair);
                    s.node == node.id && sits && s.from <= at && at < s.to
                };
                stints.iter().find(here).map_or(Cell::Idle, |s| Cell::Job(s.job))
            };
            let cells: Vec<Cell> = (0..columns).map(cell).collect();
            let line: String = cells
                .chunk_by(|a, b| a == b)
                .map(|run| match run[0] {
                    Cell::Idle => page.paint.tone(Tone::Quiet, &"·".repeat(run.len())),
                    Cell::Lost => page.paint.tone(Tone::Bad, &"×".repeat(run.len())),
                    Cell::Job(job) => letters.bar(page, job, run.len()),
                })
                .collect();
            let label = if pair == 0 { node.name.as_str() } else { "" };
            let which = if gpus == 0 { "cpu".to_owned() } else { format!("{pair},{}", pair + 1) };
            let which = page.paint.tone(Tone::Quiet, &format!("{which:>3}"));
            page.line(&format!("{label:<6} {which} {line}"));
        }
    }
}
