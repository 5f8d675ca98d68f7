//! Scripts of Slurm as they are, and what goes along with a job.

use serde_json::Value;

use crate::harness::Platform;

const SCRIPT: &str = "#!/bin/sh
#SBATCH --job-name=sweep
#SBATCH --array=3-7:4
#SBATCH --cpus-per-task=1
#SBATCH --mem=32M
#SBATCH --time=1:00

echo $SLURM_JOB_NAME $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX \
    $SLURM_PROCID/$SLURM_NTASKS $SLURM_CPUS_PER_TASK > $ERA_OUTPUTS/told
test $SLURM_ARRAY_TASK_ID = $ERA_ARRAY_INDEX && test $SLURM_JOB_ID = $ERA_JOB_ID
test $SLURM_ARRAY_TASK_ID = 3
";

#[test]
fn an_array_script_of_slurm_runs_as_it_is_and_so_does_one_of_its_tasks_again() {
    let platform = Platform::start();
    std::fs::create_dir_all(platform.home()).unwrap();
    std::fs::write(platform.home().join("sweep.sh"), SCRIPT).unwrap();
    let submitted = platform.ok(&["submit", "-o", "json", "sweep.sh"]);
    let submitted: Value = serde_json::from_str(&submitted).unwrap();
    assert_eq!(submitted["count"], 2, "{submitted}");
    let first = submitted["job"].as_u64().unwrap();
    let told = |job: u64| std::fs::read_to_string(platform.outputs(job).join("told")).unwrap();
    assert_eq!(platform.ended(first)["state"], "succeeded");
    assert_eq!(told(first), "sweep 3 of 3 to 7 0/1 1\n");
    assert_eq!(platform.ended(first + 1)["state"], "failed");
    let again = platform.ok(&["retry", &(first + 1).to_string(), "-o", "json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    let again = again["job"].as_u64().unwrap();
    assert_eq!(platform.ended(again)["exit_code"], 1, "the same work fails the same way");
    assert_eq!(told(again), told(first + 1), "with the index that it had");
}

/// The log of the last job that was submitted, once it has succeeded.
fn log_of(platform: &Platform, submitted: &str) -> String {
    let submitted: Value = serde_json::from_str(submitted).unwrap();
    let job = submitted["job"].as_u64().unwrap();
    let ended = platform.ended(job);
    let log = platform.ok(&["logs", &job.to_string()]);
    assert_eq!(ended["state"], "succeeded", "{log}");
    log
}

#[test]
fn a_script_runs_wherever_it_lies_and_from_standard_input() {
    let platform = Platform::start();
    let home = platform.home();
    std::fs::create_dir_all(home.join("sub")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    let tell = "#!/bin/sh\n#SBATCH --time=1:00 --mem=32M\necho ran $1; ls\n";
    std::fs::write(outside.path().join("t.sh"), tell).unwrap();
    std::fs::write(home.join("hidden.sh"), tell).unwrap();
    std::fs::write(home.join(".gitignore"), "hidden.sh\n").unwrap();
    std::fs::write(home.join("sub/data.txt"), "x").unwrap();
    let in_sub = tell.replace("#SBATCH ", "#SBATCH --chdir=sub ");
    std::fs::write(home.join("c.sh"), in_sub).unwrap();
    let submit = |script: &str| platform.ok(&["submit", "-o", "json", script, "one"]);
    let outside = outside.path().join("t.sh").display().to_string();
    let log = log_of(&platform, &submit(&outside));
    assert!(log.starts_with("ran one\n") && log.contains("sub\n"), "the folder is there: {log}");
    assert!(log_of(&platform, &submit("hidden.sh")).starts_with("ran one\n"));
    let log = log_of(&platform, &submit("c.sh"));
    assert!(log.contains("data.txt") && !log.contains("sub\n"), "{log}");
    let mut spoken = platform.era();
    spoken.args(["submit", "-o", "json", "-", "one"]).stdin(std::process::Stdio::piped());
    spoken.stdout(std::process::Stdio::piped());
    let mut spoken = spoken.spawn().unwrap();
    std::io::Write::write_all(&mut spoken.stdin.take().unwrap(), tell.as_bytes()).unwrap();
    let said = spoken.wait_with_output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(log_of(&platform, &said).starts_with("ran one\n"));
}

#[test]
fn code_goes_along_with_a_file_s_line_and_with_a_quote_that_is_taken() {
    let platform = Platform::start();
    let home = platform.home();
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("say.sh"), "echo said\n").unwrap();
    std::fs::write(home.join("job.yaml"), "command: sh say.sh && echo too\ntime: 1m\n").unwrap();
    let log = log_of(&platform, &platform.ok(&["submit", "-o", "json", "job.yaml"]));
    assert_eq!(log, "said\ntoo\n");
    let quoted = ["quote", "--hold", "--brief", "-t", "1m", "--by", "now+1h", "-o", "json"];
    let quoted = platform.ok(&[&quoted[..], &["--", "sh", "./say.sh"]].concat());
    let quoted: Value = serde_json::from_str(&quoted).unwrap();
    let hold = quoted["hold"]["id"].to_string();
    let log = log_of(&platform, &platform.ok(&["accept", &hold, "-o", "json"]));
    assert_eq!(log, "said\n");
}

#[test]
fn what_jobs_left_is_brought_back_whoever_watched_them() {
    let platform = Platform::start();
    let home = platform.home();
    std::fs::create_dir_all(&home).unwrap();
    // Ranks that are over before the last one has begun have run all the same.
    let gang = ["run", "--no-code", "-c", "100m", "-m", "32Mi", "-t", "1m", "-r", "2", "--", "sh"];
    platform.ok(&[&gang[..], &["-c", "echo $RANK > $ERA_OUTPUTS/r$RANK"]].concat());
    let left = |path: &str| std::fs::read_to_string(home.join("outputs").join(path));
    assert_eq!((left("1/r0").unwrap(), left("1/r1").unwrap()), ("0\n".into(), "1\n".into()));
    assert!(platform.get("/jobs/1")["started"].is_string());

    let array = ["run", "--no-code", "-c", "100m", "-m", "32Mi", "-t", "1m", "--array", "0-2"];
    let script = "echo $ERA_ARRAY_INDEX > $ERA_OUTPUTS/i; test $ERA_ARRAY_INDEX != 1 || exit 9";
    let (code, said) = platform.fails(&[&array[..], &["--", "sh", "-c", script]].concat());
    assert_eq!(code, 9, "{said}");
    assert!(said.contains("2 of 3 jobs succeeded; not 3 (failed)"), "{said}");
    assert_eq!(left("4/i").unwrap(), "2\n");

    std::fs::remove_dir_all(home.join("outputs")).unwrap();
    platform.ok(&["outputs", "2", "--array", "--to", "back"]);
    assert_eq!(std::fs::read_to_string(home.join("back/3/i")).unwrap(), "1\n");
    let listed = platform.ok(&["outputs", "1", "4", "--list"]);
    assert!(listed.contains("r1") && listed.contains(" i "), "{listed}");
}
