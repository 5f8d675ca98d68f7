//! `era sim run` and `era sim compare` as a user meets them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_era"))
        .arg("sim")
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("the binary does not start: {error}"))
}

/// A folder with files in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("a temporary path is text").to_owned()
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).expect("it can be written");
        self.text(name)
    }

    fn files(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.0.path()).expect("a folder");
        let name = |file: std::io::Result<std::fs::DirEntry>| {
            file.expect("a file").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = files.map(name).collect();
        names.sort();
        names
    }
}

/// A long job, one that waits for it, a short one, and one that is too wide.
const TRACE: &str = "job_id,submit_s,duration_s,gpus,user,group\n\
                     first,0,1000,4,ann,vision\n\
                     long,10,2000,4,bob,language\n\
                     short,20,100,4,ann,vision\n\
                     wide,30,10,400,bob,language\n";

#[track_caller]
fn object(arguments: &[&str]) -> Value {
    let output = sim(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    serde_json::from_slice(&output.stdout).expect("exactly one JSON object")
}

fn run_on<'a>(trace: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--trace", trace, "--gpus", "4", "--gpus-per-node", "4"], more].concat()
}

#[test]
fn a_run_is_measured() {
    let folder = Folder::new();
    let trace = folder.put("trace.csv", TRACE);
    let ran = object(&run_on(&trace, &["--policy", "fifo", "--backfill", "none", "--json"]));
    let expected = [
        ("jobs", 3.0),
        ("never_fit", 1.0),
        ("unfinished", 0.0),
        ("mean_wait_s", (990.0 + 2980.0) / 3.0),
        ("p50_wait_s", 990.0),
        ("p99_wait_s", 2980.0),
        ("mean_jct_s", (1000.0 + 2990.0 + 3080.0) / 3.0),
        ("p99_jct_s", 3080.0),
        ("makespan_s", 3100.0),
        ("utilisation", 1.0),
        ("gpus", 4.0),
        ("nodes", 1.0),
    ];
    for (key, value) in expected {
        let found = ran[key].as_f64().unwrap_or_else(|| panic!("no {key} in {ran}"));
        assert!((found - value).abs() < 1e-9, "{key}: {found}, not {value}");
    }
    assert_eq!(ran["never_fit_jobs"][0]["job"], "wide");
    for key in ["fairness", "wall_s", "jobs_per_second"] {
        assert!(ran[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {ran}");
    }
    for (key, value) in [("policy", "fifo"), ("backfill", "none"), ("estimates", "stated")] {
        assert_eq!(ran[key], value);
    }
}

#[test]
fn preemption_is_on_for_the_policies_that_live_by_it() {
    let folder = Folder::new();
    let trace = folder.put("trace.csv", TRACE);
    let preempts = |more: &[&str]| {
        let ran = object(&run_on(&trace, &[more, &["--json"]].concat()));
        (ran["preempt"].as_bool(), ran["preemptions"].as_u64())
    };
    assert_eq!(preempts(&["--policy", "fifo"]), (Some(false), Some(0)));
    assert_eq!(preempts(&["--policy", "srtf"]), (Some(true), Some(1)));
    assert_eq!(preempts(&["--policy", "srtf", "--no-preempt"]), (Some(false), Some(0)));
}

#[test]
fn starts_are_written_for_every_job() {
    let folder = Folder::new();
    let trace = folder.put("trace.csv", TRACE);
    let starts = folder.text("starts.csv");
    object(&run_on(&trace, &["--policy", "sjf", "--starts", &starts, "--json"]));
    let written = std::fs::read_to_string(&starts).expect("it was written");
    let lines: Vec<&str> = written.lines().collect();
    assert!(lines[0].starts_with("job,submit_s,start_s,end_s,"), "{}", lines[0]);
    assert_eq!(lines[3], "short,20,1000,1100,980,4,n0,0,0,");
    assert!(lines[4].starts_with("wide,30,,,") && lines[4].contains("never fits"));
    assert_eq!(folder.files(), ["starts.csv", "trace.csv"], "nothing half-written stays behind");
}

#[test]
fn people_get_a_table_of_a_run() {
    let folder = Folder::new();
    let trace = folder.put("trace.csv", TRACE);
    let output = sim(&run_on(&trace, &["--policy", "sjf"]));
    let text = String::from_utf8_lossy(&output.stdout).replace(&folder.text(""), "FOLDER/");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("took")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_cluster_comes_from_a_file_and_gives_utilisation_by_ratios() {
    let folder = Folder::new();
    let trace = folder.put(
        "trace.csv",
        "job_id,submit_s,duration_s,gpus,cpus,mem_gb\na,0,100,2,8,16\nb,0,50,1,4,0\n",
    );
    let cluster = folder.put("nodes.csv", "name,gpus,cpus,mem_gb,model\nx,4,16,32,h100\n");
    let ratios = "cpu=0.25,gpu=0.5,memory=0.25";
    let ran = object(&[
        "run",
        "--trace",
        &trace,
        "--cluster",
        &cluster,
        "--policy",
        "fifo",
        "--ratios",
        ratios,
        "--json",
    ]);
    // Processors: (8 · 100 + 4 · 50) / 1600; GPUs: (2 · 100 + 50) / 400; memory: 16 / 32.
    let expected = 0.25 * 0.625 + 0.5 * 0.625 + 0.25 * 0.5;
    let found = ran["utilisation"].as_f64().expect("a number");
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

/// Runs that must fail: exit code 2, a sentence, no output and no file.
#[track_caller]
fn refused(folder: &Folder, arguments: &[&str], expected: &str) {
    let before = folder.files();
    let output = sim(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(expected), "{said}");
    assert!(output.stdout.is_empty());
    assert_eq!(folder.files(), before, "nothing is written");
}

#[test]
fn bad_files_are_named_with_line_and_field_and_nothing_is_written() {
    let folder = Folder::new();
    let starts = folder.text("starts.csv");
    let header = "job_id,submit_s,duration_s,gpus\n";
    let mut cut = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut cut, TRACE.repeat(50).as_bytes()).expect("memory");
    let mut cut = cut.finish().expect("memory");
    cut.truncate(cut.len() / 2);
    let cases: [(&str, Vec<u8>, &str); 8] = [
        ("unsorted.csv", format!("{header}a,10,5,1\nb,9,5,1\n").into(), "line 3, `submit_s`"),
        (
            "negative.csv",
            format!("{header}a,-1,5,1\n").into(),
            "line 2, `submit_s`: -1 is negative",
        ),
        ("wordy.csv", format!("{header}a,0,long,1\n").into(), "line 2, `duration_s`"),
        ("empty.csv", Vec::new(), "empty.csv: the file is empty"),
        ("header.csv", header.into(), "there is only a header"),
        ("cut.csv.gz", cut, "the gzip stream is truncated"),
        ("strange.csv", b"x,y\n1,2\n".to_vec(), "line 1: the format is not recognised"),
        ("wide.csv", format!("{header}a,0,5,400\n").into(), "none of the 1 jobs fits"),
    ];
    for (name, content, expected) in cases {
        let trace = folder.put(name, content);
        let arguments = run_on(&trace, &["--policy", "fifo", "--starts", &starts]);
        refused(&folder, &arguments, expected);
    }
    let trace = folder.text("absent.csv");
    refused(&folder, &run_on(&trace, &["--policy", "fifo"]), "absent.csv: cannot be opened");
}

#[test]
fn bad_options_are_bad_input() {
    let folder = Folder::new();
    let trace = folder.put("trace.csv", TRACE);
    let nodes = folder.put("nodes.csv", "name,gpus\na,4\nb,x\n");
    let fifo = ["--policy", "fifo"];
    let no_folder = folder.text("no/such/starts.csv");
    let cases: [(&[&str], &str); 9] = [
        (&["--policy", "fastest"], "`--policy`: no policy `fastest`"),
        (&["--policy", "formula:1 +"], "`--policy`"),
        (&["--policy", "fifo", "--format", "xml"], "there is no format `xml`"),
        (&["--policy", "fifo", "--ratios", "gpu=0.5"], "`--ratios`: they sum to 0.5: make it 1"),
        (&["--policy", "fifo", "--ratios", "cpu=1"], "`--ratios`: processors and memory"),
        (&["--policy", "fifo", "--faults", "mtbf=x"], "`--faults`: mtbf: give a span"),
        (
            &["--policy", "fifo", "--faults", "mtbf=1d", "--checkpoint-every", "0"],
            "`--checkpoint-every`: give a span",
        ),
        (
            &["--policy", "fifo", "--faults", "mtbf=1d", "--placement", "pool"],
            "`--faults`: a pool has no nodes",
        ),
        (&["--policy", "fifo", "--starts", &no_folder], "starts.csv: there is no folder"),
    ];
    for (more, expected) in cases {
        refused(&folder, &run_on(&trace, more), expected);
    }
    let with_nodes = [&["run", "--trace", &trace, "--cluster", &nodes], &fifo[..]].concat();
    refused(&folder, &with_nodes, "nodes.csv, line 3, `gpus`: give a whole number");
    let uneven = [&["run", "--trace", &trace, "--gpus", "12"], &fifo[..]].concat();
    refused(&folder, &uneven, "`--gpus`: 12 GPUs are no whole nodes of 8");
}

#[test]
fn a_comparison_names_the_winner_and_writes_one_page() {
    let folder = Folder::new();
    let trace = folder.put("trace.csv", TRACE);
    let report = folder.text("report");
    let compared = object(&[
        "compare",
        "--trace",
        &trace,
        "--gpus",
        "4",
        "--gpus-per-node",
        "4",
        "--policies",
        "fifo,sjf",
        "--backfill",
        "none,easy",
        "--report",
        &report,
        "--json",
    ]);
    let runs = compared["runs"].as_array().expect("runs");
    let names: Vec<(&str, &str)> = runs
        .iter()
        .map(|r| (r["policy"].as_str().unwrap_or(""), r["backfill"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(names, [("fifo", "none"), ("fifo", "easy"), ("sjf", "none"), ("sjf", "easy")]);
    assert_eq!(compared["best"], 2);
    // What runs alone and what runs beside others is the same.
    let alone = object(&run_on(&trace, &["--policy", "sjf", "--backfill", "none", "--json"]));
    for key in ["mean_jct_s", "mean_wait_s", "utilisation", "fairness", "makespan_s"] {
        assert_eq!(alone[key], runs[2][key], "{key}");
    }
    let page = Path::new(&report).join("index.html");
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("sjf · none") && !page.contains("data-needs=\"value\" hidden"));
    let inside: Vec<_> = std::fs::read_dir(&report).expect("a folder").collect();
    assert_eq!(inside.len(), 1, "one page and nothing else");
}

#[test]
fn a_comparison_with_an_unknown_policy_writes_nothing() {
    let folder = Folder::new();
    let trace = folder.put("trace.csv", TRACE);
    let report = folder.text("report");
    let arguments =
        ["compare", "--trace", &trace, "--policies", "fifo,fastest", "--report", &report];
    refused(&folder, &arguments, "`--policies`: no policy `fastest`");
}

#[test]
fn faults_are_seeded_and_everything_still_ends() {
    let folder = Folder::new();
    let trace = folder.text("trace.csv");
    let made = sim(&[
        "generate", "--kind", "philly", "--jobs", "300", "--gpus", "64", "--load", "0.7", "--out",
        &trace,
    ]);
    assert!(made.status.success());
    let ran = |faults: &str| {
        let mut ran = object(&[
            "run",
            "--trace",
            &trace,
            "--gpus",
            "64",
            "--policy",
            "fifo",
            "--faults",
            faults,
            "--checkpoint-every",
            "1h",
            "--json",
        ]);
        for key in ["wall_s", "jobs_per_second", "peak_mb"] {
            ran[key] = Value::Null;
        }
        ran
    };
    let first = ran("mtbf=1d,repair=2h,seed=5");
    assert_eq!(first, ran("mtbf=1d,repair=2h,seed=5"));
    assert_ne!(first["node_failures"], ran("mtbf=1d,repair=2h,seed=6")["node_failures"]);
    assert_eq!(first["unfinished"], 0);
    assert!(first["losses"].as_u64().is_some_and(|losses| losses > 0), "{first}");
}
