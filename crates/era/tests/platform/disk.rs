//! A disk that is full, and one that can only be read, from the start or from some moment on: what
//! cannot be kept is refused, the server ends and says why, and nothing that was kept is lost.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Platform, exchange};
use crate::skipped::skipped;

/// A small file system that ends with the value.
struct Small(tempfile::TempDir);

impl Small {
    fn mount(megabytes: u32) -> Option<Small> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m,mode=755"), "era-test"])
            .arg(folder.path())
            .output();
        mounted.ok().filter(|output| output.status.success()).map(|_| Small(folder))
    }

    fn fill(&self) {
        // As much as there is: it ends when nothing fits any more.
        let file = std::fs::File::create(self.0.path().join("ballast")).unwrap();
        let block = [0_u8; 4096];
        while std::io::Write::write_all(&mut &file, &block).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.path().join("ballast")).unwrap();
    }

    /// Makes it writable (`rw`) or not (`ro`); nobody may be writing.
    fn remount(&self, how: &str) {
        let mut mount = Command::new("mount");
        let done = mount.args(["-o", &format!("remount,{how}")]).arg(self.0.path()).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// A file system in a file, which its kernel makes read-only when it is told of an error in it.
struct Fragile {
    mounted: tempfile::TempDir,
    device: String,
    _image: tempfile::NamedTempFile,
}

impl Fragile {
    fn mount() -> Option<Fragile> {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(64 << 20).unwrap();
        let mounted = tempfile::tempdir().unwrap();
        let run = |program: &str, arguments: &[&str], paths: &[&Path]| {
            let output = Command::new(program).args(arguments).args(paths).output().ok()?;
            output.status.success().then_some(())
        };
        run("mkfs.ext4", &["-q", "-F"], &[image.path()])?;
        let paths = [image.path(), mounted.path()];
        run("mount", &["-t", "ext4", "-o", "loop,errors=remount-ro"], &paths)?;
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        let line = mounts.lines().find(|line| line.split(' ').nth(1) == mounted.path().to_str())?;
        let device = line.split(' ').next()?.trim_start_matches("/dev/").to_owned();
        let fragile = Fragile { mounted, device, _image: image };
        fragile.trigger().exists().then_some(fragile)
    }

    fn trigger(&self) -> PathBuf {
        Path::new("/sys/fs/ext4").join(&self.device).join("trigger_fs_error")
    }

    /// From now on nothing can be written.
    fn fail(&self) {
        std::fs::write(self.trigger(), "a test").unwrap();
    }

    /// The same again, as after a repair.
    fn mend(&self) {
        let at = self.mounted.path();
        let device = format!("/dev/{}", self.device);
        // It ends with the last file that is open on it.
        let until = Instant::now() + Duration::from_secs(30);
        while !Command::new("umount").arg(at).output().unwrap().status.success() {
            assert!(Instant::now() < until, "it is still in use");
            std::thread::sleep(Duration::from_millis(100));
        }
        let image = self._image.path();
        // The kernel lets go of the file a moment later, and may write to it until then.
        let held = || Command::new("losetup").arg("-j").arg(image).output();
        while held().is_ok_and(|held| !held.stdout.is_empty()) {
            assert!(Instant::now() < until, "its device is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
        // Its exit code says that it mended something.
        Command::new("fsck.ext4").args(["-f", "-y"]).arg(image).output().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "ext4", "-o", "loop"])
            .args([image, at])
            .output()
            .unwrap();
        assert!(mounted.status.success(), "{device}: {mounted:?}");
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.mounted.path()).status();
    }
}

/// Nothing is launched any more, so that nothing is written but what is handed in.
fn cordon(platform: &Platform) {
    let name = platform.wait_for("a node", "/nodes", |nodes| {
        nodes["items"].as_array()?.first()?["name"].as_str().map(str::to_owned)
    });
    let (status, answer) =
        platform.send("PATCH", &format!("/nodes/{name}"), &json!({"action": "cordon"}));
    assert_eq!(status, 204, "{answer}");
}

