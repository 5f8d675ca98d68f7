//! What jobs left in their outputs and checkpoints.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::response::IntoResponse;
use era_api::data::{JobFolder, OutputFile};
use era_api::page::Page;
use era_app::files::{Service, archive, kept, outputs};
use serde::Deserialize;

use crate::http::{Caller, Failure, Path, Query};

/// Which files are wanted, and how.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputsQuery {
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
#[utoipa::path(get, path = "/jobs/{id}/outputs", tag = "data", params(("id" = u64, Path), OutputsQuery),
    responses((status = 200, content((Page<OutputFile> = "application/json"),
        (Vec<u8> = "application/x-tar")))))]
pub(super) async fn list(
    State(service): State<Service>,
    caller: Caller,
    Path(job): Path<u64>,
    Query(asked): Query<OutputsQuery>,
) -> Result<Response<Body>, Failure> {
    listed(&service, &caller, job, JobFolder::Outputs, asked).await
}

/// The files that a job has in its checkpoints now, by path; or all of them as an archive.
#[utoipa::path(get, path = "/jobs/{id}/checkpoints", tag = "data", params(("id" = u64, Path), OutputsQuery),
    responses((status = 200, content((Page<OutputFile> = "application/json"),
        (Vec<u8> = "application/x-tar")))))]
pub(super) async fn list_checkpoints(
    State(service): State<Service>,
    caller: Caller,
    Path(job): Path<u64>,
    Query(asked): Query<OutputsQuery>,
) -> Result<Response<Body>, Failure> {
    listed(&service, &caller, job, JobFolder::Checkpoints, asked).await
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
    read(&service, &caller, job, JobFolder::Outputs, path, &headers).await
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
    read(&service, &caller, job, JobFolder::Checkpoints, path, &headers).await
}

async fn listed(
    service: &Service,
    caller: &Caller,
    job: u64,
    of: JobFolder,
    asked: OutputsQuery,
) -> Result<Response<Body>, Failure> {
    let (prefix, cursor) = (asked.prefix.unwrap_or_default(), asked.cursor.unwrap_or_default());
    let found = kept::list(service, caller, job, of, &prefix, &cursor).await?;
    match asked.archive.as_deref() {
        Some("tar") => {
            let name = match of {
                JobFolder::Outputs => "job",
                JobFolder::Checkpoints => "checkpoints",
            };
            let name = format!("attachment; filename=\"{name}-{job}.tar\"");
            let headers = [
                (header::CONTENT_TYPE, "application/x-tar".to_owned()),
                (header::CONTENT_DISPOSITION, name),
            ];
            let pieces = archive::pieces(found.folder, found.files);
            Ok((headers, Body::from_stream(pieces)).into_response())
        }
        Some(other) => {
            let detail = format!("`{}` is no kind of archive: use `tar`", other.escape_debug());
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Err(Failure::new(status, "bad_archive", detail).about("archive"))
        }
        None => Ok(Json(found.page(asked.limit)).into_response()),
    }
}

async fn read(
    service: &Service,
    caller: &Caller,
    job: u64,
    of: JobFolder,
    path: String,
    headers: &HeaderMap,
) -> Result<Response<Body>, Failure> {
    let file = kept::open(service, caller, job, of, path).await?;
    let tag = outputs::tag(&file);
    super::ranges::answer(file, &tag, headers)
}
