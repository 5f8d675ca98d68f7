//! A trace through the production core, on a virtual clock.
//!
//! Whole seconds are all that a trace knows. A run that lasts as long as its limit must be over
//! before the core tells it to stop, so ends are reported just before the second that they fall
//! in, submissions and passes on it; nothing happens in between.

mod cluster_file;
mod executor;
mod house;
mod learning;
mod lost;
mod setup;

pub use cluster_file::{ClusterFile, read_cluster};
use era_core::job::StopReason;
use era_core::queue::PolicyRule;
use era_core::units::{JobId, Span, Time};
use era_core::{Command, Effect, Reply, State};
use executor::{Executor, Launch};
pub use house::House;
pub use learning::Predicted;
pub use setup::{BUCKETS_S, Estimates, Like, Machine, Machines, Ratios, Setup, policy_named};

use crate::BadInput;
use crate::estimate::Learner;
use crate::faults::{Faults, Weather};
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
    /// Who was where and when, if that was asked for.
    pub intervals: Vec<Interval>,
    /// When machines were away.
    pub absences: Vec<Absence>,
    /// Seconds of work that were done and lost with a machine, over all jobs.
    pub lost_work_s: i64,
}

/// What a run may have beyond its setup.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Jobs that ended before the first one of the trace, for estimates to be learned from: times
    /// on its clock, users and groups under its numbers.
    pub past: Vec<TraceJob>,
    /// What goes wrong.
    pub faults: Option<Faults>,
    /// How often jobs save their work, in seconds. Without it, they save it when they are told to
    /// make room, and only then.
    pub checkpoint_every_s: Option<i64>,
    /// Whether every interval is kept: it takes memory.
    pub intervals: bool,
}

/// An attempt of a job on a machine. Times are seconds after the first submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its place in the trace.
    pub job: u32,
    /// Which attempt.
    pub attempt: u32,
    /// The machine.
    pub node: u32,
    /// From this second on.
    pub start_s: i64,
    /// Until this one.
    pub end_s: i64,
    /// Which of the machine's GPUs, as bits.
    pub gpus: u64,
    /// Thousandths of GPUs.
    pub gpu_milli: u32,
    /// Thousandths of processors.
    pub cpu_milli: u32,
    /// Memory.
    pub memory_mib: u32,
}

/// A machine was away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// Which.
    pub node: u32,
    /// From this second on.
    pub from_s: i64,
    /// Until this one.
    pub to_s: i64,
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
    /// How often hardware under it was lost.
    pub losses: u32,
    /// Whether it was stopped at its limit with work left to do.
    pub over_limit: bool,
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
    run_with(trace, setup, &Options::default(), &mut |ended, _| progress(ended))
}

/// Runs a trace after a past to learn from: jobs that ended before the first one of the trace,
/// with times on its clock, and users and groups under its numbers.
pub fn run_after(
    past: &[TraceJob],
    trace: &Trace,
    setup: &Setup,
    progress: &dyn Fn(u64),
) -> Result<Run, BadInput> {
    let options = Options { past: past.to_vec(), ..Options::default() };
    run_with(trace, setup, &options, &mut |ended, _| progress(ended))
}

/// Runs a trace. `watch` is shown how many jobs have ended, and the state, after each second in
/// which something happened.
pub fn run_with(
    trace: &Trace,
    setup: &Setup,
    options: &Options,
    watch: &mut dyn FnMut(u64, &State),
) -> Result<Run, BadInput> {
    refuse_faults_out_of_place(setup, options)?;
    let house = House::new(trace, setup)?;
    let machines = setup.machines.count();
    let last_s = trace.jobs.last().map_or(0, |job| job.submit_s);
    let mut driver = Driver {
        trace,
        setup,
        options,
        house,
        executor: Executor::new(trace.jobs.len(), options.intervals),
        weather: options.faults.map(|faults| faults.weather(machines, last_s)),
        effects: Vec::new(),
        by_id: vec![usize::MAX],
        run: Run { jobs: vec![JobRun::default(); trace.jobs.len()], ..Run::default() },
        next: 0,
        learner: None,
    };
    driver.learn_from(&options.past);
    driver.run.given = vec![Given::default(); machines];
    while let Some(second) = driver.next_second() {
        driver.executor.looked(second);
        driver.publish(second);
        match setup.like {
            Like::Pyss => driver.one_by_one(second),
            _ => driver.batch(second),
        }
        watch(driver.executor.ended(), &driver.house.state);
    }
    driver.name_those_that_never_fit();
    driver.run.inputs = driver.house.state.seq();
    Ok(driver.run)
}

