//! Data sets: names for trees, with an owner and with those who may see them.

use era_core::units::UserId;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::access::account;
use super::{
    ContentHash, DataSetKey, DataSetVisibility, Edit, FileTree, Files, FilesAsked, FilesError,
    Listed, TreeFile, Viewer,
};

/// Most data sets of an account.
const SETS_MAX: i64 = 10_000;
/// Most accounts that one is shared with.
pub(crate) const SHARES_MAX: usize = 1000;

/// A data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSet {
    id: i64,
    tree_id: Option<i64>,
    /// Whose, and what it is called.
    pub key: DataSetKey,
    /// The owner's number.
    pub owner: UserId,
    /// Who may see it.
    pub visibility: DataSetVisibility,
    /// Accounts that may see it beside, by name.
    pub shared_with: Vec<String>,
    /// Its tree, once a file is there.
    pub tree: Option<ContentHash>,
    /// How many files.
    pub files: u64,
    /// How many bytes.
    pub bytes: u64,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
    /// When a file last changed.
    pub changed: i64,
}

/// All columns of a data set; the first parameter is the viewer's name.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT d.id, d.owner, d.owner_name, d.name, d.visibility, d.created, d.changed, \
             d.tree, t.hash, COALESCE(t.files, 0) AS files, COALESCE(t.bytes, 0) AS bytes, \
             (SELECT COUNT(*) FROM data_shares s WHERE s.data_set = d.id AND s.account_name = ?) \
             AS shared FROM data_sets d LEFT JOIN trees t ON t.id = d.tree ",
            $rest
        )
    };
}

impl Files {
    /// Makes an empty data set of the viewer's own.
    pub async fn create_data_set(
        &self,
        viewer: &Viewer,
        name: &str,
        visibility: DataSetVisibility,
    ) -> Result<DataSet, FilesError> {
        check_name(name)?;
        let key = DataSetKey { owner: viewer.name.clone(), name: name.to_owned() };
        let made = sqlx::query(
            "INSERT INTO data_sets (owner, owner_name, name, visibility, created, changed) \
             SELECT ?, ?, ?, ?, ?, ? \
             FROM (SELECT COUNT(*) AS had FROM data_sets WHERE owner = ?) AS own WHERE had < ? \
             ON CONFLICT (owner_name, name) DO NOTHING",
        )
        .bind(i64::from(viewer.account.0))
        .bind(&key.owner)
        .bind(&key.name)
        .bind(visibility.as_str())
        .bind(self.now())
        .bind(self.now())
        .bind(i64::from(viewer.account.0))
        .bind(SETS_MAX)
        .execute(self.writer())
        .await?;
        if made.rows_affected() == 0 {
            return Err(FilesError::Taken(key.to_string()));
        }
        self.data_set(viewer, &key).await
    }

    /// A data set that the viewer may see.
    pub async fn data_set(&self, viewer: &Viewer, key: &DataSetKey) -> Result<DataSet, FilesError> {
        let row = sqlx::query(select!("WHERE d.owner_name = ? AND d.name = ?"))
            .bind(&viewer.name)
            .bind(&key.owner)
            .bind(&key.name)
            .fetch_optional(self.readers())
            .await?;
        let unknown = || FilesError::UnknownData(key.to_string());
        let (mut set, shared) = read_set(&row.ok_or_else(unknown)?)?;
        if !viewer.sees_data(set.owner, set.visibility, shared) {
            return Err(unknown());
        }
        self.add_shares(viewer, &mut set).await?;
        Ok(set)
    }

    /// A data set that the viewer may change.
    async fn own_data_set(&self, viewer: &Viewer, key: &DataSetKey) -> Result<DataSet, FilesError> {
        let set = self.data_set(viewer, key).await?;
        if viewer.administrator || set.owner == viewer.account {
            Ok(set)
        } else {
            Err(FilesError::NotYours(key.to_string()))
        }
    }

