//! The wire format: one example of everything that goes in or comes out, as JSON.
//!
//! The matches below name every variant, so a new one does not compile until it has a place in
//! the list, and the golden files show when an old one changes its shape.

use std::collections::BTreeSet;

use era_core::job::When;
use era_core::reason::WaitReason;
use era_core::{Command, Effect, Event, Input, Refusal, Reply, State};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bed::{ALICE, Bed, T0, gang, min};
use crate::wire_examples::{JOB, commands, effects, events, refusals, replies};

/// The JSON of all examples, each of which must come back as it was.
#[track_caller]
fn golden<T>(examples: &[T]) -> String
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let mut lines = Vec::new();
    for example in examples {
        let json = serde_json::to_string(example).unwrap();
        let back: T = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
        assert_eq!(&back, example);
        lines.push(json);
    }
    lines.join("\n")
}

/// All numbers from 0 on are there, so no variant is without an example.
#[track_caller]
fn complete<T>(examples: &[T], count: usize, number: impl Fn(&T) -> usize) {
    let seen: BTreeSet<usize> = examples.iter().map(number).collect();
    assert_eq!(seen, (0..count).collect(), "a variant has no example");
}

/// A number for each variant, in the order written; no wildcard, on purpose.
macro_rules! number_of {
    ($name:ident, $count:ident, $enum:ident: $($variant:pat),* $(,)?) => {
        #[allow(unused_assignments)]
        fn $name(value: &$enum) -> usize {
            let mut number = 0;
            let mut found = None;
            $(
                if let $variant = value {
                    found = Some(number);
                }
                number += 1;
            )*
            // The match is what fails to compile when a variant is missing.
            match value {
                $($variant)|* => found.unwrap(),
            }
        }
        const $count: usize = [$(stringify!($variant)),*].len();
    };
}

number_of!(command_number, COMMANDS, Command:
    Command::Submit { .. }, Command::Hold { .. }, Command::DropHold { .. },
    Command::Cancel { .. }, Command::CancelArray { .. }, Command::Release { .. }, Command::Extend { .. },
    Command::Edit { .. }, Command::Started { .. }, Command::Exited { .. },
    Command::TaskLost { .. }, Command::Checkpointed { .. }, Command::UsageCrossed { .. },
    Command::Join { .. }, Command::Leave { .. }, Command::Drain { .. }, Command::Cordon { .. }, Command::Resume { .. },
    Command::Lost { .. }, Command::SetCapacity { .. }, Command::EditNode { .. }, Command::SetMaintenance { .. },
    Command::SetDomain { .. }, Command::PutPool { .. }, Command::PutDomain { .. },
    Command::RemoveDomain { .. }, Command::PutGroup { .. }, Command::PutUser { .. },
    Command::SetQuota { .. }, Command::Grant { .. }, Command::Withdraw { .. },
    Command::PutQueue { .. }, Command::RemoveQueue { .. }, Command::PublishPolicy { .. },
    Command::RollBackPolicy { .. }, Command::SetSettings { .. }, Command::SetMarket { .. },
    Command::PublishForecast { .. }, Command::PublishEstimates { .. },
    Command::Pass, Command::Tick,
);

number_of!(event_number, EVENTS, Event:
    Event::Refused { .. }, Event::BidDeclined { .. }, Event::Promised { .. },
    Event::Queued { .. }, Event::Ready { .. }, Event::Held { .. }, Event::HoldEnded { .. }, Event::Moved { .. },
    Event::HoldMoved { .. }, Event::Launched { .. }, Event::Running { .. },
    Event::Stopping { .. }, Event::TaskEnded { .. }, Event::PartDone { .. },
    Event::Requeued { .. }, Event::Replanned { .. }, Event::Broken { .. },
    Event::Extended { .. }, Event::Resized { .. }, Event::Ended { .. }, Event::Posted { .. },
    Event::Edited { .. }, Event::Checkpointed { .. }, Event::IdleReported { .. },
    Event::Ignored { .. }, Event::NodesChanged { .. }, Event::Changed { .. },
    Event::Forgotten { .. },
);

number_of!(effect_number, EFFECTS, Effect:
    Effect::Launch { .. }, Effect::Stop { .. }, Effect::Prolong { .. }, Effect::Resize { .. },
    Effect::Notify { .. },
);

number_of!(reply_number, REPLIES, Reply:
    Reply::Done, Reply::Accepted { .. }, Reply::Held { .. }, Reply::Joined { .. },
    Reply::Ignored, Reply::Refused { .. },
);

number_of!(refusal_number, REFUSALS, Refusal:
    Refusal::BadDuration { .. }, Refusal::BadReplicas { .. }, Refusal::BadGpuTotal { .. }, Refusal::NothingAsked, Refusal::BrokenGpu { .. },
    Refusal::GpuFilterWithoutGpu, Refusal::TooLarge, Refusal::BadWindow { .. },
    Refusal::WindowPast { .. }, Refusal::BeyondHorizon { .. }, Refusal::WindowTooShort { .. },
    Refusal::TooMany { .. }, Refusal::BadOrder { .. }, Refusal::BadValue { .. },
    Refusal::BadArray { .. }, Refusal::NotWithBid { .. }, Refusal::UnknownBefore { .. },
    Refusal::FailedBefore { .. }, Refusal::NoArray { .. },
    Refusal::RisingValue, Refusal::OthersBid { .. }, Refusal::Unknown { .. },
    Refusal::UnknownUser { .. }, Refusal::UnknownGroup { .. }, Refusal::UnknownNode { .. },
    Refusal::UnknownJob { .. }, Refusal::UnknownHold { .. }, Refusal::NeverFits { .. },
    Refusal::GangNeverFits { .. },
    Refusal::NoRoom, Refusal::TooDear { .. }, Refusal::PriceRose { .. },
    Refusal::LevelShare { .. }, Refusal::QuotaConcurrent { .. }, Refusal::QuotaPeriod { .. },
    Refusal::QuotaSum { .. }, Refusal::Funds { .. }, Refusal::BadAmount { .. },
    Refusal::TooManyHolds { .. }, Refusal::NotYours { .. }, Refusal::NotGroupAdmin { .. },
    Refusal::WrongState { .. }, Refusal::Exists { .. }, Refusal::NodeBusy { .. },
    Refusal::InUse { .. }, Refusal::BadSetting { .. }, Refusal::BadFormula { .. },
    Refusal::BadForecast { .. }, Refusal::KeyReused, Refusal::OutOfOrder { .. },
    Refusal::BadTime { .. }, Refusal::Limit { .. },
);

