//! How the jobs of a trace behave, and the book of what ran where, until when, and what it used.

use std::collections::BTreeSet;

use era_core::job::{StopReason, TaskId};
use era_core::resources::Resources;
use era_core::units::{JobId, NodeId, Span};
use era_core::{Command, Effect, Input, Output, State};
use era_drive::{Conduct, Scenario};

use super::{Interval, JobRun, Options, TraceRun, second_of};
use crate::trace::Trace;

/// What has run, and what runs.
pub(super) struct Book<'a> {
    trace: &'a Trace,
    options: &'a Options,
    /// By how much a job is over before the second in which it ends.
    early: Span,
    /// The place in the trace of each job that the core knows.
    by_id: Vec<usize>,
    /// By place in the trace.
    jobs: Vec<RunProgress>,
    /// What runs, by place in the trace.
    running: BTreeSet<usize>,
    /// The jobs that have done all their work since they were last taken, by place in the trace.
    done: Vec<usize>,
    pub(super) ended: u64,
    pub(super) run: TraceRun,
}

#[derive(Clone, Debug, Default)]
struct RunProgress {
    done_s: i64,
    /// Of its work: what is left when it starts.
    left_s: i64,
    since_s: i64,
    attempt: u32,
    running: bool,
    /// Whether it was told to make room.
    yields: bool,
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

impl Scenario for Book<'_> {
    fn conduct(&self, _: &State, job: JobId, _: u16) -> Conduct {
        let work = Span(self.takes_s(self.index(job)) * 1_000 - self.early.0);
        Conduct { work, saves_on_stop: true, breaks_with_a_rank: true, ..Conduct::default() }
    }

    fn follow(&mut self, input: &Input, output: &Output, _: &State) {
        let second = second_of(input.at);
        // What time alone brought comes before the command.
        for effect in &output.effects {
            match effect {
                Effect::Launch { task, node, each, gpus, .. } => {
                    self.launched(*task, *node, each, gpus, second);
                }
                Effect::Stop { task, why: StopReason::Preempted, .. } => {
                    self.jobs[self.by_id[task.job.0 as usize]].yields = true;
                }
                Effect::Stop { task, why: StopReason::Limit, .. } => self.limit(*task, second),
                _ => {}
            }
        }
        match input.command {
            Command::Exited { task, code, .. } => self.exited(task, code, second),
            Command::Lost { node } => self.lost(node, second),
            _ => {}
        }
    }
}

