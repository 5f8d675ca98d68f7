//! Which GPUs of this machine are not a task's own, as the files that they are opened by.
//!
//! A variable tells a program which GPUs to use, and the program may clear it. What it cannot open
//! it cannot use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the driver of NVIDIA tells which GPU is which file.
pub(crate) const DRIVER: &str = "/proc/driver/nvidia/gpus";
/// Where those files are.
pub(crate) const DEVICES: &str = "/dev";

/// The files of the GPUs that are not among these. Where it cannot be said which file is which,
/// none: a task must be able to use what it was given.
pub(crate) fn of_others(own: &[&str], devices: &Path, driver: &Path) -> Vec<PathBuf> {
    let own = if own.is_empty() { Some(Vec::new()) } else { numbers(own, driver) };
    let Some(own) = own else { return Vec::new() };
    let mut others = Vec::new();
    for entry in std::fs::read_dir(devices).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("nvidia")?.parse().ok());
        if number.is_some_and(|number: u32| !own.contains(&number)) {
            others.push(entry.path());
        }
    }
    others.sort();
    others
}

/// The numbers of the files of these GPUs, if all of them are known.
fn numbers(gpus: &[&str], driver: &Path) -> Option<Vec<u32>> {
    let mut known = BTreeMap::new();
    for entry in std::fs::read_dir(driver).ok()?.flatten() {
        let text = std::fs::read_to_string(entry.path().join("information")).ok()?;
        let value = |name: &str| {
            text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        if let (Some(gpu), Some(number)) = (value("GPU UUID:"), value("Device Minor:")) {
            known.insert(gpu, number.parse().ok()?);
        }
    }
    gpus.iter().map(|gpu| known.get(*gpu).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose first GPU has the last file.
    fn machine() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let (devices, driver) = (folder.path().join("dev"), folder.path().join("gpus"));
        std::fs::create_dir(&devices).expect("made");
        for name in ["null", "nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm"] {
            std::fs::write(devices.join(name), "").expect("written");
        }
        for (gpu, number) in [("GPU-a", 2), ("GPU-b", 0), ("GPU-c", 1)] {
            let at = driver.join(format!("0000:0{number}:00.0"));
            std::fs::create_dir_all(&at).expect("made");
            let text = format!("Model: \t X\nGPU UUID: \t {gpu}\nDevice Minor: \t {number}\n");
            std::fs::write(at.join("information"), text).expect("written");
        }
        (folder, devices, driver)
    }

    #[test]
    fn the_gpus_of_others_are_those_that_were_not_given() {
        let (_folder, devices, driver) = machine();
        let others = |own: &[&str]| -> Vec<String> {
            let found = of_others(own, &devices, &driver);
            let name = |path: &PathBuf| path.file_name().map(|n| n.to_string_lossy().into_owned());
            found.iter().filter_map(name).collect()
        };
        assert_eq!(others(&[]), ["nvidia0", "nvidia1", "nvidia2"]);
        assert_eq!(others(&["GPU-a"]), ["nvidia0", "nvidia1"]);
        assert_eq!(others(&["GPU-c", "GPU-b"]), ["nvidia2"]);
        assert_eq!(others(&["GPU-a", "GPU-unknown"]), [""; 0], "its own might be among them");
    }

    #[test]
    fn a_machine_without_gpus_has_none_of_others() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("null"), "").expect("written");
        assert!(of_others(&[], folder.path(), &folder.path().join("none")).is_empty());
        assert!(of_others(&[], &folder.path().join("none"), folder.path()).is_empty());
    }
}
