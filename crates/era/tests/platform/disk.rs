//! A disk that is full, and one that can only be read: what cannot be kept is refused, and nothing
//! that was kept is lost.

use std::path::Path;
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
fn a_full_disk_refuses_what_is_new_and_loses_nothing_that_was_kept() {
    let Some(small) = Small::mount(48) else {
        skipped("no small file system can be mounted here (that takes root)");
        return;
    };
    let data: &Path = small.0.path();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(data, folder.path().join("data")).unwrap();
    let mut platform = Platform::start_in(folder, &[]);
    let mut kept = Vec::new();
    for key in 0..20 {
        let (status, body) = submit(&platform, key).unwrap();
        assert_eq!(status, 201, "{body}");
        kept.push(body);
    }
    small.fill();
    let until = Instant::now() + Duration::from_secs(30);
    let mut key = 20;
    // What still fits into a page that was there already may be taken.
    let refused = loop {
        match submit(&platform, key) {
            Ok((201, body)) => kept.push(body),
            Ok((status, body)) => break format!("{status} {body}"),
            Err(error) => break error.to_string(),
        }
        key += 1;
        assert!(Instant::now() < until, "a full disk takes everything");
    };
    eprintln!("refused: {refused}");
    small.make_room();
    platform.kill();
    platform.restart();
    let jobs = platform.get("/jobs?limit=500");
    let found = jobs["items"].as_array().unwrap().len();
    assert!(found >= kept.len(), "{found} of {} jobs that were taken", kept.len());
    for (key, before) in kept.iter().enumerate() {
        let (status, again) = submit(&platform, u32::try_from(key).unwrap()).unwrap();
        assert_eq!((status, &again), (201, before), "a job that was taken is still that job");
    }
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
