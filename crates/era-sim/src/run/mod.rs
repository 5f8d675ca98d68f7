//! A trace through the production core, on a virtual clock.
//!
//! Whole seconds are all that a trace knows. A run that lasts as long as its limit must be over
//! before the core tells it to stop, so ends are reported just before the second that they fall
//! in, submissions and passes on it; nothing happens in between.

mod executor;
mod house;
mod learning;
mod setup;

use era_core::queue::PolicyRule;
use era_core::units::{JobId, Span, Time};
use era_core::{Command, Effect, Reply};
use executor::Executor;
pub use house::House;
pub use learning::Predicted;
pub use setup::{BUCKETS_S, Estimates, Like, Machine, Machines, Ratios, Setup, policy_named};

use crate::BadInput;
use crate::estimate::Learner;
use crate::trace::{Trace, TraceJob};

/// What became of a trace.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// What became of each job, in the order of the trace.
    pub jobs: Vec<JobRun>,
    /// The jobs that fit nowhere, and why: by their place in the trace.
    pub never_fit: Vec<(usize, String)>,
    /// What each machine gave: processor, memory and GPU time.
    pub given: Vec<Given>,
    /// How many inputs the core was given.
    pub inputs: u64,
}

/// What became of a job. Times are seconds after the first submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobRun {
    /// When it started for the first time.
    pub start_s: Option<i64>,
    /// When it ended.
    pub end_s: Option<i64>,
    /// How often it was stopped to make room.
    pub preemptions: u32,
    /// The machine that its first replica was on, the last time.
    pub node: u32,
    /// What was predicted when it was submitted.
    pub predicted: Option<Predicted>,
}

/// What a machine gave to jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Given {
    /// Thousandths of processors, times seconds.
    pub cpu: f64,
    /// MiB, times seconds.
    pub memory: f64,
    /// Thousandths of GPUs, times seconds.
    pub gpu: f64,
}

/// From the word to stop to the end: next to nothing, but enough to save one's work.
const GRACE: Span = Span(1);

/// The instant of a second of the trace. There is room before the first one.
fn instant(second: i64) -> Time {
    Time::from_s(second + 3_600)
}

/// Runs a trace. `progress` is told how many jobs have ended.
pub fn run(trace: &Trace, setup: &Setup, progress: &dyn Fn(u64)) -> Result<Run, BadInput> {
    run_after(&[], trace, setup, progress)
}

/// Runs a trace after a past to learn from: jobs that ended before the first one of the trace,
/// with times on its clock, and users and groups under its numbers.
pub fn run_after(
    past: &[TraceJob],
    trace: &Trace,
    setup: &Setup,
    progress: &dyn Fn(u64),
) -> Result<Run, BadInput> {
    let house = House::new(trace, setup)?;
    let mut driver = Driver {
        trace,
        setup,
        house,
        executor: Executor::new(trace.jobs.len()),
        by_id: vec![usize::MAX],
        run: Run { jobs: vec![JobRun::default(); trace.jobs.len()], ..Run::default() },
        next: 0,
        learner: None,
    };
    driver.learn_from(past);
    let machines = match &setup.machines {
        Machines::Pool { .. } => 1,
        Machines::Nodes(nodes) => nodes.len(),
    };
    driver.run.given = vec![Given::default(); machines];
    while let Some(second) = driver.next_second() {
        driver.executor.looked(second);
        driver.publish(second);
        match setup.like {
            Like::Pyss => driver.one_by_one(second),
            _ => driver.batch(second),
        }
        progress(driver.executor.ended());
    }
    driver.run.inputs = driver.house.state.seq();
    Ok(driver.run)
}

struct Driver<'a> {
    trace: &'a Trace,
    setup: &'a Setup,
    house: House,
    executor: Executor,
    /// The place in the trace of each job that the core knows.
    by_id: Vec<usize>,
    run: Run,
    /// The next job of the trace to be submitted.
    next: usize,
    /// Who predicts, if anybody.
    learner: Option<Learner>,
}

