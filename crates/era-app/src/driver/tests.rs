//! The driver on a real store: what is acknowledged is kept, and nothing happens twice.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use era_core::accounts::{Group, User};
use era_core::bid::{Request, Shape, Window};
use era_core::cluster::Pool;
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::QueueTerms;
use era_core::queue::{PolicyRule, Queue};
use era_core::resources::{Capacity, Resources};
use era_core::settings::Settings;
use era_core::units::{GroupId, JobId, Money, Name, Span, Time, UserId};
use era_core::{Command, Effect, Reply, State};
use era_drive::Engine;
use era_store::{Store, StoreError};
use sqlx::Executor;

use super::thread::Entries;
use super::{Driver, Handle, Releases, SegmentRules, Unanswered};
use crate::clock::Clock;

/// A clock that is set by hand.
#[derive(Default)]
pub(crate) struct SetClock(AtomicI64);

impl SetClock {
    pub(crate) fn at(ms: i64) -> Arc<SetClock> {
        Arc::new(SetClock(AtomicI64::new(ms)))
    }

    pub(crate) fn set(&self, ms: i64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::SeqCst))
    }

    fn up(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst).unsigned_abs())
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// What a site needs before the first job: a pool with a node of four cores, a queue, a user.
pub(crate) fn site_commands() -> Vec<Command> {
    let capacity = Capacity { cpu: 4000, memory: 8192, ..Capacity::default() };
    let node = NewNode::new(name("n1"), name("default"), capacity);
    vec![
        Command::PutPool { pool: Pool::new(name("default")) },
        Command::Join { nodes: vec![node] },
        Command::PublishPolicy { name: name("fifo"), rule: PolicyRule::Fifo },
        Command::PutQueue { queue: Queue::new(name("default"), name("fifo")) },
        Command::PutGroup { group: Group::new(GroupId(1)) },
        Command::PutUser { user: User::new(UserId(1), GroupId(1)) },
        Command::Grant { user: UserId(1), amount: Money::credits(1_000_000) },
    ]
}

/// A job for the queue that takes a core for at most a minute.
pub(crate) fn job(key: Option<&str>, earliest: Time) -> Command {
    let each = Resources { cpu: 1000, memory: 64, ..Resources::default() };
    let window = Window { earliest, deadline: Time::LATEST };
    let request = Request::new(Shape::gang(1), each, Span::from_min(1), window);
    let terms = Terms::Queue { request, queue: QueueTerms::new(name("default")) };
    Command::Submit { key: key.map(name), job: NewJob::new(UserId(1), terms) }
}

pub(crate) async fn start(folder: &Path, clock: Arc<dyn Clock>) -> (Store, Driver, Releases) {
    let store = Store::open(folder).await.unwrap();
    let rules = SegmentRules { segment_every: 20, segment_at_stop: 5 };
    let (driver, releases) =
        Driver::start(store.journal(), clock, rules, State::default()).await.unwrap();
    (store, driver, releases)
}

pub(crate) async fn furnish(handle: &Handle) {
    for command in site_commands() {
        let answer = handle.ask(command.clone(), None).await.unwrap();
        assert!(!matches!(answer.reply, Reply::Refused { .. }), "{command:?}: {answer:?}");
    }
}

fn accepted(reply: &Reply) -> JobId {
    let Reply::Accepted { job, .. } = reply else { panic!("not accepted: {reply:?}") };
    *job
}

