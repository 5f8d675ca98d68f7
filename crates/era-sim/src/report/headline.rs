//! What won, and by how much, in a sentence.

use serde::Serialize;

use super::Digest;
use super::words::{percent_words, span_words};

/// What a page says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Headline {
    /// Which run won: its place.
    pub winner: usize,
    pub title: String,
    /// By how much, and what else one should know.
    pub subtitle: String,
}

/// Compares runs by the mean time from submission to end; `None` where there are none. A run that
/// left more jobs without their end does not beat one that left fewer.
pub fn headline(runs: &[Digest]) -> Option<Headline> {
    let left = |run: &Digest| run.measures.unfinished + run.measures.over_limit;
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&runs[*a], &runs[*b]);
        left(a).cmp(&left(b)).then(a.measures.mean_jct_s.total_cmp(&b.measures.mean_jct_s))
    });
    let (first, last) = (*order.first()?, *order.last()?);
    let best = &runs[first];
    let figures = format!(
        "{} in the mean from submission to end, {} of it waiting, with {} of the cluster in use",
        span_words(best.measures.mean_jct_s),
        span_words(best.measures.mean_wait_s),
        percent_words(best.measures.utilisation),
    );
    let Some(second) = order.get(1) else {
        let title = format!("{} alone", best.name);
        return Some(Headline { winner: first, title, subtitle: format!("{figures}.") });
    };
    let (second, worst) = (&runs[*second], &runs[last]);
    if left(worst) == left(best) && same(best, worst) {
        let title = "All of them are alike".to_owned();
        return Some(Headline { winner: first, title, subtitle: format!("{figures}.") });
    }
    let title = if same(best, second) && left(best) == left(second) {
        format!("{} and {} finish jobs soonest", best.name, second.name)
    } else {
        format!("{} finishes jobs {} {}", best.name, sooner(best, second), second.name)
    };
    let next = if order.len() > 2 { against(best, second, "Next comes") } else { String::new() };
    let subtitle = format!("{figures}.{next}{}", against(best, worst, "Last comes"));
    Some(Headline { winner: first, title, subtitle })
}

fn same(a: &Digest, b: &Digest) -> bool {
    span_words(a.measures.mean_jct_s) == span_words(b.measures.mean_jct_s)
}

/// How much sooner than the next: `5 % sooner than`.
fn sooner(best: &Digest, second: &Digest) -> String {
    match 1.0 - best.measures.mean_jct_s / second.measures.mean_jct_s.max(1e-9) {
        part if part >= 0.01 => format!("{:.0} % sooner than", part * 100.0),
        part if part > 0.0 => "a little sooner than".to_owned(),
        // It won because it left fewer jobs undone.
        _ => "more reliably than".to_owned(),
    }
}

fn against(best: &Digest, other: &Digest, how: &str) -> String {
    let ratio = other.measures.mean_jct_s / best.measures.mean_jct_s.max(1e-9);
    let times = match ratio {
        r if r < 1.0 => "but leaves more jobs undone".to_owned(),
        r if r < 1.995 => format!("{:.0} % more", (r - 1.0) * 100.0),
        r => format!("{r:.1} times as long"),
    };
    format!(" {how} {} with {}: {times}.", other.name, span_words(other.measures.mean_jct_s))
}
