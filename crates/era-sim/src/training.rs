//! Learning from a journal: from the platform's own history, as it unfolded.
//!
//! The journal is replayed through the core, so every job is seen with the very features that the
//! core had when it came. A journal does not say what jobs used: that was measured beside it, and
//! is handed in by job. It is learned when a job ends, like its duration, and never before.
//!
//! Only queue work that succeeded is learned from: it is what the core predicts, and what it
//! remembers owners by.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use era_core::estimate::Estimates;
use era_core::job::Outcome;
use era_core::resources::{PerResource, Resource};
use era_core::units::{JobId, Span, Time};
use era_core::{Event, State};

use crate::BadInput;
use crate::accuracy::{AccuracyReport, report};
use crate::estimate::{EstimateLearner, LearnerSettings};
use crate::journal::Reader;
use crate::replay::{NotReplayed, verify};
use crate::run::{JobRun, TraceRun};
use crate::trace::table::Table;
use crate::trace::{MeasuredUse, Trace, TraceJob, source};

/// What jobs used, by their number.
pub type UseByJob = BTreeMap<JobId, MeasuredUse>;

/// What a journal taught.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// What is to be published, if there was enough to learn from.
    pub estimates: Option<Arc<Estimates>>,
    /// How predictions would have gone, had all been published that could be at each moment.
    pub report: Option<AccuracyReport>,
    /// Jobs that ended and were learned from.
    pub jobs: usize,
    /// Those of them whose use is known.
    pub with_use: usize,
}

/// A job under way.
struct Open {
    job: TraceJob,
    ran: JobRun,
    /// When its attempt began, and what was done before.
    attempt: Option<(Time, Span)>,
}

struct JournalLessons<'a> {
    learner: EstimateLearner,
    uses: &'a UseByJob,
    open: BTreeMap<JobId, Open>,
    ended: Vec<(TraceJob, JobRun)>,
}

/// Replays a journal, and learns from it what it can. `progress` is told how many inputs are
/// through.
pub fn learn(
    journal: Reader,
    uses: &UseByJob,
    progress: &dyn Fn(u64),
) -> Result<Recorded, NotReplayed> {
    let settings = LearnerSettings { stated: true, ..LearnerSettings::default() };
    let mut lessons = JournalLessons {
        learner: EstimateLearner::new(settings),
        uses,
        open: BTreeMap::new(),
        ended: Vec::new(),
    };
    let mut inputs = 0;
    let replayed = verify(journal, &mut |_| (), &mut |step| {
        inputs += 1;
        progress(inputs);
        lessons.publish(step.state.now());
        for event in &step.output.events {
            lessons.note(step.state, event);
        }
    })?;
    let now = replayed.replay.state().now();
    let open = &lessons.open;
    let estimates = lessons.learner.learn_now(second(now), |job| ran(open, job, now));
    Ok(lessons.recorded(estimates))
}

