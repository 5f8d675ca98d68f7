//! A search with its report: what is gained, where, against what, and by which weights.

use era_core::Command;
use era_core::market::MarketRules;
use era_core::queue::PolicyRule;
use era_core::units::Name;
use serde::Serialize;
use std::collections::BTreeMap;

use super::bench::{Bench, WorkSplit};
use super::candidate::PolicyCandidate;
use super::factors::{Factor, factors};
use super::measured::Measured;
use super::objective::Objective;
use super::search::{PolicySearch, SearchSpec, in_parallel};
use super::template::Template;
use crate::BadInput;
use crate::measure::rounded;
use crate::run::policy_named;

/// A rule and how it did on both parts.
#[derive(Clone, Debug, Serialize)]
pub struct Scored {
    pub rule: &'static str,
    /// Its objective on the part that was learned from.
    pub train: f64,
    /// Its objective on the part that was not.
    pub test: f64,
    /// By how much less of the objective the tuned rule has on the part that was learned from,
    /// as a share.
    pub gain_train: f64,
    /// The same on the part that was not.
    pub gain_test: f64,
    /// All figures on the part that was not.
    pub test_figures: BTreeMap<&'static str, f64>,
}

/// What one weight of the tuned formula does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Weight {
    /// Its name in the template.
    pub name: String,
    pub weight: f64,
    /// By which share the objective gets worse on the part that was learned from if it is left
    /// out.
    pub loss_without: f64,
}

/// What a search found.
#[derive(Clone, Debug, Serialize)]
pub struct Tuned {
    /// What was to be made small.
    pub objective: String,
    /// The formula that was found.
    pub formula: String,
    /// How prices would be set, where that was searched.
    pub market: Option<MarketRules>,
    /// The weights, the one that matters most first.
    pub weights: Vec<Weight>,
    /// The tuned rule itself, then what it is held against.
    pub rules: Vec<Scored>,
    /// How many jobs were learned from, and how many it was judged on.
    pub jobs: (usize, usize),
    /// What waiting and run time depend on, under the tuned rule on the later part.
    pub factors: Vec<Factor>,
    /// Whether it is worth a try, in a sentence.
    pub verdict: String,
    /// The candidate itself.
    #[serde(skip)]
    pub candidate: PolicyCandidate,
    #[serde(skip)]
    rule: Option<PolicyRule>,
}

impl Tuned {
    /// The command that publishes the formula under this name.
    pub fn command(&self, name: Name) -> Option<Command> {
        Some(Command::PublishPolicy { name, rule: self.rule.clone()? })
    }
}

