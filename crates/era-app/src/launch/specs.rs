//! What a job runs, found by its number: in a small cache, else in the journal.
//!
//! The core knows what a job needs and not what it runs; that stands in the note beside the
//! submission. A note is looked up once for all tasks of a job and all jobs of an array. What the
//! store could not say is not remembered: it is asked again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use era_cloud::{TaskLimits, TaskSecrets, TaskSpec};
use era_core::units::{JobId, UserId};
use era_spec::JobSpec;
use era_store::StoreError;
use era_store::journal::Journal;
use era_store::note::Note;
use era_store::secrets::SecretStore;
use serde_json::value::RawValue;
use tokio::sync::{OnceCell, Semaphore};

use super::{Material, Staging, Unstaged};

/// Most notes at hand.
const NOTES_MAX: usize = 16_384;
/// Most jobs that are looked up at a time: a store that is slow is not asked for all at once.
const LOOKUPS_MAX: usize = 8;

/// A job as it was handed in, or an array of them.
struct KeptSpec {
    user_name: String,
    job: JobSpec,
    /// The trees of its inputs, as they were then.
    inputs: Option<Vec<Option<String>>>,
    /// The job whose checkpoints it begins with.
    checkpoints_of: Option<JobId>,
    /// How many jobs it made.
    count: u64,
    /// Its files, once they were looked up.
    material: OnceCell<Material>,
}

impl KeptSpec {
    fn of(note: &str) -> Result<KeptSpec, String> {
        let note = Note::read(note).map_err(|e| e.to_string())?;
        let job = *note.spec.ok_or("nothing says what it runs")?;
        let count = job.array.and_then(|array| array.count()).unwrap_or(1);
        let needs_nothing =
            job.work.code.is_none() && job.work.inputs.is_empty() && job.work.image.is_none();
        Ok(KeptSpec {
            user_name: note.user.unwrap_or_default(),
            inputs: note.inputs,
            checkpoints_of: note.checkpoints_of.map(JobId),
            count: u64::from(count),
            job,
            material: OnceCell::new_with(needs_nothing.then(Material::default)),
        })
    }

    /// What a task of this job runs, where its files are known.
    fn spec(
        &self,
        folder: &Path,
        limits: TaskLimits,
        user: UserId,
        first: JobId,
        job: JobId,
    ) -> Option<Arc<TaskSpec>> {
        let Material { code, inputs, image } = self.material.get()?.clone();
        let work = &self.job.work;
        let array = self.job.array.map(|indices| {
            let place = u32::try_from(job.0 - first.0).unwrap_or(u32::MAX);
            (first, indices.nth(place), u32::try_from(self.count).unwrap_or(u32::MAX))
        });
        Some(Arc::new(TaskSpec {
            user,
            user_name: self.user_name.clone(),
            job_name: self.job.name.clone(),
            command: work.command.clone(),
            env: work.env.clone(),
            secrets: TaskSecrets::named(&work.secrets),
            code,
            inputs,
            image,
            folder: job.folder(folder),
            checkpoints_of: self.checkpoints_of.map(|job| job.folder(folder)),
            alone: self.job.ask.is_one_task(),
            terminal: work.terminal,
            array,
            limits,
        }))
    }
}

/// Everything that is known of what jobs run.
pub(super) struct Specs {
    journal: Journal,
    secrets: SecretStore,
    staging: Arc<dyn Staging>,
    folder: PathBuf,
    limits: TaskLimits,
    /// By the first job of a submission.
    kept: Mutex<BTreeMap<JobId, Arc<KeptSpec>>>,
    turns: Semaphore,
}

impl Specs {
    pub(super) fn new(
        journal: Journal,
        secrets: SecretStore,
        staging: Arc<dyn Staging>,
        folder: PathBuf,
        limits: TaskLimits,
    ) -> Specs {
        let turns = Semaphore::new(LOOKUPS_MAX);
        Specs { journal, secrets, staging, folder, limits, kept: Mutex::default(), turns }
    }

