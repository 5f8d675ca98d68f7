//! Code and data of a job out of the store's files, as far as its owner may see them.

use std::future::Future;
use std::pin::Pin;

use era_api::job::{Work, WorkInput};
use era_cloud::Staged;
use era_core::units::UserId;
use era_store::files::{DataSetKey, Files, Hash, StagedFile, Viewer};

use crate::driver::Handle;
use crate::files::owner_as_viewer;
use crate::launch::{Material, Staging};

pub(super) struct FromFiles {
    pub(super) files: Files,
    pub(super) driver: Handle,
}

impl Staging for FromFiles {
    fn stage<'a>(
        &'a self,
        user: UserId,
        user_name: &'a str,
        work: &'a Work,
    ) -> Pin<Box<dyn Future<Output = Result<Material, String>> + Send + 'a>> {
        Box::pin(async move {
            let viewer = owner_as_viewer(&self.driver, user, user_name);
            let mut material = Material::default();
            if let Some(code) = &work.code {
                let hash: Hash = code.parse().map_err(|_| format!("`{code}` is no tree"))?;
                self.files.check_usable(&viewer, hash).await.map_err(|e| e.to_string())?;
                let files = self.files.stage(hash).await.map_err(|e| e.to_string())?;
                material.code = files.into_iter().map(|file| staged(file, None)).collect();
            }
            for input in &work.inputs {
                material.inputs.extend(self.input(&viewer, input).await?);
            }
            Ok(material)
        })
    }
}

impl FromFiles {
    async fn input(&self, viewer: &Viewer, input: &WorkInput) -> Result<Vec<Staged>, String> {
        let (owner, name) = match input.data.split_once('/') {
            Some((owner, name)) => (owner, name),
            None => (viewer.name.as_str(), input.data.as_str()),
        };
        let key = DataSetKey { owner: owner.to_owned(), name: name.to_owned() };
        let set = self.files.data_set(viewer, &key).await.map_err(|e| e.to_string())?;
        let Some(tree) = set.tree else { return Ok(Vec::new()) };
        let place = input.path.clone().unwrap_or_else(|| format!("inputs/{name}"));
        let files = self.files.stage(tree).await.map_err(|e| e.to_string())?;
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
