//! A trace through the production core, on a virtual clock.
//!
//! Whole seconds are all that a trace knows. A run that lasts as long as its limit must be over
//! before the core tells it to stop, so ends are reported just before the second that they fall
//! in, submissions and passes on it; nothing happens in between.

mod book;
mod cluster_file;
mod learning;
mod lost;
mod setup;
mod site;

use book::Book;
pub use cluster_file::{ClusterFile, read_cluster};
use era_core::queue::PolicyRule;
use era_core::units::{Span, Time};
use era_core::{Command, Reply, State, next_pass};
use era_drive::{Pace, World};
pub use learning::Predicted;
pub use setup::{
    BUCKETS_S, Like, MachineSetup, Machines, Setup, StatedDurations, UtilisationWeights,
    policy_named,
};
use site::Submitter;

use crate::BadInput;
use crate::estimate::EstimateLearner;
use crate::faults::{FaultSchedule, Faults};
use crate::trace::{Trace, TraceJob};

/// What became of a trace.
#[derive(Clone, Debug, Default)]
pub struct TraceRun {
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
    pub absences: Vec<MachineAbsence>,
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
    pub attempt: u32,
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
    pub memory_mib: u32,
}

/// A machine was away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineAbsence {
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
/// How long before its second an end is reported: before the core would tell it to stop.
const EARLY: Span = Span(2);

/// A trace does not know when a task began to run, but when it was launched.
const PACE: Pace = Pace { reports_start: false, ..Pace::AT_ONCE };

/// The instant of a second of the trace. There is room before the first one.
fn instant(second: i64) -> Time {
    Time::from_s(second + 3_600)
}

/// The first second of the trace that is not before an instant.
fn second_of(time: Time) -> i64 {
    -(-time.since(instant(0)).0).div_euclid(1_000)
}

/// Runs a trace. `progress` is told how many jobs have ended.
pub fn run(trace: &Trace, setup: &Setup, progress: &dyn Fn(u64)) -> Result<TraceRun, BadInput> {
    run_with(trace, setup, &Options::default(), &mut |ended, _| progress(ended))
}

/// Runs a trace after a past to learn from: jobs that ended before the first one of the trace,
/// with times on its clock, and users and groups under its numbers.
pub fn run_after(
    past: &[TraceJob],
    trace: &Trace,
    setup: &Setup,
    progress: &dyn Fn(u64),
) -> Result<TraceRun, BadInput> {
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
) -> Result<TraceRun, BadInput> {
    refuse_faults_out_of_place(setup, options)?;
    let (site, desk) = site::furnish(trace, setup)?;
    let machines = setup.machines.count();
    let last_s = trace.jobs.last().map_or(0, |job| job.submit_s);
    let early = if setup.like == Like::Pyss { Span::ZERO } else { EARLY };
    let book = Book::new(trace, options, machines).early(early);
    let mut driver = Driver {
        trace,
        setup,
        options,
        desk,
        world: World::of(&site, Time(0), PACE, book)?,
        weather: options.faults.map(|faults| faults.weather(machines, last_s)),
        next: 0,
        look: None,
        learner: None,
    };
    driver.learn_from(&options.past);
    while let Some(second) = driver.next_second() {
        driver.publish(second);
        match setup.like {
            Like::Pyss => driver.one_by_one(second),
            _ => driver.batch(second),
        }
        driver.note_ends();
        watch(driver.world.scenario().ended, driver.world.state());
    }
    let inputs = driver.world.state().seq();
    let mut run = driver.world.into_scenario().run;
    run.inputs = inputs;
    name_those_that_never_fit(trace, &mut run);
    Ok(run)
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
    desk: Submitter,
    world: World<Book<'a>>,
    weather: Option<FaultSchedule>,
    /// The next job of the trace to be submitted.
    next: usize,
    /// When another simulator looks again at what runs.
    look: Option<i64>,
    /// Who predicts, if anybody.
    learner: Option<EstimateLearner>,
}

