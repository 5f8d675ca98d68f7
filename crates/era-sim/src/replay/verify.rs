//! The exact replay: the recorded inputs through the core, every event compared byte for byte.

use era_core::{Input, Output, State};
use era_drive::{Replay, ReplayError};

use super::difference::{Difference, first_field};
use crate::BadInput;
use crate::journal::{JournalRecord, Reader, RecordedEntry, SegmentStart, Torn};

/// What a replay went through.
#[derive(Clone, Debug)]
pub struct Replayed {
    pub segments: u64,
    /// Segments before them, which an older version decided.
    pub passed_over: u64,
    pub events: u64,
    /// The last line, if a crash cut it off.
    pub torn: Option<Torn>,
    /// The inputs, and the state at the end.
    pub replay: Replay,
}

/// Why a journal could not be replayed to its end.
#[derive(Debug, thiserror::Error)]
pub enum NotReplayed {
    /// It cannot be read.
    #[error(transparent)]
    BadInput(#[from] BadInput),
    /// It leads elsewhere.
    #[error("{}: {difference}", file.display())]
    Differs { file: std::path::PathBuf, difference: Box<Difference> },
}

/// A step of the replay, for whoever watches.
pub struct ReplayStep<'a> {
    pub input: &'a Input,
    /// The state before the first input, or after this one.
    pub state: &'a State,
    /// What came of it.
    pub output: &'a Output,
}

/// Replays a journal to its end, or to the first event that differs. `watch` sees every step;
/// `begin` the state that the journal begins with.
pub fn verify(
    journal: Reader,
    begin: &mut dyn FnMut(&State),
    watch: &mut dyn FnMut(ReplayStep<'_>),
) -> Result<Replayed, NotReplayed> {
    let mut journal = journal;
    let mut replay: Option<Replayed> = None;
    while let Some(record) = journal.next() {
        match (record?, &mut replay) {
            (JournalRecord::Segment(segment), None) => {
                begin(&segment.state);
                let passed_over = journal.passed_over();
                let (segments, events, torn) = (1, 0, None);
                let begun = Replay::new(segment.state);
                replay = Some(Replayed { segments, passed_over, events, torn, replay: begun });
            }
            (JournalRecord::Segment(segment), Some(replay)) => {
                next_segment(&journal, replay, segment)?;
            }
            (JournalRecord::Entry(entry), Some(replay)) => {
                next_entry(&journal, replay, entry, watch)?;
            }
            (JournalRecord::Entry(entry), None) => {
                return Err(journal.bad(entry.line, "a journal begins with a segment").into());
            }
        }
    }
    let torn = journal.torn();
    match replay {
        Some(replay) => Ok(Replayed { torn, ..replay }),
        None => Err(journal.bad(1, "the journal is empty: it begins with a segment").into()),
    }
}

/// A segment goes on from where the last one ended: it must begin with that very state.
fn next_segment(
    journal: &Reader,
    replay: &mut Replayed,
    segment: SegmentStart,
) -> Result<(), NotReplayed> {
    let (ours, theirs) = (replay.replay.state().seq(), segment.state.seq());
    if ours != theirs {
        let problem = format!(
            "segment {} begins after input {theirs}, and the one before ended with input {ours}: \
             inputs are missing, or out of order",
            segment.number
        );
        return Err(journal.bad(segment.line, problem).field("state.seq").into());
    }
    let ours = serde_json::to_string(replay.replay.state()).unwrap_or_default();
    if *ours != *segment.state_text {
        let field = first_field(Some(&segment.state_text), Some(&ours));
        let problem = format!(
            "segment {} does not begin with the state that the one before leads to: `{field}` \
             differs first. An input before this line was changed in a way that no event shows, \
             or this snapshot was",
            segment.number
        );
        return Err(journal.bad(segment.line, problem).field("state").into());
    }
    replay.segments += 1;
    Ok(())
}

fn next_entry(
    journal: &Reader,
    replay: &mut Replayed,
    entry: RecordedEntry,
    watch: &mut dyn FnMut(ReplayStep<'_>),
) -> Result<(), NotReplayed> {
    let RecordedEntry { line, input, events_text } = entry;
    let mut decided = String::new();
    let output = replay.replay.carry_out(input.clone(), |events| {
        decided = serde_json::to_string(events).unwrap_or_default();
        *decided == *events_text
    });
    let output = match output {
        Ok(output) => output,
        Err(ReplayError::Gap { expected, found }) => {
            let problem = format!("input {found} stands where {expected} comes next");
            return Err(journal.bad(line, problem).field("input.seq").into());
        }
        Err(ReplayError::Differs { seq }) => {
            let difference = Difference::of_events(line, seq, &events_text, &decided);
            let file = journal.file().to_owned();
            return Err(NotReplayed::Differs { file, difference: Box::new(difference) });
        }
    };
    replay.events += output.events.len() as u64;
    watch(ReplayStep { input: &input, state: replay.replay.state(), output: &output });
    Ok(())
}
