//! What a node has taken upon itself: which tasks run, until when they may, and who waits for
//! their ends. Values only; nothing here talks to anybody.

use std::collections::BTreeMap;

use era_core::job::TaskId;
use era_core::units::{Span, Time};
use tokio::sync::watch;

use crate::celery::outcome::{TaskEnd, TaskOutcome};
use crate::executor::Ending;

/// Most orders that are remembered for tasks that are not here yet.
const STOPS_MAX: usize = 10_000;

/// Most ends that are kept for messages that come again.
const UNHEARD_MAX: usize = 10_000;

/// The tasks of a node.
#[derive(Debug, Default)]
pub(super) struct Running {
    tasks: BTreeMap<TaskId, About>,
    /// Tasks that were told to stop, perhaps before they came.
    stops: BTreeMap<TaskId, Time>,
    /// Ends that nobody waited for: the message that asks is on its way again.
    unheard: BTreeMap<TaskId, TaskEnd>,
}

#[derive(Debug)]
struct About {
    /// The launch's id, for those that are described in Redis.
    id: Option<String>,
    /// When it ends, whatever the lease.
    until: Time,
    /// Whether the supervisor has it.
    begun: bool,
    started: Option<(Time, Span)>,
    ended: watch::Sender<Option<TaskEnd>>,
}

impl Running {
    /// A place to wait for the end of a task, and whether nobody waited before.
    pub(super) fn wait(
        &mut self,
        task: TaskId,
        id: Option<&str>,
    ) -> (bool, watch::Receiver<Option<TaskEnd>>) {
        if let Some(about) = self.tasks.get_mut(&task) {
            // One that was found while Redis knew nothing is known by its message.
            about.id = about.id.take().or_else(|| id.map(str::to_owned));
            return (false, about.ended.subscribe());
        }
        if let Some(ended) = self.unheard.remove(&task) {
            return (false, watch::channel(Some(ended)).1);
        }
        let (ended, wait) = watch::channel(None);
        let id = id.map(str::to_owned);
        let about = About { id, until: Time(0), begun: false, started: None, ended };
        self.tasks.insert(task, about);
        (true, wait)
    }

    /// A task that ran before this worker did.
    pub(super) fn adopt(&mut self, task: TaskId, id: Option<String>, until: Time) {
        let ended = watch::Sender::new(None);
        self.tasks.insert(task, About { id, until, begun: true, started: None, ended });
    }

    /// It did not begin after all.
    pub(super) fn forget(&mut self, task: TaskId) {
        self.tasks.remove(&task);
    }

    /// The supervisor is about to have it. Says by when it must end, if it was told to.
    pub(super) fn begin(&mut self, task: TaskId, until: Time) -> Option<Time> {
        if let Some(about) = self.tasks.get_mut(&task) {
            about.begun = true;
            about.until = until;
        }
        self.stops.get(&task).copied()
    }

    /// It is told to stop. Says whether the supervisor must be told.
    pub(super) fn stop(&mut self, task: TaskId, until: Time) -> bool {
        if self.stops.len() >= STOPS_MAX {
            self.stops.pop_first();
        }
        let stop = self.stops.entry(task).or_insert(until);
        *stop = until.min(*stop);
        self.tasks.get(&task).is_some_and(|about| about.begun)
    }

    /// It may run longer; an order that is read again does not take that back. Says until when it
    /// may run whatever the lease, if the supervisor has it.
    pub(super) fn prolong(&mut self, task: TaskId, until: Time) -> Option<Time> {
        let about = self.tasks.get_mut(&task)?;
        about.until = until.max(about.until);
        let about = self.tasks.get(&task).filter(|about| about.begun)?;
        Some(self.ends(task, about))
    }

    /// One that ran before this worker did may run until then.
    pub(super) fn limit(&mut self, task: TaskId, until: Time) {
        if let Some(about) = self.tasks.get_mut(&task) {
            about.until = until.min(about.until);
        }
    }