impl JournalLessons<'_> {
    /// Publishes what was learned from all that ended before this moment, if it is time to.
    fn publish(&mut self, now: Time) {
        let open = &self.open;
        self.learner.publish(second(now), |job| ran(open, job, now));
    }

    fn note(&mut self, state: &State, event: &Event) {
        match event {
            Event::Queued { job, count, .. } => {
                for nth in 0..u64::from(*count) {
                    self.submitted(state, JobId(job.0 + nth));
                }
            }
            Event::Launched { job, part: 0, .. } => {
                let done = state.job(*job).ok().and_then(|job| job.parts.first()).map(|p| p.done);
                if let Some(open) = self.open.get_mut(job) {
                    open.attempt = Some((state.now(), done.unwrap_or(Span::ZERO)));
                    open.ran.start_s.get_or_insert(second(state.now()));
                }
            }
            Event::Requeued { job, .. } => {
                if let Some(open) = self.open.get_mut(job) {
                    open.attempt = None;
                }
            }
            Event::Ended { job, outcome, at } => {
                self.ended(*job, outcome, at.unwrap_or(state.now()));
            }
            _ => {}
        }
    }

    fn submitted(&mut self, state: &State, id: JobId) {
        let Ok(job) = state.job(id) else { return };
        let features = state.features_of(job);
        let said = self.learner.published().and_then(|known| known.predict(&features));
        self.learner.submitted(id.0 as usize, features, said.as_ref());
        let request = &job.first_part().request;
        let size = |resource: Resource| {
            u32::try_from(request.units()[resource as usize]).unwrap_or(u32::MAX)
        };
        let job = TraceJob {
            id: id.0.to_string().into(),
            submit_s: second(job.submitted),
            stated_s: Some(request.duration.0 / 1000),
            gpu_milli: size(Resource::Gpu),
            cpu_milli: size(Resource::Cpu),
            memory_mib: size(Resource::Memory),
            user: Some(job.user.0),
            group: Some(job.group.0),
            used: self.uses.get(&id).copied().unwrap_or_default(),
            ..TraceJob::default()
        };
        let ran = JobRun { predicted: said.as_ref().map(Into::into), ..JobRun::default() };
        self.open.insert(id, Open { job, ran, attempt: None });
    }

    fn ended(&mut self, id: JobId, outcome: &Outcome, now: Time) {
        let Some(Open { mut job, mut ran, attempt }) = self.open.remove(&id) else { return };
        let number = id.0 as usize;
        let Some((since, before)) = attempt.filter(|_| *outcome == Outcome::Succeeded) else {
            return self.learner.gave_up(number);
        };
        let took = Span(before.0 + now.since(since).0);
        self.learner.ended(number, took, job.shares_used());
        job.duration_s = (took.0 / 1000).max(1);
        ran.end_s = Some(second(now));
        self.ended.push((job, ran));
    }

    fn recorded(mut self, estimates: Option<Arc<Estimates>>) -> Recorded {
        self.ended.sort_by_key(|(job, _)| job.submit_s);
        let known = |shares: PerResource<_>| shares.iter().any(Option::is_some);
        let with_use = self.ended.iter().filter(|(job, _)| known(job.shares_used())).count();
        let (jobs, runs): (Vec<TraceJob>, Vec<JobRun>) = self.ended.into_iter().unzip();
        let count = jobs.len();
        let trace = Trace { jobs, ..Trace::default() };
        let run = TraceRun { jobs: runs, ..TraceRun::default() };
        Recorded { estimates, report: report(&trace, &run), jobs: count, with_use }
    }
}

/// How long an open job has run.
fn ran(open: &BTreeMap<JobId, Open>, job: usize, now: Time) -> Span {
    let attempt = open.get(&JobId(job as u64)).and_then(|open| open.attempt);
    attempt.map_or(Span::ZERO, |(since, before)| Span(before.0 + now.since(since).0))
}

fn second(at: Time) -> i64 {
    at.0.div_euclid(1000)
}

/// Reads what jobs used, in the mean over their runs: a table with the columns `job_id`, and any of
/// `used_gpus`, `used_cpus` and `used_mem_gb`.
pub fn read_uses(path: &Path) -> Result<UseByJob, BadInput> {
    read_table(path).map_err(|error| error.file(path))
}

