use era_core::units::{JobId, Time, UserId};
use era_core::{Command, Input, State, step};
use serde_json::Value;
use serde_json::value::RawValue;
use sqlx::Executor;

use super::migrate::Migration;
use super::segment::{OURS, Versions};
use super::{AskedQuote, Journal, JournalEntry, Segment};
use crate::{Store, StoreError};

async fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::testing::open(folder.path()).await;
    (folder, store)
}

/// Carries out so many ticks, a second apart, and gives their entries.
fn ticks(state: &mut State, count: u64) -> Vec<JournalEntry> {
    let one = |_| {
        let seq = state.seq() + 1;
        let at = Time::from_s(seq as i64);
        let input = Input { seq, at, command: Command::Tick };
        let note = RawValue::from_string(format!("{{\"n\":{seq}}}")).unwrap();
        let mut entry = JournalEntry::of(&input, Some(note));
        entry.decided(&step(state, input));
        entry
    };
    (0..count).map(one).collect()
}

async fn begun(journal: &Journal, count: u64) -> State {
    let mut state = State::default();
    journal.begin_segment(&Segment::of(&state)).await.unwrap();
    journal.append(&ticks(&mut state, count)).await.unwrap();
    state
}

#[tokio::test]
async fn nothing_is_restored_where_nothing_was_written() {
    let (_folder, store) = store().await;
    assert!(store.journal().restore().await.unwrap().is_none());
    assert_eq!(store.journal().last_seq().await.unwrap(), 0);
}

#[tokio::test]
async fn what_was_appended_is_restored_after_a_restart() {
    let (folder, store) = store().await;
    let state = begun(&store.journal(), 2500).await;
    store.close().await;
    let store = crate::testing::open(folder.path()).await;
    let restored = store.journal().restore().await.unwrap().unwrap();
    assert_eq!((*restored.state, restored.replayed), (state, 2500));
}

#[tokio::test]
async fn a_segment_saves_the_replay_of_what_came_before_it() {
    let (_folder, store) = store().await;
    let journal = store.journal();
    let mut state = begun(&journal, 10).await;
    let segment = Segment::of(&state);
    // Inputs go on while a segment is written.
    journal.append(&ticks(&mut state, 3)).await.unwrap();
    journal.begin_segment(&segment).await.unwrap();
    let restored = journal.restore().await.unwrap().unwrap();
    assert_eq!((*restored.state, restored.replayed), (state, 3));
}

#[tokio::test]
async fn whoever_follows_is_at_the_state_of_the_last_entry_and_sees_each_once() {
    let (_folder, store) = store().await;
    let journal = store.journal();
    assert!(journal.follow().await.unwrap().is_none());
    let mut state = begun(&journal, 1500).await;
    let mut follower = journal.follow().await.unwrap().unwrap();
    let mut seen = Vec::new();
    while follower.advance(|entry, _| seen.push(entry.seq)).await.unwrap() {}
    assert_eq!(*follower.state(), state);
    journal.append(&ticks(&mut state, 2)).await.unwrap();
    assert!(!follower.advance(|entry, _| seen.push(entry.seq)).await.unwrap());
    assert!(!follower.advance(|_, _| panic!("there is no more")).await.unwrap());
    assert_eq!(seen, (1..=1502).collect::<Vec<u64>>());
    let restored = follower.restored();
    assert_eq!((*restored.state, restored.replayed), (state, 1502));
}

#[tokio::test]
async fn entries_are_read_in_pages_from_any_number_with_their_notes() {
    let (_folder, store) = store().await;
    begun(&store.journal(), 1200).await;
    let read = |after, most| {
        let journal = store.journal();
        async move { journal.read(after, most).await.unwrap() }
    };
    assert_eq!(read(0, u32::MAX).await.len(), 1000, "a page at most");
    assert_eq!(read(1000, 1000).await.len(), 200);
    let one = &read(7, 1).await[0];
    assert_eq!((one.seq, one.note.as_deref()), (8, Some("{\"n\":8}")));
    assert_eq!(one.input().unwrap().command, Command::Tick);
    assert!(one.events().unwrap().is_empty());
    assert_eq!(store.journal().entry(8).await.unwrap().as_ref(), Some(one));
    assert!(store.journal().entry(1201).await.unwrap().is_none());
}

#[tokio::test]
async fn a_batch_is_appended_as_a_whole_or_not_at_all() {
    let (_folder, store) = store().await;
    let journal = store.journal();
    let mut state = begun(&journal, 5).await;
    let mut batch = ticks(&mut state, 3000);
    batch[2999].seq = 1;
    assert!(matches!(journal.append(&batch).await, Err(StoreError::Database(_))));
    assert_eq!(journal.last_seq().await.unwrap(), 5);
}

