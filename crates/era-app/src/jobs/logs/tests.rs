//! A log is read as it was printed.

use era_cloud::log::{LogWriter, Stream};
use era_core::job::TaskId;

use super::*;
use crate::clock::tests::of_this_machine;

fn writer(folder: &Path, rank: u32) -> LogWriter {
    let task = TaskId { job: JobId(1), part: 0, attempt: 1, rank };
    LogWriter::open(folder, task, 1 << 30)
}

fn now() -> Time {
    of_this_machine().now()
}

fn all_text(folder: &Path) -> String {
    let (folder, until) = (folder.to_owned(), now());
    let mut printed = Printed::Unread { folder, only: Only::default(), from: 0, until };
    let mut text = Vec::new();
    while let Some((piece, left)) = printed.piece().unwrap() {
        text.extend(piece);
        printed = left;
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn readers_that_stand_still_hold_no_thread() {
    let folder = tempfile::tempdir().unwrap();
    let line = [b'x'; 1000];
    for n in 0..4 * PIECE_BYTES / line.len() {
        let mut log = writer(folder.path(), 0);
        log.write(Stream::Out, &[&line[..], b"\n"].concat(), Time(n as i64));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let long = Duration::from_secs(30);
        let mut readers = Vec::new();
        for _ in 0..8 {
            let mut text = LogText::of(folder.path().to_owned(), Only::default(), 0, now());
            let first = tokio::time::timeout(long, text.next()).await.unwrap();
            assert!(!first.unwrap().unwrap().is_empty());
            readers.push(text);
        }
        let others = tokio::task::spawn_blocking(|| ());
        tokio::time::timeout(long, others).await.unwrap().unwrap();
    });
}

#[test]
fn pages_lead_through_the_whole_log() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..25 {
        writer(folder.path(), 0).write(Stream::Out, format!("{n}\n").as_bytes(), Time(n));
    }
    let (mut from, mut texts, mut pages) = (0, Vec::new(), 0);
    loop {
        let page =
            read_page(folder.path(), Only::default(), Begin::At(from), 10, true, now()).unwrap();
        texts.extend(page.items.into_iter().map(|line| line.text));
        pages += 1;
        match page.next {
            Some(next) => from = next.parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(texts, (0..25).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(pages, 3);
    let last = read_page(folder.path(), Only::default(), Begin::Last, 2, true, now()).unwrap();
    let texts: Vec<_> = last.items.iter().map(|line| line.text.as_str()).collect();
    assert_eq!((texts, last.next), (vec!["23", "24"], None));
}

#[test]
fn a_page_begins_at_an_offset_or_is_the_last_one() {
    let lines = |from, last| lines(&LogFilter { from, last, ..LogFilter::default() });
    assert_eq!(lines(None, None).unwrap(), (Begin::At(0), PAGE_DEFAULT as usize));
    assert_eq!(lines(None, Some(20)).unwrap(), (Begin::Last, 20));
    for (from, last) in [(Some(1), Some(1)), (None, Some(0)), (None, Some(PAGE_MAX + 1))] {
        assert!(lines(from, last).is_err(), "{from:?} {last:?}");
    }
}

#[test]
fn a_job_that_printed_nothing_has_an_empty_log() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("logs");
    let page = read_page(&nowhere, Only::default(), Begin::At(77), 10, false, now()).unwrap();
    assert!(page.items.is_empty() && page.next.is_none());
    assert_eq!(all_text(&nowhere), "");
}

#[test]
fn what_is_not_utf_8_is_replaced_and_said_nothing_else_about() {
    let folder = tempfile::tempdir().unwrap();
    writer(folder.path(), 0).write(Stream::Err, b"a\xffb\nopen", Time(5));
    let page = read_page(folder.path(), Only::default(), Begin::At(0), 10, true, now()).unwrap();
    let lines: Vec<_> =
        page.items.iter().map(|l| (l.text.as_str(), l.stream.as_str(), l.goes_on)).collect();
    assert_eq!(lines, [("a\u{fffd}b", "err", false), ("open", "err", true)]);
}

#[test]
fn a_text_is_what_was_printed_and_with_several_replicas_says_whose() {
    let one = tempfile::tempdir().unwrap();
    let mut writer_0 = writer(one.path(), 0);
    writer_0.write(Stream::Out, b"50 %", Time(1));
    writer_0.flush(Time(1));
    writer_0.write(Stream::Out, b" done\nlast", Time(2));
    drop(writer_0);
    assert_eq!(all_text(one.path()), "50 % done\nlast");

    let two = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (writer(two.path(), 0), writer(two.path(), 1));
    first.write(Stream::Out, b"half", Time(1));
    first.flush(Time(1));
    second.write(Stream::Out, b"whole\n", Time(2));
    first.write(Stream::Out, b" more\n", Time(3));
    assert_eq!(all_text(two.path()), "[0] half\n[1] whole\n[0]  more\n");
}
