//! What jobs left in their outputs and checkpoints, for those who may see the job.

use std::fs::File;
use std::path::PathBuf;

use era_api::Page;
use era_api::data::{JobFolder, OutputFile};

use super::{Service, limit, next, outputs, wire};
use crate::auth::Caller;
use crate::error::AppError;

/// Files of a job, by path, and the folder in which they are.
pub struct KeptFiles {
    pub folder: PathBuf,
    pub files: Vec<OutputFile>,
}

/// The files that a job keeps so far, whose paths begin so and come after a cursor.
pub async fn list(
    service: &Service,
    caller: &Caller,
    job: u64,
    of: JobFolder,
    prefix: &str,
    cursor: &str,
) -> Result<KeptFiles, AppError> {
    let folder = service.kept_of(caller, job, of).await?;
    let below = folder.clone();
    let found = tokio::task::spawn_blocking(move || outputs::list(&below)).await;
    let mut files = found.map_err(|_| wire::stopped())??;
    files.retain(|file| file.path.starts_with(prefix) && file.path.as_str() > cursor);
    Ok(KeptFiles { folder, files })
}

impl KeptFiles {
    /// The first of them as a page.
    pub fn page(mut self, asked: Option<u32>) -> Page<OutputFile> {
        let limit = limit(asked);
        self.files.truncate(limit as usize);
        let next = next(&self.files, limit, |file| file.path.clone());
        Page { items: self.files, next }
    }
}

/// One of the files that a job keeps.
pub async fn open(
    service: &Service,
    caller: &Caller,
    job: u64,
    of: JobFolder,
    path: String,
) -> Result<File, AppError> {
    let folder = service.kept_of(caller, job, of).await?;
    let opened = tokio::task::spawn_blocking(move || outputs::open(&folder, &path)).await;
    opened.map_err(|_| wire::stopped())?
}
