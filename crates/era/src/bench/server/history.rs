//! A site with a past: a million jobs and their events, written by the scheduler's own driver into
//! a real journal and by the tables' own projector into real tables, on a clock that runs through
//! a week in a minute. Only the executor is missing: every task starts and ends as it is told.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use era_app::clock::Clock;
use era_app::driver::{Driver, Handle, Releases, SegmentRules};
use era_core::accounts::Actor;
use era_core::bid::{Request, Shape, Window};
use era_core::cluster::Pool;
use era_core::input::{Array, NewJob, NewNode, Terms};
use era_core::job::{QueueTerms, TaskId};
use era_core::queue::Queue;
use era_core::resources::{Capacity, Resources};
use era_core::units::{GroupId, JobId, Milli, Money, Name, Span, Time, UserId};
use era_core::{Command, Effect, Reply, State};
use era_drive::{SiteBuilder, name};
use era_store::note::{Note, Observation};
use era_store::tables::Projector;
use era_store::{Store, StoreError};
use serde_json::value::RawValue;

use crate::clock::timestamp;

const JOBS: u32 = 1_000_000;
/// Jobs that are handed in together and run.
const RUN: u32 = 500;
/// Jobs that are handed in together and given up.
const GIVEN_UP: u32 = 10_000;
/// How many of the former come with one of the latter, so that two jobs in seven have run.
const RUNS_EACH: u32 = 8;
/// Events that the journal has at least.
const EVENTS_MIN: u64 = 1_000_000;
/// How long ago it began, and how far apart those arrays are.
const AGO: Span = Span::from_days(8);
const APART: Span = Span::from_min(110);
/// One task in so many fails.
const FAILS: u64 = 50;
/// How long it may be until something is launched.
const RELEASE_MAX: Duration = Duration::from_secs(60);
/// Accounts that hand jobs in.
const USERS: u32 = 20;
/// Numbers that a first start gives to nobody.
const FIRST_USER: u32 = 50_000;

/// What was written.
pub(super) struct BenchHistory {
    pub(super) jobs: u64,
    /// Events in the journal.
    pub(super) events: u64,
    /// Inputs in the journal.
    pub(super) inputs: u64,
}

/// The name of an account of the history.
pub(super) fn user_name(nth: u32) -> String {
    format!("user{nth}")
}

/// A clock that is set.
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }

    fn up(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed).unsigned_abs())
    }
}

impl SetClock {
    fn pass(&self, span: Span) {
        self.0.fetch_add(span.ms(), Ordering::Relaxed);
    }
}

/// Writes a past into the data folder of a server that is yet to be started.
pub(super) async fn write(data: &Path) -> Result<BenchHistory> {
    let store = Store::open(data).await?;
    let clock = Arc::new(SetClock(AtomicI64::new((Time(timestamp().as_millisecond()) - AGO).0)));
    // As after a crash: the newest segment is some way back, and what came after it is replayed.
    let rules = SegmentRules { segment_at_stop: u64::MAX, ..SegmentRules::default() };
    let (driver, releases) =
        Driver::start(store.journal(), clock.clone(), rules, State::default()).await?;
    let mut past = Past { driver: driver.handle(), releases, clock };
    past.furnish().await?;
    let (mut jobs, mut nth) = (0, 0);
    while jobs < JOBS {
        let given_up = past.submit(nth, GIVEN_UP).await?;
        let by = Actor::Administrator;
        done(past.driver.ask(Command::CancelArray { job: given_up, by }, None).await?.reply)?;
        jobs += GIVEN_UP;
        for _ in 0..RUNS_EACH {
            past.submit(nth, RUN).await?;
            past.run_all().await?;
            jobs += RUN;
        }
        past.clock.pass(APART);
        nth += 1;
    }
    drop(past);
    driver.stop().await?;
    let inputs = Projector::open(&store).await?.catch_up().await?;
    let events = events(&store).await?;
    store.close().await;
    ensure!(events >= EVENTS_MIN, "the past has {events} events only");
    Ok(BenchHistory { jobs: u64::from(jobs), events, inputs })
}

async fn events(store: &Store) -> Result<u64, StoreError> {
    let (journal, mut at, mut count) = (store.journal(), 0, 0);
    loop {
        let page = journal.read(at, u32::MAX).await?;
        let Some(last) = page.last() else { return Ok(count) };
        at = last.seq;
        for entry in &page {
            count += entry.events()?.len() as u64;
        }
    }
}

/// The scheduler in a time of its own.
struct Past {
    driver: Handle,
    releases: Releases,
    clock: Arc<SetClock>,
}

