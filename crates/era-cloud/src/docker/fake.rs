//! An engine for tests that answers what it is told to: too old, full, or slow without end. What
//! real engines do is tested on real ones.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::{DockerEngine, EngineAddress, SiteId};
use crate::clock::MachineClock;

/// An engine behind a socket, gone with the value.
pub(super) struct Fake {
    folder: tempfile::TempDir,
    asked: Arc<Mutex<Vec<String>>>,
    listening: tokio::task::JoinHandle<()>,
}

/// A status and an answer to a request such as `POST /containers/create`.
type Answer = fn(&str) -> Option<(u16, Value)>;

impl Fake {
    /// One that answers so, and where it says nothing, as an idle engine of one machine.
    pub(super) fn start(answer: Answer) -> Fake {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join("s")).expect("a socket");
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&asked);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer, Arc::clone(&heard)));
            }
        });
        Fake { folder, asked, listening }
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(super) fn address(&self) -> EngineAddress {
        let text = format!("docker://{}/s?image=torch:2.9", self.folder.path().display());
        EngineAddress::parse(&text).expect("an address")
    }

    pub(super) async fn connect(&self) -> Result<DockerEngine, String> {
        let site = SiteId::named("0a1b2c3d").expect("a site");
        let engine = DockerEngine::connect(&self.address(), site, MachineClock::system()).await;
        engine.map_err(|error| error.to_string())
    }

    /// From now on it cannot be reached.
    pub(super) fn stop_listening(&self) {
        self.listening.abort();
        std::fs::remove_file(self.folder.path().join("s")).expect("its socket");
    }

    /// What it was asked so far.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("a list").clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// One request a connection.
async fn serve(stream: UnixStream, answer: Answer, asked: Arc<Mutex<Vec<String>>>) {
    let mut stream = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.is_err() || line.trim().is_empty() {
            break;
        }
        if first.is_empty() {
            first = line;
        } else if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    let _ = stream.read_exact(&mut body).await;
    let request = plain(&first);
    let (status, answer) = answer(&request).unwrap_or_else(|| idle(&request));
    asked.lock().expect("a list").push(request);
    let body = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
}

/// Method and path, without the API's version and what is asked beside it.
fn plain(line: &str) -> String {
    let mut words = line.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let path = match path.strip_prefix("/v1.") {
        Some(rest) => &rest[rest.find('/').unwrap_or(0)..],
        None => path,
    };
    format!("{method} {path}")
}

fn idle(request: &str) -> (u16, Value) {
    match request {
        "GET /version" => (200, json!({"ApiVersion": "1.41", "Version": "20.10.24"})),
        "GET /info" => (200, json!({"ID": "e", "Name": "machine", "NCPU": 2, "MemTotal": 8 << 30})),
        "GET /containers/json" | "GET /networks" => (200, json!([])),
        _ => (404, json!({"message": format!("{request}: nothing of that name")})),
    }
}
