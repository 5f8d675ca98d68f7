//! Machines on a virtual clock: what runs, until when, and what it used.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use era_core::job::TaskId;
use era_core::resources::Resources;
use era_core::units::NodeId;

use super::{Given, Interval, Run};

/// What runs.
pub(super) struct Executor {
    /// By place in the trace.
    jobs: Vec<Progress>,
    /// Ends to come: second, order of starting, place in the trace, attempt.
    ends: BinaryHeap<Reverse<(i64, u64, usize, u32)>>,
    /// Seconds at which the core should look again.
    looks: BTreeSet<i64>,
    /// What runs, by place in the trace.
    running: BTreeSet<usize>,
    started: u64,
    ended: u64,
    /// Whether every interval is kept.
    keeps_intervals: bool,
}

#[derive(Clone, Debug, Default)]
struct Progress {
    done_s: i64,
    /// Of its work: what is left when it starts.
    left_s: i64,
    since_s: i64,
    attempt: u32,
    running: bool,
    tasks: Vec<Seated>,
}

#[derive(Clone, Copy, Debug)]
struct Seated {
    task: TaskId,
    node: NodeId,
    cpu: u32,
    memory: u32,
    gpu: u32,
    gpus: u64,
}

/// A launch, as the core tells it.
pub(super) struct Launch<'a> {
    pub(super) task: TaskId,
    pub(super) node: NodeId,
    pub(super) each: &'a Resources,
    pub(super) gpus: &'a [u8],
    /// When the core ends it, whatever it does.
    pub(super) until_s: i64,
}

impl Executor {
    pub(super) fn new(jobs: usize, keeps_intervals: bool) -> Executor {
        Executor {
            jobs: vec![Progress::default(); jobs],
            ends: BinaryHeap::new(),
            looks: BTreeSet::new(),
            running: BTreeSet::new(),
            started: 0,
            ended: 0,
            keeps_intervals,
        }
    }

    /// How many jobs have done all their work.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    /// How many seconds of its work a job had done when it last stopped.
    pub(super) fn done_s(&self, index: usize) -> i64 {
        self.jobs[index].done_s
    }

    /// How many seconds of its work a job has done by now.
    pub(super) fn ran_s(&self, index: usize, second: i64) -> i64 {
        let job = &self.jobs[index];
        job.done_s + if job.running { second - job.since_s } else { 0 }
    }

    /// What runs: its place in the trace, a task of it, and how many seconds of work it has done.
    pub(super) fn running(&self, second: i64) -> impl Iterator<Item = (usize, TaskId, i64)> {
        self.running.iter().filter_map(move |index| {
            let job = &self.jobs[*index];
            Some((*index, job.tasks.first()?.task, job.done_s + second - job.since_s))
        })
    }

    /// A task of a job that takes so long starts. All tasks of an attempt start in the same second.
    pub(super) fn launch(&mut self, index: usize, second: i64, duration_s: i64, launch: &Launch) {
        let Launch { task, node, each, gpus, until_s } = *launch;
        let job = &mut self.jobs[index];
        if !job.running {
            job.running = true;
            self.running.insert(index);
            job.since_s = second;
            job.attempt = task.attempt;
            job.left_s = duration_s - job.done_s;
            job.tasks.clear();
            let end = (second + job.left_s).min(until_s);
            self.ends.push(Reverse((end, self.started, index, task.attempt)));
            self.started += 1;
        }
        debug_assert_eq!(job.attempt, task.attempt, "one attempt at a time");
        let gpu = if gpus.is_empty() { 0 } else { each.gpu };
        let gpus = gpus.iter().fold(0, |mask, gpu| mask | 1 << gpu);
        job.tasks.push(Seated { task, node, cpu: each.cpu, memory: each.memory, gpu, gpus });
    }

    /// Whether a running job has done all its work by then.
    pub(super) fn is_done(&self, index: usize, second: i64) -> bool {
        second - self.jobs[index].since_s >= self.jobs[index].left_s
    }

