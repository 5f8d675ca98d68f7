//! Nodes that are not there: their tasks are short sleeps.
//!
//! For trying a large cluster on a laptop. A task "runs" as long as it may, but no longer than
//! [`SimulatedNodes`] say, and always succeeds; nothing of it is run. Nodes say that they are
//! simulated, and so does whatever is shown of them. Tasks end with the server: after a restart
//! none is known, which is to say that all are lost.

mod file;

pub use file::{BadNodes, EXAMPLE, read};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::{Span, Time};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::clock::MachineClock;
use crate::executor::{Ending, Executor, ExecutorReport, FoundNode, Order, Reports};

/// How long a simulated task sleeps at most, where nothing else is said.
const SLEEP_MAX: Duration = Duration::from_secs(2);
/// The exit code of what was told to stop.
const TERMINATED: i32 = 128 + 15;

/// Nodes that are to be simulated.
#[derive(Clone, Debug)]
pub struct SimulatedNodes {
    pub nodes: Vec<FoundNode>,
    /// How long a task on them sleeps at most.
    pub sleep_max: Duration,
}

impl Default for SimulatedNodes {
    fn default() -> SimulatedNodes {
        SimulatedNodes { nodes: Vec::new(), sleep_max: SLEEP_MAX }
    }
}

/// The executor of simulated nodes.
#[derive(Debug)]
pub struct SimulatedExecutor {
    says: mpsc::UnboundedSender<SimulatedCommand>,
    known: Arc<Mutex<BTreeSet<TaskId>>>,
}

#[derive(Debug)]
enum SimulatedCommand {
    Order(Order),
    Acknowledge(TaskId),
}

impl SimulatedExecutor {
    /// Announces the nodes, and carries out orders on them until it is dropped.
    pub fn start(
        simulated: SimulatedNodes,
        clock: MachineClock,
        reports: Reports,
    ) -> SimulatedExecutor {
        let SimulatedNodes { nodes, sleep_max } = simulated;
        let (says, heard) = mpsc::unbounded_channel();
        let known = Arc::default();
        let sleepers = Sleepers { sleep_max, known: Arc::clone(&known), ..Sleepers::default() };
        tokio::spawn(go_on(nodes, sleepers, clock, heard, reports));
        SimulatedExecutor { says, known }
    }
}

impl Executor for SimulatedExecutor {
    fn shares_clock(&self) -> bool {
        true
    }

    fn carry_out(&self, order: Order) {
        // The other end is gone only when nobody takes reports any more.
        let _ = self.says.send(SimulatedCommand::Order(order));
    }

    fn acknowledge(&self, task: TaskId) {
        let _ = self.says.send(SimulatedCommand::Acknowledge(task));
    }

    fn known(&self) -> Vec<TaskId> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Nothing is run, so nothing is missed.
    fn runs_images(&self) -> bool {
        true
    }
}

/// Tasks that sleep, and how those ended that nobody has acknowledged.
#[derive(Debug, Default)]
struct Sleepers {
    sleep_max: Duration,
    wakes: BTreeSet<(Instant, TaskId)>,
    tasks: BTreeMap<TaskId, Sleeper>,
    known: Arc<Mutex<BTreeSet<TaskId>>>,
}

#[derive(Clone, Debug)]
enum Sleeper {
    Sleeps { since: Time, wakes: Instant },
    Ended(ExecutorReport),
}

impl Sleepers {
    /// Carries out an order, and gives what there is to report.
    fn obey(&mut self, order: Order, now: Time, instant: Instant) -> Option<ExecutorReport> {
        match order {
            Order::Launch(launch) => {
                let task = launch.task;
                let started = |at| ExecutorReport::Started { task, at, prepared: Span::ZERO };
                match self.tasks.get(&task) {
                    Some(Sleeper::Sleeps { since, .. }) => return Some(started(*since)),
                    Some(Sleeper::Ended(report)) => return Some(report.clone()),
                    None => {}
                }
                let left = u64::try_from(launch.until.since(now).ms()).unwrap_or(0);
                let wakes = instant + Duration::from_millis(left).min(self.sleep_max);
                self.tasks.insert(task, Sleeper::Sleeps { since: now, wakes });
                self.wakes.insert((wakes, task));
                self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(task);
                Some(started(now))
            }
            Order::Stop { task, .. } => match self.tasks.get(&task) {
                Some(Sleeper::Sleeps { .. }) => self.end(task, now, TERMINATED, Ending::Stopped),
                Some(Sleeper::Ended(report)) => Some(report.clone()),
                None => Some(ExecutorReport::Lost { task, reason: "unknown-to-its-node".into() }),
            },
            // They are over long before their limit, and nobody in them counts replicas.
            Order::Prolong { .. } | Order::Resize { .. } | Order::Stage(_) => None,
        }
    }

