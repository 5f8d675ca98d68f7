//! `era sim bound`: the most value that any scheduler could have attained.

use serde_json::{Value, json};

use super::bids::{Bids, never_fit, never_fit_words};
use crate::clock::instant;

/// The value that no scheduler could have exceeded, with full knowledge of all bids
#[derive(clap::Args)]
pub(crate) struct Bound {
    #[command(flatten)]
    bids: Bids,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Bound {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let begun = instant();
        let contests = self.bids.contests()?;
        let wall_s = begun.elapsed().as_secs_f64();
        let lines: Vec<Value> = contests
            .iter()
            .map(|named| {
                let bound = &named.contest.bound;
                json!({
                    "name": named.name,
                    "jobs": bound.jobs,
                    "never_fit": named.contest.never_fit.len(),
                    "never_fit_jobs": never_fit(&named.contest.never_fit),
                    "value": bound.value as f64 / 1e6,
                    "requested": bound.asked as f64 / 1e6,
                    "share": bound.share(),
                    "slot_s": bound.slot.ms() as f64 / 1e3,
                })
            })
            .collect();
        let mean = lines.iter().filter_map(|line| line["share"].as_f64()).sum::<f64>()
            / lines.len().max(1) as f64;
        if self.json {
            print(&match &lines[..] {
                [line] => {
                    let mut line = line.clone();
                    line["wall_s"] = json!(wall_s);
                    line.to_string()
                }
                _ => json!({ "cases": lines, "share": mean, "wall_s": wall_s }).to_string(),
            });
            return Ok(());
        }
        let mut text = format!(
            "{:<8} {:>7} {:>16} {:>16} {:>8} {:>6}\n",
            "case", "jobs", "value", "requested", "share", "slot"
        );
        for line in &lines {
            let number = |key: &str| line[key].as_f64().unwrap_or(0.0);
            text += &format!(
                "{:<8} {:>7} {:>16.1} {:>16.1} {:>7.2}% {:>5}s\n",
                line["name"].as_str().unwrap_or(""),
                line["jobs"].as_u64().unwrap_or(0),
                number("value"),
                number("requested"),
                number("share") * 100.0,
                number("slot_s"),
            );
            text += &never_fit_words(&line["never_fit_jobs"]);
        }
        print(&format!("{text}in {wall_s:.1} s"));
        Ok(())
    }
}

#[allow(clippy::print_stdout)] // the report is what the command is for
pub(super) fn print(text: &str) {
    println!("{text}");
}
