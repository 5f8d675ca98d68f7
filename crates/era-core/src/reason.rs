//! Why a job does not start now: typed, and readable.

use serde::{Deserialize, Serialize};

use crate::job::When;
use crate::refusal::Refusal;
use crate::resources::{Resource, show_mib};
use crate::units::{JobId, Milli, Money, Time};

/// Why a job does not start now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum WaitReason {
    #[error("it may not start before {until}")]
    NotBefore { until: Time },
    #[error("it waits for the {when} of job {}", job.0)]
    After { job: JobId, when: When },
    #[error("its array already runs {running} jobs, as many as it may")]
    ArrayFull { running: u32 },
    #[error("its queue already runs {running} jobs, as many as it may")]
    QueueFull { running: u32 },
    #[error("its queue holds {} of the {} GPUs that it may", whole(*held), whole(*most))]
    QueueGpus { held: u64, most: u64 },
    #[error("its queue has used its share of {share} of the cluster, and others wait")]
    ShareUsed { share: Milli },
    #[error("{refusal}")]
    Quota { refusal: Refusal },
    #[error(
        "the wallet holds {balance} credits and running until its limit may cost {needed}; an administrator can grant credits"
    )]
    Funds { balance: Money, needed: Money },
    #[error("{refusal}; it waits until larger nodes join")]
    NeverFits { refusal: Refusal },
    #[error("{resource} is short: {} free, it needs {}", amount(*resource, *free), amount(*resource, *needed))]
    Short { resource: Resource, free: u64, needed: u64 },
    #[error("enough is free in all, but not together on the right nodes")]
    Fragmented,
    #[error("{}", behind(*ahead))]
    Behind { ahead: u32 },
    #[error("it will start at the next scheduling pass")]
    NextPass,
}

fn behind(ahead: u32) -> String {
    match ahead {
        0 => "it would delay a promise, or a job that another queue serves first".into(),
        1 => "it would delay a promise, or the job that waits ahead of it".into(),
        n => format!("it would delay a promise, or one of the {n} jobs that wait ahead of it"),
    }
}

/// Thousandths as a decimal number.
fn whole(milli: u64) -> String {
    Milli(u32::try_from(milli).unwrap_or(u32::MAX)).to_string()
}

fn amount(resource: Resource, units: u64) -> String {
    match resource {
        Resource::Memory => show_mib(u32::try_from(units).unwrap_or(u32::MAX)),
        Resource::Cpu | Resource::Gpu => whole(units),
    }
}
