use std::io::Cursor;
use std::path::Path;

use era_core::units::Time;
use era_core::{Command, State};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

use super::{INPUT_BYTES_MAX, JournalRecord, Reader, Recorder, Torn};

/// A journal of so many ticks in one segment, as it is written.
fn ticks(count: i64) -> Vec<u8> {
    let mut recorder = Recorder::new(State::default(), Vec::new()).expect("memory");
    for second in 1..=count {
        recorder.send(Time::from_s(second), Command::Tick).expect("memory");
    }
    recorder.into_inner()
}

fn reader(bytes: Vec<u8>) -> Reader {
    Reader::new(Path::new("j.jsonl"), Box::new(Cursor::new(bytes)))
}

/// How many lines are read, what the error is, and what was cut off.
fn read(bytes: Vec<u8>) -> (usize, Option<String>, Option<Torn>) {
    let mut reader = reader(bytes);
    let mut lines = 0;
    let mut error = None;
    for record in reader.by_ref() {
        match record {
            Ok(_) => lines += 1,
            Err(bad) => error = Some(bad.to_string()),
        }
    }
    (lines, error, reader.torn())
}

fn line_starts(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1);
    std::iter::once(0).chain(ends).collect()
}

#[test]
fn what_is_written_reads_back_line_by_line() {
    let records: Vec<JournalRecord> =
        reader(ticks(3)).map(|record| record.expect("ours")).collect();
    assert_eq!(records.len(), 4);
    let JournalRecord::Segment(segment) = &records[0] else { panic!("a segment comes first") };
    assert_eq!((segment.line, segment.number), (1, 1));
    assert_eq!(*segment.state, State::default());
    let JournalRecord::Entry(entry) = &records[3] else { panic!("entries follow") };
    assert_eq!((entry.line, entry.input.seq, &*entry.events_text), (4, 3, "[]"));
}

#[test]
fn a_tail_that_was_cut_off_is_reported_and_left_out() {
    let whole = ticks(3);
    let last = line_starts(&whole)[3];
    for cut in last + 1..whole.len() - 1 {
        let (lines, error, torn) = read(whole[..cut].to_vec());
        assert_eq!((lines, error), (3, None), "cut at {cut}");
        assert_eq!(torn, Some(Torn { line: 4, bytes: (cut - last) as u64 }));
    }
}

#[test]
fn a_last_line_that_lacks_only_its_end_is_whole() {
    let mut bytes = ticks(3);
    bytes.pop();
    assert_eq!(read(bytes), (4, None, None));
}

#[test]
fn damage_in_the_middle_is_an_error_with_its_line() {
    let whole = ticks(3);
    let starts = line_starts(&whole);
    let mut bytes = whole.clone();
    bytes.drain(starts[2] - 5..starts[2] - 1);
    let (lines, error, torn) = read(bytes);
    assert_eq!((lines, torn), (1, None));
    let error = error.expect("damage");
    assert!(error.starts_with("j.jsonl, line 2: not a line of a journal: "), "{error}");
    let mut bytes = whole;
    bytes[starts[1] + 3] = 0xff;
    assert_eq!(read(bytes).1.as_deref(), Some("j.jsonl, line 2: not UTF-8 after byte 3"));
}

#[test]
fn an_error_names_the_field_that_it_is_about() {
    let text = String::from_utf8(ticks(1)).expect("text");
    let told =
        |from: &str, to: &str| read(text.replace(from, to).into_bytes()).1.expect("an error");
    assert!(
        told("\"tick\"", "\"tock\"")
            .starts_with("j.jsonl, line 2, `input`: not a line of a journal"),
    );
    assert_eq!(told("\"events\":[]", "\"events\":7"), "j.jsonl, line 2, `events`: give a list");
    assert!(told("\"now\":0", "\"now\":\"noon\"").starts_with("j.jsonl, line 1, `state`: "));
    assert_eq!(
        told("\"slot\":60000", "\"slot\":0"),
        "j.jsonl, line 1, `state`: setting slot: give 1s to 1d"
    );
}

#[test]
fn a_segment_of_another_version_is_refused_with_what_to_do() {
    let text = String::from_utf8(ticks(1)).expect("text");
    let other = text.replacen("\"core_version\":4", "\"core_version\":9", 1);
    let (lines, error, _) = read(other.into_bytes());
    assert_eq!(lines, 0);
    assert_eq!(
        error.as_deref(),
        Some(
            "j.jsonl, line 1, `core_version`: segment 1 was written by core version 9, and this \
             binary replays version 4 only: replay it with the release that wrote it (`era \
             version` tells), or begin with a segment that an upgrade has migrated"
        )
    );
    let other = text.replacen("\"wire_version\":1", "\"wire_version\":2", 1);
    assert!(read(other.into_bytes()).1.expect("refused").contains("`wire_version`"));
}

