//! Handing in a job: what every door (HTTP, TCP, retry) does in the same way.
//!
//! What is run is checked here, since the core knows nothing of commands and files; what it needs
//! and costs is the core's to judge.

mod anew;
mod work;

use era_api::job::{NewJob, Submitted, Work, WorkInput};
use era_api::secret::SECRETS_MAX;
use era_core::input::Terms;
use era_core::job::Deal;
use era_core::units::{JobId, Name, UserId};
use era_core::{Command, Refusal};
use era_store::files::{DataSetKey, Hash, Viewer};
use era_store::tables::Tables;
use era_store::{Indices, Note};
use serde_json::value::to_raw_value;

use self::anew::Before;
use crate::App;
use crate::clock::{Clock, SystemClock};
use crate::files::owner_as_viewer;
use crate::http::{Caller, Failure};
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

/// Hands in a job, and answers once it is durable.
pub async fn submit(
    app: &App,
    owner: &Owner,
    job: NewJob,
    key: Option<Name>,
) -> Result<Submitted, Failure> {
    let received = SystemClock.now();
    work::check(&job.work, app.runs_images, app.terminals.is_some())?;
    known_secrets(app, owner.user, &job.work).await?;
    let viewer = owner_as_viewer(&app.driver, owner.user, &owner.name);
    let code = usable_code(app, &viewer, &job.work).await?;
    let inputs = usable_inputs(app, &viewer, &job.work).await?;
    let asked = wire::new_job(owner.user, &job)?;
    let project = wire::optional_name("project", job.project.as_deref())?;
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
        spec: to_raw_value(&job).ok(),
        project: project.map(|name| name.to_string()),
        inputs: (!inputs.is_empty())
            .then(|| inputs.iter().map(|tree| tree.map(|tree| tree.to_string())).collect()),
        array: job.array.map(|array| Indices { from: array.from, step: array.step }),
        received_ms: Some(received.0),
        quote_us: quoted.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
        ..Note::default()
    };
    // Whoever hangs up is not told, and their job is whole all the same.
    let (app, user) = (app.clone(), owner.user);
    let submitted = tokio::spawn(async move {
        let command = Command::Submit { key, job: asked };
        let answer = app.driver.ask(command, note.write()).await?;
        let submitted = crate::http::jobs::submitted(answer.reply)?;
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
    submitted.await.map_err(|e| Failure::internal(&e))?
}

/// Refuses a job that names a secret which its owner has not set.
async fn known_secrets(app: &App, user: UserId, work: &Work) -> Result<(), Failure> {
    if work.secrets.is_empty() {
        return Ok(());
    }
    let known = app.store.secrets().of(user.0, "", SECRETS_MAX as u32).await?;
    let is_known = |name: &&String| known.iter().any(|row| row.name == **name);
    match work.secrets.iter().find(|name| !is_known(name)) {
        Some(name) => {
            let unknown = Wrong::NoSecret { given: name.clone() };
            Err(Failure::bad_field("work.secrets", unknown))
        }
        None => Ok(()),
    }
}

/// The code of a job, which its owner must be able to read. It is kept for a while from here on.
async fn usable_code(app: &App, viewer: &Viewer, work: &Work) -> Result<Option<Hash>, Failure> {
    let Some(code) = &work.code else { return Ok(None) };
    let hash: Hash = code.parse()?;
    app.files.check_usable(viewer, hash).await?;
    Ok(Some(hash))
}

/// The trees of a job's inputs as they are now, which its owner must be able to read: the job sees
/// these, whatever is done to the data sets. They are kept for a while from here on.
async fn usable_inputs(
    app: &App,
    viewer: &Viewer,
    work: &Work,
) -> Result<Vec<Option<Hash>>, Failure> {
    let mut trees = Vec::with_capacity(work.inputs.len());
    for input in &work.inputs {
        let tree = app.files.usable_data(viewer, &data_set(&viewer.name, input)).await;
        trees.push(tree.map_err(|error| Failure::from(error).about("work.inputs"))?);
    }
    Ok(trees)
}

/// Which data set an input names: one of its owner's own, where it names no other.
pub(crate) fn data_set(owner: &str, input: &WorkInput) -> DataSetKey {
    let (owner, name) = input.data.split_once('/').unwrap_or((owner, &input.data));
    DataSetKey { owner: owner.to_owned(), name: name.to_owned() }
}

/// Refuses a key that was used for another job. The core has compared all but what is run, which
/// it does not know. The inputs are those that were noted the first time.
async fn same_work(app: &App, job: JobId, note: &Note) -> Result<Vec<Option<Hash>>, Failure> {
    let Some((_, first)) = app.store.journal().submission(job).await? else {
        return Ok(Vec::new());
    };
    let before = first.note.as_deref().and_then(|text| Note::read(text).ok());
    let Some(before) = before else { return Ok(Vec::new()) };
    let spec = |note: &Note| note.spec.as_ref().map(|spec| spec.get().to_owned());
    if spec(&before) != spec(note) {
        return Err(Refusal::KeyReused.into());
    }
    let inputs = before.inputs.unwrap_or_default().into_iter();
    Ok(inputs.map(|tree| tree.map(|tree| tree.parse()).transpose()).collect::<Result<_, _>>()?)
}

impl Owner {
    /// Whoever asks.
    pub fn of(app: &App, caller: &Caller) -> Owner {
        Owner {
            user: caller.user,
            name: caller.name.clone(),
            group: app.auth.directory().group_name(caller.group),
        }
    }
}

/// What a job was, to be handed in again in its owner's name; for those who may see it.
pub async fn again(app: &App, caller: &Caller, id: u64) -> Result<(Owner, NewJob), Failure> {
    let unknown = || Failure::from(Refusal::UnknownJob { job: JobId(id) });
    let tables = Tables::new(&app.store);
    let state = app.driver.snapshot();
    // How it ended says what is to be asked for again.
    app.wait_for(state.seq()).await;
    let row = tables.job(JobId(id)).await?.ok_or_else(unknown)?;
    if !caller.sees(row.account, row.team) {
        return Err(unknown());
    }
    let spec = tables.spec(&row).await?.ok_or_else(unknown)?;
    let job: NewJob = serde_json::from_str(&spec).map_err(|e| Failure::internal(&e))?;
    let bid = state.job(JobId(id)).ok().and_then(|known| match &known.deal {
        Deal::Promise(promise) => Some(&promise.bid.value),
        Deal::Queue(_) => None,
    });
    let mut job = anew::anew(job, &row, bid, SystemClock.now().max(state.now()));
    let mut left = Vec::new();
    for after in std::mem::take(&mut job.after) {
        let before = JobId(after.job);
        let stands = if state.job(before).is_ok() || state.array(before).is_some() {
            Before::Known
        } else {
            tables.job(before).await?.map_or(Before::Nowhere, |row| Before::Forgotten(row.into()))
        };
        left.extend(anew::still_counts(after, &stands).then_some(after));
    }
    job.after = left;
    let directory = app.auth.directory();
    let owner = directory.user(row.account).cloned().ok_or_else(unknown)?;
    let group = directory.group_name(owner.group);
    Ok((Owner { user: owner.id, name: owner.name.clone(), group }, job))
}
