//! Data sets and their files.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use era_api::Page;
use era_api::data::{
    DataSetEdit, DataSetFilter, DataSetView, FileEntry, FileFilter, FilesEdit, NewDataSet,
};
use era_app::files::Service;
use era_app::files::sets::{self, key};

use super::take::{Large, receive};
use crate::http::{Caller, Failure, Path, Query};

/// Data sets that the caller may see, by owner and name.
#[utoipa::path(get, path = "/data", tag = "data", params(DataSetFilter),
    responses((status = 200, body = Page<DataSetView>)))]
pub(super) async fn list(
    State(service): State<Service>,
    caller: Caller,
    Query(filter): Query<DataSetFilter>,
) -> Result<Json<Page<DataSetView>>, Failure> {
    Ok(Json(sets::list(&service, &caller, &filter).await?))
}

/// Makes an empty data set.
#[utoipa::path(post, path = "/data", tag = "data", request_body = NewDataSet,
    responses((status = 201, body = DataSetView)))]
pub(super) async fn create(
    State(service): State<Service>,
    caller: Caller,
    Large(wanted): Large<NewDataSet>,
) -> Result<(StatusCode, Json<DataSetView>), Failure> {
    let made = sets::make(&service, &caller, &wanted).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// A data set.
#[utoipa::path(get, path = "/data/{owner}/{name}", tag = "data",
    params(("owner" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = DataSetView)))]
pub(super) async fn get(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name)): Path<(String, String)>,
) -> Result<Json<DataSetView>, Failure> {
    Ok(Json(sets::get(&service, &caller, &key(&owner, &name)).await?))
}

/// Changes who may see a data set.
#[utoipa::path(patch, path = "/data/{owner}/{name}", tag = "data", request_body = DataSetEdit,
    params(("owner" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = DataSetView)))]
pub(super) async fn share(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name)): Path<(String, String)>,
    Large(edit): Large<DataSetEdit>,
) -> Result<Json<DataSetView>, Failure> {
    Ok(Json(sets::share(&service, &caller, &key(&owner, &name), &edit).await?))
}

/// Removes a data set. Jobs that use its files keep them.
#[utoipa::path(delete, path = "/data/{owner}/{name}", tag = "data",
    params(("owner" = String, Path), ("name" = String, Path)),
    responses((status = 204)))]
pub(super) async fn remove(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name)): Path<(String, String)>,
) -> Result<StatusCode, Failure> {
    sets::remove(&service, &caller, &key(&owner, &name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Files of a data set, by path.
#[utoipa::path(get, path = "/data/{owner}/{name}/files", tag = "data",
    params(("owner" = String, Path), ("name" = String, Path), FileFilter),
    responses((status = 200, body = Page<FileEntry>)))]
pub(super) async fn files(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name)): Path<(String, String)>,
    Query(filter): Query<FileFilter>,
) -> Result<Json<Page<FileEntry>>, Failure> {
    Ok(Json(sets::files(&service, &caller, &key(&owner, &name), filter).await?))
}

/// Changes the files of a data set, all of it or nothing. Their contents must be there.
#[utoipa::path(patch, path = "/data/{owner}/{name}/files", tag = "data", request_body = FilesEdit,
    params(("owner" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = DataSetView)))]
pub(super) async fn edit(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name)): Path<(String, String)>,
    Large(edit): Large<FilesEdit>,
) -> Result<Json<DataSetView>, Failure> {
    Ok(Json(sets::edit(&service, &caller, &key(&owner, &name), edit).await?))
}

/// A file of a data set. Ranges and `if-none-match` are understood.
#[utoipa::path(get, path = "/data/{owner}/{name}/files/{*path}", tag = "data",
    params(("owner" = String, Path), ("name" = String, Path), ("path" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "Not changed"), (status = 416, description = "No such range")))]
pub(super) async fn file(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name, path)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response<Body>, Failure> {
    let (file, hash) = sets::open(&service, &caller, &key(&owner, &name), &path).await?;
    super::ranges::answer(file, &hash.to_string(), &headers)
}

/// Puts one file into a data set.
#[utoipa::path(put, path = "/data/{owner}/{name}/files/{*path}", tag = "data",
    params(("owner" = String, Path), ("name" = String, Path), ("path" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = DataSetView)))]
pub(super) async fn put_file(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name, path)): Path<(String, String, String)>,
    body: Body,
) -> Result<Json<DataSetView>, Failure> {
    let key = key(&owner, &name);
    let mut upload = sets::take(&service, &caller, &key, &path).await?;
    receive(body, &mut upload).await?;
    Ok(Json(sets::put(&service, &caller, &key, path, upload).await?))
}

/// Removes one file of a data set.
#[utoipa::path(delete, path = "/data/{owner}/{name}/files/{*path}", tag = "data",
    params(("owner" = String, Path), ("name" = String, Path), ("path" = String, Path)),
    responses((status = 200, body = DataSetView)))]
pub(super) async fn remove_file(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name, path)): Path<(String, String, String)>,
) -> Result<Json<DataSetView>, Failure> {
    Ok(Json(sets::remove_file(&service, &caller, &key(&owner, &name), path).await?))
}
