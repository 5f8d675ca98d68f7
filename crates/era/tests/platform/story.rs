//! From the first command to the last, on a server of its own.

use crate::harness::Platform;

#[test]
fn a_day_at_the_command_line() {
    let platform = Platform::start();
    let me = platform.ok(&["whoami", "-o", "json"]);
    assert!(me.contains("\"administrator\""), "{me}");

    let quoted = platform.ok(&["quote", "--time", "1m", "--by", "now+1h", "-o", "json"]);
    assert!(quoted.contains("\"price\""), "{quoted}");

    let line = ["run", "-y", "--time", "1m", "--no-code", "--", "sh", "-c"];
    let out = platform.ok(&[&line[..], &["echo hello; echo kept > $ERA_OUTPUTS/kept"]].concat());
    assert_eq!(out, "hello\n");

    let (code, _) = platform.fails(&[&line[..], &["exit 7"]].concat());
    assert_eq!(code, 7, "the shell gets the job's own code");

    let jobs = platform.ok(&["jobs", "--all"]);
    assert!(jobs.contains("succeeded") && jobs.contains("failed"), "{jobs}");

    let report = platform.ok(&["admin", "report"]);
    let row = report.lines().find(|line| line.starts_with("run success"));
    let row: Vec<&str> = row.unwrap_or_default().split_whitespace().skip(2).collect();
    assert_eq!(row, ["50.0", "%", "50.0", "%", "50.0", "%", "1.00"], "{report}");
    let report = platform.ok(&["admin", "report", "--no-replay", "-o", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["with"]["jobs"], report.get("without")), (&2.into(), None), "{report}");
}

#[test]
fn what_is_not_there_has_its_own_code() {
    let platform = Platform::start();
    let (code, said) = platform.fails(&["job", "999999"]);
    assert_eq!(code, 5, "{said}");
    let stranger = platform.era().env("ERA_TOKEN", "wrong").arg("jobs").output().unwrap();
    assert_eq!(stranger.status.code(), Some(4));
}
