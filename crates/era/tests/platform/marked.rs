//! What simulated nodes do is marked wherever it is told, and what runs for real is not.

use serde_json::{Value, json};

use crate::harness::Platform;

/// Lines of a text that a word is in.
fn with<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(word)).collect()
}

#[test]
fn what_only_slept_says_so_wherever_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = folder.path().join("nodes.yaml");
    let text = "nodes:\n- name: dream\n  count: 2\n  capacity: {cpu: 16, memory: 64Gi, gpu: 4}\n";
    std::fs::write(&nodes, text).unwrap();
    let platform = Platform::start_in(folder, &["--nodes", nodes.to_str().unwrap()]);
    platform.wait_for("all nodes", "/nodes", |page: &Value| {
        (page["items"].as_array()?.len() == 3).then_some(())
    });
    let listed = platform.ok(&["nodes", "--simulated", "--health", "up"]);
    assert_eq!((with(&listed, "dream-").len(), listed.lines().count()), (2, 3), "{listed}");
    let awake = platform.ok(&["nodes", "--simulated=false"]);
    assert_eq!((with(&awake, "dream-").len(), awake.lines().count()), (0, 2), "{awake}");

    let bid = |resources: Value| {
        let ask = json!({"resources": resources, "duration_s": 20});
        platform.submit(&json!({"work": {"command": ["true"]}, "ask": ask, "value": "50"}))
    };
    let asleep = bid(json!({"cpu": 1, "memory": "64Mi", "gpu": 4}));
    let real = bid(json!({"cpu": "100m", "memory": "64Mi"}));
    for job in [asleep, real] {
        assert_eq!(platform.ended(job)["state"], "succeeded");
    }

    let told = platform.ok(&["job", &asleep.to_string()]);
    assert!(with(&told, "dream-").iter().any(|line| line.contains("(simulated)")), "{told}");
    let lines = platform.get(&format!("/jobs/{asleep}/timeline"));
    let marked = |line: &Value| (line["event"].clone(), line["simulated"] == true);
    let lines: Vec<_> = lines["items"].as_array().unwrap().iter().map(marked).collect();
    assert_eq!(lines.first(), Some(&(json!("promised"), false)), "{lines:?}");
    assert_eq!(lines.last(), Some(&(json!("ended"), true)), "{lines:?}");
    assert!(lines.contains(&(json!("launched"), true)), "{lines:?}");
    let told = platform.ok(&["job", &real.to_string()]);
    assert_eq!(with(&told, "simulated"), [""; 0], "{told}");

    for (job, simulated) in [(asleep, true), (real, false)] {
        let statement = platform.get(&format!("/wallets/admin/statement?job={job}"));
        let lines = statement["items"].as_array().unwrap();
        assert!(!lines.is_empty());
        assert!(lines.iter().all(|line| (line["simulated"] == true) == simulated), "{statement}");
    }
    let wallet = platform.ok(&["wallet", "--reason", "charge"]);
    assert_eq!(with(&wallet, "(simulated)").len(), 1, "{wallet}");

    let report = platform.get("/report");
    assert_eq!((&report["with"]["jobs"], &report["simulated"]["jobs"]), (&json!(2), &json!(1)));
    assert_eq!(report["simulated"]["nodes"], 2);
    let told = platform.ok(&["admin", "report", "--no-replay"]);
    assert!(told.contains("1 of them ran on simulated nodes"), "{told}");
}
