//! What may be changed: a formula with named weights in braces.

use era_core::queue::PolicyRule;
use era_core::queue::formula::{Formula, FormulaError};

use crate::BadInput;

/// Most weights in a template.
const WEIGHTS_MAX: usize = 16;

/// A priority formula with weights for what administrators usually weigh: age, age over length,
/// length, size, area, levels, the owner's own ranking, and past use.
pub const DEFAULT_TEMPLATE: &str = "{age} * wait / 3600 \
     + {ratio} * wait / (predicted + 60) \
     - {length} * log2(predicted + 1) \
     - {size} * log2(gpus + 1) \
     - {area} * log2(gpus * predicted + 1) \
     + {user} * user_level \
     + {group} * group_level \
     + {own} * priority \
     - {debt} * debt";

/// A formula with named weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    source: String,
    /// What is added up, each with its sign; or all of it, where it is no sum.
    terms: Vec<(Sign, String)>,
    is_sum: bool,
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

impl Template {
    /// Reads a template, and makes sure that it is a formula whatever the weights are.
    pub fn parse(source: &str) -> Result<Template, BadInput> {
        let bad = |problem: String| BadInput::new(problem).field("--template");
        let names = names(source).map_err(bad)?;
        if names.is_empty() || names.len() > WEIGHTS_MAX {
            return Err(bad(format!("give 1 to {WEIGHTS_MAX} weights, such as {{age}} * wait")));
        }
        let is_sum = is_sum(source);
        let terms =
            if is_sum { terms(source) } else { vec![(Sign::Plus, source.trim().to_owned())] };
        let template = Template { source: source.to_owned(), terms, is_sum, names };
        template
            .formula(&vec![-0.123; template.names.len()])
            .map_err(|error| bad(error.to_string()))?;
        Ok(template)
    }

    /// The names of the weights.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn rule(&self, weights: &[f64]) -> Result<PolicyRule, BadInput> {
        let formula = self.formula(weights);
        let formula = formula.map_err(|e| BadInput::new(e.to_string()).field("--template"))?;
        Ok(PolicyRule::Priority { formula })
    }

    fn formula(&self, weights: &[f64]) -> Result<Formula, FormulaError> {
        let mut text = String::new();
        for (sign, term) in &self.terms {
            let Some((sign, term)) = self.with_weights(*sign, term, weights) else { continue };
            text += match (sign, text.is_empty()) {
                (Sign::Plus, true) => "",
                (Sign::Minus, true) => "-",
                (Sign::Plus, false) => " + ",
                (Sign::Minus, false) => " - ",
            };
            text += &term;
        }
        Formula::parse(if text.is_empty() { "0" } else { &text })
    }

    /// A term with its weights, or nothing if its leading factor is zero. A negative leading
    /// factor turns the sign, as a person would write it.
    fn with_weights(&self, sign: Sign, term: &str, weights: &[f64]) -> Option<(Sign, String)> {
        let weight_of = |name: &str| {
            let index = self.names.iter().position(|known| known == name);
            index.and_then(|index| weights.get(index)).copied().unwrap_or(0.0)
        };
        let leading = term.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let leading = leading.filter(|(_, rest)| rest.trim_start().starts_with('*'));
        let leading = leading.filter(|_| self.is_sum);
        let (sign, mut text, rest) = match leading {
            Some((name, rest)) => {
                let weight = weight_of(name);
                let digits = digits(weight);
                if digits == "0" {
                    return None;
                }
                let turned = match sign {
                    Sign::Plus => Sign::Minus,
                    Sign::Minus => Sign::Plus,
                };
                (if weight < 0.0 { turned } else { sign }, digits, rest)
            }
            None => (sign, String::new(), term),
        };
        let mut rest = rest;
        while let Some((before, name, after)) = next_weight(rest) {
            let weight = weight_of(name);
            text += before;
            // A negative number needs its parentheses.
            let digits = digits(weight);
            text += &if weight < 0.0 { format!("(-{digits})") } else { digits };
            rest = after;
        }
        Some((sign, text + rest))
    }
}

/// A weight without its sign, to three digits.
fn digits(weight: f64) -> String {
    let digits = format!("{:.3}", weight.abs());
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The next weight in a text, with what is before and after it.
fn next_weight(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

/// The names of all weights, each once.
fn names(source: &str) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    let mut rest = source;
    while let Some((_, name, after)) = next_weight(rest) {
        let is_name = !name.is_empty()
            && name.len() <= 32
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_name {
            let shown: String = name.chars().take(40).collect();
            return Err(format!("`{{{shown}}}` is no weight: use letters and digits"));
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        rest = after;
    }
    if rest.contains('{') {
        return Err("a brace is not closed: write {name}".into());
    }
    Ok(names)
}

/// Whether a formula is a sum, and a product in it that weighs nothing can be left out. One with
/// comparisons or conditions is taken as it stands.
fn is_sum(source: &str) -> bool {
    let mut words = source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    !source.contains(['<', '>', '=', '!', '"'])
        && !words.any(|word| matches!(word, "and" | "or" | "not"))
}

/// What a sum adds up.
fn terms(source: &str) -> Vec<(Sign, String)> {
    let plain = source.trim();
    let mut terms = Vec::new();
    let (mut sign, mut term, mut depth) = (Sign::Plus, String::new(), 0i32);
    for c in plain.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        // A sign after an operator belongs to what follows, not between two terms.
        let last = term.trim_end().chars().next_back();
        let ends_a_term = last.is_some_and(|last| !"+-*/(,".contains(last));
        match c {
            '+' | '-' if depth == 0 && ends_a_term => {
                terms.push((sign, term.trim().to_owned()));
                sign = if c == '+' { Sign::Plus } else { Sign::Minus };
                term = String::new();
            }
            '-' if depth == 0 && last.is_none() && terms.is_empty() && sign == Sign::Plus => {
                sign = Sign::Minus;
            }
            c => term.push(c),
        }
    }
    terms.push((sign, term.trim().to_owned()));
    terms
}