/// The launches that are released now.
fn launches(releases: &mut Releases) -> Vec<JobId> {
    let mut jobs = Vec::new();
    while let Ok(released) = releases.try_recv() {
        jobs.extend(released.effects.iter().filter_map(|effect| match effect {
            Effect::Launch { task, .. } => Some(task.job),
            _ => None,
        }));
    }
    jobs
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fits_is_launched_with_its_submission_and_is_in_the_newest_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, driver, mut releases) = start(folder.path(), SetClock::at(1_000_000)).await;
    let handle = driver.handle();
    furnish(&handle).await;
    let id = accepted(&handle.ask(job(None, Time(0)), None).await.unwrap().reply);
    assert_eq!(handle.snapshot().job(id).unwrap().state(), "running");
    driver.stop().await.unwrap();
    assert_eq!(launches(&mut releases), [id]);
    assert_eq!(handle.ask(Command::Tick, None).await.unwrap_err(), Unanswered::Stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_stop_leaves_nothing_to_replay_however_little_happened() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    for (inputs, segment) in [(1, 2), (0, 2), (3, 3)] {
        let (clock, rules) = (SetClock::at(1_000_000), SegmentRules::default());
        let (driver, _releases) =
            Driver::start(store.journal(), clock, rules, State::default()).await.unwrap();
        for _ in 0..inputs {
            driver.handle().ask(Command::Tick, None).await.unwrap();
        }
        driver.stop().await.unwrap();
        assert_eq!(store.journal().newest_segment().await.unwrap(), Some(segment));
        assert_eq!(store.journal().restore().await.unwrap().unwrap().replayed, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_inputs_are_closed_in_even_while_a_segment_is_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    let rules = SegmentRules { segment_every: 2, ..SegmentRules::default() };
    let clock = SetClock::at(1_000_000);
    let (driver, _releases) =
        Driver::start(store.journal(), clock, rules, State::default()).await.unwrap();
    for _ in 0..7 {
        driver.handle().ask(Command::Tick, None).await.unwrap();
    }
    driver.stop().await.unwrap();
    assert_eq!(store.journal().restore().await.unwrap().unwrap().replayed, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_finds_the_same_state_and_releases_what_was_not_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::at(1_000_000);
    let (store, driver, _) = start(folder.path(), clock.clone()).await;
    let handle = driver.handle();
    furnish(&handle).await;
    let mut jobs = Vec::new();
    for _ in 0..30 {
        jobs.push(accepted(&handle.ask(job(None, Time(0)), None).await.unwrap().reply));
    }
    let before = handle.snapshot();
    driver.stop().await.unwrap();
    store.close().await;
    let (store, driver, mut releases) = start(folder.path(), clock).await;
    assert_eq!(*driver.handle().snapshot(), *before);
    assert!(store.journal().newest_segment().await.unwrap() > Some(1), "segments were begun");
    // Four cores: four of them were sent out.
    assert_eq!(launches(&mut releases), jobs[..4]);
    driver.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_commit_and_answer_loses_nothing_and_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::at(1_000_000);
    let (store, driver, _) = start(folder.path(), clock.clone()).await;
    furnish(&driver.handle()).await;
    driver.stop().await.unwrap();

    let restored = store.journal().restore().await.unwrap().unwrap();
    let mut engine = Engine::new(restored.state);
    let asked = [((), job(Some("once"), Time(0)), None)];
    let batch = engine.carry_out(clock.now(), asked, Entries::default());
    store.journal().append(&batch.record.0).await.unwrap();
    // Here the process dies: no answer, no effect, no snapshot.
    drop((batch, engine));
    store.close().await;

    let (_store, driver, mut releases) = start(folder.path(), clock).await;
    let handle = driver.handle();
    let id = accepted(&handle.ask(job(Some("once"), Time(0)), None).await.unwrap().reply);
    assert_eq!(handle.snapshot().jobs().map(|job| job.id).collect::<Vec<_>>(), [id]);
    driver.stop().await.unwrap();
    assert_eq!(launches(&mut releases), [id], "found again, once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_submission_does_not_change_what_the_first_one_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (store, driver, mut releases) = start(folder.path(), SetClock::at(1_000_000)).await;
    let handle = driver.handle();
    let (replica, mut followed) = crate::replica::Replica::start(&store).await.unwrap();
    furnish(&handle).await;
    let note = |text: &str| Some(serde_json::value::to_raw_value(text).unwrap());
    let first = handle.ask(job(Some("k1"), Time(0)), note("first")).await.unwrap();
    let second = handle.ask(job(Some("k1"), Time(0)), note("second")).await.unwrap();
    assert_eq!(accepted(&first.reply), accepted(&second.reply));
    assert_eq!((first.made, second.made), (true, false));
    let last = handle.snapshot().seq();
    replica.handle().committed().wait_for(|seq| *seq >= last).await.unwrap();
    replica.stop().await.unwrap();
    driver.stop().await.unwrap();
    for releases in [&mut releases, &mut followed] {
        let mut notes = Vec::new();
        while let Ok(released) = releases.try_recv() {
            let told = released.accepted.into_iter();
            notes.extend(told.map(|(job, note)| (job, note.get().to_owned())));
        }
        assert_eq!(notes, [(accepted(&first.reply), "\"first\"".to_owned())]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_the_commit_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::at(1_000_000);
    let (store, driver, _) = start(folder.path(), clock.clone()).await;
    furnish(&driver.handle()).await;
    let before = driver.handle().snapshot();
    driver.stop().await.unwrap();
    let restored = store.journal().restore().await.unwrap().unwrap();
    let mut engine = Engine::new(restored.state);
    drop(engine.carry_out(clock.now(), [((), job(None, Time(0)), None)], Entries::default()));
    drop(engine);
    assert_eq!(*store.journal().restore().await.unwrap().unwrap().state, *before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_steps_back_does_not_turn_time_back() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::at(5_000_000);
    let (store, driver, _) = start(folder.path(), clock.clone()).await;
    let handle = driver.handle();
    furnish(&handle).await;
    clock.set(1_000);
    let answer = handle.ask(job(None, Time(0)), None).await.unwrap();
    assert_eq!(answer.at, Time(5_000_000));
    clock.set(-7);
    assert_eq!(handle.ask(Command::Tick, None).await.unwrap().at, Time(5_000_000));
    clock.set(i64::MAX);
    assert_eq!(handle.ask(Command::Tick, None).await.unwrap().at, Time::LATEST);
    driver.stop().await.unwrap();
    assert!(store.journal().restore().await.unwrap().is_some(), "and it replays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_may_start_later_starts_then_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let clock = crate::clock::tests::of_this_machine();
    let (_store, driver, mut releases) = start(folder.path(), clock.clone()).await;
    let handle = driver.handle();
    furnish(&handle).await;
    let settings = Settings { pass_every: Span::from_h(1), ..Settings::default() };
    handle.ask(Command::SetSettings { settings }, None).await.unwrap();
    let later = Time(clock.now().0 + 300);
    let id = accepted(&handle.ask(job(None, later), None).await.unwrap().reply);
    let is_waiting = handle.snapshot().job(id).unwrap().state() == "waiting";
    assert!(is_waiting || clock.now() >= later);
    let mut committed = handle.committed();
    let running = async {
        while handle.snapshot().job(id).unwrap().state() != "running" {
            committed.changed().await.unwrap();
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), running).await;
    in_time.expect("long before the next pass");
    assert!(clock.now() >= later);
    driver.stop().await.unwrap();
    assert_eq!(launches(&mut releases), [id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let (store, driver, mut releases) = start(folder.path(), SetClock::at(1_000_000)).await;
    let handle = driver.handle();
    furnish(&handle).await;
    let before = handle.snapshot();
    // As a full disk does: every write fails from here on.
    store.durable().writer().execute("PRAGMA query_only = ON").await.unwrap();
    let answer = handle.ask(job(None, Time(0)), None).await;
    assert_eq!(answer.unwrap_err(), Unanswered::Stopped);
    tokio::time::timeout(Duration::from_secs(10), handle.stopped()).await.unwrap();
    assert!(!handle.is_running());
    assert!(matches!(driver.stop().await, Err(StoreError::Database(_))));
    assert_eq!(launches(&mut releases), [], "no effect of what did not happen");
    assert_eq!(*handle.snapshot(), *before);
    store.durable().writer().execute("PRAGMA query_only = OFF").await.unwrap();
    assert_eq!(*store.journal().restore().await.unwrap().unwrap().state, *before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_driver_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, driver, _) = start(folder.path(), SetClock::at(1_000_000)).await;
    let handle = driver.handle();
    furnish(&handle).await;
    let mut committed = handle.committed();
    // Whoever asked is answered before everybody is told.
    let last = handle.snapshot().seq();
    committed.wait_for(|seq| *seq >= last).await.unwrap();
    let word = tokio::time::timeout(Duration::from_millis(300), committed.changed()).await;
    assert!(word.is_err(), "nothing waits, and nothing is due");
    driver.stop().await.unwrap();
}
