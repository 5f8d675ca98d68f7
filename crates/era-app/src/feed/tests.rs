//! The feed behind a real driver on a real store.

use std::path::Path;
use std::time::Duration;

use era_core::accounts::{Group, User};
use era_core::cluster::Pool;
use era_core::input::NewNode;
use era_core::queue::{PolicyRule, Queue};
use era_core::resources::Capacity;
use era_core::units::{GroupId, Money, UserId};
use era_core::{Command, Reply, State};
use era_drive::{SiteBuilder, name};
use era_store::files::KeepFor;
use era_store::tables::{EventRow, JobQuery, VisibleJobs};
use era_store::{Note, Store};
use serde_json::{Value, json};

use crate::clock::tests::of_this_machine;
use crate::driver::{Driver, Releases, SegmentRules};
use crate::feed::Feed;
use crate::{Parts, Services};

/// One node, a queue, and two users of two groups.
fn small_site() -> SiteBuilder {
    let capacity = Capacity { cpu: 8000, memory: 65_536, ..Capacity::default() };
    let mut site = SiteBuilder {
        pools: vec![Pool::new(name("main"))],
        nodes: vec![NewNode::new(name("node-1"), name("main"), capacity)],
        policies: vec![(name("fifo"), PolicyRule::Fifo)],
        queues: vec![Queue::new(name("default"), name("fifo"))],
        ..SiteBuilder::default()
    };
    for id in [1, 2] {
        site.user(UserId(id), GroupId(id), Money::credits(1000));
    }
    site
}

/// A server with a small site.
pub(crate) struct Site {
    pub(crate) app: Services,
    driver: Driver,
    releases: Option<Releases>,
}

impl Site {
    pub(crate) async fn new(folder: &Path) -> Site {
        let site = Site::start(folder).await;
        for command in small_site().commands() {
            let note = match &command {
                Command::PutUser { user: User { id, .. } } => {
                    let user = if *id == UserId(1) { "ada" } else { "bob" };
                    Note { user: Some(user.to_owned()), ..Note::default() }
                }
                Command::PutGroup { group: Group { id, .. } } => {
                    Note { group: Some(format!("group-{}", id.0)), ..Note::default() }
                }
                _ => Note::default(),
            };
            site.done(serde_json::to_value(&command).unwrap(), note).await;
        }
        site
    }

    /// The same folder, after a stop.
    pub(crate) async fn start(folder: &Path) -> Site {
        Site::start_lazy(folder, Duration::from_millis(1)).await
    }

    /// The same, where what jobs leave is kept for so long.
    pub(crate) async fn keeping(folder: &Path, retention: crate::background::Retention) -> Site {
        Site::open(folder, Duration::from_millis(1), retention.of_files()).await
    }

    async fn start_lazy(folder: &Path, unseen_max: Duration) -> Site {
        Site::open(folder, unseen_max, KeepFor::default()).await
    }

    async fn open(folder: &Path, unseen_max: Duration, keep: KeepFor) -> Site {
        let store = Store::open(folder).await.unwrap();
        let journal = store.journal();
        let fresh = State::default();
        let clock = of_this_machine();
        let (driver, releases) =
            Driver::start(journal, clock.clone(), SegmentRules::default(), fresh).await.unwrap();
        let handle = driver.handle();
        let feed = Feed::start(&store, handle.committed(), unseen_max, clock.clone());
        let (feed, _) = feed.await.unwrap();
        let auth = crate::auth::Auth::open(&store, clock.clone()).await.unwrap();
        let files =
            era_store::files::Files::open(&store, keep, crate::clock::millis(clock.clone()));
        let app = Services::new(Parts {
            clock: clock.clone(),
            driver: handle,
            store,
            auth,
            egress: crate::egress::EgressPolicy::Public,
            feed,
            asks: crate::asks::Asking::default(),
            laboratory: None,
            lab: crate::lab::Lab::open(folder.join("lab"), "/bin/false".into(), clock).unwrap(),
            files: files.unwrap(),
            images: Default::default(),
            runs_images: false,
            terminals: None,
        });
        Site { app, driver, releases: Some(releases) }
    }

    /// What is to be done outside, for whoever does it.
    pub(crate) fn take_releases(&mut self) -> Releases {
        self.releases.take().expect("they are taken once")
    }

    pub(crate) async fn stop(self) {
        self.driver.stop().await.unwrap();
    }

    async fn send(&self, command: Value, note: Note) -> (u64, Reply) {
        let command: Command = serde_json::from_value(command).unwrap();
        let answer = self.app.driver.ask(command, note.write()).await.unwrap();
        (answer.seq, answer.reply)
    }

    pub(crate) async fn done(&self, command: Value, note: Note) {
        let (_, reply) = self.send(command.clone(), note).await;
        assert!(!matches!(reply, Reply::Refused { .. }), "{command}: {reply:?}");
    }

    /// A job of a user, larger than the node, so that it waits; its number and its entry's.
    pub(crate) async fn submit(&self, user: u32) -> (u64, u64) {
        self.submit_of(user, 2, "8", Note::default()).await
    }

