//! What a job tells the platform by printing a line: `era: metric loss=0.31 step=200` and
//! `era: checkpoint done=3600`.
//!
//! Anything can be printed, so anything that is not exactly this is only a line of the log. A
//! value that is not finite is left out; the other values of its line count.

use era_core::units::{Span, Time};

use crate::Sample;

/// Longest line that tells something.
pub const DIRECTIVE_BYTES_MAX: usize = 4096;
/// Most values in a line.
pub const DIRECTIVE_VALUES_MAX: usize = 64;
/// Longest name of a metric.
pub(crate) const METRIC_NAME_MAX: usize = 120;
/// Largest step: what every database can keep.
pub(crate) const STEP_MAX: u64 = i64::MAX as u64;

const PREFIX: &[u8] = b"era: ";

/// What a line tells.
#[derive(Clone, Debug, PartialEq)]
pub enum LogDirective {
    Samples(Vec<Sample>),
    /// The job saved its work: so much of its duration need not be run again.
    Checkpoint(Span),
}

/// Whether a line that begins so could tell something.
pub(super) fn may_tell(line: &[u8]) -> bool {
    line.len() <= DIRECTIVE_BYTES_MAX && line.starts_with(&PREFIX[..PREFIX.len().min(line.len())])
}

/// What a line tells, if anything. A line without a step takes `number`.
pub(super) fn read(line: &[u8], at: Time, number: u64) -> Option<LogDirective> {
    if line.len() > DIRECTIVE_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(line.strip_prefix(PREFIX)?).ok()?;
    let mut words = text.split_ascii_whitespace();
    match words.next()? {
        "metric" => metric(words, at, number),
        "checkpoint" => checkpoint(words),
        _ => None,
    }
}

fn metric<'a>(words: impl Iterator<Item = &'a str>, at: Time, number: u64) -> Option<LogDirective> {
    let mut step = None;
    let mut values = Vec::new();
    for word in words {
        let (name, value) = word.split_once('=')?;
        if name == "step" {
            let told = value.parse().ok().filter(|step| *step <= STEP_MAX)?;
            step.replace(told).is_none().then_some(())?;
        } else {
            is_metric_name(name).then_some(())?;
            values.push((name, value.parse::<f64>().ok()?));
            (values.len() <= DIRECTIVE_VALUES_MAX).then_some(())?;
        }
    }
    let step = step.unwrap_or(number);
    let finite = values.into_iter().filter(|(_, value)| value.is_finite());
    let samples: Vec<Sample> =
        finite.map(|(name, value)| Sample { name: name.to_owned(), step, at, value }).collect();
    (!samples.is_empty()).then_some(LogDirective::Samples(samples))
}

/// Whether a job may call a metric so. What the platform measures begins with `usage/`, and no
/// job speaks for it.
pub(crate) fn is_metric_name(name: &str) -> bool {
    (1..=METRIC_NAME_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'.' | b'-'))
        && !name.starts_with("usage/")
}

fn checkpoint<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<LogDirective> {
    let seconds: f64 = words.next()?.strip_prefix("done=")?.parse().ok()?;
    let longest_s = Span::from_days(3660).0 as f64 / 1000.0;
    let sane = words.next().is_none() && (0.0..=longest_s).contains(&seconds);
    sane.then_some(LogDirective::Checkpoint(Span((seconds * 1000.0) as i64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Option<LogDirective> {
        read(line.as_bytes(), Time(5), 7)
    }

    fn values(line: &str) -> Vec<(String, u64, f64)> {
        match told(line) {
            Some(LogDirective::Samples(samples)) => {
                samples.into_iter().map(|s| (s.name, s.step, s.value)).collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn several_values_share_a_line_and_its_step() {
        assert_eq!(
            values("era: metric loss=0.31 val/acc_top-1.ema=9e-1 step=200 lr=-1E-5"),
            [
                ("loss".to_owned(), 200, 0.31),
                ("val/acc_top-1.ema".to_owned(), 200, 0.9),
                ("lr".to_owned(), 200, -1e-5)
            ]
        );
    }

    #[test]
    fn without_a_step_values_take_the_running_number() {
        assert_eq!(values("era: metric loss=1\r"), [("loss".to_owned(), 7, 1.0)]);
    }

    #[test]
    fn a_value_that_is_not_finite_is_left_out_and_the_others_count() {
        assert_eq!(
            values("era: metric loss=NaN acc=0.5 x=inf y=1e999"),
            [("acc".to_owned(), 7, 0.5)]
        );
        assert_eq!(told("era: metric loss=nan"), None);
    }

    #[test]
    fn a_checkpoint_says_how_much_need_not_be_run_again() {
        assert_eq!(
            told("era: checkpoint done=3600"),
            Some(LogDirective::Checkpoint(Span::from_h(1)))
        );
        assert_eq!(told("era: checkpoint done=0.25"), Some(LogDirective::Checkpoint(Span(250))));
    }

    #[test]
    fn whatever_else_looks_like_it_is_only_a_line() {
        let long_name = format!("era: metric {}=1", "n".repeat(METRIC_NAME_MAX + 1));
        let many = format!("era: metric {}", "a=1 ".repeat(DIRECTIVE_VALUES_MAX + 1));
        let long = format!("era: metric a=1{}", " ".repeat(DIRECTIVE_BYTES_MAX));
        for line in [
            "",
            "era:",
            "era: ",
            "era: metric",
            "era: metric step=1",
            "era: metric loss",
            "era: metric =1",
            "era: metric loss=",
            "era: metric loss=1 step=-1",
            "era: metric loss=1 step=1 step=2",
            "era: metric loss=1 step=9223372036854775808",
            "era: metric lo ss=1",
            "era: metric lö=1",
            "era: metric usage/cpu=1",
            "era: metric loss=0x1",
            " era: metric loss=1",
            "ERA: metric loss=1",
            "era: checkpoint",
            "era: checkpoint done=-1",
            "era: checkpoint done=NaN",
            "era: checkpoint done=1e30",
            "era: checkpoint done=1 x=2",
            "era: stop",
            &long_name,
            &many,
            &long,
        ] {
            assert_eq!(told(line), None, "{line:?}");
        }
        assert_eq!(read(b"era: metric \xff=1", Time(0), 0), None);
    }
}
