//! Settings between the wire and the core: lengths of time are seconds, ratios are numbers around
//! one, and whatever else is as the core writes it.

use std::collections::BTreeMap;

use era_core::refusal::Refusal;
use era_core::settings::Settings;
use era_spec::plain;
use serde_json::Value;

/// Lengths of time.
const SPANS: [&str; 12] = [
    "slot",
    "horizon",
    "grace",
    "lease",
    "run_min",
    "hold_for",
    "extend_by",
    "pass_every",
    "patience",
    "fair_half_life",
    "period",
    "remember",
];
const RATIOS: [&str; 3] = ["refund_unused", "refund_broken", "queue_density"];
/// Longest length of time that can be written.
const SECONDS_MAX: f64 = 1e10;

/// The settings in force, by name.
pub fn settings(settings: &Settings) -> BTreeMap<String, Value> {
    let Ok(Value::Object(all)) = serde_json::to_value(settings) else { return BTreeMap::new() };
    all.into_iter()
        .map(|(name, value)| {
            let shown = shown(&name, value);
            (name, shown)
        })
        .collect()
}

fn is_scaled(name: &str) -> bool {
    SPANS.contains(&name) || RATIOS.contains(&name)
}

/// Both milliseconds and thousandths are written as wholes where they are.
fn shown(name: &str, value: Value) -> Value {
    match value.as_i64() {
        Some(number) if is_scaled(name) && number % 1000 == 0 => (number / 1000).into(),
        Some(number) if is_scaled(name) => (number as f64 / 1000.0).into(),
        _ => value,
    }
}

/// The settings in force with these changes.
pub fn settings_put(
    settings: &Settings,
    changes: &BTreeMap<String, Value>,
) -> Result<Settings, Refusal> {
    let bad = |field: &str, problem: &str| Refusal::BadSetting {
        field: field.to_owned(),
        problem: problem.to_owned(),
    };
    let Ok(Value::Object(mut all)) = serde_json::to_value(settings) else {
        return Err(bad("settings", "they cannot be written"));
    };
    for (name, value) in changes {
        if !all.contains_key(name) {
            let known = all.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(bad(name, &format!("there is no such setting: use one of {known}")));
        }
        let kept = match value.as_f64() {
            Some(number) if is_scaled(name) && number.abs() <= SECONDS_MAX => {
                Value::from((number * 1000.0).round() as i64)
            }
            _ if is_scaled(name) => {
                return Err(bad(name, "give a number (lengths of time in seconds)"));
            }
            _ => value.clone(),
        };
        all.insert(name.clone(), kept.clone());
        // One at a time, so that the one that is wrong is named.
        if let Err(error) = serde_json::from_value::<Settings>(Value::Object(all.clone())) {
            return Err(bad(name, &plain::said(&error.to_string(), "setting").sentence));
        }
    }
    let read = serde_json::from_value(Value::Object(all));
    read.map_err(|error| bad("settings", &plain::said(&error.to_string(), "setting").sentence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_core::units::{Milli, Span};
    use serde_json::json;

    fn put(name: &str, value: Value) -> Result<Settings, Refusal> {
        settings_put(&Settings::default(), &BTreeMap::from([(name.to_owned(), value)]))
    }

    #[test]
    fn times_are_seconds_and_ratios_are_ratios() {
        let shown = settings(&Settings::default());
        assert_eq!(shown["lease"], json!(30));
        assert_eq!(shown["refund_unused"], json!(0.8));
        assert_eq!(put("lease", json!(2.5)).expect("put").lease, Span(2500));
        assert_eq!(put("refund_unused", json!(0.75)).expect("put").refund_unused, Milli(750));
        assert_eq!(put("holds_max", json!(9)).expect("put").holds_max, 9);
    }

    #[test]
    fn what_was_shown_can_be_put_back() {
        let shown = settings(&Settings::default());
        assert_eq!(settings_put(&Settings::default(), &shown), Ok(Settings::default()));
    }

    #[test]
    fn a_wrong_setting_is_named_with_what_is_wrong() {
        for (name, value) in [
            ("leese", json!(3)),
            ("lease", json!("soon")),
            ("holds_max", json!(-1)),
            ("backfill", json!("hard")),
            ("refund_unused", json!(-1)),
        ] {
            let refused = put(name, value).expect_err(name);
            assert_eq!(refused.field(), Some(name), "{refused}");
        }
    }
}
