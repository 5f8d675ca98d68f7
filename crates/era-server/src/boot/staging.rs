//! Code and data of a job out of the store's files, as far as its owner may see them.

use std::future::Future;
use std::pin::Pin;

use era_api::image::NewImage;
use era_api::job::{Work, WorkInput};
use era_cloud::Staged;
use era_core::units::UserId;
use era_store::accounts::Accounts;
use era_store::files::{Files, Hash, StagedFile};

use crate::driver::Handle;
use crate::files::owner_as_viewer;
use crate::launch::{Material, Staging, Unstaged};
use crate::submit::data_set;

pub(crate) struct FromFiles {
    pub(crate) files: Files,
    pub(crate) driver: Handle,
    pub(crate) catalogue: Accounts,
}

impl Staging for FromFiles {
    fn stage<'a>(
        &'a self,
        user: UserId,
        user_name: &'a str,
        work: &'a Work,
        inputs: Option<&'a [Option<String>]>,
    ) -> Pin<Box<dyn Future<Output = Result<Material, Unstaged>> + Send + 'a>> {
        Box::pin(async move {
            let viewer = owner_as_viewer(&self.driver, user, user_name);
            let mut material = Material::default();
            if let Some(code) = &work.code {
                let no_tree = |_| Unstaged::ForGood(format!("`{code}` is no tree"));
                let hash: Hash = code.parse().map_err(no_tree)?;
                self.files.check_usable(&viewer, hash).await?;
                let files = self.files.stage(hash).await?;
                material.code = files.into_iter().map(|file| staged(file, None)).collect();
            }
            for (place, input) in work.inputs.iter().enumerate() {
                let tree = match inputs.and_then(|inputs| inputs.get(place)) {
                    Some(tree) => noted(tree.as_deref())?,
                    // It was handed in to a server that noted none.
                    None => {
                        self.files.data_set(&viewer, &data_set(&viewer.name, input)).await?.tree
                    }
                };
                material.inputs.extend(self.input(tree, input).await?);
            }
            material.image = match &work.image {
                Some(image) => Some(self.image(image).await?),
                None => None,
            };
            Ok(material)
        })
    }
}

impl FromFiles {
    /// The image that a job names: one of the catalogue by its name there, and by its digest where
    /// that is known; else what it names is the reference, or a Dockerfile of its code.
    async fn image(&self, named: &str) -> Result<String, Unstaged> {
        let row = self.catalogue.image(named).await?;
        let Some(row) = row else { return Ok(named.to_owned()) };
        let image: Result<NewImage, _> = serde_json::from_str(&row.details);
        let damaged = |e| format!("image `{named}` is damaged in the catalogue: {e}");
        Ok(image.map_err(|e| Unstaged::ForGood(damaged(e)))?.exact())
    }

    async fn input(&self, tree: Option<Hash>, input: &WorkInput) -> Result<Vec<Staged>, Unstaged> {
        let Some(tree) = tree else { return Ok(Vec::new()) };
        let name = input.data.split_once('/').map_or(input.data.as_str(), |(_, name)| name);
        let place = input.path.clone().unwrap_or_else(|| format!("inputs/{name}"));
        let files = self.files.stage(tree).await?;
        Ok(files.into_iter().map(|file| staged(file, Some(&place))).collect())
    }
}

/// A tree as a note has it.
fn noted(tree: Option<&str>) -> Result<Option<Hash>, Unstaged> {
    let no_tree = |_| Unstaged::ForGood("its note names something that is no tree".to_owned());
    tree.map(|tree| tree.parse()).transpose().map_err(no_tree)
}

fn staged(file: StagedFile, below: Option<&str>) -> Staged {
    let to = match below {
        Some(folder) => format!("{}/{}", folder.trim_end_matches('/'), file.path),
        None => file.path,
    };
    Staged { from: file.from, to, executable: file.executable }
}
