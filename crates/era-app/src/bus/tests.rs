//! What is told, on a real Redis: by whom, in which order, and for how long it is kept.

use std::process::{Child, Command, Stdio};

use era_cloud::celery::names::RedisAddress;
use era_store::{Lease, Store};
use serde_json::json;

use super::accepted::AcceptedJobs;
use super::*;
use crate::feed::tests::Site;
use crate::follow::Following;

/// A Redis of its own, gone with the value.
struct Redis {
    process: Child,
    _folder: tempfile::TempDir,
    bus: Bus,
}

impl Redis {
    /// `None` where it is not installed and need not be.
    async fn start() -> Option<Redis> {
        let folder = tempfile::tempdir().unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port().to_string();
        drop(free);
        let process = Command::new("redis-server")
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn();
        let mut process = match process {
            Ok(process) => process,
            Err(why) => {
                crate::skipped::skipped(&format!("redis-server: {why}"));
                return None;
            }
        };
        let address = RedisAddress::read(&format!("redis://127.0.0.1:{port}/0")).unwrap();
        for _ in 0..600 {
            if let Ok(bus) = Bus::connect(&address, crate::clock::tests::machine()).await {
                return Some(Redis { process, _folder: folder, bus });
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let _ = process.kill();
        panic!("redis-server does not come up");
    }

    async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| {
            command.arg(*word);
        });
        self.bus.run("answer", &command).await.unwrap()
    }

