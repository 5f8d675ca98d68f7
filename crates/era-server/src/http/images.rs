//! The catalogue of images.

use axum::Json;
use axum::http::StatusCode;
use era_api::Page;
use era_api::image::{Image, NewImage};
use era_api::page::NameFilter;
use era_app::images;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Call, Failure, Path, Query};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, publish)).routes(routes!(get, remove))
}

/// Images by name.
#[utoipa::path(get, path = "/images", tag = "images", params(NameFilter),
    responses((status = 200, body = Page<Image>)))]
async fn list(call: Call, Query(filter): Query<NameFilter>) -> Result<Json<Page<Image>>, Failure> {
    Ok(Json(images::list(&call.app, filter).await?))
}

/// Publish an image, or another one under a name that is one's own.
#[utoipa::path(post, path = "/images", tag = "images", request_body = NewImage,
    responses((status = 201, body = Image)))]
async fn publish(
    call: Call,
    Body(new): Body<NewImage>,
) -> Result<(StatusCode, Json<Image>), Failure> {
    let image = images::publish(&call.app, &call.caller, call.from, new).await?;
    Ok((StatusCode::CREATED, Json(image)))
}

/// One image. Its name may have slashes, which a path writes as `%2F`.
#[utoipa::path(get, path = "/images/{name}", tag = "images", params(("name" = String, Path)),
    responses((status = 200, body = Image)))]
async fn get(call: Call, Path(name): Path<String>) -> Result<Json<Image>, Failure> {
    Ok(Json(images::get(&call.app, &name).await?))
}

/// Take an image out of the catalogue. For whoever published it, and for administrators.
#[utoipa::path(delete, path = "/images/{name}", tag = "images", params(("name" = String, Path)),
    responses((status = 204)))]
async fn remove(call: Call, Path(name): Path<String>) -> Result<StatusCode, Failure> {
    images::remove(&call.app, &call.caller, call.from, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
