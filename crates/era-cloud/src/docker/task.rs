//! A launch as an instance: its folders on the server's side, its environment, mounts and limits.
//!
//! The job's folder is one mount at [`TASK_ROOT`], as on every other executor, and the guard is
//! the first process. What the engine is, and when anything is started, is not known here.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::address::Volumes;
use super::instance::{Instance, Mounted, Volume};
use super::lease::{LeaseTimes, Shared};
use super::names::{self, SiteId};
use crate::executor::{Launch, PEERS_MAX};
use crate::isolate::{Isolation, TASK_ROOT};
use crate::limits::Amounts;
use crate::task::{Places, SupervisorSettings, Unready, environment, give};

/// What the guard itself needs beside its task.
const GUARD_PROCESSES: u32 = 8;
const GUARD_MEMORY_BYTES: u64 = 8 << 20;
/// Shared memory of a task that did not say how much memory it wants.
const SHM_BYTES: u64 = 1 << 30;
/// How a site runs its tasks.
#[derive(Clone, Debug)]
pub(super) struct TaskDefaults {
    pub(super) site: SiteId,
    pub(super) volumes: Volumes,
    /// The data folder, below which are the jobs' own.
    pub(super) data: PathBuf,
    /// Where that is on the nodes, if they mount it as a folder.
    pub(super) outside: PathBuf,
    pub(super) times: LeaseTimes,
    pub(super) isolation: Isolation,
    /// The ids that tasks run under where they have none of their own.
    pub(super) own_ids: (u32, u32),
}

/// What is known only when a task is started.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    pub(super) image: String,
    /// The engine's id of the node.
    pub(super) node: Option<String>,
    /// The ids of its GPUs.
    pub(super) gpus: Vec<String>,
    /// The gang's network.
    pub(super) network: Option<String>,
    /// Folders that the task sees read-only, from outside to inside.
    pub(super) shown: Vec<(PathBuf, PathBuf)>,
    /// Whether secrets go by the engine.
    pub(super) keeps_secrets: bool,
}

/// Makes a task's folders ready, once. Returns the folders that are still to be mounted.
pub(super) fn lay_out(
    defaults: &TaskDefaults,
    launch: &Launch,
    keeps_secrets: bool,
) -> Result<Vec<(PathBuf, PathBuf)>, Unready> {
    let shared = Shared::of(&launch.spec.folder, launch.task);
    let places = Places::of(launch);
    let at = |source| Unready::Io { path: shared.folder.clone(), source };
    let owner = defaults.isolation.uid(launch.spec.user)?;
    let mounts = if shared.is_ready() {
        folders(launch, &places)
    } else {
        let mounts = places.prepare(launch, &defaults.isolation, None)?;
        for input in &launch.spec.inputs {
            let to = places.work.join(&input.to);
            within_reach(&input.from, &to).map_err(at)?;
        }
        give(&places.work, owner).map_err(at)?;
        shared.make(launch, owner).map_err(at)?;
        shared.set_ready().map_err(at)?;
        mounts
    };
    // What is only staged has no values yet, and what is started again after the server was lies
    // there already.
    let here = !keeps_secrets && !launch.spec.secrets.lack_values();
    let seen = places.seen(launch, Some(Path::new(TASK_ROOT)));
    if let Some(text) = secrets(launch, &seen).filter(|_| here) {
        shared.put_secrets(&text, owner).map_err(at)?;
    }
    Ok(mounts)
}

/// The folders among the inputs, which are mounted.
fn folders(launch: &Launch, places: &Places) -> Vec<(PathBuf, PathBuf)> {
    let folders = launch.spec.inputs.iter().filter(|input| input.from.is_dir());
    folders.map(|input| (input.from.clone(), places.work.join(&input.to))).collect()
}

/// A container does not see where a link leads: a copy takes its place. Links are for tasks that
/// run as the server's own user, who could change a kept file through a second name of it.
fn within_reach(from: &Path, to: &Path) -> io::Result<()> {
    if !std::fs::symlink_metadata(to)?.file_type().is_symlink() {
        return Ok(());
    }
    std::fs::remove_file(to)?;
    std::fs::copy(from, to)?;
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o444))
}

/// Whether a task has others beside it now, or may have later: those who come then must find those
/// who are there.
pub(super) fn is_gang(launch: &Launch) -> bool {
    launch.replicas > 1 || !launch.spec.alone
}