    /// Those that the supervisor has, and until when they may run whatever the lease.
    pub(super) fn leased(&self) -> Vec<(TaskId, Time)> {
        let runs = self.tasks.iter().filter(|(_, about)| about.begun);
        runs.map(|(task, about)| (*task, self.ends(*task, about))).collect()
    }

    /// Its time is over then, or its grace if it was told to stop.
    fn ends(&self, task: TaskId, about: &About) -> Time {
        self.stops.get(&task).map_or(about.until, |stop| about.until.min(*stop))
    }

    /// It has started; its id, if a launch describes it.
    pub(super) fn started(&mut self, task: TaskId, at: Time, prepared: Span) -> Option<String> {
        let about = self.tasks.get_mut(&task)?;
        about.started = Some((at, prepared));
        about.id.clone()
    }

    /// How a task ended. One whose time was over before its limit, or that was stopped without an
    /// order, was ended by its lease: it is lost through no fault of its own.
    pub(super) fn outcome(&self, task: TaskId, at: Time, code: i32, ending: Ending) -> TaskEnd {
        let about = self.tasks.get(&task);
        let by_lease = match ending {
            Ending::Limit => true,
            Ending::Stopped => !self.stops.contains_key(&task),
            _ => false,
        };
        if by_lease && about.is_some_and(|about| at < about.until) {
            return TaskEnd::Lost("lease-lapsed".to_owned());
        }
        let started = about.and_then(|about| about.started);
        TaskEnd::Outcome(TaskOutcome {
            code,
            ending,
            started_ms: started.map(|(at, _)| at.0),
            prepared_ms: started.map(|(_, prepared)| prepared.0),
            ended_ms: at.0,
            output: None,
        })
    }

    /// It is over: those who wait are told.
    pub(super) fn end(&mut self, task: TaskId, ended: TaskEnd) {
        self.stops.remove(&task);
        let Some(about) = self.tasks.remove(&task) else { return };
        if about.id.is_none() && about.ended.receiver_count() == 0 {
            return self.keep(task, ended);
        }
        about.ended.send_replace(Some(ended));
    }

    /// Keeps an end that was not delivered, for the next request.
    pub(super) fn keep(&mut self, task: TaskId, ended: TaskEnd) {
        if self.unheard.len() >= UNHEARD_MAX {
            self.unheard.pop_first();
        }
        self.unheard.insert(task, ended);
    }

    /// The newest attempt of a task of which something is known here; else the task itself.
    pub(super) fn newest(&self, task: TaskId) -> TaskId {
        let all = task..=TaskId { attempt: u32::MAX, rank: u32::MAX, ..task };
        let runs = self.tasks.range(all.clone()).next_back().map(|(task, _)| *task);
        let unheard = self.unheard.range(all).next_back().map(|(task, _)| *task);
        runs.or(unheard).unwrap_or(task)
    }

    /// Whether it is here.
    pub(super) fn has(&self, task: TaskId) -> bool {
        self.tasks.contains_key(&task)
    }