    /// Whom it is shared with is told to those who may change that.
    async fn add_shares(&self, viewer: &Viewer, set: &mut DataSet) -> Result<(), FilesError> {
        if viewer.administrator || set.owner == viewer.account {
            set.shared_with = sqlx::query_scalar(
                "SELECT account_name FROM data_shares WHERE data_set = ? ORDER BY account_name",
            )
            .bind(set.id)
            .fetch_all(self.readers())
            .await?;
        }
        Ok(())
    }

    /// Data sets that the viewer may see, by owner and name, after one of them; those of one owner
    /// or whose name has a text in it, where that is asked.
    pub async fn data_sets(
        &self,
        viewer: &Viewer,
        owner: Option<&str>,
        search: Option<&str>,
        after: Option<&DataSetKey>,
        limit: u32,
    ) -> Result<Vec<DataSet>, FilesError> {
        let first = DataSetKey { owner: String::new(), name: String::new() };
        let mut after = after.unwrap_or(&first).clone();
        let mut found = Vec::new();
        let pattern = super::tree_rows::contains(search.unwrap_or_default());
        loop {
            let rows = sqlx::query(select!(
                "WHERE (d.owner_name > ? OR (d.owner_name = ? AND d.name > ?)) \
                 AND (? = '' OR d.owner_name = ?) AND lower(d.name) LIKE lower(?) ESCAPE '!' \
                 ORDER BY d.owner_name, d.name LIMIT ?"
            ))
            .bind(&viewer.name)
            .bind(&after.owner)
            .bind(&after.owner)
            .bind(&after.name)
            .bind(owner.unwrap_or_default())
            .bind(owner.unwrap_or_default())
            .bind(&pattern)
            .bind(i64::from(limit))
            .fetch_all(self.readers())
            .await?;
            let last = rows.len() < limit as usize;
            for row in rows {
                let (mut set, shared) = read_set(&row)?;
                after = set.key.clone();
                if viewer.sees_data(set.owner, set.visibility, shared) {
                    self.add_shares(viewer, &mut set).await?;
                    found.push(set);
                    if found.len() == limit as usize {
                        return Ok(found);
                    }
                }
            }
            if last {
                return Ok(found);
            }
        }
    }

    /// Changes who may see a data set.
    pub async fn share_data_set(
        &self,
        viewer: &Viewer,
        key: &DataSetKey,
        visibility: Option<DataSetVisibility>,
        shared_with: Option<&[String]>,
    ) -> Result<DataSet, FilesError> {
        let set = self.own_data_set(viewer, key).await?;
        if let Some(names) = shared_with
            && names.len() > SHARES_MAX
        {
            return Err(FilesError::TooManyShares(names.len()));
        }
        let mut transaction = self.writer().begin().await?;
        if let Some(visibility) = visibility {
            sqlx::query("UPDATE data_sets SET visibility = ? WHERE id = ?")
                .bind(visibility.as_str())
                .bind(set.id)
                .execute(&mut *transaction)
                .await?;
        }
        if let Some(names) = shared_with {
            sqlx::query("DELETE FROM data_shares WHERE data_set = ?")
                .bind(set.id)
                .execute(&mut *transaction)
                .await?;
            for name in names {
                sqlx::query(
                    "INSERT INTO data_shares (data_set, account_name) VALUES (?, ?) \
                     ON CONFLICT (data_set, account_name) DO NOTHING",
                )
                .bind(set.id)
                .bind(name)
                .execute(&mut *transaction)
                .await?;
            }
        }
        transaction.commit().await?;
        self.data_set(viewer, key).await
    }

