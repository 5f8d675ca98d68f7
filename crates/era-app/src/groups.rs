//! Groups and their quotas.

use std::net::IpAddr;

use era_api::Page;
use era_api::account::{GroupView, NewGroup, QuotaView};
use era_api::page::NameFilter;
use era_core::refusal::QuotaScope;

use crate::auth::{Caller, GroupEntry};
use crate::error::AppError;
use crate::{Services, audit, paging, quota};

async fn describe(services: &Services, group: &GroupEntry) -> Result<GroupView, AppError> {
    let mut stored = 0_u64;
    let directory = services.auth.directory();
    for member in directory.users().filter(|user| user.group == group.id) {
        stored = stored.saturating_add(services.files.used(member.id).await?);
    }
    let state = services.driver.snapshot();
    let limits = state.accounts().group(group.id).map(|group| group.quota).unwrap_or_default();
    Ok(GroupView {
        id: group.id.0,
        name: group.name.clone(),
        level: group.level,
        quota: quota::write(&limits, group.storage_bytes),
        used: quota::used(&state, QuotaScope::Group(group.id), stored),
        users: u32::try_from(directory.members(group.id)).unwrap_or(u32::MAX),
    })
}

/// Whether a caller may see a group: its own, or any for administrators.
fn sees(caller: &Caller, group: &GroupEntry) -> bool {
    caller.group == group.id || caller.heads(group.id)
}

/// Groups by name: all for administrators, else one's own.
pub async fn list(
    services: &Services,
    caller: &Caller,
    filter: NameFilter,
) -> Result<Page<GroupView>, AppError> {
    let directory = services.auth.directory();
    let after = filter.cursor.as_deref().unwrap_or_default();
    let seen = directory.groups_after(after).filter(|group| sees(caller, group));
    let page = paging::named(&filter, seen, |group| group.name.as_str())?;
    let mut items = Vec::new();
    for group in page.items {
        items.push(describe(services, group).await?);
    }
    Ok(Page { items, next: page.next })
}

/// Make a group. For administrators.
pub async fn make(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    wanted: NewGroup,
) -> Result<GroupView, AppError> {
    caller.administers()?;
    let limits = quota::read(&wanted.quota)?;
    let made = services.auth.add_group(&services.driver, &wanted, limits).await;
    audit::note(services, &caller.name, from, "group.create", &wanted.name, made.is_ok()).await;
    describe(services, &*made?).await
}

pub async fn get(services: &Services, caller: &Caller, name: &str) -> Result<GroupView, AppError> {
    let group = services.auth.directory().group_named(name).cloned();
    let group = group.filter(|group| sees(caller, group));
    let group = group.ok_or_else(|| AppError::not_found("group", name))?;
    describe(services, &group).await
}

/// Set what a group may use. For administrators.
pub async fn set_quota(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
    wanted: QuotaView,
) -> Result<GroupView, AppError> {
    caller.administers()?;
    let limits = quota::read(&wanted)?;
    let (driver, by) = (&services.driver, caller.actor());
    let set = services.auth.set_group_quota(driver, by, name, limits, wanted.storage_bytes).await;
    audit::note(services, &caller.name, from, "quota.set", name, set.is_ok()).await;
    describe(services, &*set?).await
}