/// Searches on the first part of the work and judges on the later one. `progress` is told how
/// many candidates were tried.
pub fn tune(
    bench: &dyn Bench,
    objective: &Objective,
    template: &Template,
    spec: SearchSpec,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Tuned, BadInput> {
    let on_train = |candidate: &PolicyCandidate| -> Result<f64, BadInput> {
        let rule = template.rule(&candidate.weights)?;
        Ok(objective.of(&bench.run(WorkSplit::Train, Some(&rule), candidate.market.as_ref())?.0))
    };
    let search = PolicySearch::new(spec.seed, template.names().len(), bench.market().is_some());
    let (best, best_score) = search.run(spec, &on_train, progress)?;
    let (candidate, score, weights) = pruned(template, best, best_score, spec.threads, &on_train)?;
    let rule = template.rule(&candidate.weights)?;
    let market = candidate.market.as_ref();
    let contenders = [
        ("tuned", Some(rule.clone()), market),
        ("in force", None, None),
        ("fifo", Some(policy_named("fifo")?), None),
        ("sjf", Some(policy_named("sjf")?), None),
    ];
    let mut rules = Vec::new();
    let mut found = Vec::new();
    for (name, policy, market) in contenders {
        let (test, rows) = bench.run(WorkSplit::Test, policy.as_ref(), market)?;
        let train = match name {
            "tuned" => score,
            _ => objective.of(&bench.run(WorkSplit::Train, policy.as_ref(), market)?.0),
        };
        if name == "tuned" {
            found = factors(&rows);
        }
        rules.push(scored(name, train, objective.of(&test), &test));
    }
    let (train, test) = (rules[0].train, rules[0].test);
    for rule in &mut rules {
        rule.gain_train = rounded(gain(rule.train, train));
        rule.gain_test = rounded(gain(rule.test, test));
    }
    let market_rules = bench.market().zip(market).map(|(rules, point)| MarketRules {
        mechanism: point.mechanism.clone(),
        floor: point.floor.min(rules.ceiling),
        ceiling: rules.ceiling,
    });
    Ok(Tuned {
        objective: objective.source().to_owned(),
        formula: source(&rule),
        market: market_rules,
        weights,
        verdict: verdict(&rules),
        rules,
        jobs: (bench.jobs(WorkSplit::Train), bench.jobs(WorkSplit::Test)),
        factors: found,
        candidate,
        rule: Some(rule),
    })
}

fn scored(rule: &'static str, train: f64, test: f64, figures: &Measured) -> Scored {
    let test_figures = figures.named();
    Scored { rule, train, test, gain_train: 0.0, gain_test: 0.0, test_figures }
}

fn source(rule: &PolicyRule) -> String {
    match rule {
        PolicyRule::Priority { formula } => formula.source().to_owned(),
        _ => String::new(),
    }
}

/// By how much less `tuned` is than `other`, as a share of `other`.
fn gain(other: f64, tuned: f64) -> f64 {
    if other == 0.0 { 0.0 } else { (other - tuned) / other.abs() }
}

/// Leaves each weight out in turn. What makes nothing worse is left out for good: a formula that
/// says less is easier to review.
fn pruned(
    template: &Template,
    best: PolicyCandidate,
    best_score: f64,
    threads: usize,
    score: &(dyn Fn(&PolicyCandidate) -> Result<f64, BadInput> + Sync),
) -> Result<(PolicyCandidate, f64, Vec<Weight>), BadInput> {
    let without = |candidate: &PolicyCandidate, index: usize| {
        let mut weights = candidate.weights.clone();
        weights[index] = 0.0;
        PolicyCandidate::of(&weights, candidate.market.clone())
    };
    let all: Vec<usize> = (0..template.names().len()).collect();
    let (mut candidate, mut least) = (best, best_score);
    for index in &all {
        let used = candidate.weights.iter().filter(|weight| **weight != 0.0).count();
        if candidate.weights[*index] == 0.0 || used < 2 {
            continue;
        }
        let left = without(&candidate, *index);
        let left_score = score(&left)?;
        if left_score <= least {
            (candidate, least) = (left, left_score);
        }
    }
    let ablated: Vec<PolicyCandidate> =
        all.iter().map(|index| without(&candidate, *index)).collect();
    let scores = in_parallel(&ablated, threads, score, &|_| ())?;
    let mut weights: Vec<Weight> = all
        .iter()
        .filter(|index| candidate.weights[**index] != 0.0)
        .map(|index| Weight {
            name: template.names()[*index].clone(),
            weight: candidate.weights[*index],
            loss_without: rounded(-gain(least, scores[*index])),
        })
        .collect();
    weights.sort_by(|a, b| b.loss_without.total_cmp(&a.loss_without));
    Ok((candidate, least, weights))
}

/// Says plainly whether what was learned holds on work that was not seen.
fn verdict(rules: &[Scored]) -> String {
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let Some(force) = rules.iter().find(|rule| rule.rule == "in force") else {
        return String::new();
    };
    let best_plain = rules[1..].iter().map(|rule| rule.gain_test).fold(f64::INFINITY, f64::min);
    let (train, test) = (force.gain_train, force.gain_test);
    let both = format!(
        "against the rule in force it gains {} where it learned and {} on later work",
        percent(train),
        percent(test)
    );
    if test <= 0.0 {
        format!("do not apply it: {both}")
    } else if test < train / 2.0 {
        format!("with care: {both}; more than half of the gain was fitted to the past")
    } else if best_plain < 0.0 {
        format!("{both}; but a plain rule does better on later work: see the table")
    } else {
        both
    }
}
