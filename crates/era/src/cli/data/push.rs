//! `era data push`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use era_api::client::transfer::{self, LocalFile};
use era_api::client::{Client, ClientError};
use era_api::data::{FileEntry, FilesEdit, NewDataSet, Visibility};

use super::{local, owner_and_name, progress, show};
use crate::cli::connection::Common;
use crate::cli::look::print;

/// Send a folder or a file into a data set
///
/// Only what the server lacks is sent; what was cut off is gone on with.
#[derive(Debug, Args)]
pub(crate) struct Push {
    /// A folder or a file
    from: PathBuf,
    /// The data set: NAME or OWNER/NAME; made where it does not exist
    data: String,
    /// The folder in the data set that it goes into
    #[arg(long, value_name = "FOLDER", default_value = "")]
    to: String,
    /// Remove everything else from the data set
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    common: Common,
}

impl Push {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut files = local::files(&self.from, local::Kind::Data)?;
        if files.is_empty() {
            bail!("{} has no files", self.from.display());
        }
        let to = self.to.trim_matches('/');
        for file in files.iter_mut().filter(|_| !to.is_empty()) {
            file.path = format!("{to}/{}", file.path);
        }
        let client = self.common.client()?;
        let (owner, name) = owner_and_name(&client, &self.data)?;
        make_if_missing(&client, &owner, &name)?;
        let put = send(&client, &files)?;
        let edit = FilesEdit { put, remove: Vec::new(), replace: self.replace };
        let set = client.edit_data_set(&owner, &name, &edit)?;
        print(self.common.output, &set, |set| show::one(set, &self.common.look()))
    }
}

fn make_if_missing(client: &Client, owner: &str, name: &str) -> anyhow::Result<()> {
    match client.data_set(owner, name) {
        Err(ClientError::Refused(problem)) if problem.code == "unknown_data_set" => {
            if client.me()?.name != owner {
                bail!("{problem}");
            }
            let wanted = NewDataSet { name: name.to_owned(), visibility: Visibility::Private };
            client.make_data_set(&wanted)?;
            Ok(())
        }
        other => Ok(other.map(drop)?),
    }
}

/// Hashes files and sends those that the server lacks.
pub(crate) fn send(client: &Client, files: &[LocalFile]) -> anyhow::Result<Vec<FileEntry>> {
    let total = |files: &mut dyn Iterator<Item = u64>| files.sum::<u64>();
    let bar = progress::bar("hashing", total(&mut files.iter().map(|file| file.bytes)))?;
    let entries = transfer::hash(files, &|bytes| bar.inc(bytes))?;
    bar.finish_and_clear();
    let lacking = client.lacking(&entries)?;
    let wanted: Vec<_> = lacking.iter().map(|&at| (&files[at], &entries[at])).collect();
    let bar = progress::bar("sending", total(&mut wanted.iter().map(|(_, entry)| entry.bytes)))?;
    client.send_files(&wanted, &|bytes| bar.inc(bytes))?;
    bar.finish_and_clear();
    Ok(entries)
}

/// The largest files first, for those who are told that a folder is too large.
pub(crate) fn largest(files: &[LocalFile], count: usize) -> Vec<(&Path, u64)> {
    let mut by_size: Vec<(&Path, u64)> =
        files.iter().map(|file| (Path::new(&file.path), file.bytes)).collect();
    by_size.sort_unstable_by_key(|&(path, bytes)| (std::cmp::Reverse(bytes), path));
    by_size.truncate(count);
    by_size
}
