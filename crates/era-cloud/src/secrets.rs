//! Variables of a task that nobody else may see.
//!
//! A launch brings them where it is carried out. Wherever a launch is written down (a folder, a
//! Redis) their names stand without values, so that whoever reads it knows what is missing.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A task's secrets by the names of their variables, with their values or without.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskSecrets(BTreeMap<String, Option<String>>);

// Values are not shown, wherever this is.
impl fmt::Debug for TaskSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl TaskSecrets {
    pub fn new(values: BTreeMap<String, String>) -> TaskSecrets {
        TaskSecrets(values.into_iter().map(|(name, value)| (name, Some(value))).collect())
    }

    /// Their names alone.
    pub fn named(names: &[String]) -> TaskSecrets {
        TaskSecrets(names.iter().map(|name| (name.clone(), None)).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a variable is one of them.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether one of them has no value here.
    pub fn lack_values(&self) -> bool {
        self.0.values().any(Option::is_none)
    }

    /// What they are called.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    pub fn values(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }

    /// Their names alone.
    #[must_use]
    pub fn without_values(&self) -> TaskSecrets {
        TaskSecrets(self.0.keys().map(|name| (name.clone(), None)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_shown_and_can_be_left_out() {
        let all = TaskSecrets::new(BTreeMap::from([("HF_TOKEN".into(), "hf_1".into())]));
        assert_eq!(format!("{all:?}"), "{\"HF_TOKEN\"}");
        assert_eq!(serde_json::to_string(&all).expect("JSON"), r#"{"HF_TOKEN":"hf_1"}"#);
        let bare = all.without_values();
        assert_eq!(serde_json::to_string(&bare).expect("JSON"), r#"{"HF_TOKEN":null}"#);
        assert_eq!(bare, TaskSecrets::named(&["HF_TOKEN".into()]));
        assert!(bare.lack_values() && bare.has("HF_TOKEN") && bare.values().next().is_none());
        assert!(!all.lack_values() && !TaskSecrets::default().lack_values());
    }
}
