//! `era replay`: a journal through the core again, exactly, or under another rule.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use era_core::Command;
use era_core::queue::PolicyRule;
use era_core::units::Money;
use era_sim::BadInput;
use era_sim::journal::Reader;
use era_sim::replay::{
    ComparedParty, Comparison, NotReplayed, RecordedHistory, Replayed, RuleOverrides, SampleSpec,
    compare, learn, mechanism_named, rerun, sample, scorer_named, verify,
};
use era_sim::run::policy_named;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::clock::instant;
use crate::names::BackfillName;

/// Run a journal through the core again: exactly, or under another rule
///
/// Without a rule, every event must come out as it was recorded, byte for byte. With one, what
/// users asked for and what happened to the hardware is run under that rule, each job as long as
/// it really ran, and the report says who would have gained and who would have lost.
#[derive(Args)]
pub(crate) struct Replay {
    /// The journal, compressed with gzip or not
    #[arg(required_unless_present = "sample")]
    journal: Option<PathBuf>,
    /// Order every queue by this: fifo, sjf, srtf, las, fair-share, priority, `formula:` and an
    /// expression, or a file that `era tune` wrote
    #[arg(long)]
    policy: Option<String>,
    /// Set prices by this: basic-econ, first-fit, on-demand, surge
    #[arg(long)]
    mechanism: Option<String>,
    /// How jobs may start around what waits ahead of them
    #[arg(long)]
    backfill: Option<BackfillName>,
    /// Choose nodes by this: first-fit, best-fit, consolidate, fgd, least-stranded
    #[arg(long)]
    scorer: Option<String>,
    /// Write a sampled journal to this file instead (compressed if it ends in .gz)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["journal", "policy", "mechanism", "backfill", "scorer"])]
    sample: Option<PathBuf>,
    /// The seed of the sample
    #[arg(long, default_value_t = 1, conflicts_with = "journal")]
    seed: u64,
    /// How many inputs the sample has, at the least
    #[arg(long, default_value_t = 5_000, conflicts_with = "journal", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    inputs: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Replay {
    pub(crate) fn run(self) -> Result<()> {
        if let Some(path) = &self.sample {
            return self.write_sample(path);
        }
        let Some(path) = &self.journal else {
            return Err(BadInput::new("name a journal").field("JOURNAL").into());
        };
        let rules = self.rules()?;
        if rules == RuleOverrides::default() {
            self.exactly(path)
        } else {
            self.otherwise(path, &rules)
        }
    }

    fn write_sample(&self, path: &Path) -> Result<()> {
        let spec = SampleSpec { seed: self.seed, inputs: self.inputs, segments: 3 };
        let bar = bar("writing {pos} inputs · {elapsed}")?;
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let file = BufWriter::new(file);
        let progress = |inputs| bar.set_position(inputs);
        let (inputs, events) = if path.extension().is_some_and(|end| end == "gz") {
            let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            let counts = sample(spec, &mut gzip, &progress)?;
            gzip.finish()?.flush()?;
            counts
        } else {
            let mut file = file;
            let counts = sample(spec, &mut file, &progress)?;
            file.flush()?;
            counts
        };
        bar.finish_and_clear();
        if self.json {
            return print(
                &json!({ "file": path, "seed": self.seed, "inputs": inputs, "events": events })
                    .to_string(),
            );
        }
        print(&format!(
            "{}: {inputs} inputs and {events} events, seed {}\ntry: era replay {0} --policy sjf",
            path.display(),
            self.seed
        ))
    }

    fn rules(&self) -> Result<RuleOverrides> {
        let policy = self.policy.as_deref().map(policy).transpose()?;
        Ok(RuleOverrides {
            policy,
            mechanism: self.mechanism.as_deref().map(mechanism_named).transpose()?,
            floor: None,
            backfill: self.backfill.map(Into::into),
            scorer: self.scorer.as_deref().map(scorer_named).transpose()?,
        })
    }

    fn exactly(&self, path: &Path) -> Result<()> {
        let bar = bar("replaying {pos} inputs · {elapsed}")?;
        let start = instant();
        let replayed = verify(Reader::open(path)?, &mut |_| (), &mut |_| bar.inc(1));
        bar.finish_and_clear();
        let replayed = self.told(replayed)?;
        let wall_s = start.elapsed().as_secs_f64();
        if self.json {
            return print(&object(&replayed, wall_s).to_string());
        }
        print(&sentence(&replayed, wall_s))
    }

    /// Where events differ, whoever reads JSON is told in JSON too.
    fn told<T>(&self, result: Result<T, NotReplayed>) -> Result<T> {
        match result {
            Ok(value) => Ok(value),
            Err(NotReplayed::BadInput(error)) => Err(error.into()),
            Err(error) => {
                if let (true, NotReplayed::Differs { difference, .. }) = (self.json, &error) {
                    print(&json!({ "same": false, "difference": difference }).to_string())?;
                }
                Err(error.into())
            }
        }
    }

    fn otherwise(&self, path: &Path, rules: &RuleOverrides) -> Result<()> {
        let bar = bar("replaying {pos} inputs · {elapsed}")?;
        let start = instant();
        let learned = learn(Reader::open(path)?, &|inputs| bar.set_position(inputs));
        bar.finish_and_clear();
        let (history, replayed) = self.told(learned)?;
        let wall_s = start.elapsed().as_secs_f64();
        let other = under(&history, rules, "under the other rule")?;
        let control = under(&history, &RuleOverrides::default(), "under the same rule")?;
        if self.json {
            let mut object = object(&replayed, wall_s);
            object["rules"] = json!(self.named());
            object["comparison"] = json!(other);
            object["control"] = json!(control.total);
            return print(&object.to_string());
        }
        let text = sentence(&replayed, wall_s);
        print(&format!("{text}\n\n{}", table(&self.named().join(", "), &other, &control)))
    }

