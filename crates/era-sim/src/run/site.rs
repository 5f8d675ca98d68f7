//! The site that a trace runs on, and its jobs as they are handed in there.

use std::collections::BTreeMap;

use era_core::bid::{Request, Shape, Window};
use era_core::cluster::Pool;
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::QueueTerms;
use era_core::queue::{PolicyRule, Queue};
use era_core::resources::{Capacity, Gpu, Resources};
use era_core::settings::Settings;
use era_core::units::{GroupId, Milli, Money, Name, Span, Time, UserId};
use era_drive::{SiteBuilder, name};

use super::GRACE;
use super::setup::{Machines, Setup};
use crate::BadInput;
use crate::trace::{Trace, TraceJob};

/// How often queues are gone through where nothing happens. Under the index of what was learned,
/// the order changes as work is done; under the other rules it changes when something happens.
fn pass_every(setup: &Setup) -> Span {
    match setup.policy {
        PolicyRule::Gittins if setup.preempt => Span::from_min(1),
        _ => Span::from_days(3660),
    }
}

fn settings(setup: &Setup) -> Settings {
    Settings {
        grace: GRACE,
        lease: Span::ZERO,
        run_min: Span::ZERO,
        remember: Span::from_s(1),
        // Nobody bids here.
        slot: Span::from_days(1),
        horizon: Span::from_days(1),
        // Nobody pays for queue work here.
        queue_density: Milli(0),
        backfill: setup.backfill,
        scorer: setup.scorer,
        pass_depth: u32::MAX,
        pass_every: pass_every(setup),
        ..Settings::default()
    }
}

/// How jobs of a trace are handed in.
pub(super) struct Submitter {
    pool_of_units: bool,
    preemptible: bool,
    /// A user of the core for each pair of user and group in the trace: there a user may work in
    /// several groups, here in one.
    users: BTreeMap<(Option<u32>, Option<u32>), UserId>,
}

/// A site for this trace, and how its jobs are handed in there.
pub(super) fn furnish(trace: &Trace, setup: &Setup) -> Result<(SiteBuilder, Submitter), BadInput> {
    let policy = name("simulated");
    let queue = Queue {
        ages: setup.ageing,
        preempts: setup.preempt,
        waiting_max: u32::MAX,
        running_max: u32::MAX,
        ..Queue::new(name("default"), policy.clone())
    };
    let mut site = SiteBuilder {
        settings: settings(setup),
        pools: vec![Pool::new(name("pool"))],
        nodes: nodes(&setup.machines)?,
        policies: vec![(policy, setup.policy.clone())],
        queues: vec![queue],
        ..SiteBuilder::default()
    };
    let mut users = BTreeMap::new();
    for job in &trace.jobs {
        let next = UserId(users.len() as u32 + 1);
        users.entry((job.user, job.group)).or_insert_with(|| {
            site.user(next, group_of(job), Money::credits(1));
            next
        });
    }
    let pool_of_units = matches!(setup.machines, Machines::Pool { .. });
    Ok((site, Submitter { pool_of_units, preemptible: setup.preempt, users }))
}

pub(super) fn group_of(job: &TraceJob) -> GroupId {
    GroupId(job.group.map_or(0, |group| group + 1))
}

fn nodes(machines: &Machines) -> Result<Vec<NewNode>, BadInput> {
    let node = |index: usize, capacity: Capacity| {
        NewNode::new(name(&format!("n{index}")), name("pool"), capacity)
    };
    match machines {
        // GPUs of a pool without nodes are counted as processors of one giant machine: there
        // they are alike and without number.
        Machines::Pool { gpus } => {
            let cpu = gpus.checked_mul(1000).ok_or_else(|| {
                BadInput::new("a pool has at most 4,294,967 GPUs").field("--gpus")
            })?;
            Ok(vec![node(0, Capacity { cpu, ..Capacity::default() })])
        }
        Machines::Nodes(machines) => {
            let of = |(index, machine): (usize, &super::MachineSetup)| {
                let model = machine.model.as_deref().unwrap_or("gpu");
                let model = Name::new(model)
                    .map_err(|error| BadInput::new(error.to_string()).field("model"))?;
                let gpus = vec![Gpu { model, memory: 0 }; machine.gpus as usize];
                let (cpu, memory) = (machine.cpu_milli, machine.memory_mib);
                Ok(node(index, Capacity { cpu, memory, gpus, ..Capacity::default() }))
            };
            machines.iter().enumerate().map(of).collect()
        }
    }
}

impl Submitter {
    /// A job of the trace as it is handed in.
    pub(super) fn new_job(&self, job: &TraceJob, limit: Span) -> NewJob {
        let user = self.users.get(&(job.user, job.group)).copied().unwrap_or(UserId(0));
        let (shape, each) = self.needs(job);
        let window = Window { earliest: Time(0), deadline: Time::LATEST };
        let request = Request::new(shape, each, limit, window);
        let preemptible = self.preemptible;
        let queue = QueueTerms { preemptible, ..QueueTerms::new(name("default")) };
        NewJob::new(user, Terms::Queue { request, queue })
    }

    fn needs(&self, job: &TraceJob) -> (Shape, Resources) {
        if self.pool_of_units {
            let each = Resources { cpu: job.gpu_milli, ..Resources::default() };
            return (Shape::gang(1), each);
        }
        let gpus = job.gpu_milli / 1000;
        if gpus > 1 {
            // Whole nodes and a part of one; processors and memory go with each GPU.
            let each = Resources {
                cpu: job.cpu_milli / gpus,
                memory: job.memory_mib / gpus,
                gpu: 1000,
                ..Resources::default()
            };
            return (Shape::Gpus { total: gpus }, each);
        }
        let each = Resources {
            cpu: job.cpu_milli,
            memory: job.memory_mib,
            gpu: job.gpu_milli,
            ..Resources::default()
        };
        (Shape::gang(1), each)
    }
}
