//! Many files as one stream in the tar format, made while it is read.
//!
//! A thread writes the archive into a channel of a few pieces; when the reader is slow the thread
//! waits, and when the reader is gone it stops. Nothing is held but these pieces.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use axum::body::{Body, Bytes};
use era_api::data::OutputFile;
use tokio::sync::mpsc;

use super::outputs;

const PIECE_BYTES: usize = 256 << 10;
const PIECES: usize = 4;

/// The outputs below a folder as an archive.
pub fn body(folder: PathBuf, files: Vec<OutputFile>) -> Body {
    let (pieces, stream) = mpsc::channel::<io::Result<Bytes>>(PIECES);
    tokio::task::spawn_blocking(move || {
        let failed = pieces.clone();
        let sink = io::BufWriter::with_capacity(PIECE_BYTES, Pieces(pieces));
        if let Err(error) = write(sink, &folder, &files) {
            tracing::warn!(%error, "an archive of outputs was cut short");
            // The reader must not take what came for all of it.
            let _ = failed.blocking_send(Err(error));
        }
    });
    let next = |mut stream: mpsc::Receiver<_>| async move {
        stream.recv().await.map(|piece: io::Result<Bytes>| (piece, stream))
    };
    Body::from_stream(futures_util::stream::unfold(stream, next))
}

struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(piece)));
        sent.map(|()| piece.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write(sink: impl Write, folder: &std::path::Path, files: &[OutputFile]) -> io::Result<()> {
    let mut archive = tar::Builder::new(sink);
    for listed in files {
        // A job that still runs may have removed it since it was listed.
        let Ok(file) = outputs::open(folder, &listed.path) else { continue };
        let bytes = file.metadata()?.len();
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(bytes);
        header.set_mode(if listed.executable { 0o755 } else { 0o644 });
        header.set_mtime(u64::try_from(listed.changed.as_second()).unwrap_or(0));
        // Exactly as many bytes as the header says, also of a file that grows or shrinks.
        let content = file.take(bytes).chain(io::repeat(0)).take(bytes);
        archive.append_data(&mut header, &listed.path, content)?;
    }
    archive.into_inner()?.flush()
}

#[cfg(test)]
mod tests {
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
        let mut archive = Vec::new();
        write(&mut archive, root.path(), &outputs::list(root.path()).unwrap()).unwrap();
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
}
