//! Files that are sent and read back while the site is struck: what was acknowledged is there, with
//! every byte, at any moment and in the end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use era_store::files::ContentHash;
use serde_json::json;

use super::bed::{Layer, wait};
use crate::harness::exchange;

/// The data set that they go to.
const SET: &str = "/api/v1/data/admin/chaos/files";
/// Sizes from a few bytes to what takes many pieces.
const SIZES: [usize; 4] = [10, 3_000, 70_000, 900_000];

/// Who sends files, and where to.
pub(crate) struct Uploads {
    address: String,
    headers: String,
    patience: Duration,
}

/// Hashes of what was acknowledged, by path.
pub(crate) type Kept = BTreeMap<String, ContentHash>;

fn content(nth: usize) -> String {
    let line = format!("{nth} of many lines that are not alike\n");
    line.chars().cycle().take(SIZES[nth % SIZES.len()]).collect()
}

impl Uploads {
    /// To this layer, which may be away for so long.
    pub(crate) fn to(files: &Layer, token: &str, patience: Duration) -> Uploads {
        let (status, answer) =
            files.ask(token, "POST", "/data", &json!({"name": "chaos"})).unwrap();
        assert_eq!(status, 201, "{answer}");
        let headers = format!("authorization: Bearer {token}\r\n");
        Uploads { address: files.address.clone(), headers, patience }
    }

    /// Sends files, each until it is acknowledged, and reads others back, until it is told to stop.
    pub(crate) fn send(&self, stop: &AtomicBool) -> Kept {
        let mut kept = Kept::new();
        for nth in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let (path, text) = (format!("folder/{nth}.txt"), content(nth));
            self.ask("PUT", &path, &text);
            kept.insert(path, ContentHash::of(text.as_bytes()));
            let again = format!("folder/{}.txt", nth / 2);
            self.check(&again, kept[&again]);
            std::thread::sleep(Duration::from_millis(100));
        }
        kept
    }

    /// What is read is what was sent.
    pub(crate) fn check(&self, path: &str, hash: ContentHash) {
        let read = self.ask("GET", path, "");
        assert_eq!(ContentHash::of(read.as_bytes()), hash, "{path} has {} bytes", read.len());
    }

    /// Asks until there is an answer of one that is at work.
    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        wait("an answer about a file", self.patience, || {
            let path = format!("{SET}/{path}");
            let (status, answer) =
                exchange(&self.address, method, &path, &self.headers, body).ok()?;
            // While the database is away, it is the server's fault.
            assert!(matches!(status, 200 | 201 | 204 | 401 | 500 | 503), "{status}: {answer}");
            (status < 300).then_some(answer)
        })
    }
}
