//! A log keeps what was printed, and can be read from anywhere.

use std::collections::BTreeMap;
use std::path::Path;

use era_core::job::TaskId;
use era_core::units::{JobId, Time};
use proptest::prelude::*;

use super::*;

fn task(attempt: u32, rank: u32) -> TaskId {
    TaskId { job: JobId(1), part: 0, attempt, rank }
}

fn writer(folder: &Path, attempt: u32, rank: u32) -> LogWriter {
    LogWriter::open(folder, task(attempt, rank), 1 << 30)
}

fn read_all(reader: &mut LogReader) -> Vec<LogEntry> {
    reader.refresh().unwrap();
    reader.read(usize::MAX, usize::MAX, Time::MAX).unwrap()
}

fn entries(folder: &Path) -> Vec<LogEntry> {
    read_all(&mut LogReader::open(folder, Only::default()).unwrap())
}

fn texts(entries: &[LogEntry]) -> Vec<String> {
    entries.iter().map(|e| String::from_utf8_lossy(&e.text).into_owned()).collect()
}

/// What was printed on each stream of each task.
type Printed = BTreeMap<(u32, u32, &'static str), Vec<u8>>;

fn put_together(entries: &[LogEntry]) -> Printed {
    let mut printed = Printed::new();
    for entry in entries {
        let stream = printed.entry((entry.attempt, entry.rank, entry.stream.as_str())).or_default();
        stream.extend_from_slice(&entry.text);
        if entry.ends {
            stream.push(b'\n');
        }
    }
    printed
}

#[test]
fn nothing_is_made_before_the_first_byte() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let mut writer = writer(&logs, 1, 0);
    writer.flush(Time(1));
    assert!(!logs.exists());
    writer.write(Stream::Out, b"x\n", Time(1));
    drop(writer);
    assert_eq!(texts(&entries(&logs)), ["x"]);
}

#[test]
fn an_unfinished_line_is_shown_by_a_flush_and_goes_on_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(folder.path(), 1, 0);
    writer.write(Stream::Err, b"50 %", Time(1));
    assert!(entries(folder.path()).is_empty() && writer.has_unfinished());
    writer.flush(Time(2));
    writer.write(Stream::Err, b" done\n", Time(3));
    let read = entries(folder.path());
    assert_eq!(texts(&read), ["50 %", " done"]);
    assert_eq!((read[0].ends, read[1].ends), (false, true));
    assert_eq!((read[0].at, read[1].at), (Time(2), Time(3)));
}

#[test]
fn what_is_told_in_pieces_is_heard_once_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(folder.path(), 1, 0);
    assert!(writer.write(Stream::Out, b"era: met", Time(1)).is_empty());
    writer.flush(Time(2));
    let told =
        writer.write(Stream::Out, b"ric loss=0.5 step=3\nera: checkpoint done=60\n", Time(3));
    let [LogDirective::Samples(samples), LogDirective::Checkpoint(done)] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!((samples[0].name.as_str(), samples[0].step, samples[0].value), ("loss", 3, 0.5));
    assert_eq!(done.0, 60_000);
    // The tail of another line is not the beginning of one.
    writer.write(Stream::Out, b"I say ", Time(4));
    writer.flush(Time(4));
    assert!(writer.write(Stream::Out, b"era: metric loss=1\n", Time(4)).is_empty());
}

#[test]
fn a_job_that_tells_without_end_is_heard_at_a_bounded_rate() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(folder.path(), 1, 0);
    let mut heard = 0;
    for second in 0..5 {
        let chatter = b"era: metric a=1\n".repeat(20_000);
        heard += writer.write(Stream::Out, &chatter, Time::from_s(second)).len();
    }
    assert_eq!(heard, 10_000 + 4 * 1000);
    let notes = texts(&entries(folder.path()));
    assert!(notes.iter().any(|line| line.starts_with("era: 10000 values were not recorded")));
}

#[test]
fn a_gigabyte_without_a_newline_costs_neither_memory_nor_more_than_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::open(folder.path(), task(1, 0), 4 << 20);
    let piece = vec![b'x'; 1 << 20];
    for n in 0..256 {
        writer.write(Stream::Out, &piece, Time(n));
    }
    assert!(writer.bytes_held() < 1 << 20, "{}", writer.bytes_held());
    drop(writer);
    let kept: u64 = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!((3 << 20..=4 << 20).contains(&kept), "{kept}");
    let read = entries(folder.path());
    assert!(read.iter().all(|e| e.text.len() <= LINE_BYTES_MAX && !e.ends));
    assert!(read.last().unwrap().next > 256 << 20, "offsets count what was dropped");
}

