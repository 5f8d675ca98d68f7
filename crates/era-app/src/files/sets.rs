//! Data sets and their files.

use std::fs::File;

use era_api::Page;
use era_api::data::{
    DataSetEdit, DataSetFilter, DataSetView, FileEntry, FileFilter, FilesEdit, NewDataSet,
};
use era_store::files::{
    ContentHash, DataSetKey, Edit, FilesAsked, FilesError, Listed, TreeFile, Upload, check_path,
};

use super::{Service, limit, next, wire};
use crate::auth::Caller;
use crate::error::{AppError, Kind};

pub fn key(owner: &str, name: &str) -> DataSetKey {
    DataSetKey { owner: owner.to_owned(), name: name.to_owned() }
}

/// Data sets that the caller may see, by owner and name.
pub async fn list(
    service: &Service,
    caller: &Caller,
    filter: &DataSetFilter,
) -> Result<Page<DataSetView>, AppError> {
    let after = match filter.cursor.as_deref().map(|cursor| cursor.split_once('/')) {
        Some(Some((owner, name))) => Some(key(owner, name)),
        Some(None) => {
            let detail = "this is no cursor: use `next` of the page before";
            return Err(AppError::new(Kind::Invalid, "bad_cursor", detail).about("cursor"));
        }
        None => None,
    };
    let (owner, search) = (filter.owner.as_deref(), filter.search.as_deref());
    let limit = limit(filter.limit);
    let viewer = service.viewer(caller);
    let found = service.files.data_sets(&viewer, owner, search, after.as_ref(), limit).await?;
    let next = next(&found, limit, |set| set.key.to_string());
    Ok(Page { items: found.into_iter().map(wire::data_set).collect(), next })
}

/// Makes an empty data set.
pub async fn make(
    service: &Service,
    caller: &Caller,
    wanted: &NewDataSet,
) -> Result<DataSetView, AppError> {
    let (viewer, visibility) = (service.changer(caller)?, wire::visibility(wanted.visibility));
    let made = service.files.create_data_set(&viewer, &wanted.name, visibility).await?;
    Ok(wire::data_set(made))
}

pub async fn get(
    service: &Service,
    caller: &Caller,
    key: &DataSetKey,
) -> Result<DataSetView, AppError> {
    Ok(wire::data_set(service.files.data_set(&service.viewer(caller), key).await?))
}

/// Changes who may see a data set.
pub async fn share(
    service: &Service,
    caller: &Caller,
    key: &DataSetKey,
    edit: &DataSetEdit,
) -> Result<DataSetView, AppError> {
    let viewer = service.changer(caller)?;
    for account in edit.shared_with.iter().flatten() {
        if !service.directory.account_exists(account).await? {
            let detail = format!("there is no account `{}`", account.escape_debug());
            let error = AppError::new(Kind::Invalid, "unknown_account", detail);
            return Err(error.about("shared_with"));
        }
    }
    let visibility = edit.visibility.map(wire::visibility);
    let with = edit.shared_with.as_deref();
    Ok(wire::data_set(service.files.share_data_set(&viewer, key, visibility, with).await?))
}

/// Removes a data set. Jobs that use its files keep them.
pub async fn remove(service: &Service, caller: &Caller, key: &DataSetKey) -> Result<(), AppError> {
    Ok(service.files.remove_data_set(&service.changer(caller)?, key).await?)
}

/// Files of a data set, by path.
pub async fn files(
    service: &Service,
    caller: &Caller,
    key: &DataSetKey,
    filter: FileFilter,
) -> Result<Page<FileEntry>, AppError> {
    let set = service.files.data_set(&service.viewer(caller), key).await?;
    let limit = limit(filter.limit);
    let asked = FilesAsked {
        prefix: filter.prefix.unwrap_or_default(),
        search: filter.search,
        after: filter.cursor,
        limit,
    };
    let found = service.files.data_files(&set, &asked).await?;
    let next = next(&found, limit, |file| file.path.clone());
    Ok(Page { items: found.iter().map(wire::file_entry).collect(), next })
}

/// What is right below a folder of a data set: folders and files, by name.
pub struct Listing {
    pub folders: Vec<String>,
    pub files: Vec<FileEntry>,
    /// Where the next one begins; absent on the last.
    pub next: Option<String>,
}

/// Lists a folder of a data set, from after a name on.
pub async fn browse(
    service: &Service,
    caller: &Caller,
    key: &DataSetKey,
    folder: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<Listing, AppError> {
    let set = service.files.data_set(&service.viewer(caller), key).await?;
    let listed = service.files.browse_data(&set, folder, after, limit).await?;
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let next = next(&listed, limit, |last| match last {
        Listed::Folder(path) => name(path),
        Listed::File(file) => name(&file.path),
    });
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for item in listed {
        match item {
            Listed::Folder(path) => folders.push(path),
            Listed::File(file) => files.push(wire::file_entry(&file)),
        }
    }
    Ok(Listing { folders, files, next })
}

/// Changes the files of a data set, all of it or nothing. Their contents must be there.
pub async fn edit(
    service: &Service,
    caller: &Caller,
    key: &DataSetKey,
    edit: FilesEdit,
) -> Result<DataSetView, AppError> {
    change(service, caller, key, wire::edit(edit)?).await
}

async fn change(
    service: &Service,
    caller: &Caller,
    key: &DataSetKey,
    edit: Edit,
) -> Result<DataSetView, AppError> {
    let viewer = service.changer(caller)?;
    let owner = service.files.data_set(&viewer, key).await?.owner;
    let quota = service.quota(owner).await?;
    Ok(wire::data_set(service.files.edit_data_set(&viewer, key, edit, quota).await?))
}

/// A file of a data set, with the hash of its content.
pub async fn open(
    service: &Service,
    caller: &Caller,
    key: &DataSetKey,
    path: &str,
) -> Result<(File, ContentHash), AppError> {
    let set = service.files.data_set(&service.viewer(caller), key).await?;
    let file = service.files.data_file(&set, path).await?;
    Ok((service.files.open_blob(file.hash)?, file.hash))
}

/// Takes the content of a file that is to be put into a data set at this path. Whether it may be
/// is said before the bytes come, not after.
pub async fn take(
    service: &Service,
    caller: &Caller,
    key: &DataSetKey,
    path: &str,
) -> Result<Upload, AppError> {
    let viewer = service.changer(caller)?;
    check_path(path).map_err(FilesError::from)?;
    let set = service.files.data_set(&viewer, key).await?;
    if set.owner != caller.user && !viewer.administrator {
        return Err(FilesError::NotYours(key.to_string()).into());
    }
    let quota = service.quota(caller.user).await?;
    Ok(service.files.upload_unnamed(caller.user, quota).await?)
}

/// Puts a file whose content has come into a data set.
pub async fn put(
    service: &Service,
    caller: &Caller,
    key: &DataSetKey,
    path: String,
    upload: Upload,
) -> Result<DataSetView, AppError> {
    let bytes = upload.offset();
    let hash = upload.finish().await?;
    let put = vec![TreeFile { path, hash, bytes, executable: false }];
    change(service, caller, key, Edit { put, ..Edit::default() }).await
}

/// Removes one file of a data set.
pub async fn remove_file(
    service: &Service,
    caller: &Caller,
    key: &DataSetKey,
    path: String,
) -> Result<DataSetView, AppError> {
    change(service, caller, key, Edit { remove: vec![path], ..Edit::default() }).await
}
