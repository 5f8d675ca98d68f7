//! `era admin report`: the five measures, with and without ERA.

use era_api::client::TimeRange;
use era_api::report::{Measure, Measures, REPRODUCED_WITHIN, Report, Simulated, is_reproduced};

use crate::cli::connection::Common;
use crate::cli::look::{self, Look, right};
use crate::job::past;

/// Show the five measures over a period, beside the same work without ERA
///
/// The work without ERA is a replay: first come first served, on demand. REPLAYED is what the same
/// replay makes of the rules that were in force. Where that is more than 10 % off what happened, the
/// replay without ERA is no better, and the ratio is withheld.
///
/// What ran on simulated nodes counts like everything else, so that a trial of a cluster has its
/// report; how much of the period that was is told above the measures.
#[derive(Debug, clap::Args)]
#[command(name = "report")]
pub(crate) struct ReportCommand {
    /// From when
    #[arg(long, value_name = "WHEN")]
    from: Option<String>,
    /// Until when
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,
    /// Leave out the same work without ERA, whose replay takes a while
    #[arg(long)]
    no_replay: bool,
    #[command(flatten)]
    common: Common,
}

impl ReportCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let look = self.common.look();
        let period = TimeRange {
            from: past::flag_past("--from", self.from.as_deref(), &look.now)?,
            to: past::flag_past("--to", self.to.as_deref(), &look.now)?,
            step_s: None,
        };
        let client = self.common.client()?;
        let report =
            if self.no_replay { client.report(&period)? } else { client.report_beside(&period)? };
        look::print(self.common.output, &report, |report| render(report, &look))
    }
}

/// A measure's name, how it is shown, and which it is where it has a ratio.
type Row = (&'static str, fn(&Measures) -> Option<String>, Option<Measure>);

/// What stands in the place of a ratio that is withheld.
const WITHHELD: &str = "withheld";

fn ratio(report: &Report, of: Measure) -> Option<String> {
    if report.withheld.contains(&of) {
        return Some(WITHHELD.to_owned());
    }
    of.ratio(&mut report.ratio?).map(|ratio| format!("{ratio:.2}"))
}

fn seconds(value: Option<f64>) -> Option<String> {
    value.map(|s| format!("{s:.3} s"))
}

fn percent(value: Option<f64>) -> Option<String> {
    value.map(|share| format!("{:.1} %", share * 100.0))
}

const ROWS: [Row; 12] = [
    ("refusals", |m| Some(m.refusals.to_string()), None),
    ("start-up", |m| seconds(m.start_up.total_s), Some(Measure::StartUp)),
    ("  quote", |m| seconds(m.start_up.quote_s), None),
    ("  accept", |m| seconds(m.start_up.accept_s), None),
    ("  queue", |m| seconds(m.start_up.queue_s), None),
    ("  prepare", |m| seconds(m.start_up.prepare_s), None),
    ("  start", |m| seconds(m.start_up.start_s), None),
    ("start success, first attempt", |m| percent(m.start_first), Some(Measure::StartFirst)),
    ("start success, second attempt", |m| percent(m.start_second), Some(Measure::StartSecond)),
    ("run success", |m| percent(m.run_success), Some(Measure::RunSuccess)),
    ("utilisation", |m| percent(m.utilisation), Some(Measure::Utilisation)),
    ("cost of a GPU-hour", |m| m.unit_cost.map(|c| c.to_string()), Some(Measure::UnitCost)),
];

fn render(report: &Report, look: &Look) -> String {
    let (from, to) = (look.time(report.from), look.time(report.to));
    let mut text = format!("{} jobs from {from} to {to}\n", report.with.jobs);
    if let Some(Simulated { jobs, nodes, share }) = report.simulated {
        let share = share.unwrap_or(0.0) * 100.0;
        text += &format!(
            "{jobs} of them ran on simulated nodes, where tasks only sleep: {nodes} nodes, with \
             {share:.1} % of the core-hours given out\n"
        );
    }
    let mut table = look.table(&["MEASURE", "WITH ERA", "REPLAYED", "WITHOUT", "RATIO"]);
    let dash = || "–".to_owned();
    for (name, value, measure) in ROWS {
        let again = report.replayed.as_ref().and_then(value);
        let without = report.without.as_ref().and_then(value);
        let ratio = measure.and_then(|measure| ratio(report, measure));
        table.add_row(vec![
            name.into(),
            right(value(&report.with).unwrap_or_else(dash)),
            right(again.unwrap_or_else(dash)),
            right(without.unwrap_or_else(dash)),
            right(ratio.unwrap_or_else(dash)),
        ]);
    }
    for (model, cost) in &report.with.unit_cost_by_model {
        let of = |measures: &Option<Measures>| {
            let models = &measures.as_ref()?.unit_cost_by_model;
            models.iter().find(|(other, _)| other == model).map(|(_, cost)| *cost)
        };
        let (again, without) = (of(&report.replayed), of(&report.without));
        let reproduced = again.is_some_and(|again| is_reproduced(cost.0 as f64, again.0 as f64));
        let ratio = without.filter(|without| without.0 > 0).map(|without| match reproduced {
            true => format!("{:.2}", cost.0 as f64 / without.0 as f64),
            false => WITHHELD.to_owned(),
        });
        table.add_row(vec![
            format!("  of {model}").into(),
            right(cost.to_string()),
            right(again.map_or_else(dash, |again| again.to_string())),
            right(without.map_or_else(dash, |without| without.to_string())),
            right(ratio.unwrap_or_else(dash)),
        ]);
    }
    text += &look::finish(&table);
    if text.contains(WITHHELD) {
        text += &format!(
            "\nA ratio is withheld where REPLAYED is more than {:.0} % off WITH ERA, or not known: a \
             replay that does not reproduce what happened cannot tell what would have.\n",
            REPRODUCED_WITHIN * 100.0
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measures_stand_beside_those_without_era() {
        let text = r#"{"from": "2026-11-14T12:00:00Z", "to": "2026-11-15T12:00:00Z",
            "with": {"jobs": 120, "start_up": {"total_s": 1.25, "queue_s": 1.0},
                "start_first": 0.99, "start_second": 1.0, "utilisation": 0.8, "unit_cost": "1.5",
                "unit_cost_by_model": [["h100", "2.5"]]},
            "replayed": {"jobs": 120, "start_up": {"total_s": 1.5}, "utilisation": 0.79,
                "unit_cost_by_model": [["h100", "2.5"]]},
            "without": {"jobs": 120, "start_up": {"total_s": 5.0}, "start_second": 0.8,
                "utilisation": 0.4, "unit_cost_by_model": [["h100", "5"]]},
            "simulated": {"jobs": 90, "nodes": 8, "share": 0.75},
            "ratio": {"start_second": 1.25, "utilisation": 2.0}, "withheld": ["start_up"]}"#;
        let report: Report = serde_json::from_str(text).unwrap();
        insta::assert_snapshot!(render(&report, &look::plain()));
    }
}