#[test]
fn a_reader_that_was_overtaken_by_rotation_goes_on_with_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::open(folder.path(), task(1, 0), 1 << 20);
    let line = |n: u64| format!("{n:0100}\n");
    writer.write(Stream::Out, line(0).as_bytes(), Time(0));
    let mut reader = LogReader::open(folder.path(), Only::default()).unwrap();
    assert_eq!(read_all(&mut reader).len(), 1);
    for n in 1..40_000 {
        writer.write(Stream::Out, line(n).as_bytes(), Time(n as i64));
    }
    let read = read_all(&mut reader);
    let numbers: Vec<u64> = texts(&read).iter().map(|t| t.parse().unwrap()).collect();
    assert!(numbers[0] > 1 && numbers.windows(2).all(|w| w[0] + 1 == w[1]));
    assert_eq!((*numbers.last().unwrap(), reader.position()), (39_999, writer.end()));
    // And without looking again which segments there are, while old ones vanish under it.
    let mut slow = LogReader::open(folder.path(), Only::default()).unwrap();
    slow.read(1, 1, Time::MAX).unwrap();
    for n in 0..40_000_u64 {
        writer.write(Stream::Out, line(n).as_bytes(), Time(40_000 + n as i64));
    }
    assert!(slow.read(usize::MAX, usize::MAX, Time::MAX).unwrap().len() < 1000);
    assert_eq!(texts(&read_all(&mut slow)).last(), Some(&line(39_999).trim().to_owned()));
    assert_eq!(slow.position(), writer.end());
}

#[test]
fn a_log_that_was_cut_off_in_mid_record_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    writer(folder.path(), 1, 0).write(Stream::Out, b"first\nsecond\n", Time(7));
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let length = std::fs::metadata(&file).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(length - 3).unwrap();
    writer(folder.path(), 1, 0).write(Stream::Out, b"third\n", Time(9));
    assert_eq!(texts(&entries(folder.path())), ["first", "third"]);
}

#[test]
fn a_damaged_log_is_read_without_harm() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = b"no record\n5 o fine\n".to_vec();
    bytes.extend(vec![0xff; 3 * LINE_BYTES_MAX]);
    bytes.extend_from_slice(b"\n6 e after\n");
    std::fs::write(folder.path().join("1.0.0.0.log"), &bytes).unwrap();
    let read = entries(folder.path());
    assert_eq!(texts(&read)[..2], ["no record", "fine"]);
    assert_eq!(texts(&read).last().unwrap(), "after");
    assert_eq!(read.last().unwrap().next, bytes.len() as u64);
}

#[test]
fn a_link_in_the_folder_of_logs_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "1 o secret\n").unwrap();
    std::os::unix::fs::symlink(&secret, folder.path().join("1.0.0.0.log")).unwrap();
    assert!(entries(folder.path()).is_empty());
}

#[test]
fn a_disk_that_is_full_loses_what_it_cannot_take_and_says_so_later() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    // A file where the folder should be: nothing can be written, whoever we are.
    std::fs::write(&logs, "").unwrap();
    let mut writer = LogWriter::open(&logs, task(1, 0), 1 << 20);
    let told = writer.write(Stream::Out, b"era: metric a=1\n", Time(1));
    assert_eq!(told.len(), 1, "what is told is heard all the same");
    assert!(writer.lost().is_some());
    std::fs::remove_file(&logs).unwrap();
    writer.write(Stream::Out, b"back\n", Time(2));
    assert!(writer.lost().is_none());
    let read = texts(&entries(&logs));
    assert!(read[0].starts_with("era: ") && read[0].contains("bytes of this log were lost"));
    assert_eq!(read[1], "back");
}

#[test]
fn attempts_follow_one_another_and_ranks_are_merged_by_time() {
    let folder = tempfile::tempdir().unwrap();
    for (attempt, rank, text, at) in
        [(1, 1, "b", 20), (1, 0, "a", 10), (1, 0, "c", 30), (2, 1, "e", 25), (2, 0, "d", 24)]
    {
        let mut writer = writer(folder.path(), attempt, rank);
        writer.write(Stream::Out, format!("{text}\n").as_bytes(), Time(at));
    }
    assert_eq!(texts(&entries(folder.path())), ["a", "b", "c", "d", "e"]);
    let only = Only { attempt: Some(1), rank: Some(0) };
    let mut one = LogReader::open(folder.path(), only).unwrap();
    assert_eq!(texts(&read_all(&mut one)), ["a", "c"]);
}

#[test]
fn the_last_lines_are_found_from_the_end_and_are_bounded_in_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(folder.path(), 1, 0);
    for n in 0..10_000 {
        writer.write(Stream::Out, format!("line {n}\n").as_bytes(), Time(n / 100));
    }
    let mut reader = LogReader::open(folder.path(), Only::default()).unwrap();
    let mut last = |lines, bytes, until| {
        reader.seek_last(lines, bytes, until).unwrap();
        texts(&reader.read(lines, usize::MAX, until).unwrap())
    };
    assert_eq!(last(2, 1 << 20, Time::MAX), ["line 9998", "line 9999"]);
    assert_eq!(last(1, 1 << 20, Time(98)), ["line 9899"], "what is not settled is not the last");
    let (most, few) = (last(9000, 1 << 20, Time::MAX), last(9000, 1 << 10, Time::MAX));
    assert_eq!((most.len(), most[0].as_str()), (9000, "line 1000"));
    let few_bytes: usize = few.iter().map(|line| line.len() + 1).sum();
    assert!((1..=1 << 10).contains(&few_bytes) && few.last() == most.last(), "{few_bytes}");
}

