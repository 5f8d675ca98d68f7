//! A log is followed to its end.

use std::net::SocketAddr;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use era_cloud::log::{LogWriter, Only, Stream};
use era_core::job::TaskId;
use era_core::units::{JobId, Time};
use tungstenite::Message;

use super::*;

fn writer(folder: &FilePath, rank: u32) -> LogWriter {
    let task = TaskId { job: JobId(1), part: 0, attempt: 1, rank };
    LogWriter::open(folder, task, 1 << 30)
}

/// A server whose only route follows the log in a folder, of a job that is over when it is said.
async fn serve(folder: PathBuf, over: Arc<AtomicBool>) -> SocketAddr {
    let follow = move |upgrade: WebSocketUpgrade| {
        let (folder, over) = (folder.clone(), over.clone());
        async move {
            upgrade.on_upgrade(move |socket| {
                let follower = Follower::new(socket, room().unwrap(), None);
                let clock = crate::http::tests::clock();
                let over = move || over.load(Ordering::SeqCst);
                send(follower, LogTail::of(folder, Only::default(), 0, clock, over))
            })
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = Router::new().route("/", get(follow));
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_gets_every_line_and_then_a_goodbye() {
    let folder = tempfile::tempdir().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let address = serve(folder.path().to_owned(), over.clone()).await;
    let mut log = writer(folder.path(), 0);
    log.write(Stream::Out, b"before\n", Time(1));
    let client = tokio::task::spawn_blocking(move || {
        let (mut socket, _) = tungstenite::connect(format!("ws://{address}/")).unwrap();
        let mut lines = Vec::new();
        loop {
            match socket.read().unwrap() {
                Message::Text(text) => {
                    let more: Vec<LogLine> = serde_json::from_str(&text).unwrap();
                    lines.extend(more.into_iter().map(|line| line.text));
                }
                Message::Close(frame) => return (lines, frame.unwrap().code),
                _ => {}
            }
        }
    });
    for n in 0..2000 {
        log.write(Stream::Out, format!("{n}\n").as_bytes(), Time(2 + n));
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    log.write(Stream::Out, b"last words", Time(9000));
    over.store(true, Ordering::SeqCst);
    drop(log);
    let (lines, code) = client.await.unwrap();
    assert_eq!(lines.len(), 2002);
    assert_eq!((lines[0].as_str(), lines[1].as_str()), ("before", "0"));
    assert_eq!(lines[2001], "last words");
    assert_eq!(u16::from(code), close_code::NORMAL);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_goes_away_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let address = serve(folder.path().to_owned(), Arc::new(AtomicBool::new(false))).await;
    let gone = tokio::task::spawn_blocking(move || {
        let (mut socket, _) = tungstenite::connect(format!("ws://{address}/")).unwrap();
        socket.close(None).unwrap();
        // The server answers the goodbye, and closes.
        loop {
            match socket.read() {
                Ok(_) => {}
                Err(tungstenite::Error::ConnectionClosed) => return true,
                Err(_) => return false,
            }
        }
    });
    assert!(gone.await.unwrap());
}
