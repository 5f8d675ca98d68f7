//! What the file service asks of accounts and jobs.

use std::future::Future;
use std::pin::Pin;

use era_core::units::{GroupId, JobId, UserId};

use crate::Services;
use crate::error::AppError;

/// An answer that may have to be looked up.
pub type DirectoryAnswer<'a, T> = Pin<Box<dyn Future<Output = Result<T, AppError>> + Send + 'a>>;

/// Accounts and jobs, as the file service needs them.
pub trait FileOwners: Send + Sync {
    /// The group of an account.
    fn group_of(&self, user: UserId) -> Option<GroupId>;

    /// Whether an account of this name exists.
    fn account_exists<'a>(&'a self, name: &'a str) -> DirectoryAnswer<'a, bool>;

    /// Most bytes that an account may keep; unlimited where nothing is said.
    fn storage_quota(&self, user: UserId) -> DirectoryAnswer<'_, Option<u64>>;

    fn job_owner(&self, job: JobId) -> DirectoryAnswer<'_, Option<UserId>>;
}

impl FileOwners for Services {
    fn group_of(&self, user: UserId) -> Option<GroupId> {
        self.auth.directory().user(user).map(|user| user.group)
    }

    fn account_exists<'a>(&'a self, name: &'a str) -> DirectoryAnswer<'a, bool> {
        let exists = self.auth.directory().user_named(name).is_some();
        Box::pin(std::future::ready(Ok(exists)))
    }

    fn storage_quota(&self, user: UserId) -> DirectoryAnswer<'_, Option<u64>> {
        Box::pin(async move {
            let directory = self.auth.directory();
            let Some(entry) = directory.user(user) else { return Ok(Some(0)) };
            let Some(group) = directory.group(entry.group).and_then(|group| group.storage_bytes)
            else {
                return Ok(entry.storage_bytes);
            };
            // Of the group's room an account has what the others leave.
            let mut others = 0_u64;
            for other in directory.users() {
                if other.group == entry.group && other.id != user {
                    others = others.saturating_add(self.files.used(other.id).await?);
                }
            }
            let left = group.saturating_sub(others);
            Ok(Some(entry.storage_bytes.map_or(left, |own| own.min(left))))
        })
    }

    fn job_owner(&self, job: JobId) -> DirectoryAnswer<'_, Option<UserId>> {
        Box::pin(async move {
            // The state forgets a job a day after its end; the tables do not.
            match self.driver.snapshot().job(job) {
                Ok(job) => Ok(Some(job.user)),
                Err(_) => Ok(self.feed.tables().owner(job).await?.map(|(owner, _)| owner)),
            }
        })
    }
}
