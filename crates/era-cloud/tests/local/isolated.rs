//! What one user's task can do to others. As root only: without, all of it is one user.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use era_cloud::Staged;
use era_core::units::{JobId, UserId};

use super::bed::{Bed, is_root};
use crate::skipped::skipped;

const NOT_ROOT: &str = "only root can keep users apart";

#[tokio::test]
async fn each_user_runs_under_a_user_id_of_its_own() {
    if !is_root() {
        return skipped(NOT_ROOT);
    }
    let mut bed = Bed::new().await;
    let mut launch =
        bed.sh(1, "id -u; id -G; grep NoNewPrivs /proc/self/status; touch $ERA_OUTPUTS/x");
    Arc::make_mut(&mut launch.spec).user = UserId(42);
    let log = bed.output(launch).await;
    assert_eq!(log.matches("100042").count(), 2, "{log}");
    assert!(log.contains("NoNewPrivs:\t1"), "{log}");
    let file = std::fs::metadata(bed.job(1).join("outputs/x")).expect("an output");
    assert_eq!(file.uid(), 100_042);
}

#[tokio::test]
async fn temporary_folders_and_shared_memory_are_private() {
    if !is_root() {
        return skipped(NOT_ROOT);
    }
    let mut bed = Bed::new().await;
    let mark = format!("/tmp/{}", std::process::id());
    let script = format!("ls -A /tmp /dev/shm; echo $TMPDIR; touch {mark} /dev/shm/mine");
    let log = bed.output(bed.sh(1, &script)).await;
    assert!(log.contains("/tmp") && !log.contains("mine"), "{log}");
    let again = bed.output(bed.sh(2, "ls -A /tmp /dev/shm")).await;
    assert!(!again.contains("mine"), "{again}");
    assert!(!std::path::Path::new(&mark).exists());
    assert!(!std::path::Path::new("/dev/shm/mine").exists());
}

#[tokio::test]
async fn what_is_left_in_places_that_all_share_goes_with_the_task() {
    if !is_root() {
        return skipped(NOT_ROOT);
    }
    let mut bed = Bed::with(|settings| settings.spare_keepers = 0).await;
    let mine = format!("mine-{}", std::process::id());
    let leave =
        format!("touch /var/tmp/{mine} && ipcmk -M 4096 && ipcmk -Q && cat /proc/sysvipc/shm");
    let mut launch = bed.sh(1, &leave);
    Arc::make_mut(&mut launch.spec).user = UserId(4_242);
    let log = bed.output(launch.clone()).await;
    assert!(log.contains("104242"), "{log}");
    let ours = |name: &str| std::fs::read_to_string(name).is_ok_and(|text| text.contains("104242"));
    assert!(!ours("/proc/sysvipc/shm") && !ours("/proc/sysvipc/msg"));
    assert!(!std::path::Path::new("/var/tmp").join(&mine).exists());
    let look = "ls -A /var/tmp /tmp; cat /proc/sysvipc/shm /proc/sysvipc/msg";
    (launch.task.job, launch.spec) = (JobId(2), bed.sh(2, look).spec);
    Arc::make_mut(&mut launch.spec).user = UserId(4_242);
    let log = bed.output(launch).await;
    assert!(!log.contains("104242") && !log.contains("mine"), "{log}");
}

#[tokio::test]
async fn a_program_among_the_inputs_can_be_run() {
    let mut bed = Bed::new().await;
    let kept = bed.folder.path().join("blob");
    std::fs::write(&kept, "#!/bin/sh\necho it runs\n").expect("write");
    let script = "inputs/program && (test -x inputs/text && echo BOTH); \
                  (echo bad > inputs/program) 2>/dev/null; true";
    let mut launch = bed.sh(1, script);
    let staged = |to: &str, executable| Staged { from: kept.clone(), to: to.into(), executable };
    Arc::make_mut(&mut launch.spec).inputs =
        vec![staged("inputs/program", true), staged("inputs/text", false)];
    let log = bed.output(launch).await;
    assert!(log.contains("it runs"), "{log}");
    let text = std::fs::read_to_string(&kept).expect("kept");
    assert!(text.ends_with("echo it runs\n"), "{text}");
}

/// A file system that is full, for as long as this lives.
struct Full<'a>(&'a std::path::Path);

impl Full<'_> {
    fn mount(at: &std::path::Path) -> rustix::io::Result<Full<'_>> {
        std::fs::create_dir(at).expect("made");
        let (flags, few) = (rustix::mount::MountFlags::empty(), c"nr_inodes=2");
        rustix::mount::mount(c"full", at, c"tmpfs", flags, few).map(|()| Full(at))
    }

    fn make_room(&self) {
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount_remount(self.0, flags, c"nr_inodes=1000").expect("more room");
    }
}

