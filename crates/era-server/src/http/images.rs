//! The catalogue of images.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::Page;
use era_api::account::{Role, Scope};
use era_api::image::{Image, NewImage};
use era_api::page::{NameFilter, PageAsk};
use era_app::audit;
use era_app::auth::now_ms;
use era_app::images::image;
use era_app::paging;
use era_app::wire::Wrong;
use era_store::accounts::ImageRow;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Caller, Failure, From, Path, Query};
use crate::App;

/// Longest reference, and longest text of any other field.
const TEXT_MAX: usize = 512;
/// How long the engine may take to say what it knows of an image.
const DESCRIBE_TIME: Duration = Duration::from_secs(10);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, publish)).routes(routes!(get, remove))
}

/// Images by name.
#[utoipa::path(get, path = "/images", tag = "images", params(NameFilter),
    responses((status = 200, body = Page<Image>)))]
async fn list(
    State(app): State<App>,
    _caller: Caller,
    Query(NameFilter { search, cursor, limit }): Query<NameFilter>,
) -> Result<Json<Page<Image>>, Failure> {
    let size = paging::size(&PageAsk { cursor: None, limit })?;
    let (text, after) = (search.unwrap_or_default(), cursor.unwrap_or_default());
    let rows = app.auth.rows().images_with(&text, &after, size as u32 + 1).await?;
    let images = rows.into_iter().map(image).collect::<Result<Vec<_>, _>>()?;
    Ok(Json(paging::page(images, size, |image: &Image| image.name.clone())))
}

/// Publish an image, or another one under a name that is one's own.
#[utoipa::path(post, path = "/images", tag = "images", request_body = NewImage,
    responses((status = 201, body = Image)))]
async fn publish(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Body(mut new): Body<NewImage>,
) -> Result<(StatusCode, Json<Image>), Failure> {
    check(&new)?;
    // What an administrator publishes counts for everybody.
    let account = app.auth.directory().user(caller.user).map(|user| user.role);
    if account == Some(Role::Administrator) {
        caller.may(Scope::Admin)?;
    }
    fill(&app, &mut new).await;
    let present = app.auth.rows().image(&new.name).await?;
    if present.is_some_and(|row| !owns(&caller, &row)) {
        let detail = format!("image `{}` is somebody else's: choose another name", new.name);
        return Err(Failure::new(StatusCode::CONFLICT, "exists", detail).about("name"));
    }
    let row = ImageRow {
        name: new.name.clone(),
        details: serde_json::to_string(&new).map_err(|error| Failure::internal(&error))?,
        published_by: caller.name.clone(),
        published: now_ms(),
    };
    app.auth.rows().put_image(&row).await?;
    audit::note(&app, &caller.name, from.0, "image.publish", &new.name, true).await;
    Ok((StatusCode::CREATED, Json(image(row)?)))
}

/// What the publisher has not said of an image and the engine knows. One that the engine has not
/// may be on its way: it is published as it was told.
async fn fill(app: &App, new: &mut NewImage) {
    if new.digest.is_some() && new.bytes.is_some() {
        return;
    }
    let described = tokio::time::timeout(DESCRIBE_TIME, async {
        match app.images.reach().await? {
            Ok(engine) => engine.describe(&new.reference).await.ok(),
            Err(_) => None,
        }
    });
    if let Ok(Some(facts)) = described.await {
        new.bytes = new.bytes.or(facts.bytes);
        new.digest = new.digest.take().or(facts.digest);
    }
}

fn owns(caller: &Caller, row: &ImageRow) -> bool {
    row.published_by == caller.name || caller.administers().is_ok()
}

fn check(new: &NewImage) -> Result<(), Failure> {
    era_core::units::Name::new(&new.name).map_err(|bad| Failure::bad_field("name", bad))?;
    let texts = [
        ("reference", Some(&new.reference)),
        ("framework", new.framework.as_ref()),
        ("version", new.version.as_ref()),
        ("python", new.python.as_ref()),
        ("digest", new.digest.as_ref()),
    ];
    for (field, text) in texts {
        let Some(text) = text else { continue };
        let plain = !text.chars().any(|c| c.is_control() || c.is_whitespace());
        if text.is_empty() || text.len() > TEXT_MAX || !plain {
            return Err(Failure::bad_field(field, Wrong::Blanks { most: TEXT_MAX }));
        }
    }
    Ok(())
}

/// One image. Its name may have slashes, which a path writes as `%2F`.
#[utoipa::path(get, path = "/images/{name}", tag = "images", params(("name" = String, Path)),
    responses((status = 200, body = Image)))]
async fn get(
    State(app): State<App>,
    _caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Image>, Failure> {
    let row = app.auth.rows().image(&name).await?;
    Ok(Json(image(row.ok_or_else(|| Failure::not_found("image", &name))?)?))
}

/// Take an image out of the catalogue. For whoever published it, and for administrators.
#[utoipa::path(delete, path = "/images/{name}", tag = "images", params(("name" = String, Path)),
    responses((status = 204)))]
async fn remove(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
) -> Result<StatusCode, Failure> {
    let row = app.auth.rows().image(&name).await?;
    let row = row.ok_or_else(|| Failure::not_found("image", &name))?;
    if !owns(&caller, &row) {
        return Err(Failure::forbidden("the image is somebody else's: ask an administrator"));
    }
    app.auth.rows().remove_image(&name).await?;
    audit::note(&app, &caller.name, from.0, "image.remove", &name, true).await;
    Ok(StatusCode::NO_CONTENT)
}
