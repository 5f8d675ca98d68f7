//! `era sim place` as a user meets it.

use std::path::PathBuf;
use std::process::{Command, Output};

const NODES: &str = "sn,cpu_milli,memory_mib,gpu,model\na,8000,65536,2,T4\nb,8000,65536,2,T4\n";
const PODS: &str = "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n1000,1024,1,1000,\n";

/// Two files in a folder of their own.
fn files(test: &str, nodes: &str, pods: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("era-sim-place-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{e}"));
    for (name, text) in [("nodes.csv", nodes), ("pods.csv", pods)] {
        std::fs::write(folder.join(name), text).unwrap_or_else(|e| panic!("{e}"));
    }
    folder
}

fn place(folder: &PathBuf, more: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_era"))
        .args(["sim", "place", "--nodes", "nodes.csv", "--pods", "pods.csv"])
        .args(more)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("the binary does not start: {error}"));
    std::fs::remove_dir_all(folder).unwrap_or_else(|e| panic!("{e}"));
    output
}

#[test]
fn with_json_it_prints_one_object_with_means_and_spreads() {
    let folder = files("json", NODES, PODS);
    let output = place(&folder, &["--policy", "least-stranded", "--seeds", "3", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let object: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(object["policy"], "least-stranded");
    assert_eq!((&object["seeds"], &object["nodes"]), (&3.into(), &2.into()));
    // Six pods of one GPU arrive for four GPUs.
    assert_eq!(object["dropped"], 2.0);
    for demand in [95, 100, 110, 120, 130] {
        for figure in ["allocated", "spread", "min", "max"] {
            let value = &object[format!("{figure}_{demand}")];
            assert!(value.is_number(), "{figure}_{demand}: {value}");
        }
    }
    assert_eq!((&object["allocated_130"], &object["spread_130"]), (&100.0.into(), &0.0.into()));
}

#[test]
fn without_json_it_prints_a_table() {
    let folder = files("table", NODES, PODS);
    let output = place(&folder, &["--policy", "best-fit", "--seeds", "1"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("best-fit on 2 nodes, 1 pods to draw from, 1 seeds from 1"), "{text}");
    assert!(text.contains(" 130 %    100.00 %"), "{text}");
}

#[test]
fn a_bad_line_is_named_and_the_exit_code_is_2() {
    let folder = files("bad", NODES, &format!("{PODS}1000,1024,3,500,\n"));
    let output = place(&folder, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = "error: pods.csv, line 3, `gpu_milli`: \
                    give 1000 for several GPUs: only one GPU can be shared";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn an_unknown_policy_and_a_missing_file_are_bad_usage() {
    let folder = files("unknown", NODES, PODS);
    assert_eq!(place(&folder, &["--policy", "worst"]).status.code(), Some(2));
    let folder = files("missing", NODES, PODS);
    std::fs::remove_file(folder.join("pods.csv")).unwrap_or_else(|e| panic!("{e}"));
    let output = place(&folder, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("pods.csv"), "{output:?}");
}