    /// The jobs that run on a node, each with a task of it.
    pub(super) fn on_node(&self, node: u32) -> Vec<(usize, TaskId)> {
        let here = |index: &usize| {
            let tasks = &self.jobs[*index].tasks;
            let there = tasks.iter().any(|seated| seated.node.0 == node);
            tasks.first().filter(|_| there).map(|seated| (*index, seated.task))
        };
        self.running.iter().filter_map(here).collect()
    }

    /// How many seconds of a running job's work are saved, if it saves them every so often.
    pub(super) fn saved_s(&self, index: usize, second: i64, every_s: Option<i64>) -> i64 {
        let job = &self.jobs[index];
        let ran_s = second - job.since_s;
        job.done_s + every_s.map_or(0, |every_s| ran_s / every_s.max(1) * every_s)
    }

    /// A node under a running job is lost, and with it what was not saved. Gives the tasks that
    /// were on other nodes.
    pub(super) fn lose(
        &mut self,
        (index, node): (usize, NodeId),
        second: i64,
        saved_s: i64,
        run: &mut Run,
    ) -> Vec<TaskId> {
        let elsewhere = self.jobs[index].tasks.iter().filter(|seated| seated.node != node);
        let tasks = elsewhere.map(|seated| seated.task).collect();
        self.stop(index, second, run);
        let lost_s = self.jobs[index].done_s - saved_s;
        self.jobs[index].done_s = saved_s;
        run.lost_work_s += lost_s;
        tasks
    }

    /// The second of the next end.
    pub(super) fn next_end(&mut self) -> Option<i64> {
        while let Some(Reverse((second, _, index, attempt))) = self.ends.peek() {
            let job = &self.jobs[*index];
            if job.running && job.attempt == *attempt {
                return Some(*second);
            }
            self.ends.pop();
        }
        None
    }

    /// Takes out the next job that ends in this second, the first that started first.
    pub(super) fn take_end(&mut self, second: i64) -> Option<usize> {
        (self.next_end()? <= second)
            .then(|| self.ends.pop().map(|Reverse((_, _, index, _))| index))?
    }

    /// Asks for a look at a second, and for no other.
    pub(super) fn look_only_at(&mut self, second: Option<i64>) {
        self.looks = second.into_iter().collect();
    }

    /// Asks for a look at a second.
    pub(super) fn look_at(&mut self, second: i64) {
        self.looks.insert(second);
    }

    /// The next second that a look was asked for.
    pub(super) fn next_look(&mut self) -> Option<i64> {
        self.looks.first().copied()
    }

    /// A job has done all its work; its tasks exit.
    pub(super) fn finish(&mut self, index: usize, second: i64, run: &mut Run) -> Vec<TaskId> {
        self.ended += 1;
        self.stop(index, second, run)
    }

    /// A job stops running; what it did is kept.
    pub(super) fn stop(&mut self, index: usize, second: i64, run: &mut Run) -> Vec<TaskId> {
        let job = &mut self.jobs[index];
        let ran_s = second - job.since_s;
        job.done_s += ran_s;
        job.running = false;
        self.running.remove(&index);
        for seated in &job.tasks {
            let place = (seated.node.0 as usize).min(run.given.len() - 1);
            let given: &mut Given = &mut run.given[place];
            given.cpu += f64::from(seated.cpu) * ran_s as f64;
            given.memory += f64::from(seated.memory) * ran_s as f64;
            given.gpu += f64::from(seated.gpu) * ran_s as f64;
            if self.keeps_intervals {
                run.intervals.push(Interval {
                    job: index as u32,
                    attempt: job.attempt,
                    node: place as u32,
                    start_s: job.since_s,
                    end_s: second,
                    gpus: seated.gpus,
                    gpu_milli: seated.gpu,
                    cpu_milli: seated.cpu,
                    memory_mib: seated.memory,
                });
            }
        }
        std::mem::take(&mut job.tasks).into_iter().map(|seated| seated.task).collect()
    }

    /// Forgets looks that are over.
    pub(super) fn looked(&mut self, second: i64) {
        while self.looks.first().is_some_and(|look| *look <= second) {
            self.looks.pop_first();
        }
    }
}