#[test]
fn every_command_has_a_stable_form_and_comes_back() {
    let examples = commands();
    complete(&examples, COMMANDS, command_number);
    insta::assert_snapshot!("commands", golden(&examples));
}

#[test]
fn every_event_has_a_stable_form_and_comes_back() {
    let examples = events();
    complete(&examples, EVENTS, event_number);
    insta::assert_snapshot!("events", golden(&examples));
}

#[test]
fn every_effect_has_a_stable_form_and_comes_back() {
    let examples = effects();
    complete(&examples, EFFECTS, effect_number);
    insta::assert_snapshot!("effects", golden(&examples));
}

#[test]
fn every_reply_has_a_stable_form_and_comes_back() {
    let examples = replies();
    complete(&examples, REPLIES, reply_number);
    insta::assert_snapshot!("replies", golden(&examples));
}

#[test]
fn every_refusal_has_a_stable_code_and_a_sentence_and_comes_back() {
    let examples = refusals();
    complete(&examples, REFUSALS, refusal_number);
    golden(&examples);
    let line = |r: &Refusal| {
        let field = r.field().unwrap_or("-");
        format!("{} ({field}): {r}\n    {}", r.code(), serde_json::to_string(r).unwrap())
    };
    let lines: Vec<String> = examples.iter().map(line).collect();
    insta::assert_snapshot!("refusals", lines.join("\n"));
}

/// Whether a text has a number as the core writes those of users, groups, nodes, jobs and holds.
fn has_a_number_of_the_core(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| word.len() > 1).any(|word| {
        let (kind, number) = word.split_at(1);
        "ugnjh".contains(kind) && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[test]
fn no_sentence_has_a_number_of_the_core() {
    assert!(has_a_number_of_the_core("user u3 may not touch j18"));
    for refusal in refusals() {
        let told = refusal.to_string();
        assert!(!has_a_number_of_the_core(&told), "{told}");
        let told = WaitReason::Quota { refusal }.to_string();
        assert!(!has_a_number_of_the_core(&told), "{told}");
    }
    for when in [When::Ok, When::Any] {
        let told = WaitReason::After { job: JOB, when }.to_string();
        assert!(!has_a_number_of_the_core(&told), "{told}");
    }
}

#[test]
fn an_input_names_its_place_its_time_and_its_command() {
    let input = Input { seq: 7, at: T0, command: Command::Tick };
    let json = serde_json::to_string(&input).unwrap();
    insta::assert_snapshot!(json, @r#"{"seq":7,"at":1800000000000,"command":{"type":"tick"}}"#);
    assert_eq!(serde_json::from_str::<Input>(&json).unwrap(), input);
}

#[test]
fn what_nobody_knows_is_refused_and_not_skipped() {
    for (json, problem) in [
        (r#"{"type":"leave","node":1,"at":5}"#, "unknown field `at`"),
        (r#"{"type":"dance"}"#, "unknown variant `dance`"),
        (r#"{"type":"grant","user":1}"#, "missing field `amount`"),
        (r#"{"type":"remove_queue","name":"a b"}"#, "`a b` is not a name"),
        (r#"{"type":"grant","user":1,"amount":9223372036854775808}"#, "invalid value"),
        (r#"{"type":"grant","user":1,"amount":1.5}"#, "invalid type: floating point"),
    ] {
        let error = serde_json::from_str::<Command>(json).unwrap_err().to_string();
        assert!(error.contains(problem), "{json}: {error}");
    }
}

fn busy() -> Bed {
    let mut bed = Bed::new(2);
    bed.promise(gang(1, "gpu=8", 60, (10, 200)));
    bed.enqueue(ALICE, gang(1, "gpu=4", 30, (0, 1)), true);
    bed.hold(crate::bed::bid(gang(1, "gpu=1", 30, (0, 100))));
    bed.pass();
    bed.until(min(20));
    bed
}

#[test]
fn a_state_is_stored_as_what_decides_and_comes_back_with_all_that_follows() {
    let bed = busy();
    let image = serde_json::to_value(&bed.state).unwrap();
    let mut keys: Vec<&str> = image.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    insta::assert_snapshot!(keys.join(" "), @"accounts cluster core_version errors estimates forecast freed histories holds jobs keys ledger market next_hold next_job next_turn now opened passed policies queues seq settings shares swept usage");
    let back: State = serde_json::from_value(image).unwrap();
    assert_eq!(back, bed.state);
}

#[test]
fn a_state_of_another_version_is_refused_with_what_to_do() {
    let mut image = serde_json::to_value(&busy().state).unwrap();
    image["core_version"] = 99.into();
    let error = serde_json::from_value::<State>(image).unwrap_err().to_string();
    insta::assert_snapshot!(error, @"the state was written by core version 99, this is version 4: migrate it");
}
