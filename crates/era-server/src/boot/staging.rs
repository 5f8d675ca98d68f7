//! Code and data of a job out of the store's files, as far as its owner may see them.

use std::future::Future;
use std::pin::Pin;

use era_api::image::NewImage;
use era_api::job::{Work, WorkInput};
use era_cloud::Staged;
use era_core::units::UserId;
use era_store::accounts::Accounts;
use era_store::files::{DataSetKey, Files, Hash, StagedFile, Viewer};

use crate::driver::Handle;
use crate::files::owner_as_viewer;
use crate::launch::{Material, Staging, Unstaged};

pub(super) struct FromFiles {
    pub(super) files: Files,
    pub(super) driver: Handle,
    pub(super) catalogue: Accounts,
}

impl Staging for FromFiles {
    fn stage<'a>(
        &'a self,
        user: UserId,
        user_name: &'a str,
        work: &'a Work,
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
            for input in &work.inputs {
                material.inputs.extend(self.input(&viewer, input).await?);
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

    async fn input(&self, viewer: &Viewer, input: &WorkInput) -> Result<Vec<Staged>, Unstaged> {
        let (owner, name) = match input.data.split_once('/') {
            Some((owner, name)) => (owner, name),
            None => (viewer.name.as_str(), input.data.as_str()),
        };
        let key = DataSetKey { owner: owner.to_owned(), name: name.to_owned() };
        let set = self.files.data_set(viewer, &key).await?;
        let Some(tree) = set.tree else { return Ok(Vec::new()) };
        let place = input.path.clone().unwrap_or_else(|| format!("inputs/{name}"));
        let files = self.files.stage(tree).await?;
        Ok(files.into_iter().map(|file| staged(file, Some(&place))).collect())
    }
}

fn staged(file: StagedFile, below: Option<&str>) -> Staged {
    let to = match below {
        Some(folder) => format!("{}/{}", folder.trim_end_matches('/'), file.path),
        None => file.path,
    };
    Staged { from: file.from, to, executable: file.executable }
}
