//! Accounts, their quotas and their wallets.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::Page;
use era_api::account::{Grant, NewUser, Quota, Role, User, UserEdit, UserFilter, UserMade, Wallet};
use era_api::page::NameFilter;
use era_core::ledger::Account;
use era_core::refusal::Scope;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Caller, Failure, From, Path, Query, audit, paging, quota};
use crate::App;
use crate::auth::{AccountError, UserEntry, grant};
use crate::wire::{Wrong, credits, money, stamp};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, make))
        .routes(routes!(get, edit))
        .routes(routes!(set_quota))
        .routes(routes!(give))
        .routes(routes!(wallet))
}

async fn describe(app: &App, user: &UserEntry) -> Result<User, Failure> {
    let stored = app.files.used(user.id).await.map_err(|error| Failure::internal(&error))?;
    let state = app.driver.snapshot();
    let limits = state.accounts().user(user.id).map(|user| user.quota).unwrap_or_default();
    Ok(User {
        id: user.id.0,
        name: user.name.clone(),
        group: app.auth.directory().group_name(user.group),
        role: user.role,
        level: user.level,
        enabled: user.enabled,
        balance: credits(state.ledger().balance(Account::Wallet(user.id))),
        quota: quota::write(&limits, user.storage_bytes),
        used: quota::used(&state, Scope::User(user.id), stored),
    })
}

/// A user that the caller may see; any other is as good as absent.
fn seen(app: &App, caller: &Caller, name: &str) -> Result<std::sync::Arc<UserEntry>, Failure> {
    let user = app.auth.directory().user_named(name).cloned();
    user.filter(|user| caller.sees(user.id, user.group))
        .ok_or_else(|| Failure::not_found("user", name))
}

/// Accounts by name: all for administrators, the group's for its administrators, else one's own.
#[utoipa::path(get, path = "/users", tag = "users", params(UserFilter),
    responses((status = 200, body = Page<User>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(filter): Query<UserFilter>,
) -> Result<Json<Page<User>>, Failure> {
    let UserFilter { search, role, group, enabled, cursor, limit } = filter;
    let directory = app.auth.directory();
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
        items.push(describe(&app, user).await?);
    }
    Ok(Json(Page { items, next: page.next }))
}

/// Make an account. For administrators.
#[utoipa::path(post, path = "/users", tag = "users", request_body = NewUser,
    responses((status = 201, body = UserMade)))]
async fn make(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Body(wanted): Body<NewUser>,
) -> Result<(StatusCode, Json<UserMade>), Failure> {
    caller.administers()?;
    if wanted.credits.0 < 0 {
        let given = wanted.credits.to_string();
        return Err(Failure::bad_field("credits", Wrong::Negative { given }));
    }
    let made = app.auth.add_user(&app.driver, &wanted).await;
    audit::note(&app, &caller.name, from, "user.create", &wanted.name, made.is_ok()).await;
    let (user, password) = made?;
    Ok((StatusCode::CREATED, Json(UserMade { user: describe(&app, &user).await?, password })))
}

/// One account.
#[utoipa::path(get, path = "/users/{name}", tag = "users", params(("name" = String, Path)),
    responses((status = 200, body = User)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<User>, Failure> {
    let user = seen(&app, &caller, &name)?;
    Ok(Json(describe(&app, &user).await?))
}

/// Change an account. For administrators.
#[utoipa::path(patch, path = "/users/{name}", tag = "users", params(("name" = String, Path)),
    request_body = UserEdit, responses((status = 200, body = UserMade)))]
async fn edit(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
    Body(edit): Body<UserEdit>,
) -> Result<Json<UserMade>, Failure> {
    caller.administers()?;
    let edited = app.auth.edit_user(&app.driver, &name, &edit).await;
    audit::note(&app, &caller.name, from, "user.edit", &name, edited.is_ok()).await;
    let (user, password) = edited?;
    Ok(Json(UserMade { user: describe(&app, &user).await?, password }))
}

/// Set what an account may use. For administrators, and for those of its group, who divide the
/// group's quota.
#[utoipa::path(put, path = "/users/{name}/quota", tag = "users", params(("name" = String, Path)),
    request_body = Quota, responses((status = 200, body = User)))]
async fn set_quota(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
    Body(wanted): Body<Quota>,
) -> Result<Json<User>, Failure> {
    let user = seen(&app, &caller, &name)?;
    if !caller.heads(user.group) {
        return Err(Failure::forbidden("only administrators of the group set quotas: ask one"));
    }
    let (driver, by) = (&app.driver, caller.actor());
    let limits = quota::read(&wanted)?;
    // Data is not divided by the core: its limit is the house's to set.
    let storage = match caller.role {
        Role::Administrator => wanted.storage_bytes,
        _ => user.storage_bytes,
    };
    let set = app.auth.set_user_quota(driver, by, &name, limits, storage).await;
    audit::note(&app, &caller.name, from, "quota.set", &name, set.is_ok()).await;
    Ok(Json(describe(&app, &*set?).await?))
}

/// Give credits to an account, or below zero take them. For administrators.
#[utoipa::path(post, path = "/users/{name}/grants", tag = "users",
    params(("name" = String, Path)), request_body = Grant,
    responses((status = 201, body = Wallet)))]
async fn give(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
    Body(given): Body<Grant>,
) -> Result<(StatusCode, Json<Wallet>), Failure> {
    caller.administers()?;
    let unknown = || AccountError::Unknown { what: "user", name: name.clone() };
    let user = app.auth.directory().user_named(&name).cloned().ok_or_else(unknown)?;
    let done = grant(&app.driver, user.id, money(given.amount)).await;
    let target = format!("{name} {}", given.amount);
    audit::note(&app, &caller.name, from, "credits.grant", &target, done.is_ok()).await;
    done?;
    Ok((StatusCode::CREATED, Json(purse(&app, &user))))
}

/// What an account has.
#[utoipa::path(get, path = "/users/{name}/wallet", tag = "users",
    params(("name" = String, Path)), responses((status = 200, body = Wallet)))]
async fn wallet(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Wallet>, Failure> {
    Ok(Json(purse(&app, &*seen(&app, &caller, &name)?)))
}

fn purse(app: &App, user: &UserEntry) -> Wallet {
    let state = app.driver.snapshot();
    let ledger = state.ledger();
    let theirs = state.jobs().filter(|job| job.user == user.id && job.ended.is_none());
    let escrow: i64 = theirs.map(|job| ledger.balance(Account::Escrow(job.id)).0).sum();
    let spent = state.usage().used(Scope::User(user.id), state.now()).micro_credits;
    let (from, to) = state.usage().period().around(state.now());
    Wallet {
        period_from: stamp(from),
        period_to: stamp(to),
        user: user.name.clone(),
        balance: credits(ledger.balance(Account::Wallet(user.id))),
        escrow: era_api::Credits(escrow),
        spent: quota::spent(spent),
        budgets: quota::budgets(&state, user.id, |scope| match scope {
            Scope::User(_) => user.name.clone(),
            Scope::Group(group) => app.auth.directory().group_name(group),
        }),
    }
}