/// Hands in jobs until one is refused, which is a problem that says so; what was taken is added.
fn until_refused(platform: &Platform, kept: &mut Vec<String>) {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let key = u32::try_from(kept.len()).unwrap();
        let (status, body) = submit(platform, key).unwrap();
        if status == 201 {
            // What still fits into a page that was there already may be taken.
            kept.push(body);
            assert!(Instant::now() < until, "everything is taken");
            continue;
        }
        let problem: era_api::Problem = serde_json::from_str(&body).unwrap();
        assert_eq!((status, problem.code.as_str()), (503, "stopped"), "{body}");
        return;
    }
}

/// What was taken is there, and is the same job still.
fn all_kept(platform: &Platform, kept: &[String]) {
    let jobs = platform.get("/jobs?limit=500");
    let found = jobs["items"].as_array().unwrap().len();
    assert!(found >= kept.len(), "{found} of {} jobs that were taken", kept.len());
    for (key, before) in kept.iter().enumerate() {
        let (status, again) = submit(platform, u32::try_from(key).unwrap()).unwrap();
        assert_eq!((status, &again), (201, before), "a job that was taken is still that job");
    }
}

fn submit(platform: &Platform, key: u32) -> std::io::Result<(u16, String)> {
    let job = json!({
        "work": {"command": ["true"]},
        "ask": {"resources": {"cpu": "100m"}, "duration_s": 60},
    });
    let headers =
        format!("authorization: Bearer {}\r\nidempotency-key: job-{key}\r\n", platform.token());
    exchange(platform.address(), "POST", "/api/v1/jobs", &headers, &job.to_string())
}

#[test]
fn a_job_that_fills_the_platforms_own_disk_is_ended_before_the_platform_is() {
    let Some(small) = Small::mount(300) else {
        skipped("no file system can be mounted here");
        return;
    };
    let mut builder = tempfile::Builder::new();
    let platform =
        Platform::start_in(builder.prefix("era").tempdir_in(small.0.path()).unwrap(), &[]);
    let job = |script: &str| {
        platform.submit(&json!({
            "work": {"command": ["sh", "-c", script]},
            "ask": {"resources": {"cpu": "100m", "memory": "64Mi"}, "duration_s": 600},
        }))
    };
    let modest = job("while :; do echo still here >> $ERA_OUTPUTS/log; sleep 0.2; done");
    let greedy = "while :; do head -c 2097152 /dev/zero >> $ERA_OUTPUTS/all; sleep 0.3; done";
    let ended = platform.ended(job(greedy));
    assert_eq!((&ended["state"], &ended["exit_code"]), (&json!("failed"), &json!(137)), "{ended}");
    assert_eq!(ended["tasks"][0]["cause"], "out_of_disk", "{ended}");
    let next = platform.ended(job("echo there is room"));
    assert_eq!(next["state"], "succeeded", "{next}");
    assert_eq!(platform.get(&format!("/jobs/{modest}"))["state"], "running");
    platform.ok(&["cancel", &modest.to_string()]);
    platform.ended(modest);
}

#[test]
fn what_a_task_may_have_on_disk_and_print_is_the_administrators_to_say() {
    let platform = Platform::start_with(&["--task-disk", "8Mi", "--task-log", "1Mi"]);
    let run = |script: &str| {
        let job = platform.submit(&json!({
            "work": {"command": ["sh", "-c", script]},
            "ask": {"resources": {"cpu": "100m", "memory": "64Mi"}, "duration_s": 60},
        }));
        (job, platform.ended(job))
    };
    let (_, ended) = run("head -c 33554432 /dev/zero > $ERA_OUTPUTS/much; sleep 50");
    assert_eq!(ended["tasks"][0]["cause"], "out_of_disk", "{ended}");
    let (job, ended) =
        run("head -c 4194304 /dev/zero > $ERA_OUTPUTS/little; yes | head -c 5000000");
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let log = platform.era().args(["logs", &job.to_string()]).output().unwrap().stdout;
    assert!((50_000..=1 << 20).contains(&log.len()), "{} bytes", log.len());
    for (given, says) in [("0", "at least 1Mi"), ("much", "16Gi"), ("9Pi", "at most 1Pi")] {
        let mut refused = platform.era();
        let refused = refused.args(["up", "--task-disk", given]).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains(says), "{said}");
    }
}

