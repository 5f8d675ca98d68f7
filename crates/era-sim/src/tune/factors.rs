//! What waiting and run time depend on: how much of their variation each factor explains.
//!
//! Times are compared by their logarithm, since a minute more means much to a job of a minute
//! and nothing to one of a day. The share that a factor explains is the variation between its
//! classes over all variation. Factors overlap, so the shares do not add up to one; and a factor
//! with many classes, such as users, explains a little by chance alone.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::measure::rounded;
use crate::replay::JobHistory;

/// One job that ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FactorRow {
    /// From submission to the first start.
    pub wait_s: f64,
    /// From the first start to the end.
    pub run_s: f64,
    /// GPUs, in thousandths.
    pub gpu_milli: u64,
    pub user: u32,
    /// The hour of the day in which it was submitted.
    pub hour: u8,
    /// Its enforced limit.
    pub limit_s: f64,
}

impl FactorRow {
    /// Of a job of a journal, if it ran.
    pub(super) fn of_story(story: &JobHistory) -> Option<FactorRow> {
        let (start, (end, _)) = (story.started?, story.ended.as_ref()?);
        Some(FactorRow {
            wait_s: start.since(story.submitted).0 as f64 / 1000.0,
            run_s: end.since(start).0 as f64 / 1000.0,
            gpu_milli: story.size,
            user: story.user.0,
            hour: (story.submitted.0 / 3_600_000).rem_euclid(24) as u8,
            limit_s: story.stated.0 as f64 / 1000.0,
        })
    }
}

/// What a factor says about waiting and run time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Factor {
    pub name: &'static str,
    /// The share of the variation of waiting that it explains, 0 to 1.
    pub explains_waiting: f64,
    /// The share of the variation of run time that it explains, 0 to 1.
    pub explains_run_time: f64,
    /// Its classes that waited longest in all.
    pub classes: Vec<Class>,
}

/// Jobs that are alike in a factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// What they share.
    pub name: String,
    pub jobs: u64,
    pub mean_wait_s: f64,
    /// Their part of all waiting, 0 to 1.
    pub share_of_waiting: f64,
}

/// How many classes are listed.
const CLASSES_LISTED: usize = 5;

type ClassOf = fn(&FactorRow) -> i64;
type NameOf = fn(i64) -> String;

/// What each factor says, the one that explains most of the waiting first.
pub fn factors(rows: &[FactorRow]) -> Vec<Factor> {
    let all: [(&'static str, ClassOf, NameOf); 4] = [
        (
            "size",
            |row| doubling(row.gpu_milli as f64 / 1000.0),
            |c| format!("up to {} GPUs", up_to(c)),
        ),
        ("user", |row| i64::from(row.user), |c| format!("user {c}")),
        ("hour", |row| i64::from(row.hour), |c| format!("{c:02}:00")),
        ("limit", |row| doubling(row.limit_s / 60.0), |c| format!("up to {} min", up_to(c))),
    ];
    let mut factors: Vec<Factor> =
        all.into_iter().map(|(name, class, label)| factor(name, rows, class, label)).collect();
    factors.sort_by(|a, b| b.explains_waiting.total_cmp(&a.explains_waiting));
    factors
}

/// Classes that double: those up to 1, up to 2, up to 4.
fn doubling(amount: f64) -> i64 {
    amount.max(1.0).log2().ceil() as i64
}

fn up_to(class: i64) -> i64 {
    1 << class.clamp(0, 62)
}

fn factor(name: &'static str, rows: &[FactorRow], class: ClassOf, label: NameOf) -> Factor {
    let mut classes: BTreeMap<i64, Vec<&FactorRow>> = BTreeMap::new();
    for row in rows {
        classes.entry(class(row)).or_default().push(row);
    }
    let log_wait = |row: &FactorRow| (1.0 + row.wait_s.max(0.0)).ln();
    let log_run = |row: &FactorRow| (1.0 + row.run_s.max(0.0)).ln();
    let all_wait: f64 = rows.iter().map(|row| row.wait_s).sum();
    let mut listed: Vec<Class> = classes
        .iter()
        .map(|(class, rows)| {
            let wait: f64 = rows.iter().map(|row| row.wait_s).sum();
            Class {
                name: label(*class),
                jobs: rows.len() as u64,
                mean_wait_s: rounded(wait / rows.len().max(1) as f64),
                share_of_waiting: rounded(if all_wait > 0.0 { wait / all_wait } else { 0.0 }),
            }
        })
        .collect();
    listed.sort_by(|a, b| b.share_of_waiting.total_cmp(&a.share_of_waiting));
    listed.truncate(CLASSES_LISTED);
    Factor {
        name,
        explains_waiting: rounded(explained(rows, &classes, log_wait)),
        explains_run_time: rounded(explained(rows, &classes, log_run)),
        classes: listed,
    }
}

/// The variation between classes over all variation.
fn explained(
    rows: &[FactorRow],
    classes: &BTreeMap<i64, Vec<&FactorRow>>,
    of: impl Fn(&FactorRow) -> f64,
) -> f64 {
    let mean = rows.iter().map(&of).sum::<f64>() / rows.len().max(1) as f64;
    let total: f64 = rows.iter().map(|row| (of(row) - mean).powi(2)).sum();
    let between: f64 = classes
        .values()
        .map(|rows| {
            let count = rows.len() as f64;
            let here = rows.iter().map(|row| of(row)).sum::<f64>() / count.max(1.0);
            count * (here - mean).powi(2)
        })
        .sum();
    if total > 1e-9 { (between / total).clamp(0.0, 1.0) } else { 0.0 }
}
