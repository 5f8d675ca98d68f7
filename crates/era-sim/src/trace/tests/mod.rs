//! What is promised of traces: each format on a small sample, each way in which a file can be
//! wrong, what is written and read back, and the recorded traces where they are at hand.

mod formats;
mod refusals;
mod shared;
mod written;

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Trace, read};
use crate::BadInput;

/// A folder of its own for one test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).expect("a file in the temporary folder");
        path
    }
}

/// Reads content from a file of this name, the format being recognised.
fn try_read(name: &str, content: impl AsRef<[u8]>) -> Result<Trace, BadInput> {
    let folder = Folder::new();
    read(&folder.put(name, content), None)
}

#[track_caller]
fn good(name: &str, content: impl AsRef<[u8]>) -> Trace {
    try_read(name, content).unwrap_or_else(|error| panic!("{error}"))
}

/// The error, with the file's folder left out.
#[track_caller]
fn wrong(name: &str, content: impl AsRef<[u8]>) -> String {
    let error = try_read(name, content).expect_err("this should not be read");
    let file = error.file.as_deref().and_then(Path::file_name).map(PathBuf::from);
    assert!(file.is_some(), "an error names its file: {error}");
    BadInput { file, ..error }.to_string()
}

fn gzip(content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content.as_ref()).expect("memory");
    encoder.finish().expect("memory")
}
