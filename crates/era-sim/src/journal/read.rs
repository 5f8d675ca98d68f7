//! Reading a journal, one line at a time.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use era_core::market::MarketRules;
use era_core::settings::Settings;
use era_core::wire::WIRE_VERSION;
use era_core::{CORE_VERSION, State, check};
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::lines::{JournalLine, NoLine, next_line};
use super::{INPUT_BYTES_MAX, JournalRecord, RecordedEntry, STATE_BYTES_MAX, SegmentStart, Torn};
use crate::BadInput;

const BUFFER_BYTES: usize = 256 * 1024;

/// A journal that is read from its beginning to its end.
pub struct Reader {
    file: PathBuf,
    from: Box<dyn BufRead>,
    buffer: Vec<u8>,
    line: u64,
    /// The last segment's number; 0 before the first.
    segment: u64,
    /// How many segments of older versions came first.
    passed_over: u64,
    /// What is wrong with those, unless one of this version has come.
    older: Option<BadInput>,
    torn: Option<Torn>,
    over: bool,
}

/// A line, before its parts are looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryLine<'a> {
    #[serde(borrow)]
    input: &'a RawValue,
    #[serde(borrow)]
    events: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SegmentLine<'a> {
    segment: u64,
    core_version: u32,
    wire_version: u32,
    #[serde(borrow)]
    state: &'a RawValue,
}

/// What was made of a line.
#[allow(clippy::large_enum_variant)] // lines live one at a time
enum Read {
    Record(JournalRecord),
    /// It is of a segment that an older version wrote.
    PassedOver,
}

impl SegmentLine<'_> {
    fn versions(&self) -> [(&'static str, &'static str, u32, u32); 2] {
        [
            ("core_version", "core", self.core_version, CORE_VERSION),
            ("wire_version", "serialisation", self.wire_version, WIRE_VERSION),
        ]
    }

    /// Whether nothing about it is newer than ours.
    fn is_older(&self) -> bool {
        self.versions().iter().all(|(_, _, found, ours)| found <= ours)
    }

    /// Says that another version wrote it, if one did.
    fn other_version(&self) -> Option<BadInput> {
        let other = self.versions().into_iter().find(|(_, _, found, ours)| found != ours);
        other.map(|(field, what, found, ours)| {
            let problem = format!(
                "segment {} was written by {what} version {found}, and this binary replays \
                 version {ours} only: replay it with the release that wrote it (`era version` \
                 tells), or begin with a segment that an upgrade has migrated",
                self.segment
            );
            BadInput::new(problem).field(field)
        })
    }
}

/// What a state must have right before anything is derived from it.
#[derive(Deserialize)]
struct RestoredRules {
    settings: Settings,
    market: MarketRules,
}