    /// Changes the files of a data set: all of it, or nothing.
    pub async fn edit_data_set(
        &self,
        viewer: &Viewer,
        key: &DataSetKey,
        edit: Edit,
        quota: Option<u64>,
    ) -> Result<DataSet, FilesError> {
        let id = self.own_data_set(viewer, key).await?.id;
        let _turn = self.0.set_turns.take(id.unsigned_abs()).await;
        let set = self.own_data_set(viewer, key).await?;
        let before = match set.tree_id {
            Some(tree) => self.tree_by_id(tree).await?,
            None => FileTree::default(),
        };
        let tree = before.clone().edited(edit)?;
        self.check_quota(set.owner, before.bytes(), tree.bytes(), quota).await?;
        let naming = self.0.naming.read().await;
        let tree = self.put_changed_tree(viewer, &tree, &before).await?;
        sqlx::query("UPDATE data_sets SET tree = ?, changed = ? WHERE id = ?")
            .bind(tree)
            .bind(self.now())
            .bind(set.id)
            .execute(self.writer())
            .await?;
        drop(naming);
        self.forget_used(set.owner);
        self.data_set(viewer, key).await
    }

    /// Whoever is over the quota may make a data set smaller, but not larger.
    async fn check_quota(
        &self,
        owner: UserId,
        before: u64,
        after: u64,
        quota: Option<u64>,
    ) -> Result<(), FilesError> {
        let Some(limit) = quota.filter(|_| after > before) else { return Ok(()) };
        let used = self.used(owner).await?;
        if used > limit { Err(FilesError::Quota { used, limit }) } else { Ok(()) }
    }

    /// Removes a data set. Jobs that use its files keep them.
    pub async fn remove_data_set(
        &self,
        viewer: &Viewer,
        key: &DataSetKey,
    ) -> Result<(), FilesError> {
        let id = self.own_data_set(viewer, key).await?.id;
        let _turn = self.0.set_turns.take(id.unsigned_abs()).await;
        let set = self.own_data_set(viewer, key).await?;
        let mut transaction = self.writer().begin().await?;
        for statement in
            ["DELETE FROM data_shares WHERE data_set = ?", "DELETE FROM data_sets WHERE id = ?"]
        {
            sqlx::query(statement).bind(set.id).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        self.forget_used(set.owner);
        Ok(())
    }

    pub async fn data_file(&self, set: &DataSet, path: &str) -> Result<TreeFile, FilesError> {
        let unknown = || FilesError::UnknownFile(path.to_owned());
        self.tree_file(set.tree_id.ok_or_else(unknown)?, path).await
    }

    /// Files of a data set, by path.
    pub async fn data_files(
        &self,
        set: &DataSet,
        asked: &FilesAsked,
    ) -> Result<Vec<TreeFile>, FilesError> {
        match set.tree_id {
            Some(tree) => self.list(tree, asked).await,
            None => Ok(Vec::new()),
        }
    }

    /// What is directly in a folder of a data set, after a name in it.
    pub async fn browse_data(
        &self,
        set: &DataSet,
        folder: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Listed>, FilesError> {
        match set.tree_id {
            Some(tree) => self.browse(tree, folder, after, limit).await,
            None => Ok(Vec::new()),
        }
    }
}

fn check_name(name: &str) -> Result<(), FilesError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if begins && name.len() <= 63 && name.chars().all(plain) {
        Ok(())
    } else {
        Err(FilesError::BadName(name.chars().take(80).flat_map(char::escape_debug).collect()))
    }
}

fn read_set(row: &AnyRow) -> Result<(DataSet, bool), FilesError> {
    let number = |name: &str| -> Result<u64, FilesError> {
        Ok(u64::try_from(row.try_get::<i64, _>(name)?).unwrap_or(0))
    };
    let hash: Option<String> = row.try_get("hash")?;
    let set = DataSet {
        id: row.try_get("id")?,
        tree_id: row.try_get("tree")?,
        key: DataSetKey { owner: row.try_get("owner_name")?, name: row.try_get("name")? },
        owner: account(row.try_get("owner")?),
        visibility: DataSetVisibility::read(row.try_get::<String, _>("visibility")?.as_str())?,
        shared_with: Vec::new(),
        tree: hash.map(|hash| hash.parse()).transpose()?,
        files: number("files")?,
        bytes: number("bytes")?,
        created: row.try_get("created")?,
        changed: row.try_get("changed")?,
    };
    Ok((set, row.try_get::<i64, _>("shared")? > 0))
}
