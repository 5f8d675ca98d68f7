//! Flags in, jobs out.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    job: JobFlags,
}

fn now() -> Zoned {
    "2026-11-15T14:30:00+01:00[Europe/Berlin]".parse().unwrap()
}

fn written(line: &str) -> Result<Written, JobError> {
    let words = std::iter::once("era").chain(line.split(' '));
    Line::try_parse_from(words).unwrap().job.written(&now())
}

#[test]
fn the_line_of_the_guide_is_understood() {
    let line = "--gpu 1 --cpu 4 --memory 16Gi --time 2h --by 18:00 --value 30 -- python train.py";
    let draft = written(line).unwrap().draft;
    draft.check().unwrap();
    insta::assert_json_snapshot!(draft.spec);
}

/// What a resource of a draft is.
fn amount(draft: &Draft, name: &str) -> String {
    draft.spec.ask.resources[name].to_string()
}

#[test]
fn who_says_when_it_begins_takes_the_price() {
    let spec = |line: &str| written(line).unwrap().draft.spec;
    assert!(spec("--from 18:00 -- true").takes_price());
    assert!(spec("--accept-price -- true").takes_price());
    assert!(!spec("--from 18:00 --value 3 -- true").takes_price());
    assert!(!spec("--gpu 1 -- true").is_bid());
}

#[test]
fn options_behind_the_command_belong_to_it() {
    let draft = written("--gpu 1 python train.py --time 3").unwrap().draft;
    assert_eq!(draft.spec.work.command, ["python", "train.py", "--time", "3"]);
    assert_eq!(draft.spec.ask.duration_s, None);
}

#[test]
fn flags_count_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.yaml");
    std::fs::write(&path, "name: below\ncommand: [a]\nresources: {gpu: 1, cpu: 8}\n").unwrap();
    let path = path.display();
    let draft = written(&format!("-f {path} --gpu 2")).unwrap().draft;
    assert_eq!(draft.spec.name.as_deref(), Some("below"));
    assert_eq!(["gpu", "cpu"].map(|name| amount(&draft, name)), ["2", "8"]);
    assert_eq!(written(&format!("--gpu 2 {path}")).unwrap().draft, draft);
}

#[test]
fn flags_may_stand_behind_the_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.yaml");
    std::fs::write(&path, "command: [a]\nresources: {gpu: 1}\n").unwrap();
    let path = path.display();
    let draft = written(&format!("--cpu 4 --gpu 3 {path} --gpu 2 --name late")).unwrap().draft;
    assert_eq!(["gpu", "cpu"].map(|name| amount(&draft, name)), ["2", "4"]);
    assert_eq!(
        (draft.spec.name.as_deref(), draft.spec.work.command),
        (Some("late"), vec!["a".to_owned()])
    );
    for (behind, expected) in [
        ("other.yaml", "after the job's file: `other.yaml` is no flag"),
        ("--gpux 2", "after the job's file: unexpected argument '--gpux'"),
        ("-o json", "after the job's file: unexpected argument '-o'"),
    ] {
        let error = written(&format!("{path} {behind}")).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn gpus_may_be_written_with_their_model() {
    let draft = written("--gpu A100:2 -- true").unwrap().draft;
    assert_eq!(["gpu", "gpu.model"].map(|name| amount(&draft, name)), ["2", "a100"]);
}

#[test]
fn the_files_of_the_reference_are_read() {
    use crate::cli::reference::{JOB_FILE, QUEUE_JOB_FILE};
    for text in [JOB_FILE, QUEUE_JOB_FILE] {
        let draft = file::read(text, "job.yaml", &now()).unwrap();
        draft.check().unwrap();
    }
}

#[test]
fn a_script_brings_its_header_and_keeps_its_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.sh");
    std::fs::write(&path, "#!/bin/bash\n#SBATCH --gres=gpu:2\necho $1\n").unwrap();
    let named = path.display().to_string();
    let draft = written(&format!("--cpu 3 {named} big")).unwrap().draft;
    assert_eq!(
        draft.spec.work.command,
        ["/bin/bash", ".era/train.sh", "big"],
        "it goes along by itself"
    );
    assert_eq!(amount(&draft, "gpu"), "2");
    assert_eq!(draft.code, Some(Code::Folder(".".into())));
}

#[test]
fn mistakes_name_their_flag() {
    for (line, expected) in [
        ("--time soon -- true", "--time: `soon`"),
        ("--by whenever -- true", "--by: `whenever`"),
        ("--env A -- true", "--env: `A`"),
        ("--replicas 0 -- true", "--replicas: `0`"),
        ("--array x -- true", "--array: `x`"),
        ("--after x -- true", "--after: `x`"),
        ("nothing-here.yaml", "nothing-here.yaml cannot be read"),
    ] {
        let error = written(line).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{line}: {error}");
    }
}