#[tokio::test]
async fn a_submission_is_found_by_any_job_that_it_made() {
    let (_folder, store) = store().await;
    let journal = store.journal();
    let mut state = State::default();
    let mut entries = ticks(&mut state, 3);
    entries[0].job = Some(JobId(1));
    entries[2].job = Some(JobId(2));
    journal.append(&entries).await.unwrap();
    let seq = |job| {
        let journal = journal.clone();
        async move {
            let found = journal.submission(JobId(job)).await.unwrap();
            found.map(|(first, entry)| (first.0, entry.seq))
        }
    };
    assert_eq!(seq(0).await, None);
    assert_eq!(seq(1).await, Some((1, 1)));
    assert_eq!(seq(9).await, Some((2, 3)), "of an array the first job is named");
}

#[tokio::test]
async fn a_hole_in_the_journal_is_named() {
    let (_folder, store) = store().await;
    begun(&store.journal(), 9).await;
    store.durable().writer().execute("DELETE FROM journal WHERE seq = 4").await.unwrap();
    let error = store.journal().restore().await.unwrap_err().to_string();
    assert!(error.contains("entry 4 of the journal is damaged: it is missing"), "{error}");
}

#[tokio::test]
async fn an_entry_that_is_decided_otherwise_is_named() {
    let (_folder, store) = store().await;
    begun(&store.journal(), 9).await;
    let change = "UPDATE journal SET events = '[{}]' WHERE seq = 6";
    store.durable().writer().execute(change).await.unwrap();
    let error = store.journal().restore().await.unwrap_err();
    assert!(matches!(error, StoreError::Differs { seq: 6 }), "{error}");
}

#[tokio::test]
async fn a_segment_of_another_version_is_refused_with_what_to_do() {
    let (_folder, store) = store().await;
    begun(&store.journal(), 1).await;
    let change = "UPDATE segments SET core_version = 7";
    store.durable().writer().execute(change).await.unwrap();
    let error = store.journal().restore().await.unwrap_err();
    assert!(matches!(error, StoreError::OtherVersion { found: 7, .. }), "{error}");
    assert!(error.to_string().contains("start the release that wrote it"), "{error}");
}

const OLD: Versions = Versions { core: 0, wire: 0 };
const BETWEEN: Versions = Versions { core: 1, wire: 0 };
/// From a release that called the number of the last input otherwise, by way of another.
const STEPS: &[Migration] = &[
    Migration { from: BETWEEN, to: OURS, change: |state| rename(state, "last", "seq") },
    Migration { from: OLD, to: BETWEEN, change: |state| rename(state, "newest", "last") },
];

fn rename(state: &mut Value, from: &str, to: &str) -> Result<(), String> {
    let fields = state.as_object_mut().ok_or("a state is an object")?;
    let value = fields.remove(from).ok_or_else(|| format!("there is no {from}"))?;
    fields.insert(to.to_owned(), value);
    Ok(())
}

/// Makes the newest segment one of an older release, as that would have written it.
async fn made_old(store: &Store) {
    let sql = "UPDATE segments SET core_version = 0, wire_version = 0, state = \
               REPLACE(REPLACE(state, '{\"core_version\":4,', '{\"core_version\":0,'), \
               '\"seq\":', '\"newest\":')";
    store.durable().writer().execute(sql).await.unwrap();
}

#[tokio::test]
async fn a_closed_segment_of_an_older_release_is_brought_to_ours() {
    let (_folder, store) = store().await;
    let journal = store.journal();
    let mut state = begun(&journal, 5).await;
    journal.begin_segment(&Segment::of(&state)).await.unwrap();
    assert!(!journal.migrate_by(STEPS).await.unwrap(), "it is ours");
    made_old(&store).await;
    // As a start did before there were steps, and does where none leads on.
    let error = journal.migrate().await.unwrap_err();
    assert!(matches!(error, StoreError::OtherVersion { found: 0, .. }), "{error}");
    assert!(matches!(journal.restore().await, Err(StoreError::OtherVersion { .. })));
    assert!(journal.migrate_by(STEPS).await.unwrap());
    assert_eq!(journal.newest_segment().await.unwrap(), Some(3));
    let restored = journal.restore().await.unwrap().unwrap();
    assert_eq!((*restored.state, restored.replayed), (state.clone(), 0));
    journal.append(&ticks(&mut state, 2)).await.unwrap();
    assert!(!journal.migrate_by(STEPS).await.unwrap(), "once is enough");
    let restored = journal.restore().await.unwrap().unwrap();
    assert_eq!((*restored.state, restored.replayed), (state, 2));
}

#[tokio::test]
async fn what_the_first_core_left_goes_on_as_it_is() {
    let (_folder, store) = store().await;
    let journal = store.journal();
    let state = begun(&journal, 5).await;
    journal.begin_segment(&Segment::of(&state)).await.unwrap();
    assert!(journal.is_ours_from(None).await.unwrap());
    let sql = "UPDATE segments SET core_version = 1, state = \
               REPLACE(state, '{\"core_version\":4,', '{\"core_version\":1,')";
    store.durable().writer().execute(sql).await.unwrap();
    assert!(journal.migrate().await.unwrap());
    assert_eq!(*journal.restore().await.unwrap().unwrap().state, state);
    assert!(!journal.is_ours_from(None).await.unwrap(), "another core decided what came before");
    assert!(!journal.is_ours_from(Some(2)).await.unwrap());
    assert!(journal.is_ours_from(Some(3)).await.unwrap());
}

