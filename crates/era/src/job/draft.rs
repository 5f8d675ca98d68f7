//! A job that is not complete yet: what one source says of it. Drafts are laid over each other,
//! the file below and the flags on top; what is still missing then gets its default.

use std::collections::BTreeMap;
use std::path::PathBuf;

use era_api::Credits;
use era_api::job::{
    After, Array, Ask, Attributes, Constraints, NewJob, Overrun, Quantity, Replicas, Work,
    WorkInput,
};
use era_api::quote::Value;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::JobError;
use super::span::Span;

/// How long a job may run where nobody says.
const TIME_DEFAULT: Span = Span { seconds: 3600 };

/// Which folder is a job's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// None.
    None,
    /// This one.
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

/// What one source says of a job; what it does not say is absent or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Draft {
    pub(crate) name: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) command: Vec<String>,
    pub(crate) code: Option<Code>,
    pub(crate) script: Option<Script>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) secrets: Vec<String>,
    pub(crate) inputs: Vec<WorkInput>,
    pub(crate) image: Option<String>,
    pub(crate) terminal: Option<bool>,
    pub(crate) resources: BTreeMap<String, String>,
    pub(crate) replicas: Option<Replicas>,
    pub(crate) gpus: Option<u32>,
    pub(crate) time: Option<Span>,
    pub(crate) from: Option<Timestamp>,
    pub(crate) by: Option<Timestamp>,
    pub(crate) value: Option<Value>,
    pub(crate) most: Option<Credits>,
    pub(crate) overrun: Option<Overrun>,
    pub(crate) queue: Option<String>,
    pub(crate) preemptible: Option<bool>,
    pub(crate) release_when_idle: Option<bool>,
    pub(crate) priority: Option<i32>,
    pub(crate) attributes: Attributes,
    pub(crate) constraints: Constraints,
    pub(crate) array: Option<Array>,
    pub(crate) after: Vec<After>,
}

impl Draft {
    /// This on top of another: what it says counts, what it does not say is taken from below.
    #[must_use]
    pub(crate) fn over(self, below: Draft) -> Draft {
        let mut env = below.env;
        env.extend(self.env);
        let mut secrets = below.secrets;
        secrets.retain(|name| !self.secrets.contains(name));
        secrets.extend(self.secrets);
        let mut resources = below.resources;
        resources.extend(self.resources);
        let mut inputs = below.inputs;
        inputs.extend(self.inputs);
        let mut after = below.after;
        after.extend(self.after);
        Draft {
            name: self.name.or(below.name),
            project: self.project.or(below.project),
            command: if self.command.is_empty() { below.command } else { self.command },
            code: self.code.or(below.code),
            script: self.script.or(below.script),
            env,
            secrets,
            inputs,
            image: self.image.or(below.image),
            terminal: self.terminal.or(below.terminal),
            resources,
            replicas: self.replicas.or(below.replicas),
            gpus: self.gpus.or(below.gpus),
            time: self.time.or(below.time),
            from: self.from.or(below.from),
            by: self.by.or(below.by),
            value: self.value.or(below.value),
            most: self.most.or(below.most),
            overrun: self.overrun.or(below.overrun),
            queue: self.queue.or(below.queue),
            preemptible: self.preemptible.or(below.preemptible),
            release_when_idle: self.release_when_idle.or(below.release_when_idle),
            priority: self.priority.or(below.priority),
            attributes: attributes_over(self.attributes, below.attributes),
            constraints: constraints_over(self.constraints, below.constraints),
            array: self.array.or(below.array),
            after,
        }
    }

    /// Whether it asks for a promise: it says what it is worth, or when it must run.
    pub(crate) fn is_bid(&self) -> bool {
        self.value.is_some() || self.most.is_some() || self.by.is_some() || self.from.is_some()
    }

    /// The part that is priced, with defaults for what is missing.
    pub(crate) fn ask(&self) -> Ask {
        let mut resources = self.resources.clone();
        if self.gpus.is_some() {
            // A total is made of whole GPUs.
            resources.entry("gpu".to_owned()).or_insert_with(|| "1".to_owned());
        }
        let cpu = if resources.contains_key("gpu") { "4" } else { "1" };
        resources.entry("cpu".to_owned()).or_insert_with(|| cpu.to_owned());
        resources.entry("memory".to_owned()).or_insert_with(|| format!("{cpu}Gi"));
        let nowhere = self.constraints == Constraints::default();
        Ask {
            resources: resources.into_iter().map(|(k, v)| (k, Quantity::Text(v))).collect(),
            replicas: self.replicas,
            gpus: self.gpus,
            duration_s: self.time.unwrap_or(TIME_DEFAULT).seconds,
            earliest: self.from,
            deadline: self.by,
            constraints: (!nowhere).then(|| self.constraints.clone()),
        }
    }