    fn end(&mut self, task: TaskId, at: Time, code: i32, ending: Ending) -> Option<ExecutorReport> {
        let about = self.tasks.get_mut(&task)?;
        let Sleeper::Sleeps { wakes, .. } = about else { return None };
        self.wakes.remove(&(*wakes, task));
        let report = ExecutorReport::Exited { task, at, code, ending };
        *about = Sleeper::Ended(report.clone());
        Some(report)
    }

    fn acknowledge(&mut self, task: TaskId) {
        if let Some(Sleeper::Ended(_)) = self.tasks.get(&task) {
            self.tasks.remove(&task);
            self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&task);
        }
    }

    /// Those that have slept enough.
    fn wake(&mut self, now: Time, instant: Instant) -> Vec<ExecutorReport> {
        let mut reports = Vec::new();
        while let Some((_, task)) = self.wakes.first().copied().filter(|(at, _)| *at <= instant) {
            reports.extend(self.end(task, now, 0, Ending::Itself));
        }
        reports
    }
}

async fn go_on(
    nodes: Vec<FoundNode>,
    mut sleepers: Sleepers,
    clock: MachineClock,
    mut says: mpsc::UnboundedReceiver<SimulatedCommand>,
    reports: Reports,
) {
    for node in nodes {
        if reports.send(ExecutorReport::Node(node)).await.is_err() {
            return;
        }
    }
    loop {
        let next = sleepers.wakes.first().map(|(at, _)| *at);
        let wake = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let news = tokio::select! {
            () = wake => sleepers.wake(clock.now(), Instant::now()),
            said = says.recv() => match said {
                None => return,
                Some(SimulatedCommand::Acknowledge(task)) => {
                    sleepers.acknowledge(task);
                    Vec::new()
                }
                Some(SimulatedCommand::Order(order)) => {
                    sleepers.obey(order, clock.now(), Instant::now()).into_iter().collect()
                }
            },
        };
        for report in news {
            if reports.send(report).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockReading;
    use crate::shim::tests::launch;

    async fn next(reports: &mut mpsc::Receiver<ExecutorReport>) -> ExecutorReport {
        let wait = tokio::time::timeout(Duration::from_secs(10), reports.recv());
        wait.await.expect("in time").expect("a report")
    }

    fn node() -> FoundNode {
        FoundNode {
            name: "s0".into(),
            capacity: Default::default(),
            labels: Default::default(),
            address: None,
            simulated: true,
        }
    }

    const NOW: Time = Time::from_s(1_000);

    fn started(nodes: Vec<FoundNode>, sleep_max: Duration, tell: Reports) -> SimulatedExecutor {
        let steady = MachineClock::system().steady();
        let clock = MachineClock::new(move || ClockReading { wall: NOW, steady });
        SimulatedExecutor::start(SimulatedNodes { nodes, sleep_max }, clock, tell)
    }

    #[tokio::test]
    async fn a_simulated_task_sleeps_and_succeeds() {
        let (tell, mut told) = mpsc::channel(16);
        let nodes = started(vec![node()], Duration::from_millis(20), tell);
        assert_eq!(next(&mut told).await, ExecutorReport::Node(node()));
        let launch = launch(1, &["rm", "-rf", "/"]);
        let task = launch.task;
        nodes.carry_out(Order::Launch(launch.clone()));
        nodes.carry_out(Order::Launch(launch));
        let started = ExecutorReport::Started { task, at: NOW, prepared: Span::ZERO };
        assert_eq!(next(&mut told).await, started);
        assert_eq!(next(&mut told).await, started, "the same, not another");
        let ended = ExecutorReport::Exited { task, at: NOW, code: 0, ending: Ending::Itself };
        assert_eq!(next(&mut told).await, ended);
        assert_eq!(nodes.known(), [task]);
        nodes.acknowledge(task);
        let unknown = Order::Stop { task, until: Time(0) };
        nodes.carry_out(unknown);
        assert!(matches!(next(&mut told).await, ExecutorReport::Lost { .. }));
        assert_eq!(nodes.known(), []);
    }

    #[tokio::test]
    async fn a_simulated_task_stops_when_told() {
        let (tell, mut told) = mpsc::channel(16);
        let nodes = started(Vec::new(), Duration::from_secs(60), tell);
        let launch = launch(1, &["true"]);
        let task = launch.task;
        nodes.carry_out(Order::Launch(launch));
        next(&mut told).await;
        nodes.carry_out(Order::Stop { task, until: Time::MAX });
        let ended = next(&mut told).await;
        assert!(
            matches!(ended, ExecutorReport::Exited { ending: Ending::Stopped, .. }),
            "{ended:?}"
        );
    }
}