#[test]
fn segments_of_older_versions_are_passed_over() {
    let (older, ours) = (ticks(3), ticks(2));
    let old = |text: Vec<u8>, number: u64| {
        let text = String::from_utf8(text).expect("text");
        let text = text.replacen("\"core_version\":4", "\"core_version\":1", 1);
        // What an older core wrote need not make sense to this one.
        let text = text.replace("\"events\":[]", "\"events\":{\"then\":1}");
        text.replacen("{\"segment\":1,", &format!("{{\"segment\":{number},"), 1)
    };
    let ours = String::from_utf8(ours).expect("text");
    let third = ours.replacen("{\"segment\":1,", "{\"segment\":3,", 1);
    let whole = old(older.clone(), 1) + &old(older.clone(), 2) + &third;
    let mut reader = Reader::new(Path::new("j.jsonl"), Box::new(Cursor::new(whole)));
    let records: Vec<JournalRecord> = reader.by_ref().collect::<Result<_, _>>().expect("read");
    assert!(matches!(&records[0], JournalRecord::Segment(first) if first.number == 3));
    assert_eq!((records.len(), reader.passed_over()), (3, 2));
    // Where nothing of ours follows, there is nothing to read.
    let (lines, error, _) = read((old(older.clone(), 1) + &old(older.clone(), 2)).into_bytes());
    assert_eq!(lines, 0);
    let error = error.expect("refused");
    assert!(error.contains("line 1, `core_version`: segment 1 was written by"), "{error}");
    // Nobody goes back to an older one.
    let (lines, error, _) = read((ours + &old(older, 2)).into_bytes());
    assert_eq!(lines, 3);
    assert!(error.expect("refused").contains("segment 2 was written by core version 1"));
}

#[test]
fn what_begins_without_a_segment_is_no_journal() {
    let whole = ticks(2);
    let second = line_starts(&whole)[1];
    let error = read(whole[second..].to_vec()).1.expect("an error");
    assert!(error.contains("line 1: a journal begins with a segment"), "{error}");
    assert!(read(Vec::new()).1.expect("an error").contains("the journal is empty"));
    // Even a first line that was cut off is an error: there is nothing to go on from.
    assert!(read(whole[..second / 2].to_vec()).1.is_some());
}

#[test]
fn a_line_without_end_is_refused_before_memory_is() {
    /// Bytes without end.
    struct Endless;
    impl std::io::Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            into.fill(b' ');
            Ok(into.len())
        }
    }
    let from = std::io::BufReader::with_capacity(1 << 16, Endless);
    let mut reader = Reader::new(Path::new("j.jsonl"), Box::new(from));
    let error = reader.next().expect("a line").expect_err("too long").to_string();
    assert!(error.contains(&format!("longer than {INPUT_BYTES_MAX} bytes")), "{error}");
    assert!(reader.next().is_none(), "an error ends the reading");
}

#[test]
fn a_compressed_journal_reads_alike_and_may_be_cut_off_too() {
    use std::io::Write;
    let plain = ticks(2_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&plain).expect("memory");
    let packed = gzip.finish().expect("memory");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("j.jsonl.gz");
    std::fs::write(&path, &packed).expect("written");
    assert_eq!(Reader::open(&path).expect("opened").filter(Result::is_ok).count(), 2_001);
    std::fs::write(&path, &packed[..packed.len() * 2 / 3]).expect("written");
    let mut reader = Reader::open(&path).expect("opened");
    let read = reader.by_ref().collect::<Result<Vec<_>, _>>().expect("no error");
    assert!(read.len() < 2_001);
    assert_eq!(reader.torn().map(|torn| torn.line), Some(read.len() as u64 + 1));
}

/// Whole journals with pieces changed, left out or put in.
fn mangled() -> impl Strategy<Value = Vec<u8>> {
    let bytes = ticks(4);
    let length = bytes.len();
    let piece = prop_oneof![
        any::<Vec<u8>>().prop_map(|mut bytes| {
            bytes.truncate(8);
            bytes
        }),
        Just(b"\n".to_vec()),
        Just(b"{\"segment\":2,".to_vec()),
        Just(b"-9223372036854775808".to_vec()),
        Just(b"[[[[[[[[[[[[[[[[".repeat(40)),
    ];
    (0..length, 0usize..40, piece).prop_map(move |(at, out, piece)| {
        let mut bytes = bytes.clone();
        bytes.splice(at..(at + out).min(length), piece);
        bytes
    })
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in mangled()) {
        let (lines, _, _) = read(bytes);
        proptest::prop_assert!(lines <= 12);
    }
}
