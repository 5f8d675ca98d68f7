//! The environment of a task, from its launch alone: nothing of the server's own is in it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use era_core::job::TaskId;

use super::settings::SupervisorSettings;
use crate::executor::{Launch, PEERS_MAX};

/// Ports that gangs meet at: below those that systems give out by themselves.
const PORT_FIRST: u64 = 15_000;
const PORTS: u64 = 16_000;

/// A locale that every machine has.
const LANG: &str = if cfg!(target_os = "macos") { "en_US.UTF-8" } else { "C.UTF-8" };

/// The folders of a task as it sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFolders {
    /// Its working folder.
    pub work: PathBuf,
    /// Its temporary folder.
    pub tmp: PathBuf,
    /// What is kept.
    pub outputs: PathBuf,
    /// What is kept between attempts.
    pub checkpoints: PathBuf,
    /// Where a gang's newest size is written.
    pub world: PathBuf,
}

/// The variables of a task. Defaults give way to what the user says, and the user gives way to
/// what the platform promises to every task.
pub(crate) fn environment(
    launch: &Launch,
    seen: &TaskFolders,
    settings: &SupervisorSettings,
    mark: &str,
) -> BTreeMap<String, String> {
    let mut all = defaults(launch, seen, settings);
    if launch.spec.env.contains_key(SLURM) {
        all.extend(as_slurm_says(launch, seen));
    }
    let given = launch.spec.env.iter().chain(launch.spec.secrets.values());
    all.extend(given.map(|(name, value)| (name.clone(), value.clone())));
    all.extend(promised(launch, seen, settings, mark).map(|(n, v)| (n.to_owned(), v)));
    all
}

