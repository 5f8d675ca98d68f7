//! What a worker finds when it starts: tasks that its supervisor still runs, and its own name of
//! last time.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use era_core::job::TaskId;
use era_core::units::Time;
use rustix::fs::FlockOperation;

use super::exec::EXEC_BIT;
use super::{CeleryNode, NodeError};
use crate::celery::bus::{self, BusError};
use crate::celery::names::{self, CeleryId};
use crate::executor::{Launch, Order};

fn at(path: &Path) -> impl FnOnce(io::Error) -> NodeError + '_ {
    move |source| NodeError::Folder { path: path.to_owned(), source }
}

/// One worker a folder.
pub(super) fn lock(folder: &Path) -> Result<File, NodeError> {
    std::fs::create_dir_all(folder).map_err(at(folder))?;
    let path = folder.join("worker.lock");
    let opened = File::options().create(true).truncate(false).write(true).open(&path);
    let file = opened.map_err(at(&path))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(_) => Err(NodeError::Folded(folder.to_owned())),
    }
}

fn generation_file(folder: &Path) -> PathBuf {
    folder.join("generation")
}

/// By what this worker is known after a restart.
pub(super) fn generation(folder: &Path) -> Result<String, NodeError> {
    let path = generation_file(folder);
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Ok(_) => new_generation(folder).map_err(at(&path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            new_generation(folder).map_err(at(&path))
        }
        Err(error) => Err(at(&path)(error)),
    }
}

/// Another name, for a worker that was given up.
pub(super) fn new_generation(folder: &Path) -> io::Result<String> {
    let generation = bus::random_hex::<8>();
    let path = generation_file(folder);
    let new = path.with_extension("new");
    std::fs::write(&new, &generation)?;
    std::fs::rename(new, path)?;
    Ok(generation)
}

impl CeleryNode {
    /// Takes over what the supervisor runs already. What no launch describes any more is a stray of
    /// an older attempt, and is ended.
    pub(super) async fn adopt(&self) -> Result<(), BusError> {
        let known = self.inner.behind.known();
        if known.is_empty() {
            return Ok(());
        }
        let site: Option<String> =
            self.bus().run("say whose it is", redis::cmd("GET").arg(names::SITE)).await?;
        for task in known {
            if task.job.0 & EXEC_BIT != 0 {
                self.running().adopt(task, None, Time::MAX);
                continue;
            }
            // A Redis that has lost its memory cannot say what is a stray.
            let Some(site) = &site else {
                self.running().adopt(task, None, Time::MAX);
                continue;
            };
            let id = CeleryId { site: site.clone(), task }.to_string();
            match self.launch(&id).await? {
                Some(launch) => self.running().adopt(task, Some(id), launch.until),
                None => self.end_stray(task),
            }
        }
        Ok(())
    }

    async fn launch(&self, id: &str) -> Result<Option<Launch>, BusError> {
        let mut get = redis::cmd("HGET");
        get.arg(names::LAUNCHES).arg(id);
        let found: Option<Vec<u8>> = self.bus().run("show a launch", &get).await?;
        Ok(found.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    fn end_stray(&self, task: TaskId) {
        tracing::info!(%task, "a stray of an older attempt is ended");
        self.running().adopt(task, None, Time::MAX);
        self.inner.behind.carry_out(Order::Stop { task, until: self.bus().now() });
    }
}
