//! `era sim market`: one stream of bids under one mechanism after another.

use std::io::IsTerminal;

use era_core::market::{MarketRules, MechanismChoice};
use era_core::units::{Milli, Name, Span};
use era_sim::BadInput;
use era_sim::market::{ForecastLearner, LearningSchedule, MarketOutcome, MarketSetup, TrueAt};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::bids::{Bids, Named, never_fit, never_fit_words, span};
use super::bound::print;

/// Make every bid of a workload under one mechanism after another, and compare them
#[derive(clap::Args)]
pub(crate) struct Market {
    #[command(flatten)]
    bids: Bids,
    /// Mechanisms, with parameters after colons where there are any: surge:0.5:20, first-fit:1
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = DEFAULT)]
    mechanisms: Vec<String>,
    /// How forecasts are learned
    #[arg(long, value_enum, default_value = "relaxation")]
    learner: LearnerName,
    /// How often a forecast is published
    #[arg(long, value_name = "SPAN", default_value = "1h", value_parser = span)]
    every: Span,
    /// Of which instant until the next one a forecast is true
    #[arg(long, value_enum, default_value = "publication")]
    true_at: TrueAtName,
    /// The slot of the learner [default: the market's, or 30m where windows are long]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    learn_slot: Option<Span>,
    /// Learn from what came before the first bid alone
    #[arg(long)]
    frozen: bool,
    /// After how long demand repeats itself
    #[arg(long, value_name = "SPAN", default_value = "1d", value_parser = span)]
    cycle: Span,
    /// Let bids that are refused wait in the queue, preemptible, and fill the holes
    #[arg(long)]
    fill: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const DEFAULT: &str = "basic-econ,first-fit,on-demand,surge";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LearnerName {
    /// Each request spread over its window
    Spread,
    /// Where the best fractional schedule puts it, and nothing else, as in the paper
    Placed,
    /// The same, and what that schedule has no room for spread over its window
    Relaxation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum TrueAtName {
    /// When it is published
    Publication,
    /// Half-way to the next one
    Middle,
}

impl Market {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mechanisms: Vec<(String, MechanismChoice)> = self
            .mechanisms
            .iter()
            .map(|spec| Ok((spec.clone(), mechanism(spec)?)))
            .collect::<Result<_, BadInput>>()?;
        let contests = self.bids.contests()?;
        let bids: usize = contests.iter().map(|named| named.contest.stream.len()).sum();
        let bar = bar((bids * mechanisms.len()) as u64);
        let mut cases = Vec::new();
        // Repetitions have the same name and stand next to each other.
        for alike in contests.chunk_by(|a, b| a.name == b.name) {
            let mut lines = Vec::new();
            for (name, mechanism) in &mechanisms {
                let mut outcomes = Vec::new();
                for Named { contest, .. } in alike {
                    bar.set_message(name.clone());
                    let plan = self.plan(contest.horizon, mechanism);
                    outcomes.push(contest.run(&plan, |_, _| bar.inc(1))?);
                }
                lines.push(line(name, &outcomes));
            }
            let share = |named: &Named| named.contest.bound.share();
            cases.push(json!({
                "name": alike[0].name,
                "runs": alike.len(),
                "jobs": alike[0].contest.stream.len(),
                "never_fit": alike[0].contest.never_fit.len(),
                "never_fit_jobs": never_fit(&alike[0].contest.never_fit),
                "bound_share": alike.iter().map(share).sum::<f64>() / alike.len() as f64,
                "mechanisms": lines,
            }));
        }
        bar.finish_and_clear();
        let report = json!({ "cases": cases });
        print(&if self.json { report.to_string() } else { table(&report) });
        Ok(())
    }

    fn plan(&self, horizon: Span, mechanism: &MechanismChoice) -> MarketSetup {
        let learner = match (mechanism, self.learner) {
            (MechanismChoice::BasicEcon, LearnerName::Spread) => ForecastLearner::Spread,
            (MechanismChoice::BasicEcon, LearnerName::Placed) => ForecastLearner::Placed,
            (MechanismChoice::BasicEcon, LearnerName::Relaxation) => ForecastLearner::Relaxation,
            // The others do not look at a forecast.
            _ => ForecastLearner::Nothing,
        };
        let long = horizon > Span::from_days(2);
        let slot = self.learn_slot.unwrap_or(Span::from_min(if long { 30 } else { 1 }));
        let memory = Span::from_days(28);
        let true_at = match self.true_at {
            TrueAtName::Publication => TrueAt::Publication,
            TrueAtName::Middle => TrueAt::Middle,
        };
        let (every, cycle) = (self.every, self.cycle);
        let grows = !self.frozen;
        let lessons = LearningSchedule { learner, every, true_at, slot, cycle, memory, grows };
        let (floor, ceiling) = (Milli(0), era_core::market::DENSITY_MAX);
        let rules = MarketRules { mechanism: mechanism.clone(), floor, ceiling };
        MarketSetup { rules, lessons, fill: self.fill }
    }
}