/// The instance that a launch becomes.
pub(super) fn instance(
    defaults: &TaskDefaults,
    launch: &Launch,
    chosen: Chosen,
) -> Result<Instance, Unready> {
    let places = Places::of(launch);
    let root = Path::new(TASK_ROOT);
    let seen = places.seen(launch, Some(root));
    let shared = Shared::of(&launch.spec.folder, launch.task);
    let inside = |path: &Path| match path.strip_prefix(&places.folder) {
        Ok(below) => root.join(below).display().to_string(),
        Err(_) => path.display().to_string(),
    };
    let guard = inside(&shared.folder);
    let seconds = |span: std::time::Duration| span.as_secs().to_string();
    let mut command = vec![
        "/bin/sh".to_owned(),
        format!("{guard}/guard"),
        guard,
        defaults.times.lasts.map_or_else(|| "0".to_owned(), seconds),
        seconds(defaults.times.kill),
    ];
    command.extend(launch.spec.command.iter().cloned());
    let mut mounts = vec![
        mounted(defaults, &places.folder, TASK_ROOT, false),
        mounted(defaults, &places.tmp, "/tmp", false),
    ];
    mounts.extend(chosen.shown.iter().map(|(from, to)| mounted(defaults, from, &inside(to), true)));
    let limits = Amounts::of(launch);
    let memory_bytes = match limits.memory_bytes {
        0 => 0,
        bytes => bytes.saturating_add(GUARD_MEMORY_BYTES),
    };
    let uid = defaults.isolation.uid(launch.spec.user)?;
    Ok(Instance {
        name: names::task_name(&defaults.site, launch.task),
        labels: names::labels(&defaults.site, launch.task),
        env: variables(launch, &seen, &chosen.gpus),
        secrets: secrets(launch, &seen).filter(|_| chosen.keeps_secrets),
        user: Some(uid.map_or(defaults.own_ids, |uid| (uid, uid))),
        folder: seen.work.display().to_string(),
        mounts,
        read_only: false,
        cpu_milli: limits.cpu_milli,
        memory_bytes,
        processes: limits.processes.saturating_add(GUARD_PROCESSES),
        reserved: true,
        shm_bytes: if limits.memory_bytes == 0 { SHM_BYTES } else { limits.memory_bytes },
        network: chosen.network.map(|network| (network, names::rank_name(launch.task.rank))),
        image: chosen.image,
        node: chosen.node,
        gpus: chosen.gpus,
        command,
        grace_s: u32::try_from(defaults.times.kill.as_secs()).unwrap_or(u32::MAX),
        log_bytes: launch.spec.limits.log_bytes,
    })
}

fn mounted(defaults: &TaskDefaults, path: &Path, target: &str, read_only: bool) -> Mounted {
    let volume = match (&defaults.volumes, path.strip_prefix(&defaults.data)) {
        (Volumes::Nfs { server, export }, Ok(below)) => {
            let path = format!("{}/{}", export.trim_end_matches('/'), below.display());
            Volume::Nfs { server: server.clone(), path }
        }
        (_, Ok(below)) => Volume::Bind { path: defaults.outside.join(below).display().to_string() },
        (_, Err(_)) => Volume::Bind { path: path.display().to_string() },
    };
    Mounted { volume, target: target.to_owned(), read_only }
}

/// The environment of a task in a container: the image keeps its own path and shell, ranks are
/// found by their names, and what is secret goes another way.
fn variables(
    launch: &Launch,
    seen: &crate::task::TaskFolders,
    gpus: &[String],
) -> Vec<(String, String)> {
    let mut launch = launch.clone();
    let is_gang = is_gang(&launch);
    if is_gang {
        launch.master = names::rank_name(0);
        let names = (0..launch.replicas.min(PEERS_MAX)).map(names::rank_name);
        launch.peers = names.collect();
    }
    let mut all = environment(&launch, seen, &SupervisorSettings::default(), "");
    for name in ["PATH", "SHELL", crate::task::MARK] {
        if !launch.spec.env.contains_key(name) {
            all.remove(name);
        }
    }
    all.retain(|name, value| !is_secret(&launch, name, value));
    // What the NVIDIA runtime reads: these GPUs, or none at all, whatever the image or the job says.
    let visible = if gpus.is_empty() { "void".to_owned() } else { gpus.join(",") };
    all.insert("NVIDIA_VISIBLE_DEVICES".into(), visible);
    // Numbers would be counted anew inside; ids mean the same everywhere.
    let lasting = gpus.iter().all(|gpu| gpu.starts_with("GPU-") || gpu.starts_with("MIG-"));
    if lasting {
        all.insert("CUDA_VISIBLE_DEVICES".into(), gpus.join(","));
    } else {
        all.remove("CUDA_VISIBLE_DEVICES");
    }
    all.into_iter().collect()
}

