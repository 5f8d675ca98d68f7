//! What jobs left in their outputs and checkpoints.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::response::IntoResponse;
use era_api::data::{Kept, OutputFile};
use era_api::page::Page;
use era_app::files::{Service, archive, outputs, wire};
use serde::Deserialize;

use super::{limit, next};
use crate::http::{Caller, Failure, Path, Query};

/// Which files are wanted, and how.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// `tar`: all of them as one stream.
    archive: Option<String>,
    /// Whose path begins so.
    prefix: Option<String>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most items, up to 1000.
    limit: Option<u32>,
}

/// The files that a job has left in its outputs so far, by path; or all of them as an archive.
#[utoipa::path(get, path = "/jobs/{id}/outputs", tag = "data", params(("id" = u64, Path), Asked),
    responses((status = 200, content((Page<OutputFile> = "application/json"),
        (Vec<u8> = "application/x-tar")))))]
pub(super) async fn list(
    State(service): State<Service>,
    caller: Caller,
    Path(job): Path<u64>,
    Query(asked): Query<Asked>,
) -> Result<Response<Body>, Failure> {
    listed(&service, &caller, job, Kept::Outputs, asked).await
}

/// The files that a job has in its checkpoints now, by path; or all of them as an archive.
#[utoipa::path(get, path = "/jobs/{id}/checkpoints", tag = "data", params(("id" = u64, Path), Asked),
    responses((status = 200, content((Page<OutputFile> = "application/json"),
        (Vec<u8> = "application/x-tar")))))]
pub(super) async fn list_checkpoints(
    State(service): State<Service>,
    caller: Caller,
    Path(job): Path<u64>,
    Query(asked): Query<Asked>,
) -> Result<Response<Body>, Failure> {
    listed(&service, &caller, job, Kept::Checkpoints, asked).await
}

/// One output of a job. Ranges are understood.
#[utoipa::path(get, path = "/jobs/{id}/outputs/{*path}", tag = "data",
    params(("id" = u64, Path), ("path" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "Not changed"), (status = 416, description = "No such range")))]
pub(super) async fn get(
    State(service): State<Service>,
    caller: Caller,
    Path((job, path)): Path<(u64, String)>,
    headers: HeaderMap,
) -> Result<Response<Body>, Failure> {
    read(&service, &caller, job, Kept::Outputs, path, &headers).await
}

/// One file of a job's checkpoints. Ranges are understood.
#[utoipa::path(get, path = "/jobs/{id}/checkpoints/{*path}", tag = "data",
    params(("id" = u64, Path), ("path" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "Not changed"), (status = 416, description = "No such range")))]
pub(super) async fn get_checkpoint(
    State(service): State<Service>,
    caller: Caller,
    Path((job, path)): Path<(u64, String)>,
    headers: HeaderMap,
) -> Result<Response<Body>, Failure> {
    read(&service, &caller, job, Kept::Checkpoints, path, &headers).await
}

async fn listed(
    service: &Service,
    caller: &Caller,
    job: u64,
    kept: Kept,
    asked: Asked,
) -> Result<Response<Body>, Failure> {
    let folder = service.kept_of(caller, job, kept).await?;
    let prefix = asked.prefix.unwrap_or_default();
    let after = asked.cursor.unwrap_or_default();
    let below = folder.clone();
    let found = tokio::task::spawn_blocking(move || outputs::list(&below)).await;
    let mut found = found.map_err(|_| wire::stopped())??;
    found.retain(|file| file.path.starts_with(&prefix) && file.path > after);
    match asked.archive.as_deref() {
        Some("tar") => {
            let of = match kept {
                Kept::Outputs => "job",
                Kept::Checkpoints => "checkpoints",
            };
            let name = format!("attachment; filename=\"{of}-{job}.tar\"");
            let headers = [
                (header::CONTENT_TYPE, "application/x-tar".to_owned()),
                (header::CONTENT_DISPOSITION, name),
            ];
            Ok((headers, Body::from_stream(archive::pieces(folder, found))).into_response())
        }
        Some(other) => {
            let detail = format!("`{}` is no kind of archive: use `tar`", other.escape_debug());
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Err(Failure::new(status, "bad_archive", detail).about("archive"))
        }
        None => {
            let limit = limit(asked.limit);
            found.truncate(limit as usize);
            let next = next(&found, limit, |file| file.path.clone());
            Ok(Json(Page { items: found, next }).into_response())
        }
    }
}

async fn read(
    service: &Service,
    caller: &Caller,
    job: u64,
    kept: Kept,
    path: String,
    headers: &HeaderMap,
) -> Result<Response<Body>, Failure> {
    let folder = service.kept_of(caller, job, kept).await?;
    let opened = tokio::task::spawn_blocking(move || {
        let file = outputs::open(&folder, &path)?;
        Ok::<_, Failure>((outputs::tag(&file), file))
    });
    let (tag, file) = opened.await.map_err(|_| wire::stopped())??;
    super::ranges::answer(file, &tag, headers)
}
