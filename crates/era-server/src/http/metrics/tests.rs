//! Values are followed to the end of the job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::routing::get;
use era_core::units::{JobId, Time};
use era_store::Store;
use era_store::samples::{NewSample, SeriesAsk};
use tungstenite::Message;

use super::*;

fn values(name: &str, steps: std::ops::Range<u64>) -> Vec<NewSample> {
    let value = |step| NewSample {
        job: JobId(1),
        part: 0,
        rank: 0,
        name: name.into(),
        step,
        at: Time(1000),
        value: step as f64,
    };
    steps.map(value).collect()
}

async fn store() -> (Store, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Store::open(folder.path()).await.unwrap(), folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_gets_what_there_is_and_what_comes() {
    let (store, _folder) = store().await;
    let over = Arc::new(AtomicBool::new(false));
    store.samples().append(&values("loss", 0..3)).await.unwrap();
    let (samples, ended) = (store.samples(), over.clone());
    let follow = move |upgrade: WebSocketUpgrade| {
        let (samples, over) = (samples.clone(), ended.clone());
        async move {
            upgrade.on_upgrade(move |socket| {
                let follower = Follower::new(socket, room().unwrap(), None);
                let over = move || over.load(Ordering::SeqCst);
                let ask = SeriesAsk::default();
                send(follower, MetricTail::of(samples, JobId(1), ask, 100, over))
            })
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = Router::new().route("/", get(follow));
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let client = tokio::task::spawn_blocking(move || {
        let (mut socket, _) = tungstenite::connect(format!("ws://{address}/")).unwrap();
        loop {
            match socket.read().unwrap() {
                Message::Text(text) => {
                    let points: Vec<MetricPoint> = serde_json::from_str(&text).unwrap();
                    told.send(points.iter().map(|p| p.step).collect::<Vec<_>>()).unwrap();
                }
                Message::Close(frame) => return u16::from(frame.unwrap().code),
                _ => {}
            }
        }
    });
    assert_eq!(heard.recv().await.unwrap(), [0, 1, 2]);
    store.samples().append(&values("loss", 3..5)).await.unwrap();
    assert_eq!(heard.recv().await.unwrap(), [3, 4]);
    // What is recorded just behind the end is not missed.
    over.store(true, Ordering::SeqCst);
    store.samples().append(&values("acc", 9..10)).await.unwrap();
    assert_eq!(heard.recv().await.unwrap(), [9]);
    assert_eq!(client.await.unwrap(), close_code::NORMAL);
}