    /// A job of so many replicas of this size.
    pub(crate) async fn submit_of(
        &self,
        user: u32,
        replicas: u32,
        cpu: &str,
        note: Note,
    ) -> (u64, u64) {
        let request = json!({
            "shape": {"replicas": {"min": replicas, "max": replicas}},
            "each": {"cpu": cpu, "memory": "1Gi"},
            "duration": 60_000,
            "window": {"earliest": 0, "deadline": 253_402_300_799_000_i64},
        });
        let terms = json!({"queue": {"request": request, "queue": {"queue": "default"}}});
        let job = json!({"user": user, "name": format!("job-of-{user}"), "terms": terms});
        let (seq, reply) = self.send(json!({"type": "submit", "job": job}), note).await;
        match reply {
            Reply::Accepted { job, .. } => (job.0, seq),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn whoever_submitted_finds_the_job_in_the_next_list() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    for _ in 0..20 {
        let (job, seq) = site.submit(1).await;
        assert!(reaches(&site.app.feed, seq).await);
        let query = JobQuery::all(VisibleJobs::All, 1);
        let page = site.app.feed.tables().jobs(&query, None).await.unwrap();
        assert_eq!(page.rows[0].id.0, job);
        assert_eq!(page.rows[0].account_name, "ada");
    }
    site.stop().await;
}

#[tokio::test]
async fn events_are_told_after_the_tables_have_them_and_in_sentences() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let mut live = site.app.feed.listen();
    let (job, _) = site.submit(2).await;
    let told = loop {
        let batch = tokio::time::timeout(Duration::from_secs(10), live.recv()).await;
        let batch = batch.unwrap().unwrap();
        if let Some(told) = batch.iter().find(|told| told.message.event.job == Some(job)) {
            break told.clone();
        }
    };
    let event = &told.message.event;
    assert_eq!((event.event.as_str(), event.user.as_deref()), ("queued", Some("bob")));
    assert_eq!(event.sentence, "waits in queue default");
    assert!(site.app.feed.applied() >= told.place.0);
    site.stop().await;
}

#[test]
fn an_event_of_a_later_version_is_told_without_words_and_concerns_everybody() {
    let row = EventRow {
        seq: 7,
        place: 1,
        at: era_core::units::Time(0),
        kind: "teleported".to_owned(),
        job: Some(era_core::units::JobId(3)),
        account: None,
        team: None,
        event: None,
    };
    let told = super::told(row, &super::NameIndex::default());
    let event = &told.message.event;
    assert_eq!(
        (event.event.as_str(), event.id.as_str(), event.job),
        ("teleported", "7.1", Some(3))
    );
    assert!(event.sentence.contains("no words") && event.parameters.is_empty());
    assert!(told.changes_cluster);
}

/// Whether it comes to an input, however busy the machine is.
async fn reaches(feed: &Feed, seq: u64) -> bool {
    for _ in 0..30 {
        if feed.wait_for(seq).await {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn a_feed_that_starts_again_takes_what_it_missed() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let (job, _) = site.submit(1).await;
    site.stop().await;
    let site = Site::start(folder.path()).await;
    let last = site.app.driver.snapshot().seq();
    assert!(reaches(&site.app.feed, last).await);
    let row = site.app.feed.tables().job(era_core::units::JobId(job)).await.unwrap();
    assert_eq!(row.unwrap().name.as_deref(), Some("job-of-1"));
    assert!(!site.app.wait_for(last + 1_000_000).await, "what never comes is not waited for long");
    site.stop().await;
}

#[tokio::test]
async fn what_was_written_and_could_not_be_told_at_once_is_told_later() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    assert!(reaches(&site.app.feed, site.app.driver.snapshot().seq()).await);
    let mut live = site.app.feed.listen();
    let renamed = async |from: &str, to: &str| {
        let sql = sqlx::AssertSqlSafe(format!("ALTER TABLE {from} RENAME TO {to}"));
        sqlx::query(sql).execute(site.app.store.tables().writer()).await.unwrap();
    };
    // A policy has no row of its own, but names are read again.
    renamed("accounts", "accounts_away").await;
    let rule = serde_json::to_value(PolicyRule::Fifo).unwrap();
    let policy = json!({"type": "publish_policy", "name": "other", "rule": rule});
    let (last, _) = site.send(policy, Note::default()).await;
    while site.app.feed.tables().cursor().await.unwrap() < last {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    renamed("accounts_away", "accounts").await;
    let told = tokio::time::timeout(Duration::from_secs(30), live.recv()).await.unwrap().unwrap();
    assert_eq!(told[0].place, (last, 0));
    assert!(reaches(&site.app.feed, last).await);
    site.stop().await;
}

#[tokio::test]
async fn what_nobody_looks_at_is_written_once_and_whoever_looks_does_not_wait_for_more() {
    let folder = tempfile::tempdir().unwrap();
    Site::new(folder.path()).await.stop().await;
    let site = Site::start_lazy(folder.path(), Duration::from_secs(3600)).await;
    let (_, first) = site.submit(1).await;
    let (_, second) = site.submit(2).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(site.app.feed.applied() < first, "nobody has looked");
    assert!(reaches(&site.app.feed, first).await);
    assert!(site.app.feed.applied() >= second, "both in one go");
    let mut live = site.app.feed.listen();
    let (job, third) = site.submit(1).await;
    let told = tokio::time::timeout(Duration::from_secs(10), live.recv()).await.unwrap().unwrap();
    assert!(told.iter().any(|told| told.message.event.job == Some(job)));
    assert!(site.app.feed.applied() >= third);
    drop(live);
    let (_, last) = site.submit(2).await;
    let feed = site.app.feed.clone();
    site.stop().await;
    assert!(reaches(&feed, last).await, "a stop leaves nothing unwritten");
}
