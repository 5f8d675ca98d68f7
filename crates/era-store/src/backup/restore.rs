//! A backup becomes a server's folder again, or nothing happens.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::copy::{self, Listed, file_error, make_parent};
use super::{Backup, BackupError, VERSION};
use crate::Store;
use crate::tables::Projector;

/// Most bytes of what a backup says about itself.
const HEAD_BYTES_MAX: u64 = 1 << 16;

/// Makes a server's folder from a backup: checks the hash of every file, makes the tables anew,
/// and puts the folder under its name when all of it is there. The folder must be empty or not
/// there.
pub async fn restore(backup: &Path, to: &Path) -> Result<Backup, BackupError> {
    let (told, list) = read(backup)?;
    let there = to.exists();
    if there {
        copy::make_empty(to)?;
    }
    let unfinished = beside(to);
    if unfinished.exists() {
        return Err(BackupError::NotEmpty(unfinished));
    }
    let made = fill(backup, &unfinished, &list).await;
    if made.is_err() {
        // What is left of it is of no use; the first error is the one that matters.
        let _ = fs::remove_dir_all(&unfinished);
        return made.map(|()| told);
    }
    if there {
        fs::remove_dir(to).map_err(file_error(to))?;
    }
    fs::rename(&unfinished, to).map_err(file_error(to))?;
    Ok(told)
}

/// A name in the same folder, so that a rename is all that is left to do.
fn beside(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".restoring");
    folder.with_file_name(name)
}

/// What a backup says about itself and its files.
fn read(backup: &Path) -> Result<(Backup, Vec<Listed>), BackupError> {
    let bad = |problem: String| BackupError::NoBackup { folder: backup.to_owned(), problem };
    let head = backup.join("backup.json");
    let size = fs::metadata(&head).map_err(|e| bad(format!("backup.json: {e}")))?.len();
    if size > HEAD_BYTES_MAX {
        return Err(bad("backup.json is too long".to_owned()));
    }
    let text = fs::read_to_string(&head).map_err(|e| bad(format!("backup.json: {e}")))?;
    let told: Backup = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    if told.version != VERSION {
        return Err(bad(format!("it is of version {}, this reads {VERSION}", told.version)));
    }
    let text = fs::read(backup.join("files")).map_err(|e| bad(format!("files: {e}")))?;
    if blake3::hash(&text).to_hex().as_str() != told.list {
        let problem = "it is not the list that was written".to_owned();
        return Err(BackupError::Damaged { path: "files".to_owned(), problem });
    }
    let text = String::from_utf8(text).map_err(|e| bad(e.to_string()))?;
    let list = text.lines().map(|line| parsed(line).ok_or_else(|| bad(format!("files: {line}"))));
    Ok((told, list.collect::<Result<_, _>>()?))
}

fn parsed(line: &str) -> Option<Listed> {
    let mut words = line.splitn(3, ' ');
    let (hash, bytes, path) = (words.next()?, words.next()?, words.next()?);
    let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let listed =
        Listed { hash: hash.to_owned(), bytes: bytes.parse().ok()?, path: path.to_owned() };
    (plain && !path.is_empty()).then_some(listed)
}

async fn fill(backup: &Path, to: &Path, list: &[Listed]) -> Result<(), BackupError> {
    copy::make_empty(to)?;
    for listed in list {
        let (source, target) = (backup.join("data").join(&listed.path), to.join(&listed.path));
        make_parent(&target)?;
        let (hash, bytes) = copy::copy(&source, &target).map_err(|e| BackupError::Damaged {
            path: listed.path.clone(),
            problem: e.to_string(),
        })?;
        if (hash.as_str(), bytes) != (listed.hash.as_str(), listed.bytes) {
            let problem = "it is not what was written".to_owned();
            return Err(BackupError::Damaged { path: listed.path.clone(), problem });
        }
    }
    let store = Store::open(to).await?;
    let rebuilt = Projector::rebuild(&store).await;
    store.close().await;
    rebuilt.map(drop).map_err(BackupError::from)
}
