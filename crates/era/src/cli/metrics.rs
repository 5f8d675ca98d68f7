//! `era metrics`: what a job recorded, as a table with small curves.

use std::collections::BTreeMap;
use std::io::Write;

use era_api::job::{MetricFilter, MetricPoint};

use super::connection::Common;
use super::look::{self, Form, Look, right};

/// Show what a job recorded: losses, rates, and what it uses
#[derive(Debug, clap::Args)]
pub(crate) struct Metrics {
    /// The job's number
    #[arg(value_name = "JOB")]
    id: u64,
    /// Only these, such as loss or usage/gpu0
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// At most so many values of each
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    points: u32,
    /// Print values as they come, until the job is over
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    common: Common,
}

impl Metrics {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let names = (!self.names.is_empty()).then(|| self.names.join(","));
        let points = Some(self.points);
        let ask = MetricFilter { names, points, ..MetricFilter::default() };
        if self.follow {
            let mut out = std::io::stdout().lock();
            for point in client.follow_metrics(self.id, &ask)? {
                let point = point?;
                match self.common.output {
                    Form::Json => writeln!(out, "{}", serde_json::to_string(&point)?)?,
                    _ => writeln!(out, "{} step={} {}", point.name, point.step, point.value)?,
                }
            }
            return Ok(());
        }
        let page = client.metrics(self.id, &ask)?;
        let look = self.common.look();
        look::print(self.common.output, &page.items, |points| render(points, &look))
    }
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values as a line of small bars, at most `cells` wide.
fn curve(values: &[f64], cells: usize) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let cells = cells.min(values.len());
    let bar = |cell: usize| {
        let (from, to) = (cell * values.len() / cells, (cell + 1) * values.len() / cells);
        let part = &values[from..to.max(from + 1)];
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        let share = if high > low { (mean - low) / (high - low) } else { 0.0 };
        BARS[((share * 7.0).round() as usize).min(7)]
    };
    (0..cells).map(bar).collect()
}

fn number(value: f64) -> String {
    let size = value.abs();
    if value == value.trunc() && size < 1e9 {
        format!("{value}")
    } else if (0.001..1e6).contains(&size) {
        format!("{value:.4}")
    } else {
        format!("{value:.3e}")
    }
}

fn render(points: &[MetricPoint], look: &Look) -> String {
    let mut series: BTreeMap<(&str, u32), Vec<&MetricPoint>> = BTreeMap::new();
    for point in points.iter().filter(|point| point.value.is_finite()) {
        series.entry((&point.name, point.rank)).or_default().push(point);
    }
    if series.is_empty() {
        let how =
            "print lines such as `era: metric loss=0.31 step=200`, or write TensorBoard files";
        return format!("It recorded nothing: {how} into outputs/.\n");
    }
    let many = series.keys().any(|(_, rank)| *rank > 0);
    let mut table = look.table(&["NAME", "STEP", "LAST", "LEAST", "MOST", "CURVE"]);
    for ((name, rank), points) in &mut series {
        points.sort_by_key(|point| point.step);
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let Some(last) = points.last() else { continue };
        let name = if many { format!("{name} [{rank}]") } else { (*name).to_owned() };
        table.add_row(vec![
            name.into(),
            right(last.step),
            right(number(last.value)),
            right(number(least)),
            right(number(most)),
            curve(&values, 40).into(),
        ]);
    }
    look::finish(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<MetricPoint> {
        let point = |name: &str, step: u64, value: f64| MetricPoint {
            name: name.to_owned(),
            step,
            at: "2026-11-15T12:00:00Z".parse().unwrap(),
            value,
            rank: 0,
        };
        let loss = (0..60).map(|i| point("loss", i * 10, 2.0 / (1.0 + i as f64 / 8.0)));
        loss.chain([point("accuracy", 590, 0.9375), point("loss", 600, f64::NAN)]).collect()
    }

    #[test]
    fn a_metric_is_a_line_with_its_curve() {
        insta::assert_snapshot!(render(&points(), &look::plain()));
    }

    #[test]
    fn a_job_that_recorded_nothing_is_told_how() {
        assert!(render(&[], &look::plain()).contains("era: metric"));
    }
}
