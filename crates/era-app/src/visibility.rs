//! What a caller may see, and how much of it at a time.

use era_api::account::Role;
use era_api::page::{PAGE_DEFAULT, PAGE_MAX};
use era_core::units::{JobId, UserId};
use era_store::tables::{JobRow, VisibleJobs};

use crate::Services;
use crate::auth::Caller;
use crate::error::AppError;
use crate::wire::Wrong;

/// Whose jobs and events a caller sees: its own, its group's, or all.
pub fn visible_to(caller: &Caller) -> VisibleJobs {
    match caller.role {
        Role::User => VisibleJobs::Own(caller.user),
        Role::GroupAdministrator => VisibleJobs::Team(caller.group, caller.user),
        Role::Administrator => VisibleJobs::All,
    }
}

/// A job that the caller may see; others' do not exist for it.
pub async fn job(app: &Services, caller: &Caller, id: u64) -> Result<JobRow, AppError> {
    // What has just happened to it is seen, though the tables may be a moment behind.
    app.wait_for(app.driver.snapshot().seq()).await;
    let row = app.feed.tables().job(JobId(id)).await?;
    let visible = visible_to(caller);
    row.filter(|row| visible.allows(Some(row.account), Some(row.team)))
        .ok_or_else(|| AppError::not_found("job", id))
}

/// An account whose money the caller may see, by name; others do not exist for it.
pub async fn account(app: &Services, caller: &Caller, name: &str) -> Result<UserId, AppError> {
    let account = match name == caller.name {
        true => Some((caller.user, caller.group)),
        false => app.feed.tables().account(name).await?,
    };
    let visible = visible_to(caller);
    let account = account.filter(|(account, team)| visible.allows(Some(*account), Some(*team)));
    Ok(account.ok_or_else(|| AppError::not_found("account", name))?.0)
}

/// A job to filter by, of those that there can be.
pub fn job_id(id: u64) -> Result<JobId, AppError> {
    let known = i64::try_from(id).is_ok();
    known.then_some(JobId(id)).ok_or_else(|| AppError::bad_field("job", Wrong::NoJob))
}

/// How many items a page has.
pub fn page_size(limit: Option<u32>) -> Result<u32, AppError> {
    let limit = limit.unwrap_or(PAGE_DEFAULT);
    if (1..=PAGE_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(AppError::bad_field("limit", Wrong::Range { least: 1, most: PAGE_MAX.into() }))
    }
}

/// Where an event stands, as its id says: `12.3`.
pub fn event_place(id: &str) -> Option<(u64, u32)> {
    let (seq, place) = id.split_once('.')?;
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !plain(seq) || !plain(place) {
        return None;
    }
    let seq: u64 = seq.parse().ok()?;
    Some((seq, place.parse().ok()?)).filter(|_| i64::try_from(seq).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_of_an_event_is_a_place() {
        assert_eq!(event_place("12.3"), Some((12, 3)));
        for bad in ["", "12", "12.", ".3", "-1.3", "+1.3", "1.2.3", "99999999999999999999.0"] {
            assert_eq!(event_place(bad), None, "{bad}");
        }
        assert_eq!(event_place("18446744073709551615.0"), None);
    }

    #[test]
    fn a_page_has_a_size_within_limits() {
        assert_eq!(page_size(None).unwrap(), PAGE_DEFAULT);
        assert!(page_size(Some(0)).is_err() && page_size(Some(PAGE_MAX + 1)).is_err());
    }
}
