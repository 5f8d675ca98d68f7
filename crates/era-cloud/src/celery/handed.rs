//! The secrets of a launch on their way to its worker: a file in the job's folder, which the server
//! and its workers see and nobody else can read. Redis keeps what it is told on its disk, and is
//! told their names alone (decision 0023).

use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use era_core::job::TaskId;

use super::bus::random_hex;
use crate::executor::Launch;
use crate::secrets::TaskSecrets;

fn path(folder: &Path, task: TaskId) -> PathBuf {
    folder.join(format!("secrets-p{}-a{}-r{}", task.part, task.attempt, task.rank))
}

/// The server hands the secrets of a launch over.
pub(super) fn put(launch: &Launch) -> io::Result<()> {
    let path = path(&launch.spec.folder, launch.task);
    super::verdict::make_folder(launch)?;
    let draft = path.with_extension(random_hex::<8>());
    let text = serde_json::to_vec(&launch.spec.secrets)?;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&draft)?;
    let put = io::Write::write_all(&mut file, &text)
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&draft, &path));
    if put.is_err() {
        // The first error is the one that matters.
        let _ = std::fs::remove_file(&draft);
    }
    put
}

/// A worker takes them.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))] // workers are there only
pub(super) fn take(launch: &mut Launch) -> io::Result<()> {
    if !launch.spec.secrets.lack_values() {
        return Ok(());
    }
    let text = std::fs::read(path(&launch.spec.folder, launch.task))?;
    let secrets: TaskSecrets = serde_json::from_slice(&text)?;
    if secrets.lack_values() || secrets.without_values() != launch.spec.secrets {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "they are not those of the job"));
    }
    Arc::make_mut(&mut launch.spec).secrets = secrets;
    Ok(())
}

/// The task is over: nobody needs them any more.
pub(super) fn remove(launch: &Launch) {
    let path = path(&launch.spec.folder, launch.task);
    if let Err(error) = std::fs::remove_file(&path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "the secrets of a task stay in its folder");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::shim::tests::launch;

    #[test]
    fn what_is_handed_over_is_taken_by_those_who_may_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut full = launch(1, &["true"]);
        let spec = Arc::make_mut(&mut full.spec);
        spec.folder = folder.path().join("1");
        spec.secrets = TaskSecrets::new(BTreeMap::from([("A".into(), "open sesame".into())]));
        put(&full).expect("handed over");
        put(&full).expect("again");
        let file = path(&full.spec.folder, full.task);
        let mode = std::fs::metadata(&file).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut bare = full.without_secrets();
        assert!(!serde_json::to_string(&bare).expect("JSON").contains("sesame"));
        take(&mut bare).expect("taken");
        assert_eq!(bare, full);
        let mut other = full.without_secrets();
        Arc::make_mut(&mut other.spec).secrets = TaskSecrets::named(&["B".into()]);
        assert!(take(&mut other).is_err(), "it is started with all of its own or not at all");
        remove(&full);
        remove(&full);
        assert!(take(&mut full.without_secrets()).is_err());
        let files = std::fs::read_dir(&full.spec.folder).expect("listed").count();
        assert_eq!(files, 0, "no draft is left");
    }
}