impl<'a> Driver<'a> {
    fn book(&mut self) -> &mut Book<'a> {
        self.world.scenario_mut()
    }

    /// The next second in which something happens.
    fn next_second(&self) -> Option<i64> {
        let arrival = self.trace.jobs.get(self.next).map(|job| job.submit_s);
        let end = self.world.next_report().map(second_of);
        let change = self.weather.as_ref().and_then(FaultSchedule::next_second);
        let pass = match self.setup.like {
            Like::Tiresias => self.look,
            _ => next_pass(self.world.state()).map(second_of),
        };
        let next = [arrival, end, change].into_iter().flatten().min();
        // What does not start on a cluster where nothing runs any more, and nothing comes, never
        // does.
        next.map(|next| pass.map_or(next, |pass| pass.min(next)))
    }

    /// All ends, then all submissions, then one pass.
    fn batch(&mut self, second: i64) {
        let before = instant(second) - EARLY;
        while self.world.report(before) {}
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
        let now = instant(second);
        while self.next < self.trace.jobs.len() && self.trace.jobs[self.next].submit_s <= second {
            self.submit(now);
            self.world.settle(now);
        }
        while self.world.report(now) {
            self.world.settle(now);
        }
        self.world.until(now);
    }

    fn submit(&mut self, at: Time) {
        let index = self.next;
        self.next += 1;
        let job = &self.trace.jobs[index];
        let limit_s = self.setup.estimates.limit_s(job);
        let limit_s = self.options.faults.map_or(limit_s, |faults| faults.limit_s(index, limit_s));
        let job = self.desk.new_job(job, Span::from_s(limit_s));
        match self.world.send(at, Command::Submit { key: None, job }).reply {
            Reply::Accepted { job, .. } => {
                self.book().accepted(index, job);
                self.note_submission(index, job);
            }
            Reply::Refused { refusal, .. } => {
                self.book().run.never_fit.push((index, refusal.to_string()));
            }
            reply => debug_assert!(false, "a submission is accepted or refused: {reply:?}"),
        }
    }

    /// Goes through the queue for as long as that is due: once more where something made room.
    /// Another simulator does so whenever it looks.
    fn pass(&mut self, second: i64) {
        let now = instant(second);
        self.world.advance(now);
        if self.setup.like == Like::Tiresias {
            self.world.send(now, Command::Pass);
        }
        self.world.until(now);
    }

    /// That simulator looks again when the first run would pass its limit, if its service were
    /// counted without its GPUs until now and with them from now on.
    fn look_as_tiresias(&mut self, second: i64) {
        let PolicyRule::Las { limits } = &self.setup.policy else { return };
        let (state, running) = (self.world.state(), self.world.scenario().running(second));
        let looks = running.filter_map(|(index, task, done)| {
            let gpus = i64::from(self.trace.jobs[index].gpu_milli) / 1000;
            let class = state.job(task.job).ok()?.first_part().position.class;
            let limit = *limits.get(usize::from(class))? as i64;
            let after = (limit - done).div_euclid(gpus.max(1));
            (after > 0).then_some(second + after)
        });
        self.look = looks.min();
    }
}

/// In the end every machine is there and idle: whatever still waits fits nowhere.
fn name_those_that_never_fit(trace: &Trace, run: &mut TraceRun) {
    let refused: std::collections::BTreeSet<usize> =
        run.never_fit.iter().map(|(index, _)| *index).collect();
    for (index, ran) in run.jobs.iter().enumerate() {
        if ran.start_s.is_none() && !refused.contains(&index) {
            let gpus = f64::from(trace.jobs[index].gpu_milli) / 1000.0;
            let why = format!("{gpus} GPUs do not fit on the whole cluster, even when empty");
            run.never_fit.push((index, why));
        }
    }
    run.never_fit.sort();
}
