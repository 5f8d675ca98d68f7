//! `era data`: folders to the server and back, and who may see them there.
//!
//! Which files a folder stands for is decided in [`local`]; how they travel in
//! [`era_api::client::transfer`]. `era run` sends its code through [`code`].

pub(crate) mod code;
mod dockerignore;
pub(crate) mod local;
mod progress;
mod pull;
mod push;
mod show;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use era_api::client::Client;
use era_api::data::{DataSetEdit, FilesEdit, Visibility};

use crate::cli::connection::Common;
use crate::cli::look::print;

/// Data sets: send, bring back, list, search, share, remove
#[derive(Debug, Args)]
pub(crate) struct Data {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Push(push::Push),
    Pull(pull::Pull),
    Ls(show::Ls),
    Search(show::Search),
    Share(Share),
    Rm(Rm),
}

impl Data {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Push(push) => push.run(),
            What::Pull(pull) => pull.run(),
            What::Ls(ls) => ls.run(),
            What::Search(search) => search.run(),
            What::Share(share) => share.run(),
            What::Rm(rm) => rm.run(),
        }
    }
}

/// The owner and the name in `name` or `owner/name`.
fn owner_and_name(client: &Client, data: &str) -> anyhow::Result<(String, String)> {
    Ok(match data.split_once('/') {
        Some((owner, name)) => (owner.to_owned(), name.to_owned()),
        None => (client.me().context("whose data set it is")?.name, data.to_owned()),
    })
}

/// Change who may see a data set
#[derive(Debug, Args)]
struct Share {
    /// The data set: NAME or OWNER/NAME
    data: String,
    /// Accounts that may see it beside; all of them, by comma (an empty text: none)
    #[arg(long, value_name = "ACCOUNTS")]
    with: Option<String>,
    /// Its owner and those it is shared with
    #[arg(long, group = "visibility")]
    private: bool,
    /// The owner's group
    #[arg(long, group = "visibility")]
    group: bool,
    /// Everyone
    #[arg(long, group = "visibility")]
    public: bool,
    #[command(flatten)]
    common: Common,
}

impl Share {
    fn run(self) -> anyhow::Result<()> {
        let visibility = match (self.private, self.group, self.public) {
            (true, _, _) => Some(Visibility::Private),
            (_, true, _) => Some(Visibility::Group),
            (_, _, true) => Some(Visibility::Public),
            _ => None,
        };
        let accounts = |list: String| {
            list.split(',').map(str::trim).filter(|n| !n.is_empty()).map(str::to_owned).collect()
        };
        let edit = DataSetEdit { visibility, shared_with: self.with.map(accounts) };
        if edit == DataSetEdit::default() {
            bail!("say who may see it: --private, --group, --public or --with ACCOUNTS");
        }
        let client = self.common.client()?;
        let (owner, name) = owner_and_name(&client, &self.data)?;
        let set = client.share_data_set(&owner, &name, &edit)?;
        print(self.common.output, &set, |set| show::one(set, &self.common.look()))
    }
}

/// Remove a data set, or files of it
#[derive(Debug, Args)]
struct Rm {
    /// The data set: NAME or OWNER/NAME
    data: String,
    /// Files, or folders with a `/` at the end; the whole data set where nothing is said
    paths: Vec<String>,
    #[command(flatten)]
    common: Common,
}

impl Rm {
    fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let (owner, name) = owner_and_name(&client, &self.data)?;
        if self.paths.is_empty() {
            client.remove_data_set(&owner, &name)?;
            let removed = format!("{owner}/{name}");
            let told = serde_json::json!({ "removed": removed });
            return print(self.common.output, &told, |_| format!("removed {removed}\n"));
        }
        let edit = FilesEdit { remove: self.paths, ..FilesEdit::default() };
        let set = client.edit_data_set(&owner, &name, &edit)?;
        print(self.common.output, &set, |set| show::one(set, &self.common.look()))
    }
}
