//! `accepted_queue`: every job that was accepted, published for those who listen now, and kept as
//! a stream with consumer groups for those who were away.
//!
//! The place in the journal up to which it was told stands in Redis beside the stream, and moves in
//! the same step and only from where it was seen, so that nothing is told twice and nothing is left
//! out. What every group has read is cut off in time; what some group has not is kept for it.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use era_cloud::celery::bus::{Bus, BusError};
use era_cloud::celery::fence::LeaseFence;
use era_core::Event;
use era_drive::FollowRules;
use era_store::journal::{Journal, Stored};
use era_store::note::Note;
use redis::Script;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::FeedError;
use crate::Services;
use crate::follow::Following;

/// The stream, and the channel.
pub const KEY: &str = "accepted_queue";
/// Up to which entry of the journal it was told.
const CURSOR: &str = "accepted_queue:cursor";
/// The consumer group that every site has from the start.
const GROUP: &str = "era-cloud";
/// What the stream keeps.
const KEPT: StreamBounds = StreamBounds { least: 100_000, most: 2_000_000, step: 1_000 };
/// Entries that are looked through at a time.
const AT_A_TIME: u32 = 500;
/// Looked at without news too, in case Redis lost its memory.
pub(super) const RULES: FollowRules = FollowRules {
    unprompted: Some(super::EVERY),
    full: AT_A_TIME as u64,
    ..FollowRules::at_once(&[super::AGAIN])
};
/// How often it is told that jobs were cut off unread.
const WARN_EVERY: Duration = Duration::from_secs(60);

static TRIM: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("trim.lua")));

/// How many jobs a stream keeps.
#[derive(Clone, Copy)]
pub(super) struct StreamBounds {
    /// In any case, for groups that are yet to be made.
    pub(super) least: usize,
    /// At most, whoever has not read them.
    pub(super) most: usize,
    /// How many are cut off at a time.
    pub(super) step: usize,
}

/// Tells what was accepted.
pub(super) struct AcceptedJobs<'a> {
    app: &'a Services,
    journal: Journal,
    pen: &'a LeaseFence,
    /// Up to where it was told, as Redis has it.
    was: Option<u64>,
}

impl<'a> AcceptedJobs<'a> {
    pub(super) fn new(app: &'a Services, journal: Journal, pen: &'a LeaseFence) -> Self {
        AcceptedJobs { app, journal, pen, was: None }
    }

    /// Writes, if Redis is still where it was seen.
    async fn write(&self, what: &'static str, all: &redis::Pipeline) -> Result<bool, BusError> {
        let was = self.was.map(|was| was.to_string()).unwrap_or_default();
        self.pen.write_if(what, Some((CURSOR, &was)), all).await
    }
}

impl Following for AcceptedJobs<'_> {
    type Error = FeedError;

    async fn locate(&mut self) -> Result<u64, FeedError> {
        make_group(self.pen.bus()).await?;
        loop {
            self.was = cursor(self.pen.bus()).await?;
            let was = self.was.unwrap_or(0);
            // What is known to be in the journal may be behind what is there.
            if was <= self.app.driver.snapshot().seq() {
                return Ok(was);
            }
            let last = self.journal.last_seq().await?;
            if was <= last {
                return Ok(was);
            }
            // Another site's, or a journal that was restored from before it: from here on.
            let mut back = redis::pipe();
            back.cmd("SET").arg(CURSOR).arg(last);
            self.write("go back", &back).await?;
        }
    }

    async fn take(&mut self, after: u64) -> Result<Option<u64>, FeedError> {
        let entries = self.journal.read(after, AT_A_TIME).await?;
        let Some(newest) = entries.last() else {
            // Redis may have lost its memory.
            let is_there = cursor(self.pen.bus()).await? == self.was;
            return Ok(is_there.then_some(after));
        };
        let mut all = redis::pipe();
        let mut many = 0;
        for entry in &entries {
            for told in accepted(entry)? {
                let text = told.to_string();
                all.cmd("XADD").arg(KEY).arg("*").arg("seq").arg(entry.seq).arg("job").arg(&text);
                all.cmd("PUBLISH").arg(KEY).arg(text);
                many += 1;
            }
        }
        all.cmd("SET").arg(CURSOR).arg(newest.seq);
        if !self.write("take accepted jobs", &all).await? {
            return Ok(None);
        }
        tracing::trace!(was = self.was, newest = newest.seq, "accepted jobs were told");
        self.was = Some(newest.seq);
        if many > 0 {
            trim(self.pen.bus(), KEPT).await?;
        }
        Ok(Some(newest.seq))
    }

    fn failed(&mut self, error: FeedError) -> Result<(), FeedError> {
        tracing::warn!(%error, "accepted jobs wait to be told");
        Ok(())
    }
}