impl Drop for Full<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[tokio::test]
async fn a_full_disk_is_no_fault_of_the_task_which_starts_once_there_is_room() {
    if !is_root() {
        return skipped(NOT_ROOT);
    }
    let mut bed = Bed::new().await;
    let jobs = bed.folder.path().join("jobs");
    let full = match Full::mount(&jobs) {
        Ok(full) => full,
        Err(errno) => return skipped(&format!("nothing can be mounted here: {errno}")),
    };
    let task = bed.launch(bed.sh(1, "cat inputs/it"));
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    full.make_room();
    assert_eq!(bed.ended(task).await, (1, era_cloud::Ending::Itself), "{}", bed.log(1));
}

#[tokio::test]
async fn the_platforms_own_folder_is_out_of_sight() {
    if !is_root() {
        return skipped(NOT_ROOT);
    }
    // Beside `/tmp`, which is private in any case.
    let visible = tempfile::tempdir_in("/opt").expect("a folder");
    std::fs::write(visible.path().join("secret"), "x").expect("write");
    open_to_all(visible.path());
    let hidden = visible.path().to_owned();
    let mut bed = Bed::with(|settings| settings.hidden.push(hidden)).await;
    let script = format!(
        "ls {dir} {own} 2>&1; cat {dir}/secret 2>&1; ls /run/era; ls /run/era/logs 2>&1; true",
        dir = visible.path().display(),
        own = bed.folder.path().display()
    );
    let log = bed.output(bed.sh(1, &script)).await;
    assert!(!log.contains("\nx\n") && log.contains("outputs"), "{log}");
    assert!(log.matches("secret").count() <= 1, "only in the complaint: {log}");
    assert!(!log.contains("shim"), "{log}");
}

#[tokio::test]
async fn inputs_are_read_only() {
    if !is_root() {
        return skipped(NOT_ROOT);
    }
    let mut bed = Bed::new().await;
    let set = bed.folder.path().join("set");
    std::fs::create_dir(&set).expect("make");
    std::fs::write(set.join("a"), "data-a").expect("write");
    open_to_all(&set);
    let file = bed.folder.path().join("blob");
    std::fs::write(&file, "data-b").expect("write");
    let script = "cat inputs/set/a inputs/b; echo; \
                  (echo bad > inputs/set/a) 2>/dev/null && echo WROTE; \
                  (touch inputs/set/new) 2>/dev/null && echo MADE; \
                  (echo bad > inputs/b) 2>/dev/null && echo WROTE; \
                  rm -f inputs/b 2>/dev/null && echo REMOVED; true";
    let mut launch = bed.sh(1, script);
    let staged = |from, to: &str| Staged { from, to: to.into(), executable: false };
    Arc::make_mut(&mut launch.spec).inputs =
        vec![staged(set.clone(), "inputs/set"), staged(file.clone(), "inputs/b")];
    let log = bed.output(launch).await;
    assert!(log.contains("data-adata-b"), "{log}");
    for bad in ["WROTE", "MADE", "REMOVED"] {
        assert!(!log.contains(bad), "{bad}: {log}");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("kept"), "data-b");
    assert_eq!(std::fs::read_to_string(set.join("a")).expect("kept"), "data-a");
}

#[tokio::test]
async fn a_task_is_given_no_more_processor_time_than_it_asked_for() {
    if !is_root() {
        return skipped(NOT_ROOT);
    }
    let mut bed = Bed::new().await;
    if bed.notes_say("processor time is not limited") {
        return skipped("processor time is not limited here");
    }
    let script = "i=0; e=$(($(date +%s%N) + 1000000000)); while [ $(date +%s%N) -lt $e ]; do \
                  i=$((i+1)); done; cat /proc/self/cgroup; times";
    let mut launch = bed.sh(1, script);
    launch.each.cpu = 200;
    let log = bed.output(launch).await;
    let seconds = |line: &str| -> f64 {
        let of = |word: &str| {
            let (minutes, seconds) = word.trim_end_matches('s').split_once('m').expect("times");
            minutes.parse::<f64>().expect("minutes") * 60.0
                + seconds.parse::<f64>().expect("seconds")
        };
        line.split_whitespace().map(|word| of(word.rsplit_once(' ').map_or(word, |w| w.1))).sum()
    };
    let used: f64 =
        log.lines().filter_map(|line| line.find("0m").map(|at| &line[at..])).map(seconds).sum();
    assert!(log.contains("/era-") && used < 0.6, "{used} s used of a second at a fifth: {log}");
}

fn open_to_all(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("opened");
}