#[tokio::test]
async fn a_segment_that_an_older_release_left_open_is_not_guessed_at() {
    let (_folder, store) = store().await;
    let journal = store.journal();
    begun(&journal, 5).await;
    made_old(&store).await;
    let error = journal.migrate_by(STEPS).await.unwrap_err();
    assert!(matches!(error, StoreError::Unclosed { segment: 1, behind: 5 }), "{error}");
    assert!(error.to_string().contains("start and stop the release that wrote it once"), "{error}");
    assert_eq!(journal.newest_segment().await.unwrap(), Some(1), "nothing was begun");
}

#[tokio::test]
async fn a_step_that_does_not_fit_changes_nothing() {
    let (_folder, store) = store().await;
    let journal = store.journal();
    begun(&journal, 0).await;
    made_old(&store).await;
    const WRONG: &[Migration] =
        &[Migration { from: OLD, to: OURS, change: |state| rename(state, "nothing", "seq") }];
    let error = journal.migrate_by(WRONG).await.unwrap_err().to_string();
    assert!(error.contains("there is no nothing"), "{error}");
    const ROUND: &[Migration] = &[
        Migration { from: OLD, to: BETWEEN, change: |_| Ok(()) },
        Migration { from: BETWEEN, to: OLD, change: |_| Ok(()) },
    ];
    let error = journal.migrate_by(ROUND).await.unwrap_err();
    assert!(matches!(error, StoreError::OtherVersion { .. }), "{error}");
    assert_eq!(journal.newest_segment().await.unwrap(), Some(1), "nothing was begun");
}

#[tokio::test]
async fn an_export_has_each_segments_beginning_before_its_entries() {
    let (_folder, store) = store().await;
    let journal = store.journal();
    let mut state = begun(&journal, 1500).await;
    journal.begin_segment(&Segment::of(&state)).await.unwrap();
    journal.append(&ticks(&mut state, 2)).await.unwrap();
    let whole = exported(&journal, None).await;
    assert_eq!(whole.lines().count(), 1 + 1500 + 1 + 2);
    assert!(whole.starts_with("{\"segment\":1,\"core_version\":4,\"wire_version\":1,\"state\":{"));
    let second = whole.lines().nth(1501).unwrap();
    assert!(second.starts_with("{\"segment\":2,"));
    assert_eq!(
        whole.lines().last().unwrap(),
        r#"{"input":{"seq":1502,"at":1502000,"command":{"type":"tick"}},"events":[]}"#
    );
    let newest = journal.newest_segment().await.unwrap();
    assert_eq!(exported(&journal, newest).await.lines().next(), Some(second));
}

async fn exported(journal: &Journal, from: Option<u64>) -> String {
    let mut export = journal.export(from).await.unwrap();
    let mut text = String::new();
    while let Some(lines) = export.lines().await.unwrap() {
        text.push_str(&lines);
    }
    text
}

/// How many transactions SQLite's log holds: the last page of each says how long the file is now.
fn transactions(log: &[u8]) -> usize {
    const HEADER: usize = 32;
    const FRAME: usize = 24;
    let word = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let page = word(8) as usize;
    let frames = (HEADER..log.len()).step_by(FRAME + page);
    let ours = |at: &usize| log[at + 8..at + 16] == log[16..24];
    frames.take_while(ours).filter(|at| word(at + 4) != 0).count()
}

#[tokio::test]
async fn a_batch_is_one_transaction_however_large() {
    let (folder, store) = store().await;
    if store.durable().dialect() != crate::Dialect::Sqlite {
        return;
    }
    let journal = store.journal();
    let mut state = begun(&journal, 0).await;
    for count in [1, 256, 1025] {
        store.durable().writer().execute("PRAGMA wal_checkpoint(TRUNCATE)").await.unwrap();
        journal.append(&ticks(&mut state, count)).await.unwrap();
        let log = std::fs::read(folder.path().join("era.db-wal")).unwrap();
        assert_eq!(transactions(&log), 1, "{count} entries");
    }
}

#[tokio::test]
async fn quotes_that_were_asked_are_kept_and_forgotten_by_time() {
    let (_folder, store) = store().await;
    let ask = |s| AskedQuote {
        at: Time::from_s(s),
        user: UserId(1),
        bid: "{}".into(),
        price: (s % 2 == 0).then_some(era_core::units::Money(s)),
    };
    let all: Vec<AskedQuote> = (0..10).map(ask).collect();
    store.asks().append(&all).await.unwrap();
    let read = |from| {
        let asks = store.asks();
        async move { asks.read(Time::from_s(from), Time::MAX, 100).await.unwrap() }
    };
    assert_eq!(read(4).await, all[4..]);
    store.asks().forget_before(Time::from_s(8)).await.unwrap();
    assert_eq!(read(0).await, all[8..]);
}
