//! Finding an offset in a job's log without reading all of it.
//!
//! The offset of a merged log is the sum of its tasks' offsets. Within each task's log time never
//! runs backwards, so for an instant the offset of each task is found by halving; and so is the
//! last instant before which no more than the wanted sum was printed. Only what was printed in
//! that one millisecond is read entry by entry.

use std::io;
use std::path::Path;

use era_core::units::Time;

use super::LogError;
use super::read::{LogReader, Source};
use super::record::{self, RECORD_BYTES_MAX};
use super::segment::{self, Key, LogSegment};

/// Enough for the end of one record and the beginning of the next, mostly.
const PROBE_BYTES: usize = 1024;
/// Most of the time the last lines are no more than this.
const TAIL_BYTES: u64 = 16 << 10;

/// Where an instant can still be in a task's log.
struct Bracket {
    key: Key,
    low: u64,
    high: u64,
}

impl LogReader {
    /// Goes to an offset: what is read next is the first entry that begins there or behind. What
    /// was dropped is stepped over; an offset behind the end is the end.
    pub fn seek(&mut self, offset: u64) -> Result<(), LogError> {
        self.refresh()?;
        for source in self.sources.values_mut() {
            source.go_to(source.segments.first().map_or(source.offset, |first| first.base));
        }
        (self.attempt, self.position) = (0, 0);
        let mut attempts: Vec<u32> = self.sources.keys().map(|key| key.attempt).collect();
        attempts.dedup();
        for attempt in attempts {
            self.begin_attempt(attempt);
            if self.position >= offset {
                return Ok(());
            }
            self.seek_within(attempt, offset)
                .map_err(|source| LogError::File { path: self.folder.clone(), source })?;
            // What is left is what one instant printed, or nothing.
            while self.position < offset && self.attempt == attempt {
                if self.next_is_of_later_attempt(attempt)? || self.take(Time::MAX)?.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Goes to where no more than so many entries are left that were printed until then, nor more
    /// than about so many bytes: what is read next are the last of them.
    pub fn seek_last(&mut self, lines: usize, bytes_max: u64, until: Time) -> Result<(), LogError> {
        self.refresh()?;
        let end: u64 = self.sources.values().map(Source::end).sum();
        // Twice as far back each time, until enough of them are seen.
        let mut back = TAIL_BYTES.min(bytes_max);
        loop {
            let from = end.saturating_sub(back);
            self.seek(from)?;
            let mut begins = vec![self.position];
            while let Some(entry) = self.take(until)? {
                begins.push(entry.next);
            }
            let count = begins.len() - 1;
            if count >= lines || from == 0 || back == bytes_max {
                return self.seek(begins[count.saturating_sub(lines)]);
            }
            back = (back * 2).min(bytes_max);
        }
    }

    fn next_is_of_later_attempt(&mut self, attempt: u32) -> Result<bool, LogError> {
        for (key, source) in self.sources.iter_mut().filter(|(k, _)| k.attempt == attempt) {
            let before = source.offset;
            let next = source
                .peek(&self.folder, *key)
                .map_err(|source| LogError::File { path: self.folder.clone(), source })?;
            self.position += source.offset - before;
            if next.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn seek_within(&mut self, attempt: u32, offset: u64) -> io::Result<()> {
        let of_attempt = || self.sources.iter().filter(|(key, _)| key.attempt == attempt);
        let before = self.position - of_attempt().map(|(_, s)| s.offset).sum::<u64>();
        let wanted = offset - before;
        let mut brackets: Vec<Bracket> = of_attempt()
            .map(|(key, s)| Bracket { key: *key, low: s.offset, high: s.end() })
            .collect();
        if wanted >= brackets.iter().map(|b| b.high).sum() {
            for bracket in &mut brackets {
                bracket.low = bracket.high;
            }
        } else {
            self.halve(&mut brackets, wanted)?;
        }
        for bracket in &brackets {
            if let Some(source) = self.sources.get_mut(&bracket.key) {
                self.position += bracket.low - source.offset;
                source.go_to(bracket.low);
            }
        }
        Ok(())
    }

    /// Leaves in each bracket's `low` where the last instant begins before which no more than
    /// `wanted` bytes were printed.
    fn halve(&self, brackets: &mut [Bracket], wanted: u64) -> io::Result<()> {
        let Some(mut early) = self.first_printed(brackets)? else { return Ok(()) };
        let mut late = Time::LATEST.0 + 1;
        // Steps that double until one is too far: most logs are far shorter than all of time.
        let mut step = 1;
        while early + 1 < late {
            let middle = Time((early + step).min(early + (late - early) / 2));
            step = step.saturating_mul(2);
            let mut found = Vec::with_capacity(brackets.len());
            for bracket in brackets.iter() {
                let Some(source) = self.sources.get(&bracket.key) else { continue };
                found.push(source.first_at_or_after(&self.folder, bracket, middle)?);
            }
            if found.iter().sum::<u64>() <= wanted {
                early = middle.0;
                brackets.iter_mut().zip(found).for_each(|(b, offset)| b.low = offset);
            } else {
                late = middle.0;
                step = late;
                brackets.iter_mut().zip(found).for_each(|(b, offset)| b.high = offset);
            }
        }
        Ok(())
    }
}

impl LogReader {
    /// When the first record in any bracket was printed.
    fn first_printed(&self, brackets: &[Bracket]) -> io::Result<Option<i64>> {
        let mut first = None;
        for bracket in brackets {
            let Some(source) = self.sources.get(&bracket.key) else { continue };
            let record = source.record_from(&self.folder, bracket.key, bracket.low)?;
            if let Some((_, at)) = record {
                first = Some(first.map_or(at.0, |first: i64| first.min(at.0)));
            }
        }
        Ok(first)
    }
}

impl Source {
    fn end(&self) -> u64 {
        self.segments.last().map_or(self.offset, LogSegment::end)
    }

    /// The offset of the first record of this instant or a later one, within a bracket.
    fn first_at_or_after(&self, folder: &Path, within: &Bracket, at: Time) -> io::Result<u64> {
        let (mut low, mut high) = (within.low, within.high);
        let mut found = high;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.record_from(folder, within.key, middle)? {
                Some((start, printed)) if printed < at => low = start + 1,
                Some((start, _)) => (high, found) = (middle, start),
                None => high = middle,
            }
        }
        Ok(found.min(within.high))
    }

    /// The first record that begins at an offset or behind it: where, and when it was printed.
    fn record_from(&self, folder: &Path, key: Key, from: u64) -> io::Result<Option<(u64, Time)>> {
        let first = self.segments.iter().rposition(|s| s.base <= from).unwrap_or(0);
        for segment in &self.segments[first.min(self.segments.len())..] {
            let file = match segment::open(&segment::path(folder, key, segment.base)) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            let from = from.max(segment.base) - segment.base;
            // A record begins behind a line end, or where the segment does.
            let look = from.saturating_sub(1);
            for bytes in [PROBE_BYTES, 2 * RECORD_BYTES_MAX] {
                let text = segment::read_at(&file, look, bytes)?;
                let begin = match from {
                    0 => Some(0),
                    _ => memchr::memchr(b'\n', &text).map(|n| n + 1),
                };
                let record = begin.and_then(|b| Some((b, record::parse(text.get(b..)?)?)));
                if let Some((begin, record)) = record {
                    return Ok(Some((segment.base + look + begin as u64, record.at)));
                }
            }
        }
        Ok(None)
    }
}
