//! `era data ls` and `era data search`.

use clap::Args;
use comfy_table::Cell;
use era_api::data::{DataSetFilter, DataSetView, FileEntry, FileFilter, Visibility};
use era_api::page::PAGE_MAX;

use super::owner_and_name;
use crate::cli::connection::Common;
use crate::cli::look::{Look, bytes, print, right};

/// List data sets, or the files of one
#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// The data set: NAME or OWNER/NAME; all that you may see where nothing is said
    data: Option<String>,
    /// Only files whose path begins so
    prefix: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Find data sets by name, or files of one by path
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What is looked for, in upper or lower case
    text: String,
    /// Among the files of this data set: NAME or OWNER/NAME
    #[arg(long = "in", value_name = "DATA")]
    within: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl Ls {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match &self.data {
            Some(data) => list_files(&self.common, data, self.prefix.clone(), None),
            None => list_sets(&self.common, None),
        }
    }
}

impl Search {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match &self.within {
            Some(data) => list_files(&self.common, data, None, Some(self.text.clone())),
            None => list_sets(&self.common, Some(self.text.clone())),
        }
    }
}

fn list_sets(common: &Common, search: Option<String>) -> anyhow::Result<()> {
    let client = common.client()?;
    let mut filter = DataSetFilter { search, limit: Some(PAGE_MAX), ..DataSetFilter::default() };
    let mut sets = Vec::new();
    loop {
        let page = client.data_sets(&filter)?;
        sets.extend(page.items);
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => break,
        }
    }
    print(common.output, &sets, |sets| table_of_sets(sets, &common.look()))
}

fn list_files(
    common: &Common,
    data: &str,
    prefix: Option<String>,
    search: Option<String>,
) -> anyhow::Result<()> {
    let client = common.client()?;
    let (owner, name) = owner_and_name(&client, data)?;
    let mut filter = FileFilter { prefix, search, limit: Some(PAGE_MAX), cursor: None };
    let mut files = Vec::new();
    loop {
        let page = client.data_files(&owner, &name, &filter)?;
        files.extend(page.items);
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => break,
        }
    }
    print(common.output, &files, |files| table_of_files(files, &common.look()))
}

fn visibility(visibility: Visibility) -> &'static str {
    match visibility {
        Visibility::Private => "private",
        Visibility::Group => "group",
        Visibility::Public => "public",
    }
}

/// A data set in a line.
pub(crate) fn one(set: &DataSetView, look: &Look) -> String {
    table_of_sets(std::slice::from_ref(set), look)
}

fn table_of_sets(sets: &[DataSetView], look: &Look) -> String {
    look.rows(&["DATA SET", "FILES", "SIZE", "SEEN BY", "SHARED WITH", "CHANGED"], sets, |set| {
        vec![
            Cell::new(format!("{}/{}", set.owner, set.name)),
            right(set.files),
            right(bytes(set.bytes)),
            Cell::new(visibility(set.visibility)),
            Cell::new(set.shared_with.join(", ")),
            Cell::new(look.time(set.changed)),
        ]
    })
}

fn table_of_files(files: &[FileEntry], look: &Look) -> String {
    look.rows(&["SIZE", "HASH", "PATH"], files, |file| {
        let hash: String = file.hash.chars().take(12).collect();
        vec![right(bytes(file.bytes)), Cell::new(hash), Cell::new(&file.path)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_set_is_shown_in_a_line() {
        let time: era_api::Timestamp = "2026-11-15T14:30:00Z".parse().unwrap();
        let set = DataSetView {
            name: "mnist".to_owned(),
            owner: "ada".to_owned(),
            visibility: Visibility::Group,
            shared_with: vec!["bob".to_owned(), "eve".to_owned()],
            files: 3,
            bytes: 11 << 20,
            tree: None,
            created: time,
            changed: time,
        };
        insta::assert_snapshot!(one(&set, &crate::cli::look::plain()));
        let hash = "0123456789abcdef".repeat(4);
        let file = FileEntry { path: "a/1.png".to_owned(), bytes: 1500, hash, executable: false };
        insta::assert_snapshot!(table_of_files(&[file], &crate::cli::look::plain()));
    }
}
