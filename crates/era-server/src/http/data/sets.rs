//! Data sets and their files.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use era_api::Page;
use era_api::data::{
    DataSet, DataSetEdit, DataSetFilter, FileEntry, FileFilter, FilesEdit, NewDataSet,
};
use era_app::files::{Service, wire};
use era_store::files::{DataSetKey, Edit, FilesAsked, TreeFile, check_path};

use super::take::{Large, receive};
use super::{limit, next};
use crate::http::{Caller, Failure, Path, Query};

/// Data sets that the caller may see, by owner and name.
#[utoipa::path(get, path = "/data", tag = "data", params(DataSetFilter),
    responses((status = 200, body = Page<DataSet>)))]
pub(super) async fn list(
    State(service): State<Service>,
    caller: Caller,
    Query(filter): Query<DataSetFilter>,
) -> Result<Json<Page<DataSet>>, Failure> {
    let after = match filter.cursor.as_deref().map(|cursor| cursor.split_once('/')) {
        Some(Some((owner, name))) => Some(key(owner, name)),
        Some(None) => {
            let detail = "this is no cursor: use `next` of the page before";
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return Err(Failure::new(status, "bad_cursor", detail).about("cursor"));
        }
        None => None,
    };
    let (owner, search) = (filter.owner.as_deref(), filter.search.as_deref());
    let limit = limit(filter.limit);
    let viewer = service.viewer(&caller);
    let found = service.files.data_sets(&viewer, owner, search, after.as_ref(), limit).await?;
    let next = next(&found, limit, |set| set.key.to_string());
    Ok(Json(Page { items: found.into_iter().map(wire::data_set).collect(), next }))
}

fn key(owner: &str, name: &str) -> DataSetKey {
    DataSetKey { owner: owner.to_owned(), name: name.to_owned() }
}

/// Makes an empty data set.
#[utoipa::path(post, path = "/data", tag = "data", request_body = NewDataSet,
    responses((status = 201, body = DataSet)))]
pub(super) async fn create(
    State(service): State<Service>,
    caller: Caller,
    Large(wanted): Large<NewDataSet>,
) -> Result<(StatusCode, Json<DataSet>), Failure> {
    let (viewer, visibility) = (service.changer(&caller)?, wire::visibility(wanted.visibility));
    let made = service.files.create_data_set(&viewer, &wanted.name, visibility).await?;
    Ok((StatusCode::CREATED, Json(wire::data_set(made))))
}

/// A data set.
#[utoipa::path(get, path = "/data/{owner}/{name}", tag = "data",
    params(("owner" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = DataSet)))]
pub(super) async fn get(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name)): Path<(String, String)>,
) -> Result<Json<DataSet>, Failure> {
    let set = service.files.data_set(&service.viewer(&caller), &key(&owner, &name)).await?;
    Ok(Json(wire::data_set(set)))
}

/// Changes who may see a data set.
#[utoipa::path(patch, path = "/data/{owner}/{name}", tag = "data", request_body = DataSetEdit,
    params(("owner" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = DataSet)))]
pub(super) async fn share(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name)): Path<(String, String)>,
    Large(edit): Large<DataSetEdit>,
) -> Result<Json<DataSet>, Failure> {
    let viewer = service.changer(&caller)?;
    for account in edit.shared_with.iter().flatten() {
        if !service.directory.account_exists(account).await? {
            let detail = format!("there is no account `{}`", account.escape_debug());
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return Err(Failure::new(status, "unknown_account", detail).about("shared_with"));
        }
    }
    let visibility = edit.visibility.map(wire::visibility);
    let with = edit.shared_with.as_deref();
    let set = service.files.share_data_set(&viewer, &key(&owner, &name), visibility, with).await?;
    Ok(Json(wire::data_set(set)))
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
    service.files.remove_data_set(&service.changer(&caller)?, &key(&owner, &name)).await?;
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
    let set = service.files.data_set(&service.viewer(&caller), &key(&owner, &name)).await?;
    let limit = limit(filter.limit);
    let asked = FilesAsked {
        prefix: filter.prefix.unwrap_or_default(),
        search: filter.search,
        after: filter.cursor,
        limit,
    };
    let found = service.files.data_files(&set, &asked).await?;
    let next = next(&found, limit, |file| file.path.clone());
    Ok(Json(Page { items: found.iter().map(wire::file_entry).collect(), next }))
}

/// Changes the files of a data set, all of it or nothing. Their contents must be there.
#[utoipa::path(patch, path = "/data/{owner}/{name}/files", tag = "data", request_body = FilesEdit,
    params(("owner" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = DataSet)))]
pub(super) async fn edit(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name)): Path<(String, String)>,
    Large(edit): Large<FilesEdit>,
) -> Result<Json<DataSet>, Failure> {
    change(&service, &caller, &key(&owner, &name), wire::edit(edit)?).await.map(Json)
}

async fn change(
    service: &Service,
    caller: &Caller,
    key: &DataSetKey,
    edit: Edit,
) -> Result<DataSet, Failure> {
    let viewer = service.changer(caller)?;
    let owner = service.files.data_set(&viewer, key).await?.owner;
    let quota = service.quota(owner).await?;
    Ok(wire::data_set(service.files.edit_data_set(&viewer, key, edit, quota).await?))
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
    let set = service.files.data_set(&service.viewer(&caller), &key(&owner, &name)).await?;
    let file = service.files.data_file(&set, &path).await?;
    super::ranges::answer(service.files.open_blob(file.hash)?, &file.hash.to_string(), &headers)
}

/// Puts one file into a data set.
#[utoipa::path(put, path = "/data/{owner}/{name}/files/{*path}", tag = "data",
    params(("owner" = String, Path), ("name" = String, Path), ("path" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = DataSet)))]
pub(super) async fn put_file(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name, path)): Path<(String, String, String)>,
    body: Body,
) -> Result<Json<DataSet>, Failure> {
    let viewer = service.changer(&caller)?;
    check_path(&path).map_err(era_store::files::FilesError::from)?;
    let key = key(&owner, &name);
    // Before the bytes come, not after.
    let set = service.files.data_set(&viewer, &key).await?;
    if set.owner != caller.user && !viewer.administrator {
        return Err(era_store::files::FilesError::NotYours(key.to_string()).into());
    }
    let quota = service.quota(caller.user).await?;
    let mut upload = service.files.upload_unnamed(caller.user, quota).await?;
    receive(body, &mut upload).await?;
    let bytes = upload.offset();
    let hash = upload.finish().await?;
    let put = vec![TreeFile { path, hash, bytes, executable: false }];
    change(&service, &caller, &key, Edit { put, ..Edit::default() }).await.map(Json)
}

/// Removes one file of a data set.
#[utoipa::path(delete, path = "/data/{owner}/{name}/files/{*path}", tag = "data",
    params(("owner" = String, Path), ("name" = String, Path), ("path" = String, Path)),
    responses((status = 200, body = DataSet)))]
pub(super) async fn remove_file(
    State(service): State<Service>,
    caller: Caller,
    Path((owner, name, path)): Path<(String, String, String)>,
) -> Result<Json<DataSet>, Failure> {
    let edit = Edit { remove: vec![path], ..Edit::default() };
    change(&service, &caller, &key(&owner, &name), edit).await.map(Json)
}