impl<'a> Book<'a> {
    pub(super) fn new(trace: &'a Trace, options: &'a Options, machines: usize) -> Book<'a> {
        let jobs = trace.jobs.len();
        let run = TraceRun {
            jobs: vec![JobRun::default(); jobs],
            given: vec![super::Given::default(); machines],
            ..TraceRun::default()
        };
        Book {
            trace,
            options,
            early: Span::ZERO,
            by_id: vec![usize::MAX],
            jobs: vec![RunProgress::default(); jobs],
            running: BTreeSet::new(),
            done: Vec::new(),
            ended: 0,
            run,
        }
    }

    /// Jobs are over so long before the second in which they end.
    pub(super) fn early(self, early: Span) -> Book<'a> {
        Book { early, ..self }
    }

    /// The job of the trace at this place is known to the core by this number.
    pub(super) fn accepted(&mut self, index: usize, job: JobId) {
        debug_assert_eq!(job.0 as usize, self.by_id.len());
        self.by_id.push(index);
    }

    /// The jobs that have done all their work since this was last asked.
    pub(super) fn take_done(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.done)
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

    /// What a node that fails now leaves of each job that runs on it: a task of the job, and how
    /// much of its work is saved.
    pub(super) fn left_by(&self, node: NodeId, second: i64) -> Vec<(TaskId, Span)> {
        let left = |index: usize| {
            let task = self.jobs[index].tasks.first()?.task;
            Some((task, Span::from_s(self.saved_s(index, second))))
        };
        self.on_node(node).into_iter().filter_map(left).collect()
    }

    fn index(&self, job: JobId) -> usize {
        self.by_id[job.0 as usize]
    }

    fn takes_s(&self, index: usize) -> i64 {
        let job = &self.trace.jobs[index];
        self.options.faults.map_or(job.duration_s, |faults| faults.duration_s(index, job))
    }

    fn on_node(&self, node: NodeId) -> Vec<usize> {
        let is_there =
            |index: &&usize| self.jobs[**index].tasks.iter().any(|seated| seated.node == node);
        self.running.iter().filter(is_there).copied().collect()
    }

    /// How many seconds of a running job's work are saved, if it saves them every so often.
    fn saved_s(&self, index: usize, second: i64) -> i64 {
        let job = &self.jobs[index];
        let ran_s = second - job.since_s;
        let every_s = self.options.checkpoint_every_s;
        job.done_s + every_s.map_or(0, |every_s| ran_s / every_s.max(1) * every_s)
    }

    /// A task of a job starts. All tasks of an attempt start in the same second.
    fn launched(&mut self, task: TaskId, node: NodeId, each: &Resources, gpus: &[u8], second: i64) {
        let index = self.index(task.job);
        let takes_s = self.takes_s(index);
        let job = &mut self.jobs[index];
        if !job.running {
            job.running = true;
            self.running.insert(index);
            job.since_s = second;
            job.attempt = task.attempt;
            job.left_s = takes_s - job.done_s;
            job.yields = false;
            job.tasks.clear();
        }
        debug_assert_eq!(job.attempt, task.attempt, "one attempt at a time");
        let gpu = if gpus.is_empty() { 0 } else { each.gpu };
        let gpus = gpus.iter().fold(0, |mask, gpu| mask | 1 << gpu);
        job.tasks.push(Seated { task, node, cpu: each.cpu, memory: each.memory, gpu, gpus });
        self.run.jobs[index].start_s.get_or_insert(second);
        self.run.jobs[index].node = node.0;
    }

    /// A task is over, and with it its job.
    fn exited(&mut self, task: TaskId, code: i32, second: i64) {
        let index = self.index(task.job);
        let job = &self.jobs[index];
        if !job.running || job.attempt != task.attempt {
            return;
        }
        let yields = job.yields;
        self.stop(index, second);
        if code == 0 {
            self.ended += 1;
            self.run.jobs[index].end_s = Some(second);
            self.done.push(index);
        } else if yields {
            self.run.jobs[index].preemptions += 1;
        }
    }

    /// The core ends a job at its limit; what is done in the second of its limit ends by itself.
    fn limit(&mut self, task: TaskId, second: i64) {
        let index = self.index(task.job);
        let job = &self.jobs[index];
        if job.running && second - job.since_s < job.left_s {
            self.stop(index, second);
            self.ended += 1;
            self.run.jobs[index].end_s = Some(second);
            self.run.jobs[index].over_limit = true;
        }
    }

    /// A node is lost, and with it what its jobs had not saved.
    fn lost(&mut self, node: NodeId, second: i64) {
        for index in self.on_node(node) {
            let saved_s = self.saved_s(index, second);
            self.stop(index, second);
            let lost_s = std::mem::replace(&mut self.jobs[index].done_s, saved_s) - saved_s;
            self.run.lost_work_s += lost_s;
            self.run.jobs[index].losses += 1;
        }
    }

    /// A job stops running; what it did is kept.
    fn stop(&mut self, index: usize, second: i64) {
        let (job, run) = (&mut self.jobs[index], &mut self.run);
        let ran_s = second - job.since_s;
        job.done_s += ran_s;
        job.running = false;
        self.running.remove(&index);
        for seated in job.tasks.drain(..) {
            let place = (seated.node.0 as usize).min(run.given.len() - 1);
            let given = &mut run.given[place];
            given.cpu += f64::from(seated.cpu) * ran_s as f64;
            given.memory += f64::from(seated.memory) * ran_s as f64;
            given.gpu += f64::from(seated.gpu) * ran_s as f64;
            if self.options.intervals {
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
    }
}