/// A mechanism by its name and parameters. The fixed price of those that have one is next to
/// nothing unless it is given, so that they are blind to value.
fn mechanism(spec: &str) -> Result<MechanismChoice, BadInput> {
    let bad = |problem: String| BadInput::new(problem).field("--mechanisms");
    let mut words = spec.split(':');
    let name = words.next().unwrap_or_default();
    let name = Name::new(name).map_err(|error| bad(error.to_string()))?;
    let mut choice = MechanismChoice::named(&name).map_err(|error| bad(error.to_string()))?;
    let numbers: Vec<Milli> = words
        .map(|word| word.parse().ok().filter(|n: &f64| (0.0..=1000.0).contains(n)))
        .map(|number| number.map(|n| Milli((n * 1000.0).round() as u32)))
        .collect::<Option<_>>()
        .ok_or_else(|| bad(format!("`{spec}`: parameters are numbers from 0 to 1000")))?;
    match (&mut choice, &numbers[..]) {
        (MechanismChoice::FirstFit { density } | MechanismChoice::OnDemand { density }, []) => {
            *density = Milli(1);
        }
        (MechanismChoice::FirstFit { density } | MechanismChoice::OnDemand { density }, [one]) => {
            *density = *one;
        }
        (MechanismChoice::Surge { low, high }, [from, to]) => (*low, *high) = (*from, *to),
        (_, []) => {}
        _ => return Err(bad(format!("`{spec}` has the wrong number of parameters"))),
    }
    Ok(choice)
}

/// The mean of all runs.
fn line(name: &str, outcomes: &[MarketOutcome]) -> Value {
    let mean = |of: fn(&MarketOutcome) -> f64| {
        outcomes.iter().map(of).sum::<f64>() / outcomes.len().max(1) as f64
    };
    json!({
        "mechanism": name,
        "accepted": mean(|o| o.accepted as f64),
        "value_captured": mean(|o| o.value_captured),
        "of_bound": mean(|o| o.of_bound),
        "revenue": mean(|o| o.revenue),
        "deadlines_met": mean(|o| o.deadlines_met as f64),
        "promises_broken": mean(|o| o.promises_broken as f64),
        "utilisation": mean(|o| o.utilisation),
        "filled": mean(|o| o.filled),
        "unit_cost": mean(|o| o.unit_cost),
        "wall_s": mean(|o| o.wall_s),
    })
}

fn table(report: &Value) -> String {
    let mut text = String::new();
    for case in report["cases"].as_array().into_iter().flatten() {
        let share = case["bound_share"].as_f64().unwrap_or(0.0) * 100.0;
        text += &format!(
            "{}: {} jobs, {} run(s); no scheduler could exceed {share:.1} % of the requested value\n",
            case["name"].as_str().unwrap_or(""),
            case["jobs"],
            case["runs"],
        );
        text += &never_fit_words(&case["never_fit_jobs"]);
        text += &format!(
            "{:<16} {:>8} {:>9} {:>9} {:>12} {:>7} {:>6} {:>6} {:>9} {:>7}\n",
            "mechanism",
            "accepted",
            "value",
            "of bound",
            "revenue",
            "met",
            "broken",
            "used",
            "unit cost",
            "wall"
        );
        for line in case["mechanisms"].as_array().into_iter().flatten() {
            let number = |key: &str| line[key].as_f64().unwrap_or(0.0);
            text += &format!(
                "{:<16} {:>8.0} {:>7.2} % {:>7.2} % {:>12.0} {:>7.0} {:>6.0} {:>4.0} % {:>9.4} {:>5.1} s\n",
                line["mechanism"].as_str().unwrap_or(""),
                number("accepted"),
                number("value_captured") * 100.0,
                number("of_bound") * 100.0,
                number("revenue"),
                number("deadlines_met"),
                number("promises_broken"),
                number("utilisation") * 100.0,
                number("unit_cost"),
                number("wall_s"),
            );
        }
        text += "\n";
    }
    text.trim_end().to_owned()
}

/// Progress over all bids, where somebody watches.
fn bar(bids: u64) -> ProgressBar {
    let bar = ProgressBar::new(bids);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{msg:16} {wide_bar} {pos}/{len} bids, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
