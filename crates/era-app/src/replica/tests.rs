//! A leader and a replica on one store, with a real connection between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use era_core::market::MarketRules;
use era_core::settings::Settings;
use era_core::units::Money;
use era_core::{Command, Reply, State};
use era_store::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::link::Contact;
use super::{Replica, inbox};
use crate::clock::tests::of_this_machine;
use crate::driver::{Driver, Handle, Releases, SegmentRules, Unanswered};

/// Whoever leads, and what it takes to be asked.
struct Leader {
    driver: Driver,
    _releases: Releases,
    stop: CancellationToken,
}

impl Leader {
    async fn start(store: &Store, name: &str) -> Leader {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        Leader::start_at(store, name, listener, &address).await
    }

    /// The same with a listener that is reached at this address.
    async fn start_at(store: &Store, name: &str, listener: TcpListener, address: &str) -> Leader {
        let contact = Contact::new(address).unwrap();
        let lease = store.lease();
        let span = Duration::from_millis(300);
        while lease.acquire_with(name, Some(&contact.written()), span).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let fresh = State::new(Settings::default(), MarketRules::default());
        let (driver, releases) =
            Driver::start(store.journal(), of_this_machine(), SegmentRules::default(), fresh)
                .await
                .unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(inbox::serve(listener, driver.handle(), contact, stop.clone()));
        Leader { driver, _releases: releases, stop }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.driver.stop().await.unwrap();
    }
}

/// A wire that carries everything while it is whole, and otherwise nothing, without a word.
struct Wire {
    address: String,
    whole: watch::Sender<bool>,
    connections: Arc<AtomicUsize>,
}

impl Wire {
    async fn to(there: std::net::SocketAddr) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (whole, state) = watch::channel(true);
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let far = TcpStream::connect(there).await.unwrap();
                let ((from, back), (reply, on)) = (near.into_split(), far.into_split());
                tokio::spawn(carry(from, on, state.clone()));
                tokio::spawn(carry(reply, back, state.clone()));
            }
        });
        Wire { address, whole, connections }
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut whole: watch::Receiver<bool>) {
    let mut bytes = vec![0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if whole.wait_for(|whole| *whole).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

async fn two(folder: &std::path::Path) -> (Store, Store) {
    (Store::open(folder).await.unwrap(), Store::open(folder).await.unwrap())
}

async fn put_group(driver: &Handle, id: u32) -> Result<Reply, Unanswered> {
    let quota = era_core::quota::Quota::UNLIMITED;
    let group = era_core::accounts::Group { id: era_core::units::GroupId(id), level: 0, quota };
    driver.ask(Command::PutGroup { group }, None).await.map(|answer| answer.reply)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_writes_through_a_replica_reads_it_there() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = two(folder.path()).await;
    let leader = Leader::start(&here, "one").await;
    let (replica, mut releases) = Replica::start(&there).await.unwrap();
    assert!(releases.recv().await.unwrap().effects.is_empty(), "nothing is outstanding");
    let driver = replica.handle();
    for id in 1..50 {
        assert_eq!(put_group(&driver, id).await.unwrap(), Reply::Done);
        let snapshot = driver.snapshot();
        assert!(snapshot.accounts().group(era_core::units::GroupId(id)).is_ok());
    }
    assert_eq!(*driver.snapshot(), *leader.driver.handle().snapshot());
    // What the leader does by itself comes too.
    put_group(&leader.driver.handle(), 77).await.unwrap();
    let last = leader.driver.handle().snapshot().seq();
    let mut committed = driver.committed();
    let there = committed.wait_for(|seq| *seq >= last);
    tokio::time::timeout(Duration::from_secs(60), there).await.unwrap().unwrap();
    drop(driver);
    replica.stop().await.unwrap();
    leader.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_waits_for_the_next_leader_and_is_carried_out_once() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = two(folder.path()).await;
    let first = Leader::start(&here, "one").await;
    let (replica, _releases) = Replica::start(&there).await.unwrap();
    let driver = replica.handle();
    put_group(&driver, 1).await.unwrap();
    first.stop().await;
    let asked = tokio::spawn({
        let driver = driver.clone();
        async move { put_group(&driver, 2).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let next = Store::open(folder.path()).await.unwrap();
    let second = Leader::start(&next, "two").await;
    // Asked of the one that was gone it is not known to be done; asked of none it waits.
    match asked.await.unwrap() {
        Ok(reply) => assert_eq!(reply, Reply::Done),
        Err(why) => {
            assert_eq!(why, Unanswered::Unknown);
            put_group(&driver, 2).await.unwrap();
        }
    }
    put_group(&driver, 3).await.unwrap();
    let state = driver.snapshot();
    assert_eq!(state.accounts().groups().count(), 3);
    assert_eq!(*state, *second.driver.handle().snapshot());
    assert_eq!(state.ledger().balance(era_core::ledger::Account::Mint), Money::ZERO);
    drop(driver);
    replica.stop().await.unwrap();
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_cut_without_a_word_is_found_out_and_one_that_is_idle_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = two(folder.path()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let wire = Wire::to(listener.local_addr().unwrap()).await;
    let leader = Leader::start_at(&here, "one", listener, &wire.address).await;
    let (replica, _releases) = Replica::start(&there).await.unwrap();
    let driver = replica.handle();
    put_group(&driver, 1).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    put_group(&driver, 2).await.unwrap();
    assert_eq!(wire.connections.load(Ordering::Relaxed), 1, "an idle line was given up");
    wire.whole.send_replace(false);
    // It was sent, and nobody knows what became of it.
    let told = tokio::time::timeout(Duration::from_secs(60), put_group(&driver, 3)).await;
    assert_eq!(told.expect("an answer"), Err(Unanswered::Unknown));
    // Another one waits for a leader, and finds this one again.
    let asked = tokio::spawn({
        let driver = driver.clone();
        async move { put_group(&driver, 4).await }
    });
    wire.whole.send_replace(true);
    assert_eq!(asked.await.unwrap(), Ok(Reply::Done));
    drop(driver);
    replica.stop().await.unwrap();
    leader.stop().await;
}