/// Whether a variable holds what nobody but the task should see: its owner says so, or it looks
/// like it.
fn is_secret(launch: &Launch, name: &str, value: &str) -> bool {
    launch.spec.secrets.has(name) || era_spec::secret::looks_like_one(name, value)
}

/// The variables that are secret, as a shell reads them.
fn secrets(launch: &Launch, seen: &crate::task::TaskFolders) -> Option<String> {
    let plain = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let lines: String = environment(launch, seen, &SupervisorSettings::default(), "")
        .iter()
        .filter(|(name, value)| is_secret(launch, name, value) && plain(name))
        .map(|(name, value)| format!("export {name}='{}'\n", value.replace('\'', r"'\''")))
        .collect();
    (!lines.is_empty()).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::launch;
    use std::sync::Arc;

    fn defaults(volumes: Volumes) -> TaskDefaults {
        TaskDefaults {
            site: SiteId::named("0a1b2c3d").expect("a site"),
            volumes,
            data: "/data".into(),
            outside: "/data".into(),
            times: LeaseTimes::within(era_core::units::Span::from_s(30)),
            isolation: Isolation { first_uid: Some(1000), namespaces: true },
            own_ids: (7, 7),
        }
    }

    fn launched(volumes: Volumes, env: &[(&str, &str)]) -> Instance {
        let mut launch = launch(7, &["train", "--fast"]);
        let spec = Arc::make_mut(&mut launch.spec);
        spec.folder = "/data/jobs/7".into();
        spec.env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        launch.replicas = 2;
        launch.task.rank = 1;
        let chosen = Chosen {
            image: "i".into(),
            network: Some("net".into()),
            gpus: vec!["GPU-b".into(), "GPU-a".into()],
            keeps_secrets: true,
            ..Chosen::default()
        };
        instance(&defaults(volumes), &launch, chosen).expect("an instance")
    }

    #[test]
    fn a_task_that_runs_as_the_server_has_no_name_of_a_kept_file() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let kept = folder.path().join("kept");
        std::fs::write(&kept, "everybody's").expect("write");
        let mut launch = launch(7, &["true"]);
        let spec = Arc::make_mut(&mut launch.spec);
        spec.folder = folder.path().join("jobs/7");
        let to = "inputs/set/file".to_owned();
        spec.inputs = vec![crate::executor::Staged { from: kept.clone(), to, executable: false }];
        let isolation = Isolation { first_uid: None, namespaces: true };
        let defaults = TaskDefaults { isolation, ..defaults(Volumes::Bind) };
        lay_out(&defaults, &launch, false).expect("laid out");
        let shown = Places::of(&launch).work.join("inputs/set/file");
        let about = |path: &Path| std::fs::symlink_metadata(path).expect("there");
        assert!(about(&shown).is_file());
        assert_ne!(about(&shown).ino(), about(&kept).ino());
        assert_eq!(std::fs::read_to_string(&shown).expect("read"), "everybody's");
    }

    fn variable<'a>(instance: &'a Instance, name: &str) -> Option<&'a str> {
        instance.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_task_runs_under_its_guard_and_its_users_id_within_its_limits() {
        let made = launched(Volumes::Bind, &[]);
        assert_eq!(
            made.command[..5].join(" "),
            "/bin/sh /run/era/guard/p0-a1-r1/guard /run/era/guard/p0-a1-r1 20 5"
        );
        assert_eq!(made.command[5..], ["train", "--fast"]);
        assert_eq!(made.user, Some((1001, 1001)));
        assert_eq!(made.memory_bytes, (256 + 8) << 20);
        assert_eq!(made.folder, "/run/era/work/p0-a1-r1");
        assert_eq!(made.mounts[0].volume, Volume::Bind { path: "/data/jobs/7".into() });
        assert_eq!(made.mounts[0].target, "/run/era");
    }

    #[test]
    fn ranks_of_a_gang_find_each_other_by_name() {
        let made = launched(Volumes::Bind, &[]);
        assert_eq!(made.network, Some(("net".into(), "rank-1".into())));
        assert_eq!(variable(&made, "MASTER_ADDR"), Some("rank-0"));
        let config = variable(&made, "TF_CONFIG").expect("a config");
        assert!(config.contains("\"rank-0:") && config.contains("\"rank-1:"), "{config}");
    }

    #[test]
    fn one_that_may_grow_finds_those_who_come_later_and_one_that_stays_alone_is_left_alone() {
        let mut launch = launch(7, &["train"]);
        Arc::make_mut(&mut launch.spec).alone = false;
        assert!(is_gang(&launch));
        let chosen = Chosen { network: Some("net".into()), ..Chosen::default() };
        let made = instance(&defaults(Volumes::Bind), &launch, chosen).expect("an instance");
        assert_eq!(made.network, Some(("net".into(), "rank-0".into())));
        assert_eq!(variable(&made, "MASTER_ADDR"), Some("rank-0"));
        Arc::make_mut(&mut launch.spec).alone = true;
        assert!(!is_gang(&launch));
        launch.replicas = 2;
        assert!(is_gang(&launch));
    }

    #[test]
    fn gpus_are_named_by_id_and_the_image_keeps_its_path() {
        let made = launched(Volumes::Bind, &[]);
        for name in ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"] {
            assert_eq!(variable(&made, name), Some("GPU-b,GPU-a"));
        }
        assert_eq!(variable(&made, "PATH"), None);
        let made = launched(Volumes::Bind, &[("PATH", "/opt/bin")]);
        assert_eq!(variable(&made, "PATH"), Some("/opt/bin"));
    }

    #[test]
    fn tokens_go_as_secrets_and_nowhere_else() {
        let env =
            [("HF_TOKEN", "it's"), ("wandb_api_key", "k"), ("MODE", "fast"), ("A-TOKEN", "x")];
        let made = launched(Volumes::Bind, &env);
        let secrets = made.secrets.clone().expect("secrets");
        assert_eq!(secrets, "export HF_TOKEN='it'\\''s'\nexport wandb_api_key='k'\n");
        assert_eq!(variable(&made, "MODE"), Some("fast"));
        for name in ["HF_TOKEN", "wandb_api_key", "A-TOKEN"] {
            assert_eq!(variable(&made, name), None);
        }
        assert!(!format!("{made:?}").contains("it's"));
        assert_eq!(launched(Volumes::Bind, &[]).secrets, None);
    }

    #[test]
    fn a_secret_goes_as_one_whatever_its_name_and_is_written_only_with_its_value() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut launch = launch(7, &["true"]);
        let spec = Arc::make_mut(&mut launch.spec);
        spec.folder = folder.path().join("jobs/7");
        spec.secrets = crate::TaskSecrets::new([("NOTE".to_owned(), "it's 1".to_owned())].into());
        let isolation = Isolation { first_uid: None, namespaces: true };
        let defaults = TaskDefaults { isolation, ..defaults(Volumes::Bind) };
        let chosen = Chosen { keeps_secrets: true, ..Chosen::default() };
        let made = instance(&defaults, &launch, chosen).expect("an instance");
        assert_eq!(made.secrets.as_deref(), Some("export NOTE='it'\\''s 1'\n"));
        assert_eq!(variable(&made, "NOTE"), None);
        let shared = Shared::of(&launch.spec.folder, launch.task);
        let file = shared.folder.join("secrets");
        let lay = |launch: &Launch| lay_out(&defaults, launch, false).expect("laid out");
        lay(&launch.without_secrets());
        assert!(!file.exists(), "it is only staged");
        lay(&launch);
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "export NOTE='it'\\''s 1'\n");
        assert_eq!(about_mode(&file), 0o400);
        lay(&launch.without_secrets());
        assert!(file.exists(), "a server that starts anew leaves it");
        let kept = std::fs::read_to_string(shared.folder.join("launch.json")).expect("read");
        assert!(kept.contains("NOTE") && !kept.contains("it's"), "{kept}");
        shared.remove_secrets().expect("removed");
        shared.remove_secrets().expect("as it is");
        assert!(!file.exists());
    }

    fn about_mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn an_nfs_export_takes_the_place_of_the_data_folder() {
        let nfs = Volumes::Nfs { server: "10.0.0.1".into(), export: "/srv/era".into() };
        let made = launched(nfs, &[]);
        let volume = &made.mounts[0].volume;
        let expected = Volume::Nfs { server: "10.0.0.1".into(), path: "/srv/era/jobs/7".into() };
        assert_eq!(volume, &expected);
        let options = volume.driver_options();
        assert_eq!(options["type"], "nfs");
        assert_eq!(options["device"], ":/srv/era/jobs/7");
    }

    #[test]
    fn a_local_volume_is_bound_from_where_the_engine_keeps_it() {
        let local = Volumes::Local { name: "era-files".into() };
        let outside = "/engine/volumes/era-files/_data".into();
        let defaults = TaskDefaults { outside, ..defaults(local) };
        let mut launch = launch(7, &["true"]);
        Arc::make_mut(&mut launch.spec).folder = "/data/jobs/7".into();
        let made = instance(&defaults, &launch, Chosen::default()).expect("an instance");
        let path = "/engine/volumes/era-files/_data/jobs/7".to_owned();
        assert_eq!(made.mounts[0].volume, Volume::Bind { path });
    }
}
