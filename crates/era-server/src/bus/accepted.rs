//! `accepted_queue`: every job that was accepted, published for those who listen now, and kept as
//! a stream with consumer groups for those who were away.
//!
//! The place in the journal up to which it was told stands in Redis beside the stream and moves in
//! the same step, so that nothing is told twice and nothing is left out.

use era_cloud::celery::bus::{Bus, BusError};
use era_core::output::Event;
use era_store::journal::{Journal, Stored};
use era_store::note::Note;
use serde_json::{Value, json};

use super::FeedError;

/// The stream, and the channel.
pub const KEY: &str = "accepted_queue";
/// Up to which entry of the journal it was told.
const CURSOR: &str = "accepted_queue:cursor";
/// The consumer group that every site has from the start.
const GROUP: &str = "era-cloud";
/// Most jobs that the stream keeps.
const KEPT_MAX: usize = 100_000;
/// Entries that are looked through at a time.
const AT_A_TIME: u32 = 500;

/// Tells all that was accepted since the last time.
pub(super) async fn tell(journal: &Journal, bus: &Bus, last: u64) -> Result<(), FeedError> {
    let mut cursor = match cursor(bus).await? {
        Some(cursor) if cursor <= last => cursor,
        // Another site's, or a journal that was restored from before it: from here on.
        Some(_) => last,
        None => 0,
    };
    make_group(bus).await?;
    loop {
        let entries = journal.read(cursor, AT_A_TIME).await?;
        let Some(newest) = entries.last() else { return Ok(()) };
        let before = cursor;
        cursor = newest.seq;
        let mut all = redis::pipe();
        all.atomic();
        for entry in &entries {
            for told in accepted(entry)? {
                let text = told.to_string();
                all.cmd("XADD").arg(KEY).arg("MAXLEN").arg("~").arg(KEPT_MAX).arg("*");
                all.arg("seq").arg(entry.seq).arg("job").arg(&text).ignore();
                all.cmd("PUBLISH").arg(KEY).arg(&text).ignore();
            }
        }
        all.cmd("SET").arg(CURSOR).arg(cursor).ignore();
        bus.run_all::<()>("take accepted jobs", &all).await?;
        tracing::trace!(before, cursor, "accepted jobs were told");
    }
}

async fn cursor(bus: &Bus) -> Result<Option<u64>, BusError> {
    bus.run("say how far it was told", redis::cmd("GET").arg(CURSOR)).await
}

/// A group reads from the beginning: one that is made later misses nothing that is kept.
async fn make_group(bus: &Bus) -> Result<(), BusError> {
    let mut create = redis::cmd("XGROUP");
    create.arg("CREATE").arg(KEY).arg(GROUP).arg("0").arg("MKSTREAM");
    match bus.run::<()>("make a consumer group", &create).await {
        Err(error) if error.source.code() == Some("BUSYGROUP") => Ok(()),
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
    let spec: Value =
        note.spec.and_then(|spec| serde_json::from_str(spec.get()).ok()).unwrap_or_default();
    let told = |event: &Event| {
        let (job, count, how) = match event {
            Event::Promised { job, .. } => (job, 1, json!({ "kind": "promised" })),
            Event::Queued { job, queue, count, .. } => {
                (job, *count, json!({ "kind": "queued", "queue": queue }))
            }
            _ => return None,
        };
        let mut told = json!({
            "seq": entry.seq,
            "at_ms": entry.at.0,
            "job": job,
            "count": count,
            "user": note.user,
            "name": spec.get("name"),
        });
        if let (Some(told), Value::Object(how)) = (told.as_object_mut(), how) {
            told.extend(how);
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
        let note = r#"{"user":"ada","spec":{"name":"train","env":{"TOKEN":"secret"}}}"#;
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