fn defaults(
    launch: &Launch,
    seen: &TaskFolders,
    settings: &SupervisorSettings,
) -> BTreeMap<String, String> {
    let path = |path: &PathBuf| path.display().to_string();
    let processes = processes(launch);
    let threads = (launch.each.cpu.div_ceil(1000) / processes).max(1);
    [
        ("HOME", path(&seen.work)),
        ("LANG", LANG.into()),
        ("LOGNAME", launch.spec.user_name.clone()),
        ("OMP_NUM_THREADS", threads.to_string()),
        // A thread that spins while it waits uses up the cores that the others need.
        ("OMP_WAIT_POLICY", "passive".into()),
        ("PATH", settings.path.clone()),
        // What torchrun reads: a replica is one of its agents.
        ("PET_MASTER_ADDR", launch.master.clone()),
        ("PET_MASTER_PORT", master_port(launch.task, launch.replicas).to_string()),
        ("PET_NNODES", launch.replicas.to_string()),
        ("PET_NODE_RANK", launch.task.rank.to_string()),
        ("PET_NPROC_PER_NODE", processes.to_string()),
        // Else a log that is followed comes in blocks, minutes late.
        ("PYTHONUNBUFFERED", "1".into()),
        ("SHELL", "/bin/sh".into()),
        ("TMPDIR", path(&seen.tmp)),
        ("USER", launch.spec.user_name.clone()),
    ]
    .into_iter()
    .chain(launch.spec.terminal.then(|| ("TERM", "xterm-256color".into())))
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// How many processes a replica has that a launcher such as torchrun starts: one for each GPU.
fn processes(launch: &Launch) -> u32 {
    u32::try_from(launch.gpus.len()).unwrap_or(u32::MAX).max(1)
}

/// A job that names this variable, as the command line does for a script with an `#SBATCH` header,
/// also finds what Slurm tells its tasks. Others do not: a framework that sees Slurm's variables
/// takes itself to be under Slurm.
const SLURM: &str = "SLURM_CLUSTER_NAME";

/// What is known of a task under Slurm's names.
fn as_slurm_says(launch: &Launch, seen: &TaskFolders) -> BTreeMap<String, String> {
    let task = launch.task;
    let cores = (launch.each.cpu / 1000).max(1).to_string();
    let work = seen.work.display().to_string();
    let name = launch.spec.job_name.clone().unwrap_or_else(|| "era".to_owned());
    let always = [
        ("SLURMD_NODENAME", launch.node_name.clone()),
        ("SLURM_CPUS_PER_TASK", cores),
        ("SLURM_JOBID", task.job.0.to_string()),
        ("SLURM_JOB_ID", task.job.0.to_string()),
        ("SLURM_JOB_NAME", name),
        ("SLURM_JOB_USER", launch.spec.user_name.clone()),
        // As `LOCAL_RANK`: what a script takes for the number of its GPU.
        ("SLURM_LOCALID", "0".to_owned()),
        ("SLURM_NPROCS", launch.replicas.to_string()),
        ("SLURM_NTASKS", launch.replicas.to_string()),
        ("SLURM_PROCID", task.rank.to_string()),
        ("SLURM_RESTART_COUNT", task.attempt.saturating_sub(1).to_string()),
        ("SLURM_SUBMIT_DIR", work),
    ];
    let array = launch.spec.array.map(|(first, index, count)| {
        [
            ("SLURM_ARRAY_JOB_ID", first.0.to_string()),
            ("SLURM_ARRAY_TASK_ID", index.to_string()),
            ("SLURM_ARRAY_TASK_COUNT", count.to_string()),
        ]
    });
    let all = always.into_iter().chain(array.into_iter().flatten());
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn promised(
    launch: &Launch,
    seen: &TaskFolders,
    settings: &SupervisorSettings,
    mark: &str,
) -> impl Iterator<Item = (&'static str, String)> {
    let task = launch.task;
    let path = |path: &PathBuf| path.display().to_string();
    let port = master_port(task, launch.replicas);
    let always = [
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()),
        ("CUDA_VISIBLE_DEVICES", visible_devices(launch, settings)),
        ("ERA_ATTEMPT", task.attempt.to_string()),
        ("ERA_CHECKPOINTS", path(&seen.checkpoints)),
        ("ERA_INPUTS", path(&seen.work.join("inputs"))),
        ("ERA_JOB_ID", task.job.0.to_string()),
        ("ERA_NODE", launch.node_name.clone()),
        ("ERA_OUTPUTS", path(&seen.outputs)),
        ("ERA_PART", task.part.to_string()),
        ("ERA_RANK", task.rank.to_string()),
        (MARK, mark.to_owned()),
        ("ERA_WORLD_FILE", path(&seen.world)),
        ("ERA_WORLD_SIZE", launch.replicas.to_string()),
        // Its GPUs are the only ones that it sees, so the first of them is number 0.
        ("LOCAL_RANK", "0".to_owned()),
        ("LOCAL_WORLD_SIZE", "1".to_owned()),
        ("MASTER_ADDR", launch.master.clone()),
        ("MASTER_PORT", port.to_string()),
        ("NODE_RANK", task.rank.to_string()),
        ("RANK", task.rank.to_string()),
        ("WORLD_SIZE", launch.replicas.to_string()),
    ];
    let array = launch.spec.array.map(|(first, index, count)| {
        [
            ("ERA_ARRAY_ID", first.0.to_string()),
            ("ERA_ARRAY_INDEX", index.to_string()),
            ("ERA_ARRAY_COUNT", count.to_string()),
        ]
    });
    let tensorflow = tensorflow_cluster(launch, port).map(|cluster| ("TF_CONFIG", cluster));
    always.into_iter().chain(array.into_iter().flatten()).chain(tensorflow)
}

/// The variable by which a process is known to be a task of a certain supervisor.
pub(crate) const MARK: &str = "ERA_TASK_MARK";

/// What a process of a certain task finds in its environment, and no process of another does.
pub(crate) fn words(task: TaskId, mark: &str) -> [String; 5] {
    [
        format!("{MARK}={mark}"),
        format!("ERA_JOB_ID={}", task.job.0),
        format!("ERA_PART={}", task.part),
        format!("ERA_ATTEMPT={}", task.attempt),
        format!("ERA_RANK={}", task.rank),
    ]
}

/// Where a gang meets: the same for all its replicas, another for the next attempt, so that a port
/// that is still held by the last one does not matter.
fn master_port(task: TaskId, replicas: u32) -> u64 {
    let mixed = [task.job.0, u64::from(task.part), u64::from(task.attempt)]
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, part| {
            (hash ^ part).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
        });
    // Room above it, for a port for each replica.
    let room = PORTS - u64::from(replicas.min(PEERS_MAX)) - 1;
    PORT_FIRST + (mixed ^ (mixed >> 32)) % room
}

