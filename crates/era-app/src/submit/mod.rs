//! Handing in a job: what every door (HTTP, TCP, retry) does in the same way.
//!
//! What is run is checked here, since the core knows nothing of commands and files; what it needs
//! and costs is the core's to judge.

mod check;
mod renew;
mod work;

use era_api::data::JobFolder;
use era_api::job::{JobSpec, Submitted, Work, WorkInput};
use era_api::secret::SECRETS_MAX;
use era_core::input::Terms;
use era_core::job::JobTerms;
use era_core::units::{JobId, Name, UserId};
use era_core::{Command, Refusal, Reply};
use era_store::Note;
use era_store::files::{ContentHash, DataSetKey, Viewer};
use era_store::tables::{JobRow, Tables};

pub use self::check::{CheckedDraft, check};
use self::renew::Predecessor;
pub use self::renew::RenewedJob;
use crate::Services;
use crate::answer::refused;
use crate::auth::Caller;
use crate::error::AppError;
use crate::files::{outputs, owner_as_viewer};
use crate::wire::{self, Wrong};

/// Whose job it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The account's number.
    pub user: UserId,
    /// What it is called.
    pub name: String,
    /// What its group is called.
    pub group: String,
}

/// Hands in a job, and answers once it is durable. It may begin with the checkpoints of an earlier
/// one of the same owner.
pub async fn submit(
    app: &Services,
    owner: &Owner,
    mut job: JobSpec,
    key: Option<Name>,
    checkpoints_of: Option<JobId>,
) -> Result<Submitted, AppError> {
    let received = app.clock.now();
    // What the defaults are may change: a job keeps those of its day.
    job.complete();
    work::check(&job.work, app.runs_images, app.terminals.is_some())?;
    known_secrets(app, owner.user, &job.work).await?;
    let viewer = owner_as_viewer(&app.driver, owner.user, &owner.name);
    let code = usable_code(app, &viewer, &job.work).await?;
    let inputs = usable_inputs(app, &viewer, &job.work).await?;
    let asked = wire::new_job(owner.user, &job)?;
    wire::optional_title("project", job.project.as_deref())?;
    let quoted = match &asked.terms {
        Terms::Bid { bid, .. } => app.asks.taken(bid, received),
        Terms::Hold { hold, .. } => {
            let snapshot = app.driver.snapshot();
            snapshot.hold(*hold).ok().and_then(|hold| app.asks.taken(&hold.bid, received))
        }
        _ => None,
    };
    let note = Note {
        user: Some(owner.name.clone()),
        group: Some(owner.group.clone()),
        spec: Some(job.into()),
        inputs: (!inputs.is_empty())
            .then(|| inputs.iter().map(|tree| tree.map(|tree| tree.to_string())).collect()),
        checkpoints_of: checkpoints_of.map(|job| job.0),
        received_ms: Some(received.0),
        quote_us: quoted.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
        ..Note::default()
    };
    // Whoever hangs up is not told, and their job is whole all the same.
    let (app, user) = (app.clone(), owner.user);
    let submitted = tokio::spawn(async move {
        let command = Command::Submit { key, job: asked };
        let answer = app.driver.ask(command, note.write()).await?;
        let mut submitted = submitted(answer.reply)?;
        submitted.checkpoints_of = note.checkpoints_of;
        let id = JobId(submitted.job);
        let inputs = match answer.made {
            true => inputs,
            false => same_work(&app, id, &note).await?,
        };
        // Before it is acknowledged: whoever was told yes finds code and data there, however long
        // the job waits. Whoever was not told asks again, by the same key.
        if let Some(code) = code {
            app.files.pin(id, user, code, true).await?;
        }
        for tree in inputs.into_iter().flatten() {
            app.files.pin(id, user, tree, false).await?;
        }
        Ok(submitted)
    });
    submitted.await.map_err(|e| AppError::internal(&e))?
}

/// What a submission was answered.
fn submitted(reply: Reply) -> Result<Submitted, AppError> {
    match reply {
        Reply::Accepted { job, quote, count } => {
            let quote = quote.as_ref().map(wire::quote);
            Ok(Submitted { job: job.0, count, quote, checkpoints_of: None })
        }
        other => Err(refused(other)),
    }
}

/// Refuses a job that names a secret which its owner has not set.
async fn known_secrets(app: &Services, user: UserId, work: &Work) -> Result<(), AppError> {
    if work.secrets.is_empty() {
        return Ok(());
    }
    let known = app.store.secrets().of(user.0, "", SECRETS_MAX as u32).await?;
    let is_known = |name: &&String| known.iter().any(|row| row.name == **name);
    match work.secrets.iter().find(|name| !is_known(name)) {
        Some(name) => {
            let unknown = Wrong::NoSecret { given: name.clone() };
            Err(AppError::bad_field("work.secrets", unknown))
        }
        None => Ok(()),
    }
}

/// The code of a job, which its owner must be able to read. It is kept for a while from here on.
async fn usable_code(
    app: &Services,
    viewer: &Viewer,
    work: &Work,
) -> Result<Option<ContentHash>, AppError> {
    let Some(code) = &work.code else { return Ok(None) };
    let hash: ContentHash = code.parse()?;
    app.files.check_usable(viewer, hash).await?;
    Ok(Some(hash))
}