/// Cuts off what every group has read, and what is too much.
pub(super) async fn trim(bus: &Bus, kept: StreamBounds) -> Result<usize, BusError> {
    let length: usize = bus.run("say how much it keeps", redis::cmd("XLEN").arg(KEY)).await?;
    // Seldom, and then some at a time.
    if length < kept.least + kept.step {
        return Ok(0);
    }
    let (unread, group): (usize, String) = bus
        .script("cut off what was read", &TRIM, |call| {
            call.key(KEY).arg(kept.least).arg(kept.most).arg(kept.step);
        })
        .await?;
    if unread > 0 && may_warn() {
        tracing::warn!(
            unread,
            group,
            most = kept.most,
            "accepted_queue is full, and jobs that a group has not read were cut off: let it read, \
             or remove it with XGROUP DESTROY"
        );
    }
    Ok(unread)
}

/// Once in a while is often enough to be read.
fn may_warn() -> bool {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let due = last.is_none_or(|last| last.elapsed() > WARN_EVERY);
    if due {
        *last = Some(Instant::now());
    }
    due
}

async fn cursor(bus: &Bus) -> Result<Option<u64>, BusError> {
    bus.run("say how far it was told", redis::cmd("GET").arg(CURSOR)).await
}

/// A group reads from the beginning: one that is made later misses nothing that is kept.
async fn make_group(bus: &Bus) -> Result<(), BusError> {
    let mut create = redis::cmd("XGROUP");
    create.arg("CREATE").arg(KEY).arg(GROUP).arg("0").arg("MKSTREAM");
    match bus.run::<()>("make a consumer group", &create).await {
        Err(error) if error.answer.code() == Some("BUSYGROUP") => Ok(()),
        made => made,
    }
}

/// What an entry accepted, as it is told.
fn accepted(entry: &Stored) -> Result<Vec<Value>, FeedError> {
    // Most entries accept nothing, and need not be parsed.
    if !entry.events.contains("\"promised\"") && !entry.events.contains("\"queued\"") {
        return Ok(Vec::new());
    }
    let note = entry.note.as_deref().and_then(|note| Note::read(note).ok()).unwrap_or_default();
    let name = note.spec.and_then(|spec| spec.name);
    let told = |event: &Event| {
        let (job, count) = event.accepted()?;
        let mut told = json!({
            "seq": entry.seq,
            "at_ms": entry.at.0,
            "job": job,
            "count": count,
            "user": note.user,
            "name": name,
            "kind": event.kind(),
        });
        if let Event::Queued { queue, .. } = event {
            told["queue"] = json!(queue);
        }
        Some(told)
    };
    Ok(entry.events()?.iter().filter_map(told).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_core::units::Time;

    fn entry(events: &str, note: Option<&str>) -> Stored {
        Stored {
            seq: 7,
            at: Time(5),
            input: String::new(),
            events: events.to_owned(),
            note: note.map(str::to_owned),
        }
    }

    #[test]
    fn a_queued_job_is_told_with_its_owner_and_without_its_environment() {
        let events = r#"[{"type":"queued","job":3,"user":1,"queue":"default","count":4}]"#;
        let note = r#"{"user":"ada","spec":{"name":"train","work":{"env":{"TOKEN":"secret"}}}}"#;
        let told = accepted(&entry(events, Some(note))).expect("told");
        assert_eq!(
            told,
            [json!({"seq": 7, "at_ms": 5, "job": 3, "count": 4, "user": "ada", "name": "train",
                "kind": "queued", "queue": "default"})]
        );
    }

    #[test]
    fn entries_that_accept_nothing_tell_nothing() {
        assert_eq!(accepted(&entry("[]", None)).expect("told"), Vec::<Value>::new());
    }
}
