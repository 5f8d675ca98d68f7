//! `era tune`: a priority formula improved offline, for an administrator to review.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use era_core::Command;
use era_core::placement::Scorer;
use era_core::units::Name;
use era_sim::BadInput;
use era_sim::journal::Reader;
use era_sim::replay::{NotReplayed, learn};
use era_sim::run::{Like, Machines, Setup, UtilisationWeights};
use era_sim::trace;
use era_sim::tune::{
    Bench, DEFAULT_TEMPLATE, JournalBench, Objective, SearchSpec, Template, TraceBench, Tuned, tune,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::clock::instant;
use crate::names::{BackfillName, EstimatesName};

/// Search the weights of a priority formula on recorded work
///
/// The first part of the work is learned from, the later part is what the result is judged on.
/// For a journal with bids, how prices are set is searched too. What is found is written as a
/// command that publishes a policy, with a summary beside it; nothing is put in force.
#[derive(Args)]
pub(crate) struct Tune {
    /// A trace of jobs (our own tables, SWF, Philly, Helios, Alibaba, Chronus)
    #[arg(long, value_name = "FILE", required_unless_present = "journal", requires = "gpus")]
    trace: Option<PathBuf>,
    /// A journal
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    journal: Option<PathBuf>,
    /// What is to be made small: arithmetic over figures such as mean_jct_s + 0.1 * p99_wait_s
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    objective: String,
    /// A formula with weights in braces, such as "{age} * wait - {size} * gpus" [default: age,
    /// length, size, area, levels, priority and past use]
    #[arg(long, value_name = "FORMULA", allow_hyphen_values = true)]
    template: Option<String>,
    /// The same seed finds the same
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many candidates are tried
    #[arg(long, default_value_t = 96, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    budget: u32,
    /// The share of the work that is learned from
    #[arg(long, default_value_t = 0.6)]
    train: f64,
    /// Write the command that publishes the policy here, and a summary beside it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The name under which the policy is published
    #[arg(long, default_value = "tuned")]
    name: Name,
    /// GPUs of the cluster that a trace is run on
    #[arg(long)]
    gpus: Option<u32>,
    /// GPUs of each of its nodes
    #[arg(long, default_value_t = 8)]
    gpus_per_node: u32,
    /// The policy that is in force, for a trace; a journal knows its own
    #[arg(long, default_value = "priority", conflicts_with = "journal")]
    policy: String,
    /// How jobs of a trace may start around what waits ahead of them
    #[arg(long, default_value = "easy")]
    backfill: BackfillName,
    /// How long jobs of a trace are said to run
    #[arg(long, default_value = "stated")]
    estimates: EstimatesName,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Tune {
    pub(crate) fn run(self) -> Result<()> {
        let start = instant();
        let objective = Objective::parse(&self.objective)?;
        let template = Template::parse(self.template.as_deref().unwrap_or(DEFAULT_TEMPLATE))?;
        let bench = self.bench()?;
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let spec = SearchSpec { seed: self.seed, budget: self.budget as usize, threads };
        let bar = ProgressBar::new(u64::from(self.budget)).with_style(
            ProgressStyle::with_template("trying {bar:40} {pos}/{len} · {elapsed} · {eta} left")?,
        );
        let bar = crate::progress::told(bar);
        bar.tick();
        let tuned = tune(&*bench, &objective, &template, spec, &|tried| bar.set_position(tried))?;
        bar.finish_and_clear();
        let summary = summary(&tuned);
        let files = self.out.as_deref().map(|path| self.write(path, &tuned, &summary));
        let files = files.transpose()?.unwrap_or_default();
        let wall_s = (start.elapsed().as_secs_f64() * 100.0).round() / 100.0;
        let text = if self.json {
            let mut object = json!(tuned);
            object["seed"] = json!(self.seed);
            object["budget"] = json!(self.budget);
            object["files"] = json!(files);
            object["wall_s"] = json!(wall_s);
            object.to_string()
        } else {
            let written: Vec<String> =
                files.iter().map(|file| format!("\nwritten: {}", file.display())).collect();
            format!("{}\n{}", summary.trim_end(), written.concat()).trim_end().to_owned()
        };
        writeln!(std::io::stdout(), "{text}")?;
        Ok(())
    }

    fn bench(&self) -> Result<Box<dyn Bench>> {
        if let Some(path) = &self.journal {
            let bar = ProgressBar::no_length()
                .with_style(ProgressStyle::with_template("reading {pos} inputs · {elapsed}")?);
            let learned = learn(Reader::open(path)?, &|inputs| bar.set_position(inputs));
            bar.finish_and_clear();
            let (history, _) = learned.map_err(|error| match error {
                NotReplayed::BadInput(error) => anyhow::Error::from(error),
                differs => anyhow::Error::from(differs),
            })?;
            return Ok(Box::new(JournalBench::new(history, self.train)?));
        }
        let (Some(path), Some(gpus)) = (&self.trace, self.gpus) else {
            return Err(BadInput::new("name a trace with --gpus, or a journal").into());
        };
        let setup = Setup {
            machines: Machines::nodes(gpus, self.gpus_per_node)?,
            policy: crate::replay::policy(&self.policy)?,
            backfill: self.backfill.into(),
            estimates: self.estimates.into(),
            scorer: Scorer::Consolidate,
            preempt: false,
            ageing: true,
            like: Like::Era,
            ratios: UtilisationWeights::default(),
        };
        Ok(Box::new(TraceBench::new(&trace::read(path, None)?, setup, self.train)?))
    }

    /// Writes the command, the summary beside it, and where prices were searched, the command
    /// that sets them.
    fn write(&self, path: &Path, tuned: &Tuned, summary: &str) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        let mut put = |path: PathBuf, text: String| -> Result<()> {
            let shown = path.display().to_string();
            std::fs::write(&path, text).with_context(|| format!("cannot write {shown}"))?;
            files.push(path);
            Ok(())
        };
        let command = tuned.command(self.name.clone()).context("nothing was found to publish")?;
        put(path.to_owned(), serde_json::to_string_pretty(&command)? + "\n")?;
        if let Some(rules) = tuned.market.clone() {
            let command = Command::SetMarket { rules };
            let text = serde_json::to_string_pretty(&command)? + "\n";
            put(path.with_extension("market.json"), text)?;
        }
        put(path.with_extension("md"), summary.to_owned())?;
        Ok(files)
    }
}

/// What an administrator reads before applying it.
fn summary(tuned: &Tuned) -> String {
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let mut text = format!(
        "# A policy for review\n\nMade small: `{}`. Learned from {} jobs, judged on {} later ones.\n\n\
         {}.\n\n    {}\n",
        tuned.objective, tuned.jobs.0, tuned.jobs.1, tuned.verdict, tuned.formula
    );
    if let Some(rules) = &tuned.market {
        text += &format!("\nPrices: `{}`\n", json!(rules));
    }
    text += "\n| rule | learned from | later work | gain there | gain later |\n| --- | ---: | ---: | ---: | ---: |\n";
    for rule in &tuned.rules {
        let gains = if rule.rule == "tuned" {
            [String::new(), String::new()]
        } else {
            [percent(rule.gain_train), percent(rule.gain_test)]
        };
        text += &format!(
            "| {} | {:.2} | {:.2} | {} | {} |\n",
            rule.rule, rule.train, rule.test, gains[0], gains[1]
        );
    }
    text += "\nA gain is the tuned rule's, against the one in that row.\n\n\
             | weight | value | worse without it |\n| --- | ---: | ---: |\n";
    for weight in &tuned.weights {
        let loss = percent(weight.loss_without);
        text += &format!("| {} | {} | {loss} |\n", weight.name, weight.weight);
    }
    text += "\n| factor | explains of waiting | of run time | waits most |\n| --- | ---: | ---: | --- |\n";
    for factor in &tuned.factors {
        let worst = factor.classes.first().map(|class| {
            let share = class.share_of_waiting * 100.0;
            format!("{}: {} jobs, {share:.0} % of all waiting", class.name, class.jobs)
        });
        text += &format!(
            "| {} | {:.0} % | {:.0} % | {} |\n",
            factor.name,
            factor.explains_waiting * 100.0,
            factor.explains_run_time * 100.0,
            worst.unwrap_or_default()
        );
    }
    text + "\nFactors overlap, so their shares do not add up.\n"
}
