//! Where candidates are run: a trace or a journal, cut into a part to learn from and a part to
//! be judged on.

use era_core::market::MarketRules;
use era_core::queue::PolicyRule;

use super::candidate::MarketPoint;
use super::factors::FactorRow;
use super::measured::Measured;
use crate::BadInput;
use crate::measure::measure;
use crate::replay::{JobHistory, RecordedHistory, RecordedInput, RuleOverrides, rerun};
use crate::run::{Setup, run};
use crate::trace::Trace;

/// Which part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkSplit {
    /// The first, which a search may see.
    Train,
    /// The later one, which it never sees.
    Test,
}

/// Runs rules on work. `policy` is `None` for the one in force.
pub trait Bench: Sync {
    /// What a run is like, and the jobs it is made of.
    fn run(
        &self,
        part: WorkSplit,
        policy: Option<&PolicyRule>,
        market: Option<&MarketPoint>,
    ) -> Result<(Measured, Vec<FactorRow>), BadInput>;

    /// The market's rules, if prices decide anything here.
    fn market(&self) -> Option<MarketRules>;

    /// How many jobs a part has.
    fn jobs(&self, part: WorkSplit) -> usize;
}

/// A trace on a cluster of its own.
pub struct TraceBench {
    parts: [Trace; 2],
    setup: Setup,
}

impl TraceBench {
    /// The first share of a trace's jobs to learn from, the rest to be judged on. The setup's
    /// policy is the one in force.
    pub fn new(trace: &Trace, setup: Setup, train: f64) -> Result<TraceBench, BadInput> {
        let jobs = trace.jobs.len();
        let cut = cut(jobs, train)?;
        let part = |from: usize, to: usize| {
            let first = trace.jobs[from].submit_s;
            let mut jobs = trace.jobs[from..to].to_vec();
            for job in &mut jobs {
                job.submit_s -= first;
                job.deadline_s = job.deadline_s.map(|deadline| deadline - first);
            }
            let (users, groups) = (trace.users.clone(), trace.groups.clone());
            Trace { jobs, users, groups, ..Trace::default() }
        };
        Ok(TraceBench { parts: [part(0, cut), part(cut, jobs)], setup })
    }

    fn part(&self, part: WorkSplit) -> &Trace {
        &self.parts[usize::from(part == WorkSplit::Test)]
    }
}

/// How many of so many jobs are learned from.
fn cut(jobs: usize, train: f64) -> Result<usize, BadInput> {
    if !(0.1..=0.9).contains(&train) {
        return Err(BadInput::new("give 0.1 to 0.9").field("--train"));
    }
    let cut = (jobs as f64 * train) as usize;
    if cut < 2 || jobs - cut < 2 {
        let problem =
            format!("{jobs} jobs are too few to learn from one part and judge on another");
        return Err(BadInput::new(problem));
    }
    Ok(cut)
}

impl Bench for TraceBench {
    fn run(
        &self,
        part: WorkSplit,
        policy: Option<&PolicyRule>,
        _: Option<&MarketPoint>,
    ) -> Result<(Measured, Vec<FactorRow>), BadInput> {
        let trace = self.part(part);
        let mut setup = self.setup.clone();
        setup.policy = policy.cloned().unwrap_or(setup.policy);
        let ran = run(trace, &setup, &|_| ())?;
        let mut rows = Vec::with_capacity(trace.jobs.len());
        let mut value = 0.0;
        for (job, ran) in trace.jobs.iter().zip(&ran.jobs) {
            let (Some(start), Some(end)) = (ran.start_s, ran.end_s) else { continue };
            rows.push(FactorRow {
                wait_s: (start - job.submit_s) as f64,
                run_s: (end - start) as f64,
                gpu_milli: u64::from(job.gpu_milli),
                user: job.user.unwrap_or(0),
                hour: (job.submit_s / 3600).rem_euclid(24) as u8,
                limit_s: setup.estimates.limit_s(job) as f64,
            });
            let in_time = job.deadline_s.is_none_or(|deadline| end <= deadline);
            value += job.value.filter(|_| in_time).unwrap_or(0) as f64 / 1e6;
        }
        Ok((Measured::of_trace(&measure(trace, &setup, &ran), &rows, value), rows))
    }

    fn market(&self) -> Option<MarketRules> {
        None
    }

    fn jobs(&self, part: WorkSplit) -> usize {
        self.part(part).jobs.len()
    }
}

/// A journal, run again as [`rerun`] does it.
pub struct JournalBench {
    history: RecordedHistory,
    /// How many asks the first part has.
    cut: usize,
}

impl JournalBench {
    /// The first share of a journal's asks to learn from, the rest to be judged on: from the
    /// state that was recorded in between.
    pub fn new(history: RecordedHistory, train: f64) -> Result<JournalBench, BadInput> {
        let wanted = cut(history.asks.len(), train)?;
        let (cut, _) = history.mark_before(wanted);
        if cut == 0 {
            return Err(BadInput::new("the journal is too short to be cut in two"));
        }
        Ok(JournalBench { history, cut })
    }

    fn asks(&self, part: WorkSplit) -> &[RecordedInput] {
        match part {
            WorkSplit::Train => &self.history.asks[..self.cut],
            WorkSplit::Test => &self.history.asks[self.cut..],
        }
    }
}

impl Bench for JournalBench {
    fn run(
        &self,
        part: WorkSplit,
        policy: Option<&PolicyRule>,
        market: Option<&MarketPoint>,
    ) -> Result<(Measured, Vec<FactorRow>), BadInput> {
        let start = match part {
            WorkSplit::Train => &self.history.start,
            WorkSplit::Test => self.history.mark_before(self.cut).1,
        };
        let rules = RuleOverrides {
            policy: policy.cloned(),
            mechanism: market.map(|point| point.mechanism.clone()),
            floor: market.map(|point| point.floor),
            ..RuleOverrides::default()
        };
        let rerun = rerun(&self.history, start, self.asks(part), &rules, &|_| ())?;
        // What was there before belongs to the part before.
        let stories: Vec<&JobHistory> = rerun
            .book
            .stories
            .iter()
            .filter(|(job, _)| start.job(**job).is_err())
            .map(|(_, story)| story)
            .collect();
        // Nodes come and go; those of the whole record's largest cluster are what could be used.
        let states = self.history.marks.iter().map(|(_, state)| state).chain([start]);
        let gpus = states.map(gpu_milli).max().unwrap_or(0);
        let rows = stories.iter().filter_map(|story| FactorRow::of_story(story)).collect();
        Ok((Measured::of_stories(&stories, gpus), rows))
    }

    fn market(&self) -> Option<MarketRules> {
        let bids = self.history.book.stories.values().any(|story| story.bid.is_some());
        let (_, last) = self.history.mark_before(usize::MAX);
        bids.then(|| last.calendar().market().rules.clone())
    }

    fn jobs(&self, part: WorkSplit) -> usize {
        let submits =
            |ask: &&RecordedInput| matches!(ask.command, era_core::Command::Submit { .. });
        self.asks(part).iter().filter(submits).count()
    }
}

fn gpu_milli(state: &era_core::State) -> u64 {
    state.cluster().nodes().map(|node| node.capacity.gpus.len() as u64 * 1000).sum()
}
