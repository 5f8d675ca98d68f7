//! A job as it was written: what its owner says of it, and what is here and goes along.

use std::path::PathBuf;

use era_spec::{JobSpec, Overlay};
use serde::{Deserialize, Serialize};

use super::JobError;

/// Which folder is a job's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    None,
    Folder(PathBuf),
}

/// A script that is run, and goes along whether or not it lies in the folder that does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Script {
    /// Where it is read.
    pub(crate) file: PathBuf,
    /// Where it lies in the job's code.
    pub(crate) at: String,
}

/// What one source says of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Draft {
    pub(crate) spec: JobSpec,
    pub(crate) code: Option<Code>,
    pub(crate) script: Option<Script>,
}

impl Draft {
    /// This on top of another: what it says counts, what it does not say is taken from below.
    #[must_use]
    pub(crate) fn over(self, mut below: Draft) -> Draft {
        if !self.spec.work.command.is_empty() {
            // Words are not added to another command.
            below.spec.work.command.clear();
        }
        Draft {
            spec: self.spec.over(below.spec),
            code: self.code.or(below.code),
            script: self.script.or(below.script),
        }
    }

    /// Refuses what cannot be handed in, in the words of whoever wrote it: before code is sent.
    pub(crate) fn check(&self) -> Result<(), JobError> {
        let spec = &self.spec;
        let contradiction = |text: &str| Err(JobError::Contradiction(text.to_owned()));
        if spec.work.command.is_empty() {
            return Err(JobError::NoCommand);
        }
        if spec.is_bid() && spec.array.is_some() {
            return contradiction("an array waits in a queue: leave out --value, --by and --from");
        }
        if spec.is_bid() && !spec.after.is_empty() {
            return contradiction(
                "a job that follows another waits in a queue: leave out --value, --by and --from",
            );
        }
        if spec.is_bid() && spec.queue.is_some() {
            return contradiction(
                "a job is promised or waits in a queue, not both: leave out --queue, or --value, --by and --from",
            );
        }
        if spec.ask.gpus.is_some() && spec.ask.replicas.is_some() {
            return contradiction("--gpus is a total instead of --replicas: give one of them");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(spec: serde_json::Value) -> Draft {
        Draft { spec: serde_json::from_value(spec).unwrap(), ..Draft::default() }
    }

    #[test]
    fn a_command_counts_as_a_whole() {
        let below = draft(serde_json::json!({"name": "below", "work": {"command": ["a", "b"]}}));
        let top = draft(serde_json::json!({"work": {"command": ["c"]}}));
        let both = top.over(below.clone()).spec;
        assert_eq!((both.name.as_deref(), both.work.command), (Some("below"), vec!["c".into()]));
        assert_eq!(Draft::default().over(below.clone()), below);
    }

    #[test]
    fn contradictions_are_refused_before_anything_is_sent() {
        for bad in [
            serde_json::json!({}),
            serde_json::json!({"value": 1, "array": {"from": 0, "to": 3}}),
            serde_json::json!({"value": 1, "queue": "night"}),
            serde_json::json!({"accept_price": true, "after": [{"job": 1}]}),
            serde_json::json!({"ask": {"gpus": 4, "replicas": 2}}),
        ] {
            let mut bad = draft(bad);
            assert!(bad.check().is_err());
            if bad.spec != JobSpec::default() {
                bad.spec.work.command = vec!["true".to_owned()];
                assert!(bad.check().is_err(), "{bad:?}");
            }
        }
    }
}