    pub(super) fn folder(&self, job: JobId) -> PathBuf {
        job.folder(&self.folder)
    }

    /// Keeps the note of a job that was accepted just now.
    pub(super) fn accepted(&self, first: JobId, note: &RawValue) {
        match KeptSpec::of(note.get()) {
            Ok(kept) => self.keep(first, Arc::new(kept)),
            // It is looked up again when the job starts, and told then.
            Err(problem) => tracing::warn!(job = %first, problem, "a job's note cannot be read"),
        }
    }

    /// What a task of this job runs, if nobody need be asked for it. Of its secrets the names are
    /// known: their values are asked for whenever it starts ([`Specs::opened`]).
    pub(super) fn at_hand(&self, user: UserId, job: JobId) -> Option<Arc<TaskSpec>> {
        let (first, kept) = self.near(job)?;
        kept.spec(&self.folder, self.limits, user, first, job)
    }

    /// What a task of this job runs, or why it cannot be run.
    pub(super) async fn of(&self, user: UserId, job: JobId) -> Result<Arc<TaskSpec>, Unstaged> {
        let _turn = self.turns.acquire().await;
        let (first, kept) = self.find(job).await?;
        let inputs = kept.inputs.as_deref();
        let stage = || self.staging.stage(user, &kept.user_name, &kept.job.work, inputs);
        kept.material.get_or_try_init(stage).await?;
        let unknown = || Unstaged::ForNow("its files are not known yet".to_owned());
        kept.spec(&self.folder, self.limits, user, first, job).ok_or_else(unknown)
    }

    /// The same with the values that its secrets have now.
    pub(super) async fn opened(&self, mut spec: Arc<TaskSpec>) -> Result<Arc<TaskSpec>, Unstaged> {
        if !spec.secrets.lack_values() {
            return Ok(spec);
        }
        let _turn = self.turns.acquire().await;
        let names: Vec<String> = spec.secrets.names().cloned().collect();
        let values = self.secrets.open(spec.user.0, &names).await.map_err(|error| match error {
            // Where the key is kept is nothing to the owner of a job, and no doing of theirs.
            StoreError::File { .. } => {
                tracing::error!(%error, "the key of secrets cannot be read");
                Unstaged::ForNow("the key of secrets cannot be read".to_owned())
            }
            other => other.into(),
        })?;
        if let Some(name) = names.iter().find(|name| !values.contains_key(*name)) {
            return Err(Unstaged::ForGood(format!(
                "its secret `{name}` was removed: set it with `era secret set {name}`, and hand the \
                 job in again with `era retry`"
            )));
        }
        Arc::make_mut(&mut spec).secrets = TaskSecrets::new(values);
        Ok(spec)
    }

    fn near(&self, job: JobId) -> Option<(JobId, Arc<KeptSpec>)> {
        let all = self.all();
        let (first, kept) = all.range(..=job).next_back()?;
        (job.0 - first.0 < kept.count).then(|| (*first, kept.clone()))
    }

    async fn find(&self, job: JobId) -> Result<(JobId, Arc<KeptSpec>), Unstaged> {
        if let Some(near) = self.near(job) {
            return Ok(near);
        }
        let for_good = |problem: &str| Unstaged::ForGood(problem.to_owned());
        let unknown = || for_good("its submission is not in the journal");
        let found = self.journal.submission(job).await?;
        let (first, entry) = found.ok_or_else(unknown)?;
        let note = entry.note.ok_or_else(|| for_good("nothing says what it runs"))?;
        let kept = Arc::new(KeptSpec::of(&note).map_err(Unstaged::ForGood)?);
        if job.0 - first.0 >= kept.count {
            return Err(unknown());
        }
        self.keep(first, kept.clone());
        Ok((first, kept))
    }

    fn keep(&self, first: JobId, kept: Arc<KeptSpec>) {
        let mut all = self.all();
        // The oldest goes: it has most likely started, and is found again if not.
        if all.len() >= NOTES_MAX {
            all.pop_first();
        }
        all.insert(first, kept);
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<JobId, Arc<KeptSpec>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
