//! Many files as one stream in the tar format, made while it is read.
//!
//! Each piece is made when the one before was taken, so a slow reader holds a piece and an open
//! file, and no thread.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use era_api::data::OutputFile;
use futures_util::Stream;

use super::outputs;

const PIECE_BYTES: usize = 256 << 10;
/// Headers and contents fill whole blocks, and two empty ones end it.
const BLOCK_BYTES: u64 = 512;

/// The outputs below a folder as an archive, piece by piece.
pub fn pieces(
    folder: PathBuf,
    files: Vec<OutputFile>,
) -> impl Stream<Item = io::Result<Vec<u8>>> + Send {
    let archive = Archive::new(folder, files);
    let next = |archive: Option<Archive>| async move {
        let mut archive = archive?;
        let made = tokio::task::spawn_blocking(move || {
            let piece = archive.piece();
            (piece, archive)
        });
        match made.await.map_err(io::Error::other) {
            Ok((Ok(piece), _)) if piece.is_empty() => None,
            Ok((Ok(piece), archive)) => Some((Ok(piece), Some(archive))),
            Ok((Err(error), _)) | Err(error) => {
                tracing::warn!(%error, "an archive of outputs was cut short");
                // The reader must not take what came for all of it.
                Some((Err(error), None))
            }
        }
    };
    futures_util::stream::unfold(Some(archive), next)
}

/// An archive that is being made.
struct Archive {
    folder: PathBuf,
    files: std::vec::IntoIter<OutputFile>,
    /// What is left of the file that is being read.
    content: Option<Box<dyn Read + Send>>,
    ended: bool,
}

impl Archive {
    fn new(folder: PathBuf, files: Vec<OutputFile>) -> Archive {
        Archive { folder, files: files.into_iter(), content: None, ended: false }
    }

    /// The next bytes of it; none at the end.
    fn piece(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        while piece.len() < PIECE_BYTES {
            if let Some(content) = &mut self.content {
                let room = (PIECE_BYTES - piece.len()) as u64;
                if content.take(room).read_to_end(&mut piece)? == 0 {
                    self.content = None;
                }
                continue;
            }
            match self.files.next() {
                Some(listed) => self.begin(&listed, &mut piece)?,
                None if self.ended => break,
                None => {
                    self.ended = true;
                    piece.extend([0; 2 * BLOCK_BYTES as usize]);
                }
            }
        }
        Ok(piece)
    }

    fn begin(&mut self, listed: &OutputFile, piece: &mut Vec<u8>) -> io::Result<()> {
        // A job that still runs may have removed it since it was listed.
        let Ok(file) = outputs::open(&self.folder, &listed.path) else { return Ok(()) };
        let bytes = file.metadata()?.len();
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(bytes);
        header.set_mode(if listed.executable { 0o755 } else { 0o644 });
        header.set_mtime(u64::try_from(listed.changed.as_second()).unwrap_or(0));
        // What a long path needs before it comes with it.
        let mut headers = tar::Builder::new(Vec::new());
        headers.append_data(&mut header, &listed.path, io::empty())?;
        piece.append(headers.get_mut());
        self.content = Some(Box::new(blocks(file, bytes)));
        Ok(())
    }
}

/// Exactly as many bytes as the header says, also of a file that grows or shrinks, in whole blocks.
fn blocks(file: File, bytes: u64) -> impl Read {
    let whole = bytes.next_multiple_of(BLOCK_BYTES);
    file.take(bytes).chain(io::repeat(0)).take(whole)
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[test]
    fn an_archive_unpacks_as_what_was_there() {
        let root = tempfile::tempdir().unwrap();
        let long = format!("{}/{}", "d".repeat(120), "f".repeat(120));
        let files = [("a.txt", "alpha"), ("b/c", ""), (long.as_str(), "long")];
        for (path, content) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let mut making = Archive::new(root.path().to_owned(), outputs::list(root.path()).unwrap());
        let mut archive = Vec::new();
        loop {
            let piece = making.piece().unwrap();
            if piece.is_empty() {
                break;
            }
            archive.extend(piece);
        }
        assert_eq!(archive.len() % BLOCK_BYTES as usize, 0);
        let mut found = Vec::new();
        for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            found.push((path, content));
        }
        let want: Vec<_> = files.iter().map(|(p, c)| ((*p).to_owned(), (*c).to_owned())).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn readers_that_stand_still_hold_no_thread() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("large"), vec![7; 16 * PIECE_BYTES]).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut readers = Vec::new();
            for _ in 0..8 {
                let files = outputs::list(root.path()).unwrap();
                let mut pieces = Box::pin(pieces(root.path().to_owned(), files));
                let first = pieces.next();
                let first = tokio::time::timeout(std::time::Duration::from_secs(30), first).await;
                assert_eq!(first.unwrap().unwrap().unwrap().len(), PIECE_BYTES);
                readers.push(pieces);
            }
            let others = tokio::task::spawn_blocking(|| ());
            tokio::time::timeout(std::time::Duration::from_secs(30), others)
                .await
                .unwrap()
                .unwrap();
        });
    }
}