impl Past {
    /// What a site has: a pool, a large node, a queue, a group and its users.
    async fn furnish(&mut self) -> Result<()> {
        let capacity = Capacity { cpu: 1_000_000, memory: 4 << 20, ..Capacity::default() };
        let mut site = SiteBuilder {
            pools: vec![Pool { closed_share: Milli(100), ..Pool::new(name("default")) }],
            nodes: vec![NewNode::new(name("once"), name("default"), capacity)],
            queues: vec![Queue::new(name("default"), name("priority"))],
            ..SiteBuilder::default()
        };
        for nth in 0..USERS {
            // What waits in a queue sets aside what it may cost.
            let (id, credits) = (UserId(FIRST_USER + nth), Money::credits(10_000_000));
            site.user(id, GroupId(FIRST_USER), credits);
        }
        for command in site.commands() {
            let note = match &command {
                Command::PutGroup { .. } => {
                    Note { group: Some("once".to_owned()), ..Note::default() }
                }
                Command::PutUser { user } => {
                    Note { user: Some(user_name(user.id.0 - FIRST_USER)), ..Note::default() }
                }
                _ => Note::default(),
            };
            done(self.driver.ask(command, note.write()).await?.reply)?;
        }
        Ok(())
    }

    /// Hands in an array, and returns its first job.
    async fn submit(&mut self, nth: u32, count: u32) -> Result<JobId> {
        let now = self.clock.now();
        let owner = nth % USERS;
        // The large ones are given up before anything else could be done with them.
        let earliest = if count == GIVEN_UP { now + Span::from_h(1) } else { now };
        let request = Request::new(
            Shape::gang(1),
            Resources { cpu: 1000, memory: 1024, ..Resources::default() },
            Span::from_min(10),
            Window { earliest, deadline: now + Span::from_days(1) },
        );
        let queue = QueueTerms::new(name("default"));
        let job = NewJob {
            name: Some(Name::new(&format!("train-{nth}"))?.into()),
            array: Some(Array { count, running_max: None }),
            ..NewJob::new(UserId(FIRST_USER + owner), Terms::Queue { request, queue })
        };
        let spec = format!(
            r#"{{"work":{{"command":["true"]}},"ask":{{"resources":{{"cpu":"1","memory":"1Gi"}},"duration_s":600}},"array":{{"from":0,"to":{}}}}}"#,
            count - 1
        );
        let note = Note {
            user: Some(user_name(owner)),
            group: Some("once".to_owned()),
            spec: serde_json::from_str(&spec)?,
            received_ms: Some(now.0),
            ..Note::default()
        };
        let answer = self.driver.ask(Command::Submit { key: None, job }, note.write()).await?;
        match answer.reply {
            Reply::Accepted { job, .. } => Ok(job),
            other => bail!("a job of the past was refused: {other:?}"),
        }
    }

    /// Everything that is to run runs for a second and ends.
    async fn run_all(&mut self) -> Result<()> {
        let mut left = RUN;
        while left > 0 {
            let released = tokio::time::timeout(RELEASE_MAX, self.releases.recv()).await;
            let released = released.context("the past stands still: nothing is launched")?;
            let released = released.context("the scheduler has stopped")?;
            let tasks: Vec<TaskId> = released.effects.iter().filter_map(launched).collect();
            let mut answers = Vec::with_capacity(tasks.len() * 2);
            for task in &tasks {
                let command = Command::Started { task: *task };
                answers.push(self.driver.hand_in_patiently(command, self.seen(Some(40))).await?);
            }
            self.clock.pass(Span::from_s(1));
            for task in &tasks {
                let code = i32::from(task.job.0 % FAILS == 0);
                let command = Command::Exited { task: *task, code, at: None };
                answers.push(self.driver.hand_in_patiently(command, self.seen(None)).await?);
            }
            for answer in answers {
                done(answer.await?.reply)?;
            }
            left = left.saturating_sub(u32::try_from(tasks.len())?);
        }
        Ok(())
    }

    /// What an executor would say of it.
    fn seen(&self, prepared_ms: Option<i64>) -> Option<Box<RawValue>> {
        let seen = Observation { at_ms: self.clock.now().0, prepared_ms, ..Observation::default() };
        Note { task: Some(seen), ..Note::default() }.write()
    }
}

fn launched(effect: &Effect) -> Option<TaskId> {
    match effect {
        Effect::Launch { task, .. } => Some(*task),
        _ => None,
    }
}

fn done(reply: Reply) -> Result<()> {
    ensure!(!matches!(reply, Reply::Refused { .. }), "the past was refused: {reply:?}");
    Ok(())
}