    /// The job, without its code: that is uploaded first.
    pub(crate) fn finish(&self) -> Result<NewJob, JobError> {
        if self.command.is_empty() {
            return Err(JobError::NoCommand);
        }
        let contradiction = |text: &str| Err(JobError::Contradiction(text.to_owned()));
        if self.is_bid() && self.array.is_some() {
            return contradiction("an array waits in a queue: leave out --value, --by and --from");
        }
        if self.is_bid() && !self.after.is_empty() {
            return contradiction(
                "a job that follows another waits in a queue: leave out --value, --by and --from",
            );
        }
        if self.is_bid() && self.queue.is_some() {
            return contradiction(
                "a job is promised or waits in a queue, not both: leave out --queue, or --value, --by and --from",
            );
        }
        if self.gpus.is_some() && self.replicas.is_some() {
            return contradiction("--gpus is a total instead of --replicas: give one of them");
        }
        let plain = self.attributes == Attributes::default();
        Ok(NewJob {
            name: self.name.clone(),
            project: self.project.clone(),
            work: Work {
                command: self.command.clone(),
                code: None,
                env: self.env.clone(),
                secrets: self.secrets.clone(),
                inputs: self.inputs.clone(),
                image: self.image.clone(),
                terminal: self.terminal.unwrap_or(false),
            },
            ask: self.ask(),
            value: self.value.clone(),
            most: self.most,
            hold: None,
            overrun: self.overrun,
            queue: self.queue.clone(),
            preemptible: self.preemptible.unwrap_or(false),
            release_when_idle: self.release_when_idle.unwrap_or(false),
            priority: self.priority.unwrap_or(0),
            attributes: (!plain).then(|| self.attributes.clone()),
            array: self.array,
            after: self.after.clone(),
        })
    }
}

fn attributes_over(top: Attributes, below: Attributes) -> Attributes {
    Attributes {
        field: top.field.or(below.field),
        framework: top.framework.or(below.framework),
        network: top.network.or(below.network),
        parameters_k: top.parameters_k.or(below.parameters_k),
        data_mib: top.data_mib.or(below.data_mib),
    }
}

fn constraints_over(top: Constraints, below: Constraints) -> Constraints {
    let mut labels = below.labels;
    labels.extend(top.labels);
    Constraints {
        pool: top.pool.or(below.pool),
        domain: top.domain.or(below.domain),
        labels,
        same: top.same.or(below.same),
        per_node_max: top.per_node_max.or(below.per_node_max),
        spread: top.spread || below.spread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft { command: vec!["true".to_owned()], ..Draft::default() }
    }

    #[test]
    fn what_is_on_top_counts_and_the_rest_shows_through() {
        let below = Draft {
            name: Some("below".to_owned()),
            queue: Some("night".to_owned()),
            resources: BTreeMap::from([("gpu".into(), "1".into()), ("cpu".into(), "8".into())]),
            ..draft()
        };
        let top = Draft {
            name: Some("top".to_owned()),
            resources: BTreeMap::from([("gpu".to_owned(), "2".to_owned())]),
            ..Draft::default()
        };
        let both = top.over(below);
        assert_eq!(both.name.as_deref(), Some("top"));
        assert_eq!(both.queue.as_deref(), Some("night"));
        assert_eq!(both.command, ["true"]);
        let gpu_and_cpu = ["gpu", "cpu"].map(|name| both.resources[name].as_str());
        assert_eq!(gpu_and_cpu, ["2", "8"]);
    }

    #[test]
    fn a_job_without_a_word_on_resources_gets_a_core_and_an_hour() {
        let job = draft().finish().unwrap();
        assert_eq!(job.ask.resources["cpu"], Quantity::Text("1".to_owned()));
        assert_eq!(job.ask.resources["memory"], Quantity::Text("1Gi".to_owned()));
        assert_eq!(job.ask.duration_s, 3600);
        assert!(job.value.is_none());
    }

    #[test]
    fn contradictions_are_refused_before_anything_is_sent() {
        let value = Some(Value::Flat(Credits(1)));
        let array = Some(Array { from: 0, to: 3, step: 1, limit: None });
        for bad in [
            Draft::default(),
            Draft { value: value.clone(), array, ..draft() },
            Draft { value, queue: Some("night".to_owned()), ..draft() },
            Draft { gpus: Some(4), replicas: Some(Replicas::Fixed(2)), ..draft() },
        ] {
            assert!(bad.finish().is_err(), "{bad:?}");
        }
    }
}