impl Reader {
    /// Opens a file, compressed with gzip or not: that is seen from its first bytes.
    pub fn open(path: &Path) -> Result<Reader, BadInput> {
        let problem = |what: &str, e: &dyn std::fmt::Display| {
            BadInput::new(format!("cannot be {what}: {e}")).file(path)
        };
        let file = File::open(path).map_err(|e| problem("opened", &e))?;
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let first = file.fill_buf().map_err(|e| problem("read", &e))?;
        if !first.starts_with(&[0x1f, 0x8b]) {
            return Ok(Reader::new(path, Box::new(file)));
        }
        let plain = BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file));
        Ok(Reader::new(path, Box::new(plain)))
    }

    /// Reads bytes that are already there. The path is for messages.
    pub fn new(path: &Path, from: Box<dyn BufRead>) -> Reader {
        Reader {
            file: path.to_owned(),
            from,
            buffer: Vec::new(),
            line: 0,
            segment: 0,
            passed_over: 0,
            older: None,
            torn: None,
            over: false,
        }
    }

    /// The last line, if a crash cut it off. Known once all others are read.
    pub fn torn(&self) -> Option<Torn> {
        self.torn
    }

    /// How many segments before the first were passed over, since an older version wrote them.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// The file, for messages.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// An error about a line of this file.
    pub fn bad(&self, line: u64, problem: impl Into<String>) -> BadInput {
        BadInput::new(problem).file(&self.file).line(line)
    }

    fn read_record(&mut self) -> Result<Option<JournalRecord>, BadInput> {
        loop {
            match self.read_line()? {
                Some(Read::PassedOver) => {}
                Some(Read::Record(record)) => return Ok(Some(record)),
                // Nothing of this version has come.
                None => return self.older.take().map_or(Ok(None), Err),
            }
        }
    }

    fn read_line(&mut self) -> Result<Option<Read>, BadInput> {
        self.line += 1;
        let line = next_line(&mut self.from, &mut self.buffer, longest);
        let whole = match line {
            Ok(JournalLine::Whole) => true,
            Ok(JournalLine::Unended) => false,
            Ok(JournalLine::End) if self.line == 1 => {
                return Err(self.bad(1, "the journal is empty: it begins with a segment"));
            }
            Ok(JournalLine::End) => return Ok(None),
            Err(NoLine::TooLong(most)) => {
                return Err(self.bad(
                    self.line,
                    format!("the line is longer than {most} bytes, which no line of a journal is"),
                ));
            }
            Err(NoLine::Unreadable(error)) => {
                return Err(self.bad(self.line, format!("cannot be read here: {error}")));
            }
        };
        match self.parse() {
            Ok(read) => Ok(Some(read)),
            // What was written whole can be read. No part of an object is an object, so a last
            // line that can be read lacks its end only, and one that cannot was cut off.
            Err(error) if whole || self.line == 1 => Err(error),
            Err(_) => {
                self.torn = Some(Torn { line: self.line, bytes: self.buffer.len() as u64 });
                Ok(None)
            }
        }
    }

    fn parse(&mut self) -> Result<Read, BadInput> {
        let line = self.line;
        let bad = |problem: String| BadInput::new(problem).file(&self.file).line(line);
        let text = std::str::from_utf8(&self.buffer)
            .map_err(|e| bad(format!("not UTF-8 after byte {}", e.valid_up_to())))?;
        if is_segment(text.as_bytes()) {
            let about = |e: BadInput| e.file(&self.file).line(line);
            let head: SegmentLine<'_> = read(text, None).map_err(about)?;
            if self.segment != 0 && head.segment != self.segment + 1 {
                let problem = format!(
                    "segment {} follows segment {}: one is missing, or they are out of order",
                    head.segment, self.segment
                );
                return Err(bad(problem).field("segment"));
            }
            if let Some(other) = head.other_version().map(about) {
                // What an upgrade went on from comes first; this version begins after it.
                if !head.is_older() || (self.segment != 0 && self.older.is_none()) {
                    return Err(other);
                }
                self.segment = head.segment;
                self.passed_over += 1;
                self.older.get_or_insert(other);
                return Ok(Read::PassedOver);
            }
            let segment = load_segment(&head, line).map_err(about)?;
            self.segment = segment.number;
            self.older = None;
            return Ok(Read::Record(JournalRecord::Segment(segment)));
        }
        if self.older.is_some() {
            return Ok(Read::PassedOver);
        }
        if self.segment == 0 {
            return Err(bad("a journal begins with a segment: {\"segment\":1,…}".into()));
        }
        let EntryLine { input, events } =
            read(text, None).map_err(|e| e.file(&self.file).line(line))?;
        let input = read(input.get(), Some("input")).map_err(|e| e.file(&self.file).line(line))?;
        if !events.get().starts_with('[') {
            return Err(bad("give a list".into()).field("events"));
        }
        Ok(Read::Record(JournalRecord::Entry(RecordedEntry {
            line,
            input,
            events_text: events.get().into(),
        })))
    }
}

impl Iterator for Reader {
    type Item = Result<JournalRecord, BadInput>;

    fn next(&mut self) -> Option<Result<JournalRecord, BadInput>> {
        if self.over {
            return None;
        }
        let record = self.read_record().transpose();
        self.over = !matches!(record, Some(Ok(_)));
        record
    }
}

fn is_segment(line: &[u8]) -> bool {
    line.starts_with(b"{\"segment\"")
}

fn longest(line: &[u8]) -> usize {
    if is_segment(line) { STATE_BYTES_MAX } else { INPUT_BYTES_MAX }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str, field: Option<&str>) -> Result<T, BadInput> {
    serde_json::from_str(text).map_err(|error| {
        // The parser's own place is within what it was given, which is less than the line.
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        let problem = BadInput::new(format!("not a line of a journal: {said}"));
        field.into_iter().fold(problem, |problem, field| problem.field(field))
    })
}

fn load_segment(head: &SegmentLine<'_>, line: u64) -> Result<SegmentStart, BadInput> {
    let state_text: Box<str> = head.state.get().into();
    let state = Box::new(load(&state_text)?);
    Ok(SegmentStart { line, number: head.segment, state, state_text })
}

/// Loads a state, if it is one that this core could have written.
fn load(text: &str) -> Result<State, BadInput> {
    let rules: RestoredRules = from_state(text)?;
    let refused = |problem: String| BadInput::new(problem).field("state");
    rules.settings.check().map_err(|refusal| refused(refusal.to_string()))?;
    rules.market.check().map_err(|refusal| refused(refusal.to_string()))?;
    // The core derives much from a state and trusts that it is one of its own. What is not may
    // trip it in ways that no list of checks foresees.
    let loaded = catch_unwind(|| {
        let state: State = from_state(text)?;
        check(&state).map_err(|wrong| refused(format!("the state contradicts itself: {wrong}")))?;
        Ok(state)
    });
    loaded.unwrap_or_else(|_| Err(refused("the state contradicts itself".into())))
}

fn from_state<T: DeserializeOwned>(text: &str) -> Result<T, BadInput> {
    read(text, Some("state"))
}
