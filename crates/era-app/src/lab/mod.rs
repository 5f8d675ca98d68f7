//! The laboratory behind the server: simulations, replays and tuning runs, one at a time.
//!
//! Each run is a process of its own, the `era` binary itself with the lowest priority, so that it
//! can neither slow the scheduler down nor take it along when it fails. A run has a folder with
//! what was asked, what came of it and, for a simulation, a page of charts; a restart finds them
//! again. What the commands do is not known here.

mod order;
mod process;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use era_api::lab::{LabAsk, LabRun, LabState};
use era_api::queue::{Proposal, Rule};
use era_store::journal::Journal;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::error::{AppError, Kind};
use crate::wire;

pub use order::BadAsk;

/// Most runs that wait.
const WAITING_MAX: usize = 16;
/// Most runs that are remembered; the oldest go first.
const REMEMBERED_MAX: usize = 200;
/// The name under which what tuning found is proposed.
const PROPOSED_NAME: &str = "tuned";
/// What is known of a run.
const RUN_FILE: &str = "run.json";
/// The folder of its charts.
const REPORT_FOLDER: &str = "report";

/// Why a run is not taken.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// What is asked makes no sense.
    #[error(transparent)]
    Bad(#[from] BadAsk),
    /// Too many wait.
    #[error("{WAITING_MAX} runs wait already: cancel one, or wait until some are done")]
    Full,
    /// There is no such run.
    #[error("there is no run {0}")]
    Unknown(u64),
    /// It cannot be kept.
    #[error("the run cannot be kept: {0}")]
    Io(#[from] std::io::Error),
}

impl From<NotTaken> for AppError {
    fn from(error: NotTaken) -> AppError {
        let sentence = error.to_string();
        match error {
            NotTaken::Bad(bad) => {
                AppError::wrong(Kind::Invalid, "bad_run", &bad.problem).about(bad.what)
            }
            NotTaken::Full => AppError::new(Kind::TooMany, "too_many_runs", sentence),
            NotTaken::Unknown(_) => AppError::new(Kind::NotFound, "unknown_run", sentence),
            NotTaken::Io(error) => AppError::internal(&error),
        }
    }
}

/// The laboratory. A clone shares.
#[derive(Clone)]
pub struct Lab(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    folder: PathBuf,
    program: PathBuf,
    known: Mutex<Known>,
    wake: Notify,
    /// Held by whatever is at work: there is one bench.
    bench: tokio::sync::Mutex<()>,
    /// Counts changes of runs.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Known {
    runs: BTreeMap<u64, LabRun>,
    /// What ends the run at work.
    at_work: Option<(u64, CancellationToken)>,
}

impl Lab {
    /// The laboratory under this folder, whose commands are those of this program.
    pub fn open(folder: PathBuf, program: PathBuf, clock: Arc<dyn Clock>) -> std::io::Result<Lab> {
        std::fs::create_dir_all(&folder)?;
        let mut runs = BTreeMap::new();
        for entry in std::fs::read_dir(&folder)? {
            // Whatever else lies there is not ours to judge.
            let Ok(text) = std::fs::read(entry?.path().join(RUN_FILE)) else { continue };
            let Ok(mut run) = serde_json::from_slice::<LabRun>(&text) else { continue };
            if run.state == LabState::Running {
                run.state = LabState::Failed;
                run.problem = Some("the server was stopped meanwhile: ask again".to_owned());
                run.interrupted = true;
            }
            runs.insert(run.id, run);
        }
        let known = Mutex::new(Known { runs, at_work: None });
        Ok(Lab(Arc::new(Inner {
            clock,
            folder,
            program,
            known,
            wake: Notify::new(),
            bench: Default::default(),
            changes: watch::channel(0).0,
        })))
    }

    /// Takes a run, to be done when those before it are.
    pub fn ask(&self, asked: LabAsk, by: Option<String>) -> Result<LabRun, NotTaken> {
        order::check(&asked)?;
        let mut known = self.known();
        let waiting = known.runs.values().filter(|run| run.state == LabState::Waiting);
        if waiting.count() >= WAITING_MAX {
            return Err(NotTaken::Full);
        }
        let id = known.runs.keys().next_back().map_or(1, |last| last + 1);
        let run = LabRun {
            id,
            asked,
            by,
            at: wire::stamp(self.0.clock.now()),
            state: LabState::Waiting,
            share: None,
            ended: None,
            problem: None,
            interrupted: false,
            result: None,
            report: false,
            proposes: None,
        };
        self.keep(&run)?;
        known.runs.insert(id, run.clone());
        self.forget_oldest(&mut known);
        drop(known);
        self.0.wake.notify_one();
        Ok(run)
    }

    /// Does a command that nobody asked for, when the bench is free; what it prints.
    pub async fn by_itself(&self, arguments: Vec<OsString>) -> Result<Value, String> {
        let _bench = self.0.bench.lock().await;
        process::alone(self, arguments).await
    }

    /// A folder for what commands of this name that nobody asked for leave.
    pub fn own_folder(&self, name: &str) -> std::io::Result<PathBuf> {
        let folder = self.0.folder.join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Changes whenever a run begins, gets on or ends.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// All runs, the newest first.
    pub fn runs(&self) -> Vec<LabRun> {
        self.known().runs.values().rev().cloned().collect()
    }

    /// One of them.
    pub fn run(&self, id: u64) -> Result<LabRun, NotTaken> {
        self.known().runs.get(&id).cloned().ok_or(NotTaken::Unknown(id))
    }

    /// Gives a run up, or removes one that has ended.
    pub fn remove(&self, id: u64) -> Result<(), NotTaken> {
        let mut known = self.known();
        let run = known.runs.get_mut(&id).ok_or(NotTaken::Unknown(id))?;
        match run.state {
            LabState::Waiting => {
                run.state = LabState::Cancelled;
                let run = run.clone();
                self.keep(&run)?;
            }
            LabState::Running => {
                if let Some((at_work, stop)) = &known.at_work
                    && *at_work == id
                {
                    stop.cancel();
                }
            }
            LabState::Done | LabState::Failed | LabState::Cancelled => {
                known.runs.remove(&id);
                self.remove_folder(id);
            }
        }
        Ok(())
    }

    /// The page of charts of a run.
    pub fn report(&self, id: u64) -> Result<PathBuf, NotTaken> {
        let run = self.run(id)?;
        let page = self.folder_of(id).join(REPORT_FOLDER).join("index.html");
        if run.report { Ok(page) } else { Err(NotTaken::Unknown(id)) }
    }

    /// What tuning runs propose, the newest first.
    pub fn proposals(&self) -> Vec<Proposal> {
        let known = self.known();
        let proposal = |run: &LabRun| {
            let force = in_force(run.result.as_ref()?)?;
            Some(Proposal {
                id: run.id,
                at: run.ended.unwrap_or(run.at),
                policy: PROPOSED_NAME.to_owned(),
                rule: run.proposes.clone()?,
                gain: run.result.as_ref()?.get("verdict")?.as_str()?.to_owned(),
                gain_train: force.get("gain_train")?.as_f64()?,
                gain_test: force.get("gain_test")?.as_f64()?,
            })
        };
        known.runs.values().rev().filter_map(proposal).collect()
    }

    /// Does what is asked, one after the other, until it is stopped.
    pub async fn work(self, journal: Journal, stop: CancellationToken) {
        loop {
            let Some((run, ended)) = self.next(&stop) else {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.0.wake.notified() => continue,
                }
            };
            let id = run.id;
            let all = async {
                let _bench = self.0.bench.lock().await;
                process::carry_out(&self, &run, &journal).await
            };
            let outcome = tokio::select! {
                () = ended.cancelled() => None,
                outcome = all => Some(outcome),
            };
            if stop.is_cancelled() {
                return;
            }
            self.end(id, outcome);
        }
    }

    /// The run that is next, now at work; and what ends it early.
    fn next(&self, stop: &CancellationToken) -> Option<(LabRun, CancellationToken)> {
        let mut known = self.known();
        let run = known.runs.values_mut().find(|run| run.state == LabState::Waiting)?;
        run.state = LabState::Running;
        let run = run.clone();
        if let Err(error) = self.keep(&run) {
            tracing::warn!(%error, run = run.id, "a run of the laboratory cannot be noted");
        }
        let ended = stop.child_token();
        known.at_work = Some((run.id, ended.clone()));
        Some((run, ended))
    }

    fn end(&self, id: u64, outcome: Option<Result<Value, String>>) {
        let report = self.folder_of(id).join(REPORT_FOLDER).join("index.html").is_file();
        let mut known = self.known();
        known.at_work = None;
        let Some(run) = known.runs.get_mut(&id) else { return };
        run.ended = Some(wire::stamp(self.0.clock.now()));
        match outcome {
            None => run.state = LabState::Cancelled,
            Some(Err(problem)) => (run.state, run.problem) = (LabState::Failed, Some(problem)),
            Some(Ok(result)) => {
                (run.state, run.share, run.report) = (LabState::Done, Some(1.0), report);
                if matches!(run.asked, LabAsk::Tune { .. }) {
                    run.proposes = proposed(&result);
                }
                run.result = Some(result);
            }
        }
        let run = run.clone();
        if let Err(error) = self.keep(&run) {
            tracing::warn!(%error, run = id, "what a run of the laboratory found is not kept");
        }
    }

    fn progressed(&self, id: u64, share: f64) {
        if let Some(run) = self.known().runs.get_mut(&id) {
            run.share = Some(share);
        }
        self.0.changes.send_modify(|count| *count += 1);
    }

    fn forget_oldest(&self, known: &mut Known) {
        while known.runs.len() > REMEMBERED_MAX {
            let over = |run: &&LabRun| !matches!(run.state, LabState::Waiting | LabState::Running);
            let Some(id) = known.runs.values().find(over).map(|run| run.id) else { return };
            known.runs.remove(&id);
            self.remove_folder(id);
        }
    }

    fn remove_folder(&self, id: u64) {
        if let Err(error) = std::fs::remove_dir_all(self.folder_of(id)) {
            tracing::warn!(%error, run = id, "the folder of a run cannot be removed");
        }
    }

    fn keep(&self, run: &LabRun) -> std::io::Result<()> {
        self.0.changes.send_modify(|count| *count += 1);
        let folder = self.folder_of(run.id);
        std::fs::create_dir_all(&folder)?;
        // Whole or not at all: a crash leaves the one before.
        let part = folder.join("run.part");
        std::fs::write(&part, serde_json::to_vec(run).map_err(std::io::Error::other)?)?;
        std::fs::rename(part, folder.join(RUN_FILE))
    }

    fn folder_of(&self, id: u64) -> PathBuf {
        self.0.folder.join(id.to_string())
    }

    fn program(&self) -> &Path {
        &self.0.program
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a tuning run says of the rule in force.
fn in_force(result: &Value) -> Option<&Value> {
    result.get("rules")?.as_array()?.iter().find(|rule| rule["rule"] == "in force")
}

/// The rule that a tuning run found, if it was better on later work than the one in force.
fn proposed(result: &Value) -> Option<Rule> {
    let better = in_force(result)?.get("gain_test")?.as_f64()? > 0.0;
    let formula = result.get("formula")?.as_str()?.to_owned();
    better.then(|| Rule { order: "priority".into(), formula: Some(formula), limits: Vec::new() })
}