    /// The id of a task that a launch describes.
    pub(super) fn id(&self, task: TaskId) -> Option<String> {
        self.tasks.get(&task)?.id.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_core::units::JobId;

    const TASK: TaskId = TaskId { job: JobId(1), part: 0, attempt: 1, rank: 0 };

    fn ends(running: &Running, at: i64, ending: Ending) -> TaskEnd {
        running.outcome(TASK, Time(at), 137, ending)
    }

    #[test]
    fn whoever_asks_second_waits_for_the_same_run() {
        let mut running = Running::default();
        let (first, one) = running.wait(TASK, Some("id"));
        let (second, other) = running.wait(TASK, Some("id"));
        assert!(first && !second);
        running.end(TASK, TaskEnd::Lost("x".into()));
        assert_eq!(*one.borrow(), Some(TaskEnd::Lost("x".into())));
        assert_eq!(*other.borrow(), Some(TaskEnd::Lost("x".into())));
        assert_eq!(running.len(), 0);
    }

    #[test]
    fn a_stop_that_comes_before_its_task_is_not_forgotten() {
        let mut running = Running::default();
        assert!(!running.stop(TASK, Time(5)));
        running.wait(TASK, Some("id"));
        assert_eq!(running.begin(TASK, Time(100)), Some(Time(5)));
        assert_eq!(running.leased(), [(TASK, Time(5))]);
    }

    #[test]
    fn what_stops_is_renewed_until_its_grace_is_over() {
        let mut running = Running::default();
        running.wait(TASK, Some("id"));
        running.begin(TASK, Time(100));
        assert!(running.stop(TASK, Time(60)));
        assert_eq!(running.leased(), [(TASK, Time(60))]);
        assert!(running.stop(TASK, Time(80)), "a later word gives no more time");
        assert_eq!(running.prolong(TASK, Time(200)), Some(Time(60)));
    }

    #[test]
    fn orders_that_are_read_again_never_make_a_task_s_time_shorter() {
        let mut running = Running::default();
        running.adopt(TASK, Some("id".into()), Time(300));
        assert_eq!(running.prolong(TASK, Time(200)), Some(Time(300)));
        assert_eq!(running.prolong(TASK, Time(300)), Some(Time(300)));
        assert!(matches!(ends(&running, 250, Ending::Limit), TaskEnd::Lost(_)));
    }

    #[test]
    fn an_end_by_the_lease_is_a_loss_and_an_end_by_the_limit_is_not() {
        let mut running = Running::default();
        running.wait(TASK, Some("id"));
        running.begin(TASK, Time(100));
        assert_eq!(ends(&running, 40, Ending::Limit), TaskEnd::Lost("lease-lapsed".into()));
        assert!(matches!(ends(&running, 100, Ending::Limit), TaskEnd::Outcome(_)));
        assert!(matches!(ends(&running, 40, Ending::Itself), TaskEnd::Outcome(_)));
        assert_eq!(running.prolong(TASK, Time(200)), Some(Time(200)));
        assert_eq!(ends(&running, 150, Ending::Limit), TaskEnd::Lost("lease-lapsed".into()));
        // A guard says of both that it stopped its task.
        assert_eq!(ends(&running, 150, Ending::Stopped), TaskEnd::Lost("lease-lapsed".into()));
        running.stop(TASK, Time(160));
        assert!(matches!(ends(&running, 150, Ending::Stopped), TaskEnd::Outcome(_)));
    }

    #[test]
    fn an_end_that_nobody_heard_waits_for_the_message_to_come_again() {
        let mut running = Running::default();
        running.adopt(TASK, None, Time::MAX);
        running.end(TASK, TaskEnd::Lost("x".into()));
        let (first, ended) = running.wait(TASK, None);
        assert!(!first);
        assert_eq!(*ended.borrow(), Some(TaskEnd::Lost("x".into())));
        assert!(running.wait(TASK, None).0);
    }

    #[test]
    fn the_attempt_that_is_here_is_found_again() {
        let (mut running, second) = (Running::default(), TaskId { attempt: 2, ..TASK });
        assert_eq!(running.newest(TASK), TASK);
        running.adopt(second, None, Time::MAX);
        assert_eq!(running.newest(TASK), second);
        running.end(second, TaskEnd::Lost("x".into()));
        assert_eq!(running.newest(TASK), second, "nobody has heard its end");
        running.wait(second, None);
        running.forget(second);
        running.adopt(TaskId { job: JobId(2), ..second }, None, Time::MAX);
        assert_eq!(running.newest(TASK), TASK);
    }

    #[test]
    fn only_what_the_supervisor_has_is_renewed() {
        let mut running = Running::default();
        running.wait(TASK, None);
        assert_eq!(running.leased(), []);
        running.begin(TASK, Time(9));
        assert_eq!(running.leased(), [(TASK, Time(9))]);
    }
}
