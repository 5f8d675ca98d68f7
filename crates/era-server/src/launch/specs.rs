//! What a job runs, found by its number: in a small cache, else in the journal.
//!
//! The core knows what a job needs and not what it runs; that stands in the note beside the
//! submission. A note is looked up once for all tasks of a job and all jobs of an array.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use era_api::job::NewJob;
use era_cloud::{Limits, TaskSpec};
use era_core::units::{JobId, UserId};
use era_store::journal::Journal;
use era_store::note::{Indices, Note};
use serde_json::value::RawValue;

use super::{Material, Staging};

/// Most notes at hand.
const NOTES_MAX: usize = 16_384;

/// A job as it was handed in, or an array of them.
struct Kept {
    user_name: String,
    job: NewJob,
    indices: Option<Indices>,
    /// How many jobs it made.
    count: u64,
    /// Its files, once they were looked up.
    material: tokio::sync::OnceCell<Result<Material, String>>,
}

impl Kept {
    fn of(note: &str) -> Result<Kept, String> {
        let note = Note::read(note).map_err(|e| e.to_string())?;
        let spec = note.spec.ok_or("nothing says what it runs")?;
        let job: NewJob = serde_json::from_str(spec.get()).map_err(|e| e.to_string())?;
        let count = job.array.and_then(|array| array.count()).unwrap_or(1);
        Ok(Kept {
            user_name: note.user.unwrap_or_default(),
            indices: note.array,
            count: u64::from(count),
            job,
            material: tokio::sync::OnceCell::new(),
        })
    }
}

/// Everything that is known of what jobs run.
pub(super) struct Specs {
    journal: Journal,
    staging: Arc<dyn Staging>,
    jobs: PathBuf,
    /// By the first job of a submission.
    kept: BTreeMap<JobId, Arc<Kept>>,
}

impl Specs {
    pub(super) fn new(journal: Journal, staging: Arc<dyn Staging>, jobs: PathBuf) -> Specs {
        Specs { journal, staging, jobs, kept: BTreeMap::new() }
    }

    /// Keeps the note of a job that was accepted just now.
    pub(super) fn accepted(&mut self, first: JobId, note: &RawValue) {
        match Kept::of(note.get()) {
            Ok(kept) => self.keep(first, Arc::new(kept)),
            // It is looked up again when the job starts, and told then.
            Err(problem) => tracing::warn!(job = %first, problem, "a job's note cannot be read"),
        }
    }

    /// What a task of this job runs, or why it cannot be run.
    pub(super) async fn of(&mut self, user: UserId, job: JobId) -> Result<Arc<TaskSpec>, String> {
        let (first, kept) = self.find(job).await?;
        let material = kept
            .material
            .get_or_init(|| self.staging.stage(user, &kept.user_name, &kept.job.work))
            .await
            .clone()?;
        let work = &kept.job.work;
        let array = kept.indices.map(|indices| {
            let place = u32::try_from(job.0 - first.0).unwrap_or(u32::MAX);
            (first, indices.nth(place), u32::try_from(kept.count).unwrap_or(u32::MAX))
        });
        Ok(Arc::new(TaskSpec {
            user,
            user_name: kept.user_name.clone(),
            job_name: kept.job.name.clone(),
            command: work.command.clone(),
            env: work.env.clone(),
            code: material.code,
            inputs: material.inputs,
            image: material.image,
            folder: self.jobs.join(job.0.to_string()),
            alone: kept.job.ask.is_one_task(),
            array,
            limits: Limits::default(),
        }))
    }

    async fn find(&mut self, job: JobId) -> Result<(JobId, Arc<Kept>), String> {
        let near = self.kept.range(..=job).next_back();
        if let Some((first, kept)) = near
            && job.0 - first.0 < kept.count
        {
            return Ok((*first, kept.clone()));
        }
        let found = self.journal.submission(job).await.map_err(|e| e.to_string())?;
        let (first, entry) = found.ok_or("its submission is not in the journal")?;
        let note = entry.note.ok_or("nothing says what it runs")?;
        let kept = Arc::new(Kept::of(&note)?);
        if job.0 - first.0 >= kept.count {
            return Err("its submission is not in the journal".to_owned());
        }
        self.keep(first, kept.clone());
        Ok((first, kept))
    }

    fn keep(&mut self, first: JobId, kept: Arc<Kept>) {
        // The oldest goes: it has most likely started, and is found again if not.
        if self.kept.len() >= NOTES_MAX {
            self.kept.pop_first();
        }
        self.kept.insert(first, kept);
    }
}