#[test]
fn what_is_not_settled_yet_waits() {
    let folder = tempfile::tempdir().unwrap();
    writer(folder.path(), 1, 0).write(Stream::Out, b"late\n", Time(100));
    let mut reader = LogReader::open(folder.path(), Only::default()).unwrap();
    assert!(reader.read(10, 1000, Time(99)).unwrap().is_empty());
    writer(folder.path(), 1, 1).write(Stream::Out, b"early\n", Time(50));
    reader.refresh().unwrap();
    assert_eq!(texts(&reader.read(10, 1000, Time(100)).unwrap()), ["early", "late"]);
}

/// Something that a task prints.
#[derive(Clone, Debug)]
struct Print {
    attempt: u32,
    rank: u32,
    stream: Stream,
    bytes: Vec<u8>,
    pause_ms: i64,
    flush: bool,
}

fn prints() -> impl Strategy<Value = Vec<Print>> {
    let bytes = prop_oneof![
        12 => proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
        1 => (LINE_BYTES_MAX - 2..LINE_BYTES_MAX * 2).prop_map(|n| vec![b'z'; n]),
    ];
    let print = (1..3_u32, 0..3_u32, any::<bool>(), bytes, 0..3_i64, any::<bool>()).prop_map(
        |(attempt, rank, out, bytes, pause_ms, flush)| {
            let stream = if out { Stream::Out } else { Stream::Err };
            Print { attempt, rank, stream, bytes, pause_ms, flush }
        },
    );
    proptest::collection::vec(print, 1..40).prop_map(|mut prints| {
        prints.sort_by_key(|print| print.attempt);
        prints
    })
}

fn a_fraction_of_the_cases() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { cases: config.cases.div_ceil(8), max_shrink_iters: 64, ..config }
}

proptest! {
    #![proptest_config(a_fraction_of_the_cases())]

    #[test]
    fn whatever_is_printed_is_read_byte_for_byte_and_from_any_offset(
        prints in prints(),
        cut in 0.0..1.0_f64,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut writers = BTreeMap::new();
        let mut printed = Printed::new();
        let mut now = 1_793_347_200_000;
        // One follows while it grows, others read afterwards.
        let mut follower = LogReader::open(folder.path(), Only::default()).unwrap();
        let mut followed = Vec::new();
        for print in &prints {
            now += print.pause_ms;
            let writer = writers
                .entry((print.attempt, print.rank))
                .or_insert_with(|| writer(folder.path(), print.attempt, print.rank));
            writer.write(print.stream, &print.bytes, Time(now));
            let key = (print.attempt, print.rank, print.stream.as_str());
            printed.entry(key).or_default().extend_from_slice(&print.bytes);
            if print.flush {
                writer.flush(Time(now));
                follower.refresh().unwrap();
                followed.extend(follower.read(7, usize::MAX, Time(now - 1)).unwrap());
            }
        }
        for writer in writers.values_mut() {
            writer.flush(Time(now));
        }
        printed.retain(|_, bytes| !bytes.is_empty());
        let all = entries(folder.path());
        prop_assert_eq!(&put_together(&all), &printed);

        followed.extend(read_all(&mut follower));
        let parts = |entries: &[LogEntry]| put_together(entries);
        prop_assert_eq!(parts(&followed), printed);

        let total = all.last().map_or(0, |e| e.next);
        let mut reader = LogReader::open(folder.path(), Only::default()).unwrap();
        for from in [(total as f64 * cut) as u64, 0, total, total + 1, total.saturating_sub(1)] {
            reader.seek(from).unwrap();
            let first = all.iter().position(|e| {
                let begins = e.next - (e.text.len() as u64 + 17);
                begins >= from
            });
            let expected = first.map_or(&[][..], |n| &all[n..]);
            prop_assert_eq!(&reader.read(usize::MAX, usize::MAX, Time::MAX).unwrap(), expected);
        }
        for entry in all.iter().step_by(all.len() / 4 + 1) {
            reader.seek(entry.next).unwrap();
            prop_assert_eq!(reader.position(), entry.next);
        }
        for lines in [1, 7, all.len(), all.len() + 1] {
            reader.seek_last(lines, 1 << 20, Time::MAX).unwrap();
            let last = &all[all.len().saturating_sub(lines)..];
            prop_assert_eq!(&reader.read(lines, usize::MAX, Time::MAX).unwrap(), last);
        }
    }
}
