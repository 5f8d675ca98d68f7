//! The file service: data sets, contents and outputs, for HTTP and for WebSockets.
//!
//! What is kept is [`era_store::files`]; here it meets accounts, jobs and the wire. The rest of
//! the platform is asked through [`FileOwners`], so that this needs no scheduler to be tried.

pub mod archive;
pub mod contents;
pub mod directory;
pub mod kept;
pub mod outputs;
pub mod sets;
pub mod wire;

use std::sync::Arc;

use era_api::account::{Role, Scope};
use era_api::data::JobFolder;
use era_api::page::{PAGE_DEFAULT, PAGE_MAX};
use era_core::units::{JobId, UserId};
use era_store::files::{Files, Viewer};

pub use directory::FileOwners;

use crate::Services;
use crate::auth::Caller;
use crate::driver::Handle;
use crate::error::{AppError, Kind};

/// Everything that has to do with files. A clone shares.
#[derive(Clone)]
pub struct Service {
    /// What is kept.
    pub files: Files,
    /// Accounts and jobs.
    pub directory: Arc<dyn FileOwners>,
}

impl Service {
    pub fn new(files: Files, directory: Arc<dyn FileOwners>) -> Service {
        Service { files, directory }
    }

    /// The service of a running server.
    pub fn of(services: &Services) -> Service {
        Service::new(services.files.clone(), Arc::new(services.clone()))
    }

    /// What a caller sees of the files.
    pub fn viewer(&self, caller: &Caller) -> Viewer {
        let (directory, group) = (self.directory.clone(), caller.group);
        Viewer {
            account: caller.user,
            name: caller.name.clone(),
            administrator: caller.role == Role::Administrator,
            group_administrator: caller.role == Role::GroupAdministrator,
            same_group: Arc::new(move |other| directory.group_of(other) == Some(group)),
        }
    }

    /// The same for a caller who is about to change something.
    pub fn changer(&self, caller: &Caller) -> Result<Viewer, AppError> {
        if caller.scopes.iter().any(|scope| matches!(scope, Scope::Write | Scope::Admin)) {
            return Ok(self.viewer(caller));
        }
        let detail = "this token may only read: use one with the scope `write`";
        Err(AppError::new(Kind::Forbidden, "scope_missing", detail))
    }

    /// Most bytes that an account may keep.
    pub async fn quota(&self, user: UserId) -> Result<Option<u64>, AppError> {
        self.directory.storage_quota(user).await
    }

    /// What is kept of a job, if the caller may see the job: its folder of this kind.
    pub async fn kept_of(
        &self,
        caller: &Caller,
        job: u64,
        of: JobFolder,
    ) -> Result<std::path::PathBuf, AppError> {
        let owner = self.directory.job_owner(JobId(job)).await?;
        match owner {
            Some(owner) if self.viewer(caller).sees_jobs_of(owner) => {
                Ok(self.files.job_folder(JobId(job)).join(of.as_str()))
            }
            _ => {
                let detail = format!("there is no job {job} that you may see");
                Err(AppError::new(Kind::NotFound, "unknown_job", detail))
            }
        }
    }
}

/// A job's owner as a plain user: a job sees no more than that, whoever submits it.
pub fn owner_as_viewer(driver: &Handle, user: UserId, name: &str) -> Viewer {
    let driver = driver.clone();
    let group = move |user| driver.snapshot().accounts().user(user).ok().map(|u| u.group);
    let theirs = group(user);
    Viewer {
        account: user,
        name: name.to_owned(),
        administrator: false,
        group_administrator: false,
        same_group: Arc::new(move |other| theirs.is_some() && group(other) == theirs),
    }
}

/// How many items a page has.
fn limit(asked: Option<u32>) -> u32 {
    asked.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX)
}

/// Where the next page begins: after the last item of a full one.
fn next<T>(items: &[T], limit: u32, cursor: impl Fn(&T) -> String) -> Option<String> {
    items.last().filter(|_| items.len() == limit as usize).map(cursor)
}
