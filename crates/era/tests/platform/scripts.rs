//! Scripts of Slurm as they are.

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
