use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use era_core::units::NodeId;

use super::{NotReplayed, Replayed, SampleSpec, learn, sample, verify};
use crate::journal::Reader;

fn sampled(seed: u64, inputs: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let spec = SampleSpec { seed, inputs, segments: 3 };
    sample(spec, &mut bytes, &|_| ()).expect("memory");
    bytes
}

fn replay(bytes: Vec<u8>) -> Result<Replayed, NotReplayed> {
    let reader = Reader::new(Path::new("j.jsonl"), Box::new(Cursor::new(bytes)));
    verify(reader, &mut |_| (), &mut |_| ())
}

#[test]
fn thousands_of_sampled_inputs_replay_byte_for_byte() {
    for seed in 1..4 {
        let bytes = sampled(seed, 4_000);
        let replayed = replay(bytes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(replayed.segments, 3);
        assert!(
            replayed.replay.carried() >= 4_000 && replayed.events > 4_000,
            "{}",
            replayed.events
        );
        assert_eq!(replayed.torn, None);
    }
}

#[test]
fn no_machine_gives_out_more_gpus_than_it_has_and_what_it_gave_is_what_jobs_had() {
    for seed in 1..4 {
        let bytes = sampled(seed, 4_000);
        let reader = Reader::new(Path::new("j.jsonl"), Box::new(Cursor::new(bytes)));
        let (history, _) = learn(reader, &|_| ()).expect("a journal");
        let (_, last) = history.mark_before(usize::MAX);
        let gpus: BTreeMap<NodeId, i64> = last
            .cluster()
            .nodes()
            .map(|node| (node.id, 1000 * node.capacity.gpus.len() as i64))
            .collect();
        // Those who leave at an instant go before those who come.
        let mut changes = Vec::new();
        let mut given: i128 = 0;
        for stay in history.book.stays() {
            let gpu = i64::try_from(stay.units[2]).expect("few");
            changes.push((stay.node, stay.from, gpu));
            changes.push((stay.node, stay.to, -gpu));
            given += i128::from(gpu) * i128::from(stay.to.min(history.end).since(stay.from).0);
        }
        changes.sort_unstable_by_key(|(node, at, gpu)| (*node, *at, *gpu));
        let mut used: BTreeMap<NodeId, i64> = BTreeMap::new();
        for (node, at, gpu) in changes {
            let used = used.entry(node).or_default();
            *used += gpu;
            assert!((0..=gpus[&node]).contains(used), "seed {seed}: {used} of {node} at {at:?}");
        }
        let on_gpus = history.book.stories.values().filter(|story| story.model.is_some());
        let over: u128 = on_gpus.map(|story| story.had).sum();
        assert!(over > 0 && given >= i128::try_from(over).expect("fits"), "{over} of {given}");
    }
}

/// What is said about a journal that does not replay.
fn told(bytes: Vec<u8>) -> String {
    replay(bytes).expect_err("it was changed").to_string()
}

#[test]
fn the_same_seed_samples_the_same_bytes() {
    assert!(sampled(7, 500) == sampled(7, 500));
    assert!(sampled(7, 500) != sampled(8, 500));
}

#[test]
fn a_flipped_byte_in_an_event_is_found_at_its_line() {
    let text = String::from_utf8(sampled(1, 800)).expect("text");
    let mut found = 0;
    for (index, line) in text.lines().enumerate() {
        // A digit of a price, in the middle of the journal.
        let Some(at) = line.find("\"price\":").filter(|_| line.contains("\"promised\"")) else {
            continue;
        };
        let digit = at + "\"price\":".len();
        if !line.as_bytes()[digit].is_ascii_digit() || index % 7 != 0 {
            continue;
        }
        found += 1;
        let mut changed = line.to_owned().into_bytes();
        changed[digit] = if changed[digit] == b'9' { b'8' } else { changed[digit] + 1 };
        let changed = String::from_utf8(changed).expect("text");
        let error = told(text.replacen(line, &changed, 1).into_bytes());
        let place = format!("line {}: event ", index + 1);
        assert!(error.contains(&place) && error.contains("first in `price`"), "{error}");
        assert!(error.contains("recorded: {") && error.contains("replayed: {"), "{error}");
    }
    assert!(found > 0, "nothing was promised");
}

#[test]
fn an_event_too_many_or_too_few_is_found_at_its_line() {
    let text = String::from_utf8(sampled(1, 200)).expect("text");
    let line = text.lines().position(|line| line.ends_with("\"events\":[]}")).expect("quiet");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[line] = lines[line].replace("[]}", "[{\"type\":\"hold_ended\",\"hold\":1}]}");
    let error = told((lines.join("\n") + "\n").into_bytes());
    assert!(error.contains(&format!("line {}: event 1 ", line + 1)), "{error}");
    assert!(error.contains("`the event itself`") && error.contains("replayed: nothing"), "{error}");
}

#[test]
fn an_input_that_changed_without_an_event_is_found_at_the_next_segment() {
    let text = String::from_utf8(sampled(1, 600)).expect("text");
    // Nothing in the first events depends on how much is granted.
    let changed = text.replacen("\"amount\":100000000000", "\"amount\":100000000001", 1);
    assert!(changed != text);
    let error = told(changed.into_bytes());
    // The posting shows it at once.
    assert!(error.contains("`posting.amount`"), "{error}");
    let changed = text.replacen("\"field\":\"vision\"", "\"field\":\"visiom\"", 1);
    let error = told(changed.into_bytes());
    assert!(error.contains("segment 2 does not begin with the state"), "{error}");
}

#[test]
fn a_missing_line_or_segment_is_found() {
    let text = String::from_utf8(sampled(1, 300)).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    let without = |gone: usize| {
        let left: Vec<&str> =
            lines.iter().enumerate().filter(|(i, _)| *i != gone).map(|(_, l)| *l).collect();
        told((left.join("\n") + "\n").into_bytes())
    };
    assert!(without(10).contains("stands where 10 comes next"), "{}", without(10));
    let last = lines.iter().rposition(|l| l.starts_with("{\"segment\"")).expect("segments");
    let first = lines[..last].iter().rposition(|l| l.starts_with("{\"segment\"")).expect("three");
    let mut left = lines.clone();
    left.drain(first..last);
    let error = told((left.join("\n") + "\n").into_bytes());
    assert!(error.contains("one is missing"), "{error}");
}

#[test]
fn a_torn_tail_replays_up_to_it() {
    let mut bytes = sampled(2, 300);
    let whole = replay(bytes.clone()).expect("ours");
    bytes.truncate(bytes.len() - 9);
    let torn = replay(bytes).expect("a torn tail is no error");
    assert_eq!(torn.replay.carried(), whole.replay.carried() - 1);
    assert!(torn.torn.is_some());
}
