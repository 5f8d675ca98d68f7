//! What a task plants where folders are made ready for another of its user: as root, since only then
//! is there anything to gain.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::{Places, give};
use crate::executor::{Launch, Staged};
use crate::isolate::Isolation;
use crate::shim::tests::launch;
use crate::skipped::skipped;

const FIRST_UID: u32 = 700_000;
/// That of the user of these tests.
const UID: u32 = FIRST_UID + 1;
const ISOLATION: Isolation = Isolation { first_uid: Some(FIRST_UID), namespaces: false };

struct Bed {
    root: tempfile::TempDir,
    /// What only root may write to.
    victim: PathBuf,
    launch: Launch,
    places: Places,
}

impl Bed {
    /// `None` where we are not root.
    fn new(code: &[&str], inputs: &[&str]) -> Option<Bed> {
        if !rustix::process::geteuid().is_root() {
            skipped("not root: tasks have no user id of their own");
            return None;
        }
        let root = tempfile::tempdir().expect("a folder");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(root.path(), open).expect("opened");
        let (victim, kept) = (root.path().join("victim"), root.path().join("kept"));
        std::fs::write(&victim, "safe").expect("written");
        std::fs::write(&kept, "theirs").expect("written");
        let staged = |to: &&str| Staged { from: kept.clone(), to: (*to).into(), executable: true };
        let mut launch = launch(1, &["true"]);
        let spec = Arc::make_mut(&mut launch.spec);
        spec.folder = root.path().join("job");
        spec.code = code.iter().map(staged).collect();
        spec.inputs = inputs.iter().map(staged).collect();
        let places = Places::of(&launch);
        Some(Bed { root, victim, launch, places })
    }

    fn prepare(&self) {
        self.places.prepare(&self.launch, &ISOLATION, None).expect("ready");
    }

    fn assert_safe(&self) {
        let about = std::fs::metadata(&self.victim).expect("there");
        assert_eq!(std::fs::read_to_string(&self.victim).expect("read"), "safe");
        assert_eq!((about.uid(), about.mode() & 0o777), (0, 0o644));
    }

    /// As a task that ran there left it.
    fn leave(&self, plant: impl FnOnce(&Path)) {
        std::fs::create_dir_all(&self.places.work).expect("made");
        plant(&self.places.work);
        chown(&self.places.work, Some(UID), Some(UID)).expect("given");
    }
}

fn owner(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("there").uid()
}

#[test]
fn a_working_folder_is_ours_until_all_of_it_is_there() {
    let Some(bed) = Bed::new(&["src/main.py"], &["inputs/set"]) else { return };
    bed.prepare();
    let (work, places) = (&bed.places.work, &bed.places);
    assert_eq!(owner(work), 0);
    assert_eq!(std::fs::metadata(work).expect("there").mode() & 0o7777, 0o700);
    for parent in [&places.folder, &places.folder.join("work")] {
        let about = std::fs::metadata(parent).expect("there");
        assert_eq!((about.uid(), about.mode() & 0o777), (0, 0o755), "{}", parent.display());
    }
    give(work, Some(UID)).expect("given");
    for own in [work, &work.join("src"), &work.join("src/main.py"), &places.outputs] {
        assert_eq!(owner(own), UID, "{}", own.display());
    }
    for ours in ["inputs", "inputs/set"] {
        assert_eq!(owner(&work.join(ours)), 0, "{ours}");
    }
}

/// A supervisor that is killed while it makes an attempt's folders leaves some to the next attempt.
#[test]
fn what_was_made_and_not_yet_given_away_is_given_to_the_next_attempt() {
    let Some(bed) = Bed::new(&[], &[]) else { return };
    std::fs::create_dir_all(&bed.places.outputs).expect("made");
    assert_eq!(owner(&bed.places.outputs), 0);
    bed.prepare();
    for own in [&bed.places.outputs, &bed.places.checkpoints] {
        assert_eq!(owner(own), UID, "{}", own.display());
    }
}

#[test]
fn links_that_were_there_before_are_not_followed() {
    let Some(bed) = Bed::new(&["run.sh", "src/main.py"], &["data/set", "file"]) else { return };
    let outside = bed.root.path().join("outside");
    std::fs::create_dir(&outside).expect("made");
    bed.leave(|work| {
        for name in ["run.sh", "file"] {
            symlink(&bed.victim, work.join(name)).expect("planted");
        }
        for name in ["src", "data", "outputs"] {
            symlink(&outside, work.join(name)).expect("planted");
        }
    });
    bed.prepare();
    bed.assert_safe();
    assert_eq!(std::fs::read_dir(&outside).expect("listed").count(), 0);
    assert_eq!(owner(&outside), 0);
    for file in ["run.sh", "src/main.py", "data/set", "file"] {
        let path = bed.places.work.join(file);
        assert!(std::fs::symlink_metadata(&path).expect("there").is_file(), "{file}");
        assert_eq!(std::fs::read_to_string(path).expect("read"), "theirs");
    }
}

#[test]
fn a_folder_that_was_put_aside_is_closed_before_it_is_used_again() {
    let Some(bed) = Bed::new(&["run.sh"], &[]) else { return };
    bed.leave(|work| {
        for kept in ["outputs", "checkpoints"] {
            symlink(Path::new("../..").join(kept), work.join(kept)).expect("linked");
        }
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(work, open).expect("opened");
    });
    let before = std::fs::metadata(&bed.places.work).expect("there").ino();
    bed.prepare();
    let about = std::fs::metadata(&bed.places.work).expect("there");
    assert_eq!((about.ino(), about.uid(), about.mode() & 0o7777), (before, 0, 0o700));
}

#[test]
fn a_task_that_plants_links_while_another_is_made_ready_gains_nothing() {
    let names: Vec<String> = (0..40).map(|n| format!("f{n:02}")).chain(["zz".into()]).collect();
    let code: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(mut bed) = Bed::new(&code, &[]) else { return };
    bed.prepare();
    give(&bed.places.work, Some(UID)).expect("given");
    let work = bed.places.folder.join("work");
    // In each folder as soon as it is there, and in those that are there already.
    let script = r#"while :; do for d in p0-a1-r*; do ln -sf "$1" "$d/zz"; done; done"#;
    let victim = &bed.victim;
    let mut sibling = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(victim)
        .current_dir(&work)
        .uid(UID)
        .gid(UID)
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    for rank in 0..200 {
        // Half of them are begun again, where the sibling has been.
        bed.launch.task.rank = rank / 2;
        bed.places = Places::of(&bed.launch);
        let ready = bed.places.prepare(&bed.launch, &ISOLATION, None);
        let given = ready.is_ok().then(|| give(&bed.places.work, Some(UID)));
        let safe = std::fs::read_to_string(&bed.victim).expect("read") == "safe";
        if ready.is_err() || given.is_none_or(|given| given.is_err()) || !safe {
            let _ = sibling.kill();
            panic!("rank {rank}: {ready:?}, safe: {safe}");
        }
    }
    sibling.kill().expect("ended");
    sibling.wait().expect("gone");
    bed.assert_safe();
}
