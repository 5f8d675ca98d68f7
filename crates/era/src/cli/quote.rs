//! `era quote`: what a job would cost and when it would run, the flexibility menu as bars, and
//! the fare calendar as a heat map.

use era_api::client::{Client, TimeRange};
use era_api::market::FareCalendar;
use era_api::quote::{MenuLineView, QuoteAsk, QuoteView, Quoted};
use jiff::ToSpan;

use super::accept;
use super::connection::Common;
use super::look::quote::{line, paid, understood};
use super::look::{self, Form, Look, note};
use super::market::heat_map;
use crate::job::JobFlags;
use crate::paint::Tone;

/// Ask what a job would cost and when it would run; nothing is bought
///
/// With --hold the price and the slot are set aside for a minute: `era accept` takes them.
#[derive(Debug, clap::Args)]
#[command(name = "quote")]
pub(crate) struct QuoteCommand {
    /// Set price and slot aside for a while
    #[arg(long)]
    hold: bool,
    /// Leave out the menu and the calendar
    #[arg(long)]
    brief: bool,
    #[command(flatten)]
    job: JobFlags,
    #[command(flatten)]
    common: Common,
}

impl QuoteCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let look = self.common.look();
        let written = self.job.written(&look.now)?;
        for line in &written.notes {
            note(line);
        }
        let client = self.common.client()?;
        let of_job = QuoteAsk::of(&written.draft.spec);
        let ask = QuoteAsk { hold: self.hold, menu: !self.brief, ..of_job };
        let quoted = client.quote(&ask)?;
        if let Some(hold) = quoted.hold {
            accept::remember(hold.id, &written.draft, &quoted.quote)?;
        }
        let fares = match (self.brief, self.common.output) {
            (false, Form::Table | Form::Wide) => fares(&client, &quoted.quote, &look),
            _ => None,
        };
        look::print(self.common.output, &quoted, |quoted| {
            let mut text = format!("{}\n", understood(&written.draft.spec, &look));
            text += &render(quoted, &look);
            if let Some(fares) = &fares {
                text += &format!("\n{}", heat_map(fares, &look));
            }
            text
        })
    }
}

/// A week of fares of the pool that was quoted. A quote is worth telling without them.
fn fares(client: &Client, quote: &QuoteView, look: &Look) -> Option<FareCalendar> {
    let pool = &quote.parts.first()?.pool;
    let from = look.now.timestamp();
    let to = from.checked_add(168.hours()).ok()?;
    let period = TimeRange { from: Some(from), to: Some(to), step_s: Some(3600) };
    match client.fares(pool, &period) {
        Ok(fares) => Some(fares),
        Err(error) => {
            note(&format!("The fare calendar is missing: {}", super::told(&error.into())));
            None
        }
    }
}

/// The answer, for people.
pub(crate) fn render(quoted: &Quoted, look: &Look) -> String {
    let mut text = line(&quoted.quote, look);
    text.extend(paid(quoted).map(|told| told + "\n"));
    if quoted.quote.parts.len() > 1 {
        for (at, part) in quoted.quote.parts.iter().enumerate() {
            let (start, finish) = (look.time(part.start), look.time(part.finish));
            let n = at + 1;
            text += &format!("  part {n} in {}: {start} to {finish}, {}\n", part.pool, part.price);
        }
    }
    if let Some(hold) = quoted.hold {
        text += &format!(
            "Held until {}: take it with `era accept {}`\n",
            look.time(hold.expires),
            hold.id
        );
    }
    if quoted.menu.len() > 1 {
        text += &format!("\n{}", menu(&quoted.menu, look));
    }
    text
}

/// Most lines of the menu, unless all are asked for.
const MENU_LINES_MAX: usize = 10;

/// The lines that are worth telling: each is cheaper than the one before by a tenth of all that
/// waiting saves, and the last is the least that it can cost.
fn telling(lines: &[MenuLineView]) -> Vec<&MenuLineView> {
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return Vec::new() };
    let saves = first.price.0.saturating_sub(last.price.0) / (MENU_LINES_MAX as i64 - 1);
    let mut told = vec![first];
    let mut price = first.price.0;
    for line in &lines[1..] {
        if price.saturating_sub(line.price.0) > saves.max(1) || std::ptr::eq(line, last) {
            price = line.price.0;
            told.push(line);
        }
    }
    told
}

/// The flexibility menu: later is cheaper, and the bars show by how much.
fn menu(lines: &[MenuLineView], look: &Look) -> String {
    let all = lines.len();
    let lines = match look.wide || all <= MENU_LINES_MAX {
        true => lines.iter().collect(),
        false => telling(lines),
    };
    let most = lines.iter().map(|line| line.price.0).max().unwrap_or(0).max(1);
    let when: Vec<String> = lines.iter().map(|line| look.time(line.by)).collect();
    let when_wide = when.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let price_wide = lines.iter().map(|l| l.price.to_string().len()).max().unwrap_or(0);
    let starts = lines.iter().map(|line| look.time(line.start).chars().count()).max().unwrap_or(0);
    let taken = when_wide + price_wide + starts + "  by    starts  ".len();
    let room = usize::from(look.width.unwrap_or(80)).saturating_sub(taken);
    let room = room.clamp(8, 40);
    let mut text = format!("{}\n", look.paint.tone(Tone::Title, "If it may finish later"));
    for (line, when) in lines.iter().zip(&when) {
        let cells = (line.price.0.max(0) as u128 * room as u128).div_ceil(most as u128) as usize;
        let level = (line.price.0.max(0) as u128 * 8 / most as u128) as usize;
        let bar = look.paint.heat(level, 8, &"█".repeat(cells));
        let gap = " ".repeat(room - cells.min(room));
        let start = look.paint.tone(Tone::Quiet, &format!("starts {}", look.time(line.start)));
        let price = line.price.to_string();
        text += &format!("  by {when:<when_wide$}  {price:>price_wide$} {bar}{gap} {start}\n");
    }
    if lines.len() < all {
        text += &format!("  ({} of {all} lines; -o wide has all)\n", lines.len());
    }
    text
}

#[cfg(test)]
mod tests;
