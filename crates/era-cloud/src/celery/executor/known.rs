//! The launches that are out: where each was sent, and what of it was told. Values only.

use std::collections::BTreeMap;
use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::{JobId, Time};
use tokio::time::Instant;

use crate::executor::{ExecutorReport, Launch};

/// The launches that are out.
#[derive(Debug, Default)]
pub(super) struct LaunchesOut {
    tasks: BTreeMap<TaskId, LaunchOut>,
}

/// A launch whose start nobody has told.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Waiting {
    pub(super) launch: Launch,
    /// For how long.
    pub(super) waited: Duration,
    /// Whether it is to stop.
    pub(super) stop: bool,
    /// Whether its log says that it waits.
    pub(super) noted: bool,
}

#[derive(Debug)]
struct LaunchOut {
    launch: Launch,
    /// Since when it could have been taken.
    since: Instant,
    /// When its message was last sent.
    sent: Instant,
    /// Whether it is to stop.
    stop: bool,
    /// Whether its log says that it waits.
    noted: bool,
    /// Whether its start was told.
    started: bool,
    /// Whether its end was told.
    ended: bool,
}

impl LaunchesOut {
    /// A launch is out. Says whether it was not before.
    pub(super) fn insert(&mut self, launch: Launch, now: Instant) -> bool {
        let task = launch.task;
        if let Some(out) = self.tasks.get_mut(&task) {
            // Asked again: what is true is told again.
            (out.started, out.ended) = (false, false);
            return false;
        }
        let (since, sent) = (now, now);
        let (stop, noted, started, ended) = (false, false, false, false);
        self.tasks.insert(task, LaunchOut { launch, since, sent, stop, noted, started, ended });
        true
    }

    /// It is over and acknowledged.
    pub(super) fn remove(&mut self, task: TaskId) {
        self.tasks.remove(&task);
    }

    pub(super) fn has(&self, task: TaskId) -> bool {
        self.tasks.contains_key(&task)
    }

    pub(super) fn tasks(&self) -> Vec<TaskId> {
        self.tasks.keys().copied().collect()
    }

    /// A launch, and whether its start was told.
    pub(super) fn launch(&self, task: TaskId) -> Option<(Launch, bool)> {
        self.tasks.get(&task).map(|out| (out.launch.clone(), out.started))
    }

    /// Those whose end nobody has told yet.
    pub(super) fn unended(&self) -> Vec<TaskId> {
        self.tasks.iter().filter(|(_, out)| !out.ended).map(|(task, _)| *task).collect()
    }

    /// Launches whose end nobody has told yet.
    pub(super) fn unended_launches(&self) -> Vec<Launch> {
        self.tasks.values().filter(|out| !out.ended).map(|out| out.launch.clone()).collect()
    }

    /// Those of a node whose end nobody has told yet.
    pub(super) fn on_node(&self, node: &str) -> Vec<TaskId> {
        let here = self.tasks.iter().filter(|(_, out)| out.launch.node_name == node && !out.ended);
        here.map(|(task, _)| *task).collect()
    }

    /// The nodes of a gang.
    pub(super) fn nodes_of(&self, job: JobId, part: u16, attempt: u32) -> Vec<String> {
        let first = TaskId { job, part, attempt, rank: 0 };
        let gang = self.tasks.range(first..=TaskId { rank: u32::MAX, ..first });
        let mut nodes: Vec<String> = gang.map(|(_, out)| out.launch.node_name.clone()).collect();
        nodes.sort();
        nodes.dedup();
        nodes
    }

    /// A task may run longer; its launch as it is from now on.
    pub(super) fn prolong(&mut self, task: TaskId, until: Time) -> Option<Launch> {
        let out = self.tasks.get_mut(&task)?;
        out.launch.until = until;
        Some(out.launch.clone())
    }

    /// A task is to stop. Says whether its start was not told.
    pub(super) fn stop(&mut self, task: TaskId) -> bool {
        let Some(out) = self.tasks.get_mut(&task) else { return false };
        out.stop = true;
        !out.started && !out.ended
    }

    /// Launches whose start nobody has told.
    pub(super) fn waiting(&self, now: Instant) -> Vec<Waiting> {
        self.waiting_if(now, |_| true)
    }

    /// Those that were sent so long ago that their message may be lost.
    pub(super) fn unheard(&self, after: Duration, now: Instant) -> Vec<Waiting> {
        self.waiting_if(now, |out| now.saturating_duration_since(out.sent) >= after)
    }