/// Always set: without it a task would see every GPU.
fn visible_devices(launch: &Launch, settings: &SupervisorSettings) -> String {
    let name = |gpu: &u8| match settings.gpu_uuids.get(usize::from(*gpu)) {
        Some(uuid) => uuid.clone(),
        None => gpu.to_string(),
    };
    launch.gpus.iter().map(name).collect::<Vec<_>>().join(",")
}

/// What TensorFlow wants to know of a gang, where it is known of all of it. The ports of its workers
/// follow the master's.
fn tensorflow_cluster(launch: &Launch, port: u64) -> Option<String> {
    if u32::try_from(launch.peers.len()) != Ok(launch.replicas) {
        return None;
    }
    let worker = |(port, host): (u64, &String)| match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    let workers: Vec<String> = (port + 1..).zip(&launch.peers).map(worker).collect();
    let task = serde_json::json!({ "type": "worker", "index": launch.task.rank });
    Some(serde_json::json!({ "cluster": { "worker": workers }, "task": task }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::launch;

    fn seen() -> TaskFolders {
        TaskFolders {
            work: "/run/era/work/x".into(),
            tmp: "/tmp".into(),
            outputs: "/run/era/outputs".into(),
            checkpoints: "/run/era/checkpoints".into(),
            world: "/run/era/world".into(),
        }
    }

    #[test]
    fn a_task_finds_what_every_framework_looks_for() {
        let mut launch = launch(7, &["true"]);
        launch.replicas = 2;
        launch.task.rank = 1;
        launch.gpus = vec![0, 1];
        launch.each.cpu = 5500;
        launch.master = "10.0.0.1".into();
        launch.peers = vec!["10.0.0.1".into(), "fd00::2".into()];
        let settings =
            SupervisorSettings { gpu_uuids: vec!["GPU-a".into()], ..SupervisorSettings::default() };
        let env = environment(&launch, &seen(), &settings, "m");
        for (name, value) in [
            ("RANK", "1"),
            ("WORLD_SIZE", "2"),
            ("MASTER_ADDR", "10.0.0.1"),
            ("LOCAL_RANK", "0"),
            ("LOCAL_WORLD_SIZE", "1"),
            ("NODE_RANK", "1"),
            ("ERA_JOB_ID", "7"),
            ("ERA_OUTPUTS", "/run/era/outputs"),
            ("ERA_INPUTS", "/run/era/work/x/inputs"),
            ("CUDA_VISIBLE_DEVICES", "GPU-a,1"),
            ("OMP_NUM_THREADS", "3"),
            ("OMP_WAIT_POLICY", "passive"),
            ("HOME", "/run/era/work/x"),
        ] {
            assert_eq!(env[name], value, "{name}");
        }
        let cluster: serde_json::Value = serde_json::from_str(&env["TF_CONFIG"]).expect("JSON");
        assert_eq!(cluster["task"]["index"], 1);
        let port: u64 = env["MASTER_PORT"].parse().expect("a port");
        let workers = [format!("10.0.0.1:{}", port + 1), format!("[fd00::2]:{}", port + 2)];
        assert_eq!(cluster["cluster"]["worker"], serde_json::json!(workers));
        launch.peers.pop();
        let env = environment(&launch, &seen(), &settings, "m");
        assert_eq!(env.get("TF_CONFIG"), None, "who does not know all of them names none");
    }

    /// Two replicas of two GPUs each are two agents of torchrun with two processes each.
    #[test]
    fn torchrun_finds_one_world_of_all_replicas() {
        let told = |rank| {
            let mut launch = launch(7, &["torchrun", "train.py"]);
            (launch.replicas, launch.task.rank, launch.gpus) = (2, rank, vec![2, 3]);
            launch.master = "10.0.0.1".into();
            let env = environment(&launch, &seen(), &SupervisorSettings::default(), "m");
            assert_eq!(env["PET_MASTER_PORT"], env["MASTER_PORT"]);
            ["NNODES", "NODE_RANK", "NPROC_PER_NODE", "MASTER_ADDR"]
                .map(|name| env[&format!("PET_{name}")].clone())
        };
        assert_eq!(told(0), ["2", "0", "2", "10.0.0.1"]);
        assert_eq!(told(1), ["2", "1", "2", "10.0.0.1"]);
        let mut alone = launch(7, &["torchrun", "train.py"]);
        let count = |launch: &Launch| {
            environment(launch, &seen(), &SupervisorSettings::default(), "m")["PET_NPROC_PER_NODE"]
                .clone()
        };
        assert_eq!(count(&alone), "1", "without a GPU there is one process");
        let spec = std::sync::Arc::make_mut(&mut alone.spec);
        spec.env.insert("PET_NPROC_PER_NODE".into(), "4".into());
        assert_eq!(count(&alone), "4", "the user may want more of them");
    }

    #[test]
    fn a_script_of_slurm_finds_slurms_names_and_others_do_not() {
        let mut launch = launch(7, &["true"]);
        (launch.replicas, launch.task.rank, launch.each.cpu) = (4, 3, 8000);
        let spec = std::sync::Arc::make_mut(&mut launch.spec);
        spec.array = Some((era_core::units::JobId(5), 12, 10));
        let names = |env: &BTreeMap<String, String>| {
            env.keys().filter(|name| name.starts_with("SLURM")).count()
        };
        let env = environment(&launch, &seen(), &SupervisorSettings::default(), "m");
        assert_eq!(names(&env), 0, "{env:?}");
        let spec = std::sync::Arc::make_mut(&mut launch.spec);
        spec.env.insert(SLURM.into(), "era".into());
        spec.env.insert("SLURM_SUBMIT_DIR".into(), "/mine".into());
        let env = environment(&launch, &seen(), &SupervisorSettings::default(), "m");
        for (name, value) in [
            ("SLURM_ARRAY_JOB_ID", "5"),
            ("SLURM_ARRAY_TASK_ID", "12"),
            ("SLURM_JOB_ID", "7"),
            ("SLURM_PROCID", "3"),
            ("SLURM_LOCALID", "0"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_CPUS_PER_TASK", "8"),
            ("SLURM_SUBMIT_DIR", "/mine"),
        ] {
            assert_eq!(env[name], value, "{name}");
        }
    }

    #[test]
    fn a_process_can_be_told_to_be_of_a_task() {
        let launch = launch(7, &["true"]);
        let env = environment(&launch, &seen(), &SupervisorSettings::default(), "m");
        let pairs: Vec<String> =
            env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert!(words(launch.task, "m").iter().all(|word| pairs.contains(word)), "{pairs:?}");
    }

    #[test]
    fn without_gpus_none_is_visible() {
        let env = environment(&launch(7, &["true"]), &seen(), &SupervisorSettings::default(), "m");
        assert_eq!(env["CUDA_VISIBLE_DEVICES"], "");
    }

    #[test]
    fn a_user_sets_the_home_but_not_the_rank() {
        let mut launch = launch(7, &["true"]);
        let spec = std::sync::Arc::make_mut(&mut launch.spec);
        spec.env.insert("HOME".into(), "/data".into());
        spec.env.insert("RANK".into(), "9".into());
        spec.env.insert("CUDA_VISIBLE_DEVICES".into(), "0,1,2,3".into());
        let env = environment(&launch, &seen(), &SupervisorSettings::default(), "m");
        assert_eq!(env["HOME"], "/data");
        assert_eq!(env["RANK"], "0");
        assert_eq!(env["CUDA_VISIBLE_DEVICES"], "");
    }

    #[test]
    fn a_secret_is_a_variable_and_takes_no_promised_ones_place() {
        let mut launch = launch(7, &["true"]);
        let spec = std::sync::Arc::make_mut(&mut launch.spec);
        let given = [("HF_TOKEN", "hf_1"), ("RANK", "9")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        spec.secrets = crate::TaskSecrets::new(given.into());
        let env = environment(&launch, &seen(), &SupervisorSettings::default(), "m");
        assert_eq!((env["HF_TOKEN"].as_str(), env["RANK"].as_str()), ("hf_1", "0"));
    }

    #[test]
    fn a_gang_meets_at_one_port_and_its_next_attempt_at_another() {
        let at = |attempt, rank| {
            let mut task = launch(7, &["true"]).task;
            (task.attempt, task.rank) = (attempt, rank);
            master_port(task, 4)
        };
        assert_eq!(at(1, 0), at(1, 3));
        assert_ne!(at(1, 0), at(2, 0));
        for job in 0..5_000 {
            let port = master_port(launch(job, &["true"]).task, PEERS_MAX);
            assert!((PORT_FIRST..PORT_FIRST + PORTS).contains(&port));
            assert!(port + 1 + u64::from(PEERS_MAX) <= PORT_FIRST + PORTS);
        }
    }
}
