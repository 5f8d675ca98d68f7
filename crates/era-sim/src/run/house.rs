//! A house for a trace: its cluster, users and queue, set up by the same inputs that an
//! administrator would give.

use std::collections::BTreeMap;

use era_core::accounts::{Group, User};
use era_core::bid::{Constraints, Request, Shape, Window};
use era_core::cluster::{Pool, Rates};
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::QueueTerms;
use era_core::market::MarketRules;
use era_core::queue::Queue;
use era_core::resources::{Capacity, Gpu, Resources};
use era_core::settings::Settings;
use era_core::units::{GroupId, Milli, Money, Name, Span, Time, UserId};
use era_core::{Command, Input, Output, Reply, State, step};

use super::GRACE;
use super::setup::{Machines, Setup};
use crate::BadInput;
use crate::trace::{Trace, TraceJob};

/// The core, with inputs numbered as they come.
pub struct House {
    /// The state.
    pub state: State,
    queue: Name,
    pool_of_units: bool,
    preemptible: bool,
    users: BTreeMap<(Option<u32>, Option<u32>), UserId>,
}

/// A name that is known to be one.
fn name(text: &str) -> Name {
    Name::new(text).unwrap_or_else(|_| unreachable!("a name of our own"))
}

impl House {
    /// A house for this trace.
    pub fn new(trace: &Trace, setup: &Setup) -> Result<House, BadInput> {
        let settings = Settings {
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
            ..Settings::default()
        };
        let queue = name("default");
        let mut house = House {
            state: State::new(settings, MarketRules::default()),
            queue: queue.clone(),
            pool_of_units: matches!(setup.machines, Machines::Pool { .. }),
            preemptible: setup.preempt,
            users: BTreeMap::new(),
        };
        house.send(Time(0), Command::PutPool { pool: pool() });
        house.join(&setup.machines)?;
        house.put_users(trace);
        let policy = name("simulated");
        let rule = setup.policy.clone();
        house.must(Command::PublishPolicy { name: policy.clone(), rule })?;
        let queue = Queue {
            ages: setup.ageing,
            preempts: setup.preempt,
            waiting_max: u32::MAX,
            running_max: u32::MAX,
            ..Queue::new(queue, policy)
        };
        house.must(Command::PutQueue { queue })?;
        Ok(house)
    }

    /// Carries out a command.
    pub fn send(&mut self, at: Time, command: Command) -> Output {
        let input = Input { seq: self.state.seq() + 1, at, command };
        step(&mut self.state, input)
    }

    fn must(&mut self, command: Command) -> Result<(), BadInput> {
        match self.send(Time(0), command).reply {
            Reply::Refused { refusal, .. } => Err(BadInput::new(refusal.to_string())),
            _ => Ok(()),
        }
    }

    fn join(&mut self, machines: &Machines) -> Result<(), BadInput> {
        let node = |index: usize, capacity: Capacity| NewNode {
            name: name(&format!("n{index}")),
            pool: name("pool"),
            capacity,
            labels: BTreeMap::new(),
            rack: None,
            domain: None,
        };
        let nodes: Vec<NewNode> = match machines {
            // GPUs of a pool without nodes are counted as processors of one giant machine: there
            // they are alike and without number.
            Machines::Pool { gpus } => {
                let cpu = gpus.checked_mul(1000).ok_or_else(|| {
                    BadInput::new("a pool has at most 4,294,967 GPUs").field("--gpus")
                })?;
                let capacity =
                    Capacity { cpu, memory: 0, gpus: Vec::new(), devices: BTreeMap::new() };
                vec![node(0, capacity)]
            }
            Machines::Nodes(machines) => {
                let mut nodes = Vec::with_capacity(machines.len());
                for (index, machine) in machines.iter().enumerate() {
                    let model = machine.model.as_deref().unwrap_or("gpu");
                    let model = Name::new(model)
                        .map_err(|error| BadInput::new(error.to_string()).field("model"))?;
                    let gpus = vec![Gpu { model, memory: 0 }; machine.gpus as usize];
                    let (cpu, memory) = (machine.cpu_milli, machine.memory_mib);
                    let devices = BTreeMap::new();
                    nodes.push(node(index, Capacity { cpu, memory, gpus, devices }));
                }
                nodes
            }
        };
        self.must(Command::Join { nodes })
    }

    /// A user of the core for each pair of user and group in the trace: there a user may work in
    /// several groups, here in one.
    fn put_users(&mut self, trace: &Trace) {
        for job in &trace.jobs {
            let pair = (job.user, job.group);
            if self.users.contains_key(&pair) {
                continue;
            }
            let id = UserId(self.users.len() as u32 + 1);
            self.users.insert(pair, id);
            let group = GroupId(job.group.map_or(0, |g| g + 1));
            let quota = Default::default();
            self.send(Time(0), Command::PutGroup { group: Group { id: group, level: 0, quota } });
            let user = User { id, group, level: 0, group_admin: false, quota };
            self.send(Time(0), Command::PutUser { user });
            self.send(Time(0), Command::Grant { user: id, amount: Money::credits(1) });
        }
    }

    /// A job of the trace as it is handed in.
    pub fn new_job(&self, job: &TraceJob, limit: Span) -> NewJob {
        let user = self.users.get(&(job.user, job.group)).copied().unwrap_or(UserId(0));
        let (shape, each) = self.needs(job);
        let request = Request {
            shape,
            each,
            duration: limit,
            window: Window { earliest: Time(0), deadline: Time::LATEST },
            constraints: Constraints::default(),
            after: Vec::new(),
        };
        let queue = QueueTerms {
            queue: self.queue.clone(),
            preemptible: self.preemptible,
            release_when_idle: false,
        };
        NewJob {
            user,
            name: None,
            attributes: Default::default(),
            priority: 0,
            terms: Terms::Queue { request, queue },
            array: None,
            after: Vec::new(),
        }
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

fn pool() -> Pool {
    Pool {
        name: name("pool"),
        rates: Rates::default(),
        closed_share: Milli(0),
        level_caps: BTreeMap::new(),
    }
}