    /// The numbers of the jobs in the stream, in its order.
    async fn told(&self) -> Vec<u64> {
        let all: Vec<(String, Vec<String>)> = self.ask(&["XRANGE", accepted::KEY, "-", "+"]).await;
        let number = |(_, fields): &(String, Vec<String>)| {
            let told: serde_json::Value = serde_json::from_str(&fields[3]).unwrap();
            told["job"].as_u64().unwrap()
        };
        all.iter().map(number).collect()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn leads(store: &Store, name: &str) -> Lease {
    let lease = store.lease();
    assert_eq!(lease.acquire(name, Duration::from_secs(600)).await.unwrap(), None);
    lease
}

/// Tells all that was accepted since the last time; says up to where.
async fn tell(jobs: &mut AcceptedJobs<'_>) -> Result<u64, FeedError> {
    let mut at = jobs.locate().await?;
    loop {
        match jobs.take(at).await? {
            Some(to) if to == at => return Ok(at),
            Some(to) => at = to,
            None => at = jobs.locate().await?,
        }
    }
}

#[tokio::test]
async fn a_leader_that_was_paused_tells_nothing_again_and_overwrites_nothing() {
    let Some(redis) = Redis::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let journal = site.app.store.journal();
    let old = fence::pen(redis.bus.clone(), leads(&site.app.store, "old").await);
    let mut of_old = AcceptedJobs::new(&site.app, journal.clone(), &old);
    let mut jobs = vec![site.submit(1).await.0];
    let last = tell(&mut of_old).await.unwrap();
    let settings = |lease: u32| Values([("lease".to_owned(), json!(lease))].into());
    distribute(&old, &settings(30)).await.unwrap();

    // Another one leads, while the old one has something to tell.
    jobs.push(site.submit(1).await.0);
    site.app.store.lease().release().await.unwrap();
    let other = Store::open(folder.path()).await.unwrap();
    let new = fence::pen(redis.bus.clone(), leads(&other, "new").await);
    distribute(&new, &settings(10)).await.unwrap();

    // It goes on where it was, with what it knew then.
    let late = of_old.take(last).await;
    assert!(matches!(late, Err(FeedError::Deposed)), "{late:?}");
    let late = distribute(&old, &settings(30)).await;
    assert!(matches!(late, Err(FeedError::Deposed)), "{late:?}");
    let late = catalogue::look(site.app.auth.rows(), &old, None).await;
    assert!(matches!(late, Err(FeedError::Deposed)), "{late:?}");
    assert_eq!(redis.told().await, jobs[..1]);
    assert_eq!(redis.ask::<String>(&["HGET", settings::KEY, "lease"]).await, "10");

    // The new one tells it, once.
    let mut of_new = AcceptedJobs::new(&site.app, journal, &new);
    tell(&mut of_new).await.unwrap();
    tell(&mut of_new).await.unwrap();
    assert_eq!(redis.told().await, jobs);
    other.close().await;
    site.stop().await;
}

#[tokio::test]
async fn a_cursor_that_moved_is_looked_at_again_and_a_site_that_was_restored_goes_on() {
    let Some(redis) = Redis::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let journal = site.app.store.journal();
    // The generations of before are higher, but the database knows who leads.
    let _: () = redis.ask(&["SET", "era:feeder", "900 before"]).await;
    let pen = fence::pen(redis.bus.clone(), leads(&site.app.store, "restored").await);
    let first = site.submit(1).await.0;
    let mut jobs = AcceptedJobs::new(&site.app, journal.clone(), &pen);
    tell(&mut jobs).await.unwrap();
    assert_eq!(redis.told().await, [first]);
    let mut again = redis::pipe();
    again.cmd("XADD").arg(accepted::KEY).arg("*").arg("seq").arg("1").arg("job").arg("{}");
    let was = Some(("accepted_queue:cursor", "1"));
    assert!(!pen.write_if("take it", was, &again).await.unwrap(), "it is not there any more");
    assert_eq!(redis.told().await, [first]);
    // A journal that was restored is behind what was told of it before.
    let _: () = redis.ask(&["SET", "accepted_queue:cursor", "100000"]).await;
    let last = tell(&mut jobs).await.unwrap();
    let cursor: u64 = redis.ask(&["GET", "accepted_queue:cursor"]).await;
    assert_eq!(cursor, journal.last_seq().await.unwrap());
    assert_eq!(redis.told().await, [first]);
    // A Redis that lost its memory is told all of it.
    let _: () = redis.ask(&["FLUSHALL"]).await;
    assert_eq!(jobs.take(last).await.unwrap(), None, "it is noticed without news");
    let second = site.submit(1).await.0;
    assert_eq!(jobs.take(last).await.unwrap(), None, "and with some");
    tell(&mut jobs).await.unwrap();
    assert_eq!(redis.told().await, [first, second]);
    site.stop().await;
}

#[tokio::test]
async fn a_group_that_is_away_misses_nothing_until_the_stream_is_full() {
    let Some(redis) = Redis::start().await else { return };
    let kept = accepted::StreamBounds { least: 10, most: 100, step: 4 };
    let add = async |many: u64| {
        for _ in 0..many {
            let id = ["XADD", accepted::KEY, "*", "seq", "1", "job", "{\"job\":1}"];
            let _: String = redis.ask(&id).await;
        }
        accepted::trim(&redis.bus, kept).await.unwrap()
    };
    let length = async || redis.ask::<usize>(&["XLEN", accepted::KEY]).await;
    let read = async |group: &str, many: &str| -> usize {
        let words = ["XREADGROUP", "GROUP", group, "me", "COUNT", many, "STREAMS"];
        type Read = Vec<(String, Vec<(String, Vec<String>)>)>;
        let words = [&words[..], &[accepted::KEY, ">"]].concat();
        let got: Option<Read> = redis.ask(&words).await;
        got.map_or(0, |got| got[0].1.len())
    };
    for group in ["never", "away", "quick"] {
        let words = ["XGROUP", "CREATE", accepted::KEY, group, "0", "MKSTREAM"];
        let _: () = redis.ask(&words).await;
    }
    assert_eq!(add(5).await, 0);
    assert_eq!((read("away", "2").await, read("quick", "100").await), (2, 5));
    assert_eq!(add(60).await, 0);
    // It has not acknowledged what it got, and none of that is gone either.
    assert_eq!(length().await, 65);
    let pending: Vec<redis::Value> = redis.ask(&["XPENDING", accepted::KEY, "away"]).await;
    let redis::Value::BulkString(id) = &pending[1] else { panic!("{pending:?}") };
    let first = String::from_utf8(id.clone()).unwrap();
    let there: Vec<redis::Value> = redis.ask(&["XRANGE", accepted::KEY, &first, &first]).await;
    assert_eq!(there.len(), 1);
    // More than is kept for anybody: the oldest go, and it is said how many.
    assert_eq!(add(60).await, 25);
    assert_eq!(length().await, 100);
    // Once it has read and acknowledged all, hardly anything is kept.
    assert_eq!(read("away", "1000").await, 100);
    let ids: Vec<(String, Vec<String>)> = redis.ask(&["XRANGE", accepted::KEY, "-", "+"]).await;
    for group in ["away", "quick"] {
        let _ = read(group, "1000").await;
        let pending: Vec<(String, String, u64, u64)> =
            redis.ask(&["XPENDING", accepted::KEY, group, "-", "+", "1000"]).await;
        for (id, ..) in pending {
            let _: u64 = redis.ask(&["XACK", accepted::KEY, group, &id]).await;
        }
    }
    assert_eq!(ids.len(), 100);
    assert_eq!(add(1).await + add(1).await, 0);
    assert!(length().await <= 14, "{}", length().await);
}