/// The trees of a job's inputs as they are now, which its owner must be able to read: the job sees
/// these, whatever is done to the data sets. They are kept for a while from here on.
async fn usable_inputs(
    app: &Services,
    viewer: &Viewer,
    work: &Work,
) -> Result<Vec<Option<ContentHash>>, AppError> {
    let mut trees = Vec::with_capacity(work.inputs.len());
    for input in &work.inputs {
        let tree = app.files.usable_data(viewer, &data_set(&viewer.name, input)).await;
        trees.push(tree.map_err(|error| AppError::from(error).about("work.inputs"))?);
    }
    Ok(trees)
}

/// Which data set an input names: one of its owner's own, where it names no other.
pub fn data_set(owner: &str, input: &WorkInput) -> DataSetKey {
    let (owner, name) = input.data.split_once('/').unwrap_or((owner, &input.data));
    DataSetKey { owner: owner.to_owned(), name: name.to_owned() }
}

/// Refuses a key that was used for another job. The core has compared all but what is run, which
/// it does not know. The inputs are those that were noted the first time.
async fn same_work(
    app: &Services,
    job: JobId,
    note: &Note,
) -> Result<Vec<Option<ContentHash>>, AppError> {
    let Some((_, first)) = app.store.journal().submission(job).await? else {
        return Ok(Vec::new());
    };
    let before = first.note.as_deref().and_then(|text| Note::read(text).ok());
    let Some(before) = before else { return Ok(Vec::new()) };
    let mut spec = before.spec;
    // A release of before may have left it to whoever reads it.
    spec.iter_mut().for_each(|spec| spec.complete());
    if spec != note.spec || before.checkpoints_of != note.checkpoints_of {
        return Err(Refusal::KeyReused.into());
    }
    let inputs = before.inputs.unwrap_or_default().into_iter();
    Ok(inputs.map(|tree| tree.map(|tree| tree.parse()).transpose()).collect::<Result<_, _>>()?)
}

impl Owner {
    pub fn of(app: &Services, caller: &Caller) -> Owner {
        Owner {
            user: caller.user,
            name: caller.name.clone(),
            group: app.auth.directory().group_name(caller.group),
        }
    }
}

/// A job that is to be handed in again.
pub struct ResubmittedJob {
    /// Whose it was, and will be.
    pub owner: Owner,
    /// What it was.
    pub renewed: RenewedJob,
    /// The job whose checkpoints the new one can begin with.
    pub checkpoints_of: Option<JobId>,
}

/// What a job was, to be handed in again in its owner's name; for those who may see it.
pub async fn again(app: &Services, caller: &Caller, id: u64) -> Result<ResubmittedJob, AppError> {
    let unknown = || AppError::from(Refusal::UnknownJob { job: JobId(id) });
    let tables = Tables::new(&app.store);
    let state = app.driver.snapshot();
    // How it ended says what is to be asked for again.
    app.wait_for(state.seq()).await;
    let row = tables.job(JobId(id)).await?.ok_or_else(unknown)?;
    if !caller.sees(row.account, row.team) {
        return Err(unknown());
    }
    let job = tables.spec(&row).await?.ok_or_else(unknown)?;
    let bid = state.job(JobId(id)).ok().and_then(|known| match &known.terms {
        JobTerms::Promise(promise) => Some(&promise.bid.value),
        JobTerms::Queue(_) => None,
    });
    let mut renewed = renew::renew(job, &row, bid, app.clock.now().max(state.now()));
    let mut left = Vec::new();
    for after in std::mem::take(&mut renewed.job.after) {
        let before = JobId(after.job);
        let stands = if state.job(before).is_ok() || state.array(before).is_some() {
            Predecessor::Known
        } else {
            tables
                .job(before)
                .await?
                .map_or(Predecessor::Nowhere, |row| Predecessor::Forgotten(row.into()))
        };
        left.extend(renew::still_counts(after, &stands).then_some(after));
    }
    renewed.job.after = left;
    let directory = app.auth.directory();
    let owner = directory.user(row.account).cloned().ok_or_else(unknown)?;
    let group = directory.group_name(owner.group);
    let checkpoints_of = checkpoints_left(app, &row).await?;
    let owner = Owner { user: owner.id, name: owner.name.clone(), group };
    Ok(ResubmittedJob { owner, renewed, checkpoints_of })
}

/// The job whose checkpoints go on where a job has ended: its own, or those that it was to begin
/// with, if it never did. What runs still writes them.
async fn checkpoints_left(app: &Services, row: &JobRow) -> Result<Option<JobId>, AppError> {
    let job = row.id;
    let left_by = match (row.ended, row.started) {
        (None, _) => None,
        (Some(_), Some(_)) => Some(job),
        (Some(_), None) => {
            let found = app.store.journal().submission(job).await?;
            let note = found.and_then(|(_, entry)| Note::read(entry.note.as_deref()?).ok());
            note.and_then(|note| note.checkpoints_of).map(JobId)
        }
    };
    let Some(job) = left_by else { return Ok(None) };
    let folder = app.files.job_folder(job).join(JobFolder::Checkpoints.as_str());
    let any = tokio::task::spawn_blocking(move || outputs::any(&folder));
    Ok(any.await.map_err(|e| AppError::internal(&e))?.then_some(job))
}
