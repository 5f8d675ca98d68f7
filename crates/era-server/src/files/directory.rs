//! What the file service asks of accounts and jobs.

use std::future::Future;
use std::pin::Pin;

use era_core::units::{GroupId, JobId, UserId};

use crate::http::Failure;

/// An answer that may have to be looked up.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Accounts and jobs, as the file service needs them.
pub trait Directory: Send + Sync {
    /// The group of an account.
    fn group_of(&self, user: UserId) -> Option<GroupId>;

    /// Whether an account of this name exists.
    fn account_exists<'a>(&'a self, name: &'a str) -> Answer<'a, bool>;

    /// Most bytes that an account may keep; unlimited where nothing is said.
    fn storage_quota(&self, user: UserId) -> Answer<'_, Option<u64>>;

    /// Whose job it is.
    fn job_owner(&self, job: JobId) -> Answer<'_, Option<UserId>>;
}
