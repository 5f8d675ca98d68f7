//! One's own secrets: set and removed, and told to nobody but the jobs that name them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::Page;
use era_api::page::PageAsk;
use era_api::secret::{NewSecret, SECRETS_MAX, Secret, VALUE_BYTES_MAX, is_name, is_value};
use era_app::audit;
use era_app::auth::now_ms;
use era_app::paging;
use era_app::wire::{Wrong, shown};
use era_store::secrets::SecretRow;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audit::stamp;
use super::{Body, Caller, Failure, From, Path, Query};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(set, remove))
}

fn secret(row: SecretRow) -> Secret {
    Secret { name: row.name, set: stamp(row.changed) }
}

/// One's own secrets by name, without their values.
#[utoipa::path(get, path = "/secrets", tag = "secrets", params(PageAsk),
    responses((status = 200, body = Page<Secret>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(ask): Query<PageAsk>,
) -> Result<Json<Page<Secret>>, Failure> {
    let size = paging::size(&ask)?;
    let after = ask.cursor.unwrap_or_default();
    let rows = app.store.secrets().of(caller.user.0, &after, size as u32 + 1).await?;
    let secrets = rows.into_iter().map(secret).collect();
    Ok(Json(paging::page(secrets, size, |secret: &Secret| secret.name.clone())))
}

/// Set a secret of one's own, or another value for it. Jobs that start later find that one.
#[utoipa::path(put, path = "/secrets/{name}", tag = "secrets",
    params(("name" = String, Path, pattern = "^[A-Z_][A-Z0-9_]*$", max_length = 64)),
    request_body = NewSecret, responses((status = 200, body = Secret)))]
async fn set(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
    Body(NewSecret { value }): Body<NewSecret>,
) -> Result<Json<Secret>, Failure> {
    check_name("name", &name)?;
    if !is_value(&value) {
        let kib = VALUE_BYTES_MAX >> 10;
        return Err(Failure::bad_field("value", Wrong::SecretValue { kib }));
    }
    let (now, most) = (now_ms(), SECRETS_MAX as u32);
    let done = app.store.secrets().set(caller.user.0, &name, &value, now, most).await?;
    audit::note(&app, &caller.name, from.0, "secret.set", &name, done).await;
    if !done {
        let detail = format!("at most {SECRETS_MAX} secrets: remove one first");
        return Err(Failure::new(StatusCode::CONFLICT, "limit", detail));
    }
    Ok(Json(secret(SecretRow { name, changed: now })))
}

/// Remove a secret of one's own. A job that names it and has not started will not start.
#[utoipa::path(delete, path = "/secrets/{name}", tag = "secrets",
    params(("name" = String, Path)), responses((status = 204)))]
async fn remove(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
) -> Result<StatusCode, Failure> {
    let there = is_name(&name) && app.store.secrets().remove(caller.user.0, &name).await?;
    if !there {
        return Err(Failure::not_found("secret", shown(&name)));
    }
    audit::note(&app, &caller.name, from.0, "secret.remove", &name, true).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses what no secret can be called.
fn check_name(field: &str, name: &str) -> Result<(), Failure> {
    if is_name(name) {
        return Ok(());
    }
    Err(Failure::bad_field(field, Wrong::SecretName { given: shown(name) }))
}