    fn waiting_if(&self, now: Instant, which: impl Fn(&LaunchOut) -> bool) -> Vec<Waiting> {
        let waits = self.tasks.values().filter(|out| !out.started && !out.ended && which(out));
        let waiting = |out: &LaunchOut| Waiting {
            launch: out.launch.clone(),
            waited: now.saturating_duration_since(out.since),
            stop: out.stop,
            noted: out.noted,
        };
        waits.map(waiting).collect()
    }

    /// Its log says that it waits.
    pub(super) fn noted(&mut self, task: TaskId) {
        if let Some(out) = self.tasks.get_mut(&task) {
            out.noted = true;
        }
    }

    /// From now on they can be taken: Redis is back.
    pub(super) fn begin_anew(&mut self, now: Instant) {
        self.tasks.values_mut().for_each(|out| (out.since, out.sent) = (now, now));
    }

    /// It was sent again.
    pub(super) fn sent(&mut self, task: TaskId, now: Instant) {
        if let Some(out) = self.tasks.get_mut(&task) {
            out.sent = now;
        }
    }

    /// What of these reports is news: each start and each end is told once.
    pub(super) fn news(&mut self, reports: Vec<ExecutorReport>) -> Vec<ExecutorReport> {
        let mut news = Vec::new();
        for report in reports {
            let (task, end) = match &report {
                ExecutorReport::Started { task, .. } => (*task, false),
                ExecutorReport::Exited { task, .. } | ExecutorReport::Lost { task, .. } => {
                    (*task, true)
                }
                _ => continue,
            };
            let Some(out) = self.tasks.get_mut(&task).filter(|out| !out.ended) else { continue };
            let told = if end { &mut out.ended } else { &mut out.started };
            if !std::mem::replace(told, true) {
                news.push(report);
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::launch;
    use era_core::units::Span;

    fn started(task: TaskId) -> ExecutorReport {
        ExecutorReport::Started { task, at: Time(1), prepared: Span(0) }
    }

    fn lost(task: TaskId) -> ExecutorReport {
        ExecutorReport::Lost { task, reason: "x".into() }
    }

    #[test]
    fn each_start_and_each_end_is_told_once() {
        let (mut known, now) = (LaunchesOut::default(), Instant::now());
        let task = launch(1, &["true"]).task;
        assert_eq!(known.news(vec![started(task)]), []);
        assert!(known.insert(launch(1, &["true"]), now));
        assert_eq!(known.news(vec![started(task)]), [started(task)]);
        assert_eq!(known.news(vec![started(task), lost(task)]), [lost(task)]);
        assert_eq!(known.news(vec![started(task), lost(task)]), []);
        assert_eq!(known.unended(), []);
    }

    #[test]
    fn an_order_that_comes_again_has_everything_told_again() {
        let (mut known, now) = (LaunchesOut::default(), Instant::now());
        let task = launch(1, &["true"]).task;
        known.insert(launch(1, &["true"]), now);
        known.news(vec![started(task), lost(task)]);
        assert!(!known.insert(launch(1, &["true"]), now));
        assert_eq!(known.news(vec![started(task), lost(task)]).len(), 2);
    }

    #[test]
    fn a_launch_that_nobody_heard_of_is_found_after_a_while() {
        let (mut known, now) = (LaunchesOut::default(), Instant::now());
        let task = launch(1, &["true"]).task;
        known.insert(launch(1, &["true"]), now);
        let later = now + Duration::from_secs(30);
        assert_eq!(known.unheard(Duration::from_secs(20), now).len(), 0);
        assert_eq!(known.unheard(Duration::from_secs(20), later).len(), 1);
        known.sent(task, later);
        assert_eq!(known.unheard(Duration::from_secs(20), later).len(), 0);
        known.sent(task, now);
        known.news(vec![started(task)]);
        assert_eq!(known.unheard(Duration::from_secs(20), later).len(), 0);
    }

    #[test]
    fn what_waits_is_what_neither_started_nor_ended() {
        let (mut known, now) = (LaunchesOut::default(), Instant::now());
        for job in 1..=3 {
            known.insert(launch(job, &["true"]), now);
        }
        let of = |job| launch(job, &["true"]).task;
        known.news(vec![started(of(1)), lost(of(2))]);
        assert!(!known.stop(of(1)) && !known.stop(of(2)) && known.stop(of(3)));
        known.noted(of(3));
        let later = now + Duration::from_secs(7);
        let waits = Waiting {
            launch: launch(3, &["true"]),
            waited: Duration::from_secs(7),
            stop: true,
            noted: true,
        };
        assert_eq!(known.waiting(later), [waits]);
        known.begin_anew(later);
        assert_eq!(known.waiting(later)[0].waited, Duration::ZERO);
    }
}
