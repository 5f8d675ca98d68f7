//! Groups and their quotas.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::Page;
use era_api::account::{Group, NewGroup, Quota};
use era_api::page::NameFilter;
use era_core::refusal::Scope;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Caller, Failure, From, Path, Query, audit, paging, quota};
use crate::App;
use crate::auth::GroupEntry;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, make)).routes(routes!(get)).routes(routes!(set_quota))
}

async fn describe(app: &App, group: &GroupEntry) -> Result<Group, Failure> {
    let mut stored = 0_u64;
    let directory = app.auth.directory();
    for member in directory.users().filter(|user| user.group == group.id) {
        stored = stored.saturating_add(app.files.used(member.id).await?);
    }
    let state = app.driver.snapshot();
    let limits = state.accounts().group(group.id).map(|group| group.quota).unwrap_or_default();
    Ok(Group {
        id: group.id.0,
        name: group.name.clone(),
        level: group.level,
        quota: quota::write(&limits, group.storage_bytes),
        used: quota::used(&state, Scope::Group(group.id), stored),
        users: u32::try_from(directory.members(group.id)).unwrap_or(u32::MAX),
    })
}

/// Whether a caller may see a group: its own, or any for administrators.
fn sees(caller: &Caller, group: &GroupEntry) -> bool {
    caller.group == group.id || caller.heads(group.id)
}

/// Groups by name: all for administrators, else one's own.
#[utoipa::path(get, path = "/groups", tag = "groups", params(NameFilter),
    responses((status = 200, body = Page<Group>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(filter): Query<NameFilter>,
) -> Result<Json<Page<Group>>, Failure> {
    let directory = app.auth.directory();
    let after = filter.cursor.as_deref().unwrap_or_default();
    let seen = directory.groups_after(after).filter(|group| sees(&caller, group));
    let page = paging::named(&filter, seen, |group| group.name.as_str())?;
    let mut items = Vec::new();
    for group in page.items {
        items.push(describe(&app, group).await?);
    }
    Ok(Json(Page { items, next: page.next }))
}

/// Make a group. For administrators.
#[utoipa::path(post, path = "/groups", tag = "groups", request_body = NewGroup,
    responses((status = 201, body = Group)))]
async fn make(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Body(wanted): Body<NewGroup>,
) -> Result<(StatusCode, Json<Group>), Failure> {
    caller.administers()?;
    let limits = quota::read(&wanted.quota)?;
    let made = app.auth.add_group(&app.driver, &wanted, limits).await;
    audit::note(&app, &caller.name, from, "group.create", &wanted.name, made.is_ok()).await;
    Ok((StatusCode::CREATED, Json(describe(&app, &*made?).await?)))
}

/// One group.
#[utoipa::path(get, path = "/groups/{name}", tag = "groups", params(("name" = String, Path)),
    responses((status = 200, body = Group)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Group>, Failure> {
    let group = app.auth.directory().group_named(&name).cloned();
    let group = group.filter(|group| sees(&caller, group));
    let group = group.ok_or_else(|| Failure::not_found("group", &name))?;
    Ok(Json(describe(&app, &group).await?))
}

/// Set what a group may use. For administrators.
#[utoipa::path(put, path = "/groups/{name}/quota", tag = "groups",
    params(("name" = String, Path)), request_body = Quota,
    responses((status = 200, body = Group)))]
async fn set_quota(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
    Body(wanted): Body<Quota>,
) -> Result<Json<Group>, Failure> {
    caller.administers()?;
    let limits = quota::read(&wanted)?;
    let (driver, by) = (&app.driver, caller.actor());
    let set = app.auth.set_group_quota(driver, by, &name, limits, wanted.storage_bytes).await;
    audit::note(&app, &caller.name, from, "quota.set", &name, set.is_ok()).await;
    Ok(Json(describe(&app, &*set?).await?))
}