fn read_table(path: &Path) -> Result<UseByJob, BadInput> {
    let mut table = Table::new(source::open(path)?.all)?;
    let id = table.required(&["job_id"])?;
    let [gpus, cpus, memory] =
        ["used_gpus", "used_cpus", "used_mem_gb"].map(|name| table.column(&[name]));
    let mut uses = UseByJob::new();
    while let Some(row) = table.next()? {
        let number = row.filled(&id)?.parse().map_err(|_| row.bad(&id, "give a job's number"))?;
        let used = MeasuredUse {
            cpu_milli: row.known_milli(cpus.as_ref())?,
            memory_mib: row.known_mib_of_gib(memory.as_ref())?,
            gpu_milli: row.known_milli(gpus.as_ref())?,
        };
        if uses.insert(JobId(number), used).is_some() {
            return Err(row.bad(&id, format!("job {number} is there twice")));
        }
    }
    Ok(uses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{SampleSpec, sample};

    fn journal(inputs: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        sample(SampleSpec { seed: 3, inputs, segments: 2 }, &mut bytes, &|_| ()).unwrap();
        bytes
    }

    fn learned(bytes: &[u8], uses: &UseByJob) -> Recorded {
        let from = Box::new(std::io::Cursor::new(bytes.to_vec()));
        learn(Reader::new(Path::new("journal"), from), uses, &|_| ()).unwrap()
    }

    /// All jobs of a journal used so much memory.
    fn uses(share_of_numbers: impl Fn(u64) -> u32) -> UseByJob {
        let used =
            |job| MeasuredUse { memory_mib: Some(share_of_numbers(job)), ..MeasuredUse::default() };
        (1..100_000).map(|job| (JobId(job), used(job))).collect()
    }

    #[test]
    fn a_journal_teaches_durations_and_with_a_table_of_use_what_was_used() {
        let bytes = journal(6_000);
        let plain = learned(&bytes, &UseByJob::new());
        let estimates = plain.estimates.unwrap();
        assert!(estimates.duration.is_some() && estimates.used.is_empty());
        assert_eq!((plain.with_use, estimates.check()), (0, Ok(())));
        let measured = learned(&bytes, &uses(|_| 1));
        assert_eq!(measured.jobs, plain.jobs);
        let estimates = measured.estimates.unwrap();
        assert_eq!(estimates.check(), Ok(()));
        assert_eq!(estimates.used.keys().collect::<Vec<_>>(), [&Resource::Memory]);
        let judged = measured.report.unwrap().used[&Resource::Memory];
        assert!(judged.predicted < 0.05 && judged.asked > 0.5, "{judged:?}");
    }

    /// What is learned by some moment is the same whatever the jobs that had not ended by then turn
    /// out to use.
    #[test]
    fn nothing_is_learned_from_what_had_not_ended() {
        let bytes = journal(6_000);
        let lines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let cut = &bytes[..lines.map(|(at, _)| at + 1).nth(4_000).unwrap()];
        let mut ended = std::collections::BTreeSet::new();
        let reader =
            Reader::new(Path::new("journal"), Box::new(std::io::Cursor::new(cut.to_vec())));
        let mut note = |step: crate::replay::ReplayStep<'_>| {
            ended.extend(step.output.events.iter().filter_map(|event| match event {
                Event::Ended { job, .. } => Some(job.0),
                _ => None,
            }));
        };
        verify(reader, &mut |_| (), &mut note).unwrap();
        let used = |job: u64| 1 + (job % 7) as u32;
        let told = learned(cut, &uses(used));
        let other = uses(|job| if ended.contains(&job) { used(job) } else { 4_000 });
        assert!(told.jobs > 60 && told.estimates.is_some());
        assert_eq!(told.estimates, learned(cut, &other).estimates);
    }

    #[test]
    fn a_table_of_use_is_read_and_what_is_wrong_in_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("used.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_uses(&path)
        };
        let uses = read("job_id,used_gpus,used_cpus,used_mem_gb\n7,0.5,,1.5\n").unwrap();
        let used = MeasuredUse { cpu_milli: None, memory_mib: Some(1536), gpu_milli: Some(500) };
        assert_eq!(uses, UseByJob::from([(JobId(7), used)]));
        for (text, field) in [
            ("used_gpus\n1\n", "job_id"),
            ("job_id,used_gpus\nx,1\n", "job_id"),
            ("job_id,used_gpus\n7,-1\n", "used_gpus"),
            ("job_id,used_gpus\n7,1\n7,1\n", "job_id"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.field.as_deref(), Some(field), "{error}");
        }
    }
}
