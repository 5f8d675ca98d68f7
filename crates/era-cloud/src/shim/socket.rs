//! Where servers come in: a socket in the supervisor's folder.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// A socket, and the file by which it is found.
pub(super) struct SupervisorSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of that file: another supervisor may have made one of the same name.
    file: (u64, u64),
}

impl SupervisorSocket {
    /// In the place of whatever an earlier supervisor left there. Only our own user may come in.
    pub(super) fn open(path: PathBuf) -> io::Result<SupervisorSocket> {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let file = found(&path)?;
        Ok(SupervisorSocket { listener, path, file })
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Whether nobody can find it any more. What cannot be told is not gone.
    pub(super) fn is_gone(&self) -> bool {
        match found(&self.path) {
            Ok(file) => file != self.file,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Nobody new comes in.
    pub(super) fn close(&self) {
        if !self.is_gone() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn found(path: &Path) -> io::Result<(u64, u64)> {
    let file = std::fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_is_gone_when_its_file_is_and_leaves_that_of_another_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let first = SupervisorSocket::open(path.clone()).expect("opened");
        assert!(!first.is_gone());
        // The file of the first still has its number: the second's is another.
        let kept = folder.path().join("kept");
        std::fs::rename(&path, &kept).expect("moved");
        assert!(first.is_gone());
        let second = SupervisorSocket::open(path.clone()).expect("opened");
        assert!(first.is_gone() && !second.is_gone());
        first.close();
        assert!(!second.is_gone());
        second.close();
        assert!(second.is_gone() && !path.exists());
    }
}