/// Another simulator's order of things knows no faults, and a pool has no node that could fail.
fn refuse_faults_out_of_place(setup: &Setup, options: &Options) -> Result<(), BadInput> {
    let Some(faults) = options.faults else { return Ok(()) };
    let bad = |problem: &str| Err(BadInput::new(problem).field("--faults"));
    if setup.like != Like::Era {
        return bad("nothing goes wrong in the runs of other simulators: leave out --like");
    }
    if faults.mtbf_s.is_some() && matches!(setup.machines, Machines::Pool { .. }) {
        return bad("a pool has no nodes that could fail: choose another --placement");
    }
    Ok(())
}

struct Driver<'a> {
    trace: &'a Trace,
    setup: &'a Setup,
    options: &'a Options,
    house: House,
    executor: Executor,
    weather: Option<Weather>,
    /// What the core wants done, and is not done yet.
    effects: Vec<Effect>,
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
        let change = self.weather.as_ref().and_then(Weather::next_second);
        [arrival, end, look, change].into_iter().flatten().min()
    }

    /// Tells the core, and keeps what it wants done.
    fn send(&mut self, at: Time, command: Command) -> Reply {
        let output = self.house.send(at, command);
        self.effects.extend(output.effects);
        output.reply
    }

    /// All ends, then all submissions, then one pass.
    fn batch(&mut self, second: i64) {
        let before = instant(second) - GRACE - Span(1);
        while let Some(index) = self.executor.take_end(second) {
            // What is not done by its limit, the core ends by itself.
            if self.executor.is_done(index, second) {
                self.end(index, second, before);
            }
        }
        self.change_weather(second, before);
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
        let limit_s = self.setup.estimates.limit_s(job);
        let limit_s = self.options.faults.map_or(limit_s, |faults| faults.limit_s(index, limit_s));
        let job = self.house.new_job(job, Span::from_s(limit_s));
        match self.send(at, Command::Submit { key: None, job }) {
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
            self.send(at, Command::Exited { task, code: 0, at: None });
        }
    }

    /// Goes through the queue, and once more where something had to make room.
    fn pass(&mut self, second: i64) {
        for _ in 0..2 {
            self.send(instant(second), Command::Pass);
            let mut stopped: Vec<usize> = Vec::new();
            for effect in std::mem::take(&mut self.effects) {
                match effect {
                    Effect::Launch { task, node, each, gpus, until, .. } => {
                        let until_s = until.since(instant(0)).0 / 1000;
                        let launch = Launch { task, node, each: &each, gpus: &gpus, until_s };
                        self.launch(second, &launch);
                    }
                    Effect::Stop { task, why: StopReason::Preempted, .. } => {
                        let index = self.index(task.job);
                        if stopped.last() != Some(&index) {
                            stopped.push(index);
                        }
                    }
                    Effect::Stop { task, why: StopReason::Limit, .. } => {
                        self.over_limit(self.index(task.job), second);
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

    fn launch(&mut self, second: i64, launch: &Launch<'_>) {
        let index = self.index(launch.task.job);
        let job = &self.trace.jobs[index];
        let faults = self.options.faults;
        let takes_s = faults.map_or(job.duration_s, |faults| faults.duration_s(index, job));
        self.executor.launch(index, second, takes_s, launch);
        self.run.jobs[index].start_s.get_or_insert(second);
        self.run.jobs[index].node = launch.node.0;
        if self.setup.like != Like::Tiresias {
            self.look_ahead(index, second);
        }
    }

    /// A job was told to make room: it saves its work and is gone at once.
    fn preempted(&mut self, index: usize, second: i64) {
        let tasks = self.executor.stop(index, second, &mut self.run);
        self.run.jobs[index].preemptions += 1;
        let done = Span::from_s(self.executor.done_s(index));
        for (rank, task) in tasks.into_iter().enumerate() {
            if rank == 0 && done > Span::ZERO {
                self.send(instant(second), Command::Checkpointed { task, done });
            }
            self.send(instant(second), Command::Exited { task, code: 143, at: None });
        }
    }

    /// In the end every machine is there and idle: whatever still waits fits nowhere.
    fn name_those_that_never_fit(&mut self) {
        let refused: std::collections::BTreeSet<usize> =
            self.run.never_fit.iter().map(|(index, _)| *index).collect();
        for (index, ran) in self.run.jobs.iter().enumerate() {
            if ran.start_s.is_none() && !refused.contains(&index) {
                let gpus = f64::from(self.trace.jobs[index].gpu_milli) / 1000.0;
                let why = format!("{gpus} GPUs do not fit on the whole cluster, even when empty");
                self.run.never_fit.push((index, why));
            }
        }
        self.run.never_fit.sort();
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