    /// The other rule in words.
    fn named(&self) -> Vec<String> {
        let backfill = self.backfill.and_then(|b| b.to_possible_value());
        let backfill = backfill.map(|b| b.get_name().to_owned());
        let rules = [
            ("policy", self.policy.clone()),
            ("mechanism", self.mechanism.clone()),
            ("backfill", backfill),
            ("scorer", self.scorer.clone()),
        ];
        rules.into_iter().filter_map(|(what, rule)| Some(format!("{what} {}", rule?))).collect()
    }
}

/// A policy by its name, or from a file with the command that publishes it.
pub(crate) fn policy(name: &str) -> Result<PolicyRule> {
    if !name.ends_with(".json") {
        return Ok(policy_named(name)?);
    }
    let path = Path::new(name);
    let bad = |problem: String| BadInput::new(problem).file(path);
    let text = std::fs::read_to_string(path).map_err(|e| bad(format!("cannot be read: {e}")))?;
    match serde_json::from_str(&text) {
        Ok(Command::PublishPolicy { rule, .. }) => Ok(rule),
        Ok(_) => Err(bad("give the command `publish_policy`".into()).field("type").into()),
        Err(error) => Err(bad(format!("not a command that publishes a policy: {error}")).into()),
    }
}

fn under(history: &RecordedHistory, rules: &RuleOverrides, what: &str) -> Result<Comparison> {
    let bar = ProgressBar::new(history.asks.len() as u64).with_style(ProgressStyle::with_template(
        &format!("{what} {{bar:40}} {{percent}} % · {{elapsed}}"),
    )?);
    let bar = crate::progress::told(bar);
    let progress = |asks| bar.set_position(asks);
    let rerun = rerun(history, &history.start, &history.asks, rules, &progress)?;
    bar.finish_and_clear();
    Ok(compare(history, &rerun))
}

fn object(replayed: &Replayed, wall_s: f64) -> Value {
    json!({
        "same": true,
        "segments": replayed.segments,
        "passed_over": replayed.passed_over,
        "inputs": replayed.replay.carried(),
        "events": replayed.events,
        "torn": replayed.torn,
        "wall_s": (wall_s * 1e3).round() / 1e3,
        "inputs_per_second": (replayed.replay.carried() as f64 / wall_s).round(),
    })
}

fn sentence(replayed: &Replayed, wall_s: f64) -> String {
    let rate = replayed.replay.carried() as f64 / wall_s;
    let mut text = format!(
        "{} inputs in {} segments: all {} events are as they were recorded, byte for byte \
         ({rate:.0} inputs a second)",
        replayed.replay.carried(),
        replayed.segments,
        replayed.events
    );
    if replayed.passed_over > 0 {
        text += &format!(
            "\n{} segments before them are of an older core, and were passed over",
            replayed.passed_over
        );
    }
    if let Some(torn) = replayed.torn {
        text += &format!(
            "\nline {} was cut off after {} bytes, as by a crash: it is left out",
            torn.line, torn.bytes
        );
    }
    text
}

fn table(named: &str, other: &Comparison, control: &Comparison) -> String {
    let mut text = format!(
        "the same history under {named}: what was, what would have been\n\n{:<10}{:>6}{:>24}{:>24}{:>24}{:>14}\n",
        "", "jobs", "mean wait (s)", "value", "paid", "net change"
    );
    text += &row("all", &other.total);
    for (what, parties) in [("user", &other.users), ("group", &other.groups)] {
        text += "\n";
        for party in parties {
            text += &row(&format!("{what} {}", party.id), party);
        }
    }
    text += &format!(
        "\nwho gains most stands first. Rerun under the rule that was in force, the mean wait is {:.1} s \
         where {:.1} s were recorded: so far off is the method itself.\n",
        control.total.other.mean_wait_s, control.total.recorded.mean_wait_s
    );
    if !other.not_comparable.is_empty() {
        text += "\nnot comparable, or only with an assumption:\n";
        for (what, count) in &other.not_comparable {
            text += &format!("{count:>8}  {}\n", what.replace('_', " "));
        }
    }
    text.trim_end().to_owned()
}

fn row(name: &str, party: &ComparedParty) -> String {
    let pair = |a: String, b: String| format!("{a:>11} →{b:>11}");
    let credits = |micro: i64| format!("{:.2}", Money(micro).0 as f64 / 1e6);
    let (was, would) = (&party.recorded, &party.other);
    format!(
        "{name:<10}{:>6}{}{}{}{:>14}\n",
        party.jobs,
        pair(format!("{:.1}", was.mean_wait_s), format!("{:.1}", would.mean_wait_s)),
        pair(credits(was.value), credits(would.value)),
        pair(credits(was.paid), credits(would.paid)),
        format!("{:+.2}", party.net_change as f64 / 1e6),
    )
}

fn bar(template: &str) -> Result<ProgressBar> {
    Ok(ProgressBar::no_length().with_style(ProgressStyle::with_template(template)?))
}

fn print(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
