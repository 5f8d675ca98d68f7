//! `era demo`: the core at work on one day of a small cluster, in the terminal.
//!
//! Everything goes through `step`, as it would in a server; only the executor and the clock are
//! pretended. The seed decides the forecast's details, how long jobs really take, and what comes
//! in the afternoon.

mod chart;
mod report;
mod setting;
mod story;
mod tell;
mod text;
mod world;

use std::io::Write;

use crate::paint::Paint;
use setting::{WALLET, at};
use story::Story;
use text::{Page, credits};

/// Show the core at work on a small seeded scenario
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Another seed tells another day
    #[arg(long, value_name = "N", default_value_t = 3)]
    seed: u64,
    /// Write plain text, as when NO_COLOR is set or the output is no terminal
    #[arg(long)]
    no_color: bool,
}

impl Demo {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let text = show(self.seed, Paint::for_stdout(self.no_color))?;
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}

/// The whole show, as text.
fn show(seed: u64, paint: Paint) -> anyhow::Result<String> {
    let (from, to) = (at(8, 0), at(20, 0));
    let mut page = Page::new(paint);
    page.title("ERA, a day of a small cluster", &format!("Monday 16 November 2026 · seed {seed}"));
    page.line("");
    page.line(
        "Four nodes of 8 GPUs in two racks, and one of 64 cores without. Ada, Bob and Chen have",
    );
    page.line(&format!(
        "{} credits each. The published forecast expects a busy afternoon. It is 08:00.",
        credits(WALLET)
    ));
    let mut story = Story::new(seed, page)?;
    story.play()?;
    report::report(&mut story, from, to)?;
    Ok(story.page.into_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_tells_the_whole_story_within_a_hundred_columns() {
        for seed in 0..20 {
            let text = show(seed, Paint::off()).unwrap_or_else(|e| panic!("seed {seed}: {e:#}"));
            let wide = text.lines().find(|line| line.chars().count() > 100);
            assert_eq!(wide, None, "seed {seed}");
            for beat in [
                "promised",
                "refused",
                "instead:",
                "gives way to a promise",
                "re-planned inside its window",
                "broken:",
                "done early",
                "waits as number",
                "agreed byte for byte",
            ] {
                assert!(text.contains(beat), "seed {seed} lacks `{beat}`:\n{text}");
            }
        }
    }

    #[test]
    fn the_same_seed_tells_the_same_day() {
        let tell = |seed| show(seed, Paint::off()).unwrap_or_default();
        assert_eq!(tell(7), tell(7));
        assert_ne!(tell(7), tell(8));
    }
}
