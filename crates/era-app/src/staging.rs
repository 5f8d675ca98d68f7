//! Code and data of a job out of the store's files, as far as its owner may see them.

use std::future::Future;
use std::pin::Pin;

use era_api::account::Role;
use era_api::image::NewImage;
use era_api::job::{Work, WorkInput};
use era_cloud::Staged;
use era_core::units::UserId;
use era_store::accounts::{AccountTables, ImageRow};
use era_store::files::{ContentHash, Files, StagedFile};

use crate::driver::Handle;
use crate::files::owner_as_viewer;
use crate::launch::{Material, Staging, Unstaged};
use crate::submit::data_set;

/// How a job names an entry of the catalogue with its publisher: `by:ada/torch`. No reference of an
/// image begins so.
const BY: &str = "by:";

/// Finds code and data in the store's files, and images in the catalogue.
pub struct FromFiles {
    /// Contents, trees and data sets.
    pub files: Files,
    /// Who there is, and in which group.
    pub driver: Handle,
    /// The catalogue of images.
    pub catalogue: AccountTables,
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
                let hash: ContentHash = code.parse().map_err(no_tree)?;
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
                Some(image) => Some(named_image(&self.catalogue, user_name, image).await?),
                None => None,
            };
            Ok(material)
        })
    }
}

impl FromFiles {
    async fn input(
        &self,
        tree: Option<ContentHash>,
        input: &WorkInput,
    ) -> Result<Vec<Staged>, Unstaged> {
        let Some(tree) = tree else { return Ok(Vec::new()) };
        let name = input.data.split_once('/').map_or(input.data.as_str(), |(_, name)| name);
        let place = input.path.clone().unwrap_or_else(|| format!("inputs/{name}"));
        let files = self.files.stage(tree).await?;
        Ok(files.into_iter().map(|file| staged(file, Some(&place))).collect())
    }
}

fn noted(tree: Option<&str>) -> Result<Option<ContentHash>, Unstaged> {
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

/// The image that a job of this user names: one of the catalogue, by its digest where that is
/// known; else what it names is the reference, or a Dockerfile of its code. Any account may
/// publish under any name, so a bare name is an entry's only where its publisher is the user or
/// an administrator: nobody else's `ubuntu` takes the place of the world's.
async fn named_image(
    catalogue: &AccountTables,
    user: &str,
    named: &str,
) -> Result<String, Unstaged> {
    let by = named.strip_prefix(BY).and_then(|rest| rest.split_once('/'));
    let row = catalogue.image(by.map_or(named, |(_, name)| name)).await?;
    let row = match (row, by) {
        (Some(row), None) if counts_for(catalogue, user, &row).await? => row,
        (_, None) => return Ok(named.to_owned()),
        (Some(row), Some((publisher, _))) if row.published_by == publisher => row,
        (_, Some((publisher, name))) => {
            let problem = format!("`{publisher}` has published no image `{name}`");
            return Err(Unstaged::ForGood(problem));
        }
    };
    let image: Result<NewImage, _> = serde_json::from_str(&row.details);
    let damaged = |e| format!("image `{named}` is damaged in the catalogue: {e}");
    Ok(image.map_err(|e| Unstaged::ForGood(damaged(e)))?.exact())
}

/// Whether an entry of the catalogue is what a user means by its bare name.
async fn counts_for(
    catalogue: &AccountTables,
    user: &str,
    row: &ImageRow,
) -> Result<bool, Unstaged> {
    if row.published_by == user {
        return Ok(true);
    }
    let role = catalogue.role_of(&row.published_by).await?;
    Ok(role.and_then(crate::auth::role) == Some(Role::Administrator))
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_store::Store;
    use era_store::accounts::{GroupRow, UserRow};

    async fn published(rows: &AccountTables, by: &str, name: &str) {
        let details = format!(r#"{{"name": "{name}", "reference": "r:5000/{by}/{name}:1"}}"#);
        let (name, published_by) = (name.to_owned(), by.to_owned());
        let row = ImageRow { name, details, published_by, published: 0 };
        rows.put_image(&row).await.unwrap();
    }

    #[tokio::test]
    async fn nobody_takes_the_place_of_an_image_that_others_name() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).await.unwrap();
        let rows = store.accounts();
        let group =
            GroupRow { id: 0, name: "house".into(), level: 0, storage_bytes: None, created: 0 };
        rows.add_group(&group).await.unwrap();
        for (id, name, role) in [(0, "root", 2), (1, "eve", 0), (2, "ada", 0)] {
            let user = UserRow {
                id,
                name: name.into(),
                group: 0,
                role,
                level: 0,
                enabled: true,
                password: String::new(),
                one_time: false,
                storage_bytes: None,
                created: 0,
            };
            rows.add_user(&user).await.unwrap();
        }
        published(&rows, "eve", "ubuntu").await;
        published(&rows, "eve", "pytorch/pytorch").await;
        published(&rows, "root", "torch").await;
        for (user, named, is) in [
            ("ada", "ubuntu", "ubuntu"),
            ("ada", "pytorch/pytorch", "pytorch/pytorch"),
            ("eve", "ubuntu", "r:5000/eve/ubuntu:1"),
            ("ada", "by:eve/ubuntu", "r:5000/eve/ubuntu:1"),
            ("ada", "by:eve/pytorch/pytorch", "r:5000/eve/pytorch/pytorch:1"),
            ("ada", "torch", "r:5000/root/torch:1"),
            ("ada", "./Dockerfile", "./Dockerfile"),
            ("ada", "ubuntu:24.04", "ubuntu:24.04"),
        ] {
            assert_eq!(named_image(&rows, user, named).await.unwrap(), is, "{user}: {named}");
        }
        let refused = named_image(&rows, "ada", "by:root/ubuntu").await.unwrap_err().to_string();
        assert!(refused.contains("`root` has published no image `ubuntu`"), "{refused}");
    }
}
