//! Whether a launch begins or is given up: decided once and for all, by a file in its job's folder.
//!
//! Redis says who may start a launch. While it is away nobody can ask it, and the server could
//! never know whether a message that it sent was taken in the last moment. The folder of a job is
//! seen by the server and by all workers, whatever became of Redis: whoever writes the word first
//! has decided, and the other one abides by it.

use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use super::bus::random_hex;
use crate::executor::Launch;

/// What the server writes.
const GIVEN_UP: &str = "given up";

fn path(launch: &Launch) -> PathBuf {
    let task = launch.task;
    let name = format!("verdict-p{}-a{}-r{}", task.part, task.attempt, task.rank);
    launch.spec.folder.join(name)
}

/// A worker is about to begin: says whether it may. The same worker may again after a restart.
pub(super) fn begin(launch: &Launch, worker: &str) -> io::Result<bool> {
    decide(launch, worker)
}

/// The server gives a launch up: says whether no worker has begun it, and none ever will.
pub(super) fn give_up(launch: &Launch) -> io::Result<bool> {
    decide(launch, GIVEN_UP)
}

/// Whether nobody has decided yet.
pub(super) fn is_open(launch: &Launch) -> bool {
    !path(launch).exists()
}

/// Makes the folder of a launch's job, where nobody has.
pub(super) fn make_folder(launch: &Launch) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(&launch.spec.folder)
}

fn decide(launch: &Launch, word: &str) -> io::Result<bool> {
    let path = path(launch);
    make_folder(launch)?;
    // Linked with the word in it, so that nobody ever reads half of one.
    let draft = path.with_extension(random_hex::<8>());
    let mut file = std::fs::OpenOptions::new();
    io::Write::write_all(
        &mut file.write(true).create_new(true).mode(0o644).open(&draft)?,
        word.as_bytes(),
    )?;
    let linked = std::fs::hard_link(&draft, &path);
    std::fs::remove_file(&draft)?;
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(std::fs::read(&path)? == word.as_bytes())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::shim::tests::launch;

    #[test]
    fn whoever_comes_first_has_decided() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |job: &str| {
            let mut launch = launch(1, &["true"]);
            Arc::make_mut(&mut launch.spec).folder = folder.path().join(job);
            launch
        };
        let (begun, given_up) = (of("1"), of("2"));
        assert!(is_open(&begun) && is_open(&given_up));
        assert!(begin(&begun, "n 1").expect("written"));
        assert!(!give_up(&begun).expect("read"), "it runs");
        assert!(begin(&begun, "n 1").expect("read"), "its worker came back");
        assert!(!begin(&begun, "n 2").expect("read"), "another one did");
        assert!(give_up(&given_up).expect("written"));
        assert!(!begin(&given_up, "n 1").expect("read"), "it never starts");
        assert!(give_up(&given_up).expect("read"), "told again");
        let mut next = begun.clone();
        next.task.attempt += 1;
        assert!(is_open(&next), "each attempt is decided by itself");
        assert_eq!(std::fs::read_dir(folder.path().join("1")).expect("listed").count(), 1);
    }

    #[test]
    fn of_many_at_once_one_decides() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut launch = launch(1, &["true"]);
        Arc::make_mut(&mut launch.spec).folder = folder.path().to_owned();
        let won = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..16)
                .map(|n| {
                    let launch = &launch;
                    scope.spawn(move || match n % 2 {
                        0 => give_up(launch).expect("decided").then_some(GIVEN_UP),
                        _ => begin(launch, "n 1").expect("decided").then_some("n 1"),
                    })
                })
                .collect();
            tries.into_iter().filter_map(|t| t.join().expect("no panic")).collect::<Vec<_>>()
        });
        assert_eq!(won.len(), 8);
        assert!(won.iter().all(|word| *word == won[0]), "{won:?}");
    }
}
