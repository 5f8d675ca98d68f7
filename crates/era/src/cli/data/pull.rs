//! `era data pull`.

use std::path::{Path, PathBuf};

use clap::Args;
use era_api::client::Client;
use era_api::client::transfer::RemoteFile;
use era_api::data::FileFilter;
use era_api::page::PAGE_MAX;

use super::{owner_and_name, progress};
use crate::cli::connection::Common;
use crate::cli::look::note;

/// Bring a data set, or a part of it, into a folder
#[derive(Debug, Args)]
pub(crate) struct Pull {
    /// The data set: NAME or OWNER/NAME
    data: String,
    /// Where to [default: a folder of the data set's name]
    to: Option<PathBuf>,
    /// Only files whose path begins so
    #[arg(long, value_name = "PATH")]
    prefix: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl Pull {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let (owner, name) = owner_and_name(&client, &self.data)?;
        let to = self.to.unwrap_or_else(|| PathBuf::from(&name));
        let mut filter =
            FileFilter { prefix: self.prefix, limit: Some(PAGE_MAX), ..FileFilter::default() };
        let mut files = Vec::new();
        loop {
            let page = client.data_files(&owner, &name, &filter)?;
            files.extend(page.items.iter().map(|file| RemoteFile::of_data(&owner, &name, file)));
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => break,
            }
        }
        bring(&client, &files, &to)?;
        note(&format!("{} files in {}", files.len(), to.display()));
        Ok(())
    }
}

/// Brings files into a folder, with a bar.
pub(crate) fn bring(client: &Client, files: &[RemoteFile], to: &Path) -> anyhow::Result<()> {
    let bar = progress::bar("bringing", files.iter().map(|file| file.bytes).sum())?;
    client.bring_files(files, to, &|bytes| bar.inc(bytes))?;
    bar.finish_and_clear();
    Ok(())
}
