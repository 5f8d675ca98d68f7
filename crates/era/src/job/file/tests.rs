//! Whole files in, drafts or sentences out.

use era_spec::AfterWhen;

use super::*;

fn now() -> Zoned {
    "2026-11-15T14:30:00+01:00[Europe/Berlin]".parse().unwrap()
}

fn read_text(text: &str) -> Result<Draft, JobError> {
    read(text, "job.yaml", &now())
}

#[test]
fn a_full_file_is_understood() {
    let text = "\
name: resnet
project: thesis
command: [python, train.py, --epochs, 90]
code: .
env: {SEED: 7, MODE: fast}
secrets: [WANDB_API_KEY]
inputs:
  - imagenet
  - ann/labels:data/labels
  - {data: extra, path: more}
resources: {gpu: 2, cpu: 8, memory: 64Gi, gpu.model: h100}
replicas: 2..4
time: 2h30m
from: 18:00
by: tomorrow 6am
value:
  - {by: 23:00, worth: 40}
  - {by: tomorrow 6am, worth: 12.50}
most: 30
overrun: stop
attributes: {field: vision, network: resnet50}
constraints: {pool: a, labels: {zone: b}, same: rack}
preemptible: true
priority: 3
";
    let draft = read_text(text).unwrap();
    assert_eq!(draft.code, Some(Code::Folder(".".into())));
    insta::assert_json_snapshot!(draft.spec);
}

#[test]
fn a_line_is_given_to_the_shell() {
    let draft =
        read_text("command: python train.py && echo done\narray: 0-99%10\nafter: [12, 13:any]\n")
            .unwrap();
    assert_eq!(draft.spec.work.command, ["sh", "-c", "python train.py && echo done"]);
    assert_eq!(draft.spec.array.unwrap().limit, Some(10));
    assert_eq!(draft.spec.after.len(), 2);
}

#[test]
fn mistakes_are_told_with_line_and_column_and_what_was_meant() {
    let cases = [
        ("comand: x\n", "an unknown key"),
        ("name: a\nresources:\n  gpu: 1\nconstraints:\n  poool: a\n", "an unknown key inside"),
        ("name: a\nresources:\n  cpu: 2\n  memry: 16Gi\n", "an unknown resource"),
        ("{\n  \"resources\": {\"gup\": 1}\n}\n", "an unknown resource in JSON"),
        ("command: a\nreplicas: {min: 1, mx: 2}\n", "an unknown end of a range"),
        ("value:\n  - {by: 23:00, wort: 3}\n", "an unknown part of a step"),
        ("inputs:\n  - {dta: imagenet}\n", "an unknown part of an input"),
        ("attributes: {netwrk: resnet}\n", "an unknown attribute"),
        ("xyzzy: 1\n", "a key like no other"),
        ("name: a\ntime: soon\n", "no length of time"),
        ("by: whenever\n", "no point in time"),
        ("gpus: many\n", "a word for a number"),
        ("value: lots\n", "no amount"),
        ("value:\n  - {by: x, worth: 3}\n", "no time in a step"),
        ("replicas: 8..2\n", "a range upside down"),
        ("array: 9-1\n", "an empty array"),
        ("after: [x]\n", "no job"),
        ("after: x\n", "no job, alone"),
        ("after: [12, [13]]\n", "a list in a list"),
        ("constraints: [a]\n", "a list for a map"),
        ("command: {a: b}\n", "a map for a command"),
        ("name: [unclosed\n", "no YAML"),
        ("name: a\nname: b\n", "a key twice"),
        ("- a\n", "a list for a job"),
    ];
    let told: Vec<String> = cases
        .iter()
        .map(|(text, what)| format!("{what}: {}", read_text(text).unwrap_err()))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn one_alone_needs_no_list() {
    let read = |text: &str| read_text(text).unwrap();
    let alone = read("after: 12\nsecrets: KEY\ninputs: imagenet\n");
    let listed = read("after: [12]\nsecrets: [KEY]\ninputs: [imagenet]\n");
    assert_eq!(alone, listed);
    let (work, after) = (&alone.spec.work, &alone.spec.after);
    assert_eq!((after.len(), work.secrets.len(), work.inputs.len()), (1, 1, 1));
    let map = read("after: 12:any\ninputs: {data: imagenet, path: in}\n").spec;
    assert_eq!(map.after[0].when, AfterWhen::Any);
    assert_eq!(map.work.inputs[0].path.as_deref(), Some("in"));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[ -~\n]{0,200}") {
        let _ = read_text(&text);
    }
}