impl Driver<'_> {
    /// The next second in which something happens.
    fn next_second(&mut self) -> Option<i64> {
        let arrival = self.trace.jobs.get(self.next).map(|job| job.submit_s);
        let end = self.executor.next_end();
        let look = self.executor.next_look();
        [arrival, end, look].into_iter().flatten().min()
    }

    /// All ends, then all submissions, then one pass.
    fn batch(&mut self, second: i64) {
        let before = instant(second) - GRACE - Span(1);
        while let Some(index) = self.executor.take_end(second) {
            self.end(index, second, before);
        }
        while self.next < self.trace.jobs.len() && self.trace.jobs[self.next].submit_s <= second {
            self.submit(instant(second));
        }
        self.pass(second);
        if self.setup.like == Like::Tiresias {
            self.look_as_tiresias(second);
        }
    }

    /// Submissions, then ends in the order in which the jobs started, with a pass after each.
    fn one_by_one(&mut self, second: i64) {
        while self.next < self.trace.jobs.len() && self.trace.jobs[self.next].submit_s <= second {
            self.submit(instant(second));
            self.pass(second);
        }
        while let Some(index) = self.executor.take_end(second) {
            self.end(index, second, instant(second));
            self.pass(second);
        }
    }

    fn submit(&mut self, at: Time) {
        let index = self.next;
        self.next += 1;
        let job = &self.trace.jobs[index];
        let limit = Span::from_s(self.setup.estimates.limit_s(job));
        let job = self.house.new_job(job, limit);
        match self.house.send(at, Command::Submit { key: None, job }).reply {
            Reply::Accepted { job, .. } => {
                debug_assert_eq!(job.0 as usize, self.by_id.len());
                self.by_id.push(index);
                self.note_submission(index, job);
            }
            Reply::Refused { refusal, .. } => self.run.never_fit.push((index, refusal.to_string())),
            reply => debug_assert!(false, "a submission is accepted or refused: {reply:?}"),
        }
    }

    /// A job has done all its work.
    fn end(&mut self, index: usize, second: i64, at: Time) {
        let tasks = self.executor.finish(index, second, &mut self.run);
        self.run.jobs[index].end_s = Some(second);
        self.note_end(index);
        for task in tasks {
            self.house.send(at, Command::Exited { task, code: 0 });
        }
    }

    /// Goes through the queue, and once more where something had to make room.
    fn pass(&mut self, second: i64) {
        for _ in 0..2 {
            let effects = self.house.send(instant(second), Command::Pass).effects;
            let mut stopped: Vec<usize> = Vec::new();
            for effect in effects {
                match effect {
                    Effect::Launch { task, node, each, gpus, .. } => {
                        let index = self.index(task.job);
                        let left = self.trace.jobs[index].duration_s;
                        self.executor.launch(index, second, left, task, node, &each, gpus.len());
                        self.run.jobs[index].start_s.get_or_insert(second);
                        self.run.jobs[index].node = node.0;
                        if self.setup.like != Like::Tiresias {
                            self.look_ahead(index, second);
                        }
                    }
                    Effect::Stop { task, .. } => {
                        let index = self.index(task.job);
                        if stopped.last() != Some(&index) {
                            stopped.push(index);
                        }
                    }
                    _ => {}
                }
            }
            if stopped.is_empty() {
                return;
            }
            for index in stopped {
                self.preempted(index, second);
            }
        }
    }

    /// A job was told to make room: it saves its work and is gone at once.
    fn preempted(&mut self, index: usize, second: i64) {
        let tasks = self.executor.stop(index, second, &mut self.run);
        self.run.jobs[index].preemptions += 1;
        let done = Span::from_s(self.executor.done_s(index));
        for (rank, task) in tasks.into_iter().enumerate() {
            if rank == 0 && done > Span::ZERO {
                self.house.send(instant(second), Command::Checkpointed { task, done });
            }
            self.house.send(instant(second), Command::Exited { task, code: 143 });
        }
    }

    fn index(&self, job: JobId) -> usize {
        self.by_id[job.0 as usize]
    }

    /// Under least-attained service the order changes when a run passes a limit: looks then.
    fn look_ahead(&mut self, index: usize, second: i64) {
        let PolicyRule::Las { limits } = &self.setup.policy else {
            return self.look_where_the_index_turns(index, second);
        };
        let gpu_milli = i64::from(self.trace.jobs[index].gpu_milli).max(1);
        let served = self.executor.done_s(index) * gpu_milli;
        for limit in limits {
            let left = *limit as i64 * 1000 - served;
            if left > 0 {
                self.executor.look_at(second + (left + gpu_milli - 1) / gpu_milli);
            }
        }
    }

    /// That simulator looks again when the first run would pass its limit, if its service were
    /// counted without its GPUs until now and with them from now on.
    fn look_as_tiresias(&mut self, second: i64) {
        let PolicyRule::Las { limits } = &self.setup.policy else { return };
        let looks = self.executor.running(second).filter_map(|(index, task, done)| {
            let gpus = i64::from(self.trace.jobs[index].gpu_milli) / 1000;
            let class = self.house.state.job(task.job).ok()?.parts[0].line.class;
            let limit = *limits.get(usize::from(class))? as i64;
            let after = (limit - done).div_euclid(gpus.max(1));
            (after > 0).then_some(second + after)
        });
        let first = looks.min();
        self.executor.look_only_at(first);
    }
}
