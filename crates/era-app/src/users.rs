//! Accounts, their quotas and their wallets.

use std::net::IpAddr;
use std::sync::Arc;

use era_api::Page;
use era_api::account::{
    Grant, NewUser, QuotaView, Role, UserEdit, UserFilter, UserMade, UserView, Wallet,
};
use era_api::page::NameFilter;
use era_core::ledger::Account;
use era_core::refusal::QuotaScope;

use crate::auth::{self, AccountError, Caller, UserEntry};
use crate::error::AppError;
use crate::wire::{Wrong, credits, money, stamp};
use crate::{Services, audit, paging, quota};

async fn describe(services: &Services, user: &UserEntry) -> Result<UserView, AppError> {
    let stored = services.files.used(user.id).await.map_err(|error| AppError::internal(&error))?;
    let state = services.driver.snapshot();
    let limits = state.accounts().user(user.id).map(|user| user.quota).unwrap_or_default();
    Ok(UserView {
        id: user.id.0,
        name: user.name.clone(),
        group: services.auth.directory().group_name(user.group),
        role: user.role,
        level: user.level,
        enabled: user.enabled,
        balance: credits(state.ledger().balance(Account::Wallet(user.id))),
        quota: quota::write(&limits, user.storage_bytes),
        used: quota::used(&state, QuotaScope::User(user.id), stored),
    })
}

/// A user that the caller may see; any other is as good as absent.
fn seen(services: &Services, caller: &Caller, name: &str) -> Result<Arc<UserEntry>, AppError> {
    let user = services.auth.directory().user_named(name).cloned();
    user.filter(|user| caller.sees(user.id, user.group))
        .ok_or_else(|| AppError::not_found("user", name))
}

/// Accounts by name: all for administrators, the group's for its administrators, else one's own.
pub async fn list(
    services: &Services,
    caller: &Caller,
    filter: UserFilter,
) -> Result<Page<UserView>, AppError> {
    let UserFilter { search, role, group, enabled, cursor, limit } = filter;
    let directory = services.auth.directory();
    let after = cursor.as_deref().unwrap_or_default();
    let seen = directory.users_after(after).filter(|user| caller.sees(user.id, user.group));
    let wanted = seen.filter(|user| {
        role.is_none_or(|role| user.role == role)
            && enabled.is_none_or(|enabled| user.enabled == enabled)
            && group.as_ref().is_none_or(|group| directory.group_name(user.group) == *group)
    });
    let names = NameFilter { search, cursor: None, limit };
    let page = paging::named(&names, wanted, |user| user.name.as_str())?;
    let mut items = Vec::new();
    for user in page.items {
        items.push(describe(services, user).await?);
    }
    Ok(Page { items, next: page.next })
}

/// Make an account. For administrators.
pub async fn make(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    wanted: NewUser,
) -> Result<UserMade, AppError> {
    caller.administers()?;
    if wanted.credits.0 < 0 {
        let given = wanted.credits.to_string();
        return Err(AppError::bad_field("credits", Wrong::Negative { given }));
    }
    let made = services.auth.add_user(&services.driver, &wanted).await;
    audit::note(services, &caller.name, from, "user.create", &wanted.name, made.is_ok()).await;
    let (user, password) = made?;
    Ok(UserMade { user: describe(services, &user).await?, password })
}

pub async fn get(services: &Services, caller: &Caller, name: &str) -> Result<UserView, AppError> {
    let user = seen(services, caller, name)?;
    describe(services, &user).await
}

/// Change an account. For administrators.
pub async fn edit(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
    edit: UserEdit,
) -> Result<UserMade, AppError> {
    caller.administers()?;
    let edited = services.auth.edit_user(&services.driver, name, &edit).await;
    audit::note(services, &caller.name, from, "user.edit", name, edited.is_ok()).await;
    let (user, password) = edited?;
    Ok(UserMade { user: describe(services, &user).await?, password })
}

/// Set what an account may use. For administrators, and for those of its group, who divide the
/// group's quota.
pub async fn set_quota(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
    wanted: QuotaView,
) -> Result<UserView, AppError> {
    let user = seen(services, caller, name)?;
    if !caller.heads(user.group) {
        return Err(AppError::forbidden("only administrators of the group set quotas: ask one"));
    }
    let (driver, by) = (&services.driver, caller.actor());
    let limits = quota::read(&wanted)?;
    // Data is not divided by the core: its limit is the house's to set.
    let storage = match caller.role {
        Role::Administrator => wanted.storage_bytes,
        _ => user.storage_bytes,
    };
    let set = services.auth.set_user_quota(driver, by, name, limits, storage).await;
    audit::note(services, &caller.name, from, "quota.set", name, set.is_ok()).await;
    describe(services, &*set?).await
}

/// Give credits to an account, or below zero take them. For administrators.
pub async fn grant(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
    given: Grant,
) -> Result<Wallet, AppError> {
    caller.administers()?;
    let unknown = || AccountError::Unknown { what: "user", name: name.to_owned() };
    let user = services.auth.directory().user_named(name).cloned().ok_or_else(unknown)?;
    let done = auth::grant(&services.driver, user.id, money(given.amount)).await;
    let target = format!("{name} {}", given.amount);
    audit::note(services, &caller.name, from, "credits.grant", &target, done.is_ok()).await;
    done?;
    Ok(purse(services, &user))
}

/// What an account has.
pub fn wallet(services: &Services, caller: &Caller, name: &str) -> Result<Wallet, AppError> {
    Ok(purse(services, &*seen(services, caller, name)?))
}

fn purse(services: &Services, user: &UserEntry) -> Wallet {
    let state = services.driver.snapshot();
    let ledger = state.ledger();
    let theirs = state.jobs().filter(|job| job.user == user.id && job.ended.is_none());
    let escrow: i64 = theirs.map(|job| ledger.balance(Account::Escrow(job.id)).0).sum();
    let spent = state.usage().used(QuotaScope::User(user.id), state.now()).micro_credits;
    let (from, to) = state.usage().period().around(state.now());
    Wallet {
        period_from: stamp(from),
        period_to: stamp(to),
        user: user.name.clone(),
        balance: credits(ledger.balance(Account::Wallet(user.id))),
        escrow: era_api::Credits(escrow),
        spent: quota::spent(spent),
        budgets: quota::budgets(&state, user.id, |scope| match scope {
            QuotaScope::User(_) => user.name.clone(),
            QuotaScope::Group(group) => services.auth.directory().group_name(group),
        }),
    }
}