#[test]
fn a_full_disk_refuses_what_is_new_and_loses_nothing_that_was_kept() {
    let Some(small) = Small::mount(48) else {
        skipped("no small file system can be mounted here (that takes root)");
        return;
    };
    let data: &Path = small.0.path();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(data, folder.path().join("data")).unwrap();
    let mut platform = Platform::start_in(folder, &[]);
    cordon(&platform);
    let mut kept = Vec::new();
    for key in 0..20 {
        let (status, body) = submit(&platform, key).unwrap();
        assert_eq!(status, 201, "{body}");
        kept.push(body);
    }
    small.fill();
    until_refused(&platform, &mut kept);
    let (code, said) = platform.ends();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("disk is full"), "it does not say why: {said}");
    small.make_room();
    platform.restart();
    all_kept(&platform, &kept);
}

#[test]
fn a_disk_that_can_only_be_read_from_some_moment_on_ends_the_server_and_loses_nothing() {
    let Some(fragile) = Fragile::mount() else {
        skipped("no file system in a file can be mounted here (that takes root)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(fragile.mounted.path(), folder.path().join("data")).unwrap();
    let mut platform = Platform::start_in(folder, &[]);
    cordon(&platform);
    let mut kept = Vec::new();
    for key in 0..5 {
        let (status, body) = submit(&platform, key).unwrap();
        assert_eq!(status, 201, "{body}");
        kept.push(body);
    }
    fragile.fail();
    until_refused(&platform, &mut kept);
    let (code, said) = platform.ends();
    assert_eq!(code, Some(1), "{said}");
    let named = ["readonly", "read-only", "Read-only", "disk I/O"];
    assert!(named.iter().any(|cause| said.contains(cause)), "it does not say why: {said}");
    fragile.mend();
    platform.restart();
    all_kept(&platform, &kept);
}

#[test]
fn the_doctor_names_what_keeps_a_server_from_starting() {
    let mut platform = Platform::start();
    let (status, taken) = submit(&platform, 0).unwrap();
    assert_eq!(status, 201, "{taken}");
    let data = platform.data();
    let look = ["admin", "doctor", "--data", data.to_str().unwrap()];
    let good = platform.ok(&look);
    assert!(good.contains("era.db is whole") && !good.contains("broken"), "{good}");
    assert!(platform.stop());
    let good = platform.ok(&look);
    assert!(good.contains("0 of them since the last state"), "a clean stop closes it: {good}");
    let database = data.join("era.db");
    let mut bytes = std::fs::read(&database).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0x5a);
    std::fs::write(&database, bytes).unwrap();
    let output = platform.era().args(look).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    let line = told.lines().find(|line| line.contains("era.db")).unwrap_or_default();
    assert!(line.starts_with("broken") && line.contains("era admin restore"), "{told}");
}

#[test]
fn a_disk_that_can_only_be_read_is_named_at_the_start_and_keeps_what_it_has() {
    let Some(small) = Small::mount(48) else {
        skipped("no small file system can be mounted here (that takes root)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(small.0.path(), folder.path().join("data")).unwrap();
    let mut platform = Platform::start_in(folder, &[]);
    let (status, before) = submit(&platform, 0).unwrap();
    assert_eq!(status, 201, "{before}");
    let job: serde_json::Value = serde_json::from_str(&before).unwrap();
    platform.ended(job["job"].as_u64().unwrap());
    assert!(platform.stop());
    small.remount("ro");
    let (code, said) = platform.fails_to_start();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Read-only"), "{said}");
    assert!(said.contains(small.0.path().to_str().unwrap()), "it does not say where: {said}");
    small.remount("rw");
    platform.restart();
    assert_eq!(submit(&platform, 0).unwrap(), (201, before));
}
