use super::*;
use crate::clock::tests::of_this_machine;

fn simulate(policies: &[&str], jobs: u64) -> LabAsk {
    let policies = policies.iter().map(|&policy| policy.to_owned()).collect();
    LabAsk::Simulate { policies, jobs, gpus: 64, load: 0.9, seed: 1 }
}

fn replay(policy: &str) -> LabAsk {
    LabAsk::Replay { policy: Some(policy.to_owned()), mechanism: None }
}

#[test]
fn what_would_do_more_than_was_meant_is_refused() {
    let refused = |asked| order::check(&asked).unwrap_err().what;
    assert_eq!(refused(simulate(&["fifo"], 0)), "jobs");
    assert_eq!(refused(simulate(&["fifo"], 1_000_001)), "jobs");
    assert_eq!(refused(simulate(&[], 10)), "policies");
    assert_eq!(refused(simulate(&["formula:max(wait, 1)"], 10)), "policies");
    // The command line would read a file of this name and tell what is wrong with it.
    assert_eq!(refused(replay("/etc/shadow")), "policy");
    assert_eq!(refused(replay("--sample=x")), "policy");
    assert_eq!(refused(LabAsk::Replay { policy: None, mechanism: None }), "policy");
    let tune = |objective: &str| LabAsk::Tune { objective: objective.into(), budget: 1, seed: 1 };
    assert_eq!(refused(tune("a\nb")), "objective");
    for asked in [simulate(&["fifo", "formula:wait - gpus"], 10), replay("sjf"), tune("x")] {
        order::check(&asked).unwrap();
    }
}

#[test]
fn a_command_is_one_word_for_each_thing_that_was_asked() {
    let commands = order::commands(&replay("formula:-gpus"));
    let words = ["replay", "--json", "--policy=formula:-gpus", "journal.ndjson"];
    assert_eq!(commands, [words.map(std::ffi::OsString::from).to_vec()]);
}

#[test]
fn runs_wait_in_a_row_of_limited_length_and_are_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Lab::open(folder.path().into(), "/bin/false".into(), of_this_machine()).unwrap();
    let lab = open();
    for _ in 0..WAITING_MAX {
        lab.ask(simulate(&["fifo"], 10), Some("ada".into())).unwrap();
    }
    assert!(matches!(lab.ask(simulate(&["fifo"], 10), None), Err(NotTaken::Full)));
    lab.remove(3).unwrap();
    assert_eq!(lab.run(3).unwrap().state, LabState::Cancelled);
    lab.ask(simulate(&["fifo"], 10), None).unwrap();
    let again = open();
    assert_eq!(again.runs(), lab.runs());
    again.remove(3).unwrap();
    assert!(matches!(again.run(3), Err(NotTaken::Unknown(3))));
    assert!(!folder.path().join("3").exists());
}

#[test]
fn only_what_was_better_on_later_work_is_proposed() {
    let found = |gain: f64| {
        let rules = serde_json::json!([{"rule": "tuned"}, {"rule": "in force", "gain_test": gain}]);
        serde_json::json!({"formula": "wait", "rules": rules, "verdict": "so it is"})
    };
    assert_eq!(proposed(&found(0.1)).unwrap().formula.as_deref(), Some("wait"));
    assert_eq!(proposed(&found(-0.1)), None);
    assert_eq!(proposed(&found(0.0)), None);
}
