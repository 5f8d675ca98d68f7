//! The folder of a server on this machine: whether one could start on it, and what stands in its
//! way.

use std::path::{Path, PathBuf};

use era_store::StoreError;
use era_store::examine::{Examined, JournalFound};
use indicatif::HumanBytes;
use jiff::Timestamp;

use super::{CLOCK_SECONDS_MAX, Finding, Findings};
use crate::upkeep::Rows;

/// With less room than this a server soon cannot write.
const FREE_BYTES_LEAST: u64 = 64 << 20;
/// With less than this it is time to make room.
const FREE_BYTES_FEW: u64 = 1 << 30;
/// Files and folders that can still be made, likewise.
const FREE_FILES_FEW: u64 = 10_000;
/// No clock that was ever set is before this.
const CLOCK_LEAST_S: i64 = 1_704_067_200;

/// What the doctor saw.
#[derive(Debug)]
pub(super) struct FolderInspection {
    folder: PathBuf,
    now: Timestamp,
    /// Whether files can be made; else why not.
    writable: Result<(), String>,
    /// Bytes and files that can still be written.
    free: Option<(u64, u64)>,
    rows: Examined,
    limits: LimitsKind,
}

/// How jobs are held to what they asked for.
#[derive(Debug)]
enum LimitsKind {
    /// By control groups, but for what is said of them here.
    Groups(Vec<String>),
    /// By kills: this system has no groups.
    Kills,
}

/// Looks, and leaves all as it is.
pub(super) fn examine(
    folder: &Path,
    rows: &Rows,
    now: Timestamp,
) -> anyhow::Result<FolderInspection> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let place = rows.place(folder);
    Ok(FolderInspection {
        folder: folder.to_owned(),
        now,
        writable: tempfile::tempfile_in(folder).map(drop).map_err(|error| error.to_string()),
        free: rustix::fs::statvfs(folder)
            .ok()
            .map(|disk| (disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_favail)),
        rows: runtime.block_on(era_store::examine::examine(&place)),
        limits: limits(),
    })
}

fn limits() -> LimitsKind {
    if cfg!(not(target_os = "linux")) {
        return LimitsKind::Kills;
    }
    let name = format!("era-doctor-{}", std::process::id());
    let (groups, notes) = era_cloud::limits::cgroups::Cgroups::set_up(&name);
    groups.remove();
    LimitsKind::Groups(notes)
}

/// The findings, from what was seen.
pub(super) fn judge(seen: &FolderInspection) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    folder(&mut findings, seen);
    for (name, whole) in &seen.rows.databases {
        match whole {
            Ok(()) => findings.good("database", format!("{name} is whole")),
            Err(error) if is_absent(error) && name != "era.db" => {
                findings.warn("database", format!("{name} is not there: a start makes it anew"));
            }
            Err(error) => findings.broken("database", cure(name, error)),
        }
    }
    match &seen.rows.journal {
        None => {}
        Some(Ok(None)) => findings.warn("journal", "is empty: no server has run here"),
        Some(Ok(Some(found))) => journal(&mut findings, seen, found),
        Some(Err(error)) => findings.broken("journal", damaged(error)),
    }
    match &seen.limits {
        LimitsKind::Kills => {
            let cure = "run jobs that must be held to theirs on Linux, or in containers with \
                        `era up --executor docker://…`";
            findings.warn("limits", format!("{}: {cure}", era_cloud::shim::LIMITS_WITHOUT_LINUX));
        }
        LimitsKind::Groups(notes) if notes.is_empty() => {
            findings.good("limits", "control groups hold jobs to what they asked for");
        }
        LimitsKind::Groups(notes) => {
            let cure =
                "start the server as root, or let its service have the groups (Delegate=yes)";
            findings.warn("limits", format!("{}: {cure}", notes.join("; ")));
        }
    }
    findings.0
}

fn folder(findings: &mut Findings, seen: &FolderInspection) {
    let name = seen.folder.display();
    match &seen.writable {
        Ok(()) => findings.good("folder", format!("{name} can be written")),
        Err(error) => {
            let cure = "mount its disk for writing, or ask as the user whose it is";
            findings.broken("folder", format!("{name} cannot be written: {error}: {cure}"));
        }
    }
    let Some((bytes, files)) = seen.free else { return };
    let free = format!("{} and {files} files are free", HumanBytes(bytes));
    let cure = "make room, or let `era up --keep-outputs 90d` remove what old jobs left";
    if bytes < FREE_BYTES_LEAST || files == 0 {
        findings.broken("disk", format!("{free}, and a server must be able to write: {cure}"));
    } else if bytes < FREE_BYTES_FEW || files < FREE_FILES_FEW {
        findings.warn("disk", format!("{free}: {cure}"));
    } else {
        findings.good("disk", free);
    }
}

fn journal(findings: &mut Findings, seen: &FolderInspection, found: &JournalFound) {
    let JournalFound { seq, replayed, last } = found;
    findings.good("journal", format!("{seq} entries, {replayed} of them since the last state"));
    let ahead_s = last.0.div_euclid(1000) - seen.now.as_second();
    if seen.now.as_second() < CLOCK_LEAST_S {
        findings.broken("clock", format!("it says {}: run a time service", seen.now));
    } else if ahead_s > CLOCK_SECONDS_MAX {
        findings.warn(
            "clock",
            format!(
                "it is {ahead_s} s behind the last entry of the journal, and time stands still for the \
                 scheduler until it has caught up: run a time service"
            ),
        );
    } else {
        findings.good("clock", "is not behind the journal");
    }
}

fn is_absent(error: &StoreError) -> bool {
    match error {
        StoreError::File { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// What is wrong with a database, and what to do about it.
fn cure(name: &str, error: &StoreError) -> String {
    match (name, error) {
        ("era.db", StoreError::File { path, .. }) if is_absent(error) => {
            format!("{} is not there: give the folder of `era up --data`", path.display())
        }
        ("tables.db", error) => {
            let cure = "stop the server, remove it, and run `era admin rebuild`";
            format!("{}: {cure}", plain(error))
        }
        ("metrics.db", error) => {
            let cure = "stop the server and remove it; what jobs told so far is lost with it";
            format!("{}: {cure}", plain(error))
        }
        (_, error) => damaged(error),
    }
}

/// What is damaged cannot be mended here.
fn damaged(error: &StoreError) -> String {
    match error {
        StoreError::Damaged { .. } | StoreError::Database(_) | StoreError::File { .. } => {
            let cure = "stop the server, keep a copy, and bring back a backup with \
                        `era admin restore`";
            format!("{}: {cure}", plain(error))
        }
        // These say themselves what to do.
        other => other.to_string(),
    }
}

/// What is wrong, without what somebody else would say to do.
fn plain(error: &StoreError) -> String {
    match error {
        StoreError::Damaged { what, problem } => format!("{what} is damaged: {problem}"),
        StoreError::Database(error) => error.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use era_core::units::Time;

    use super::*;
    use crate::cli::look;

    fn seen(databases: Vec<(String, Result<(), StoreError>)>) -> FolderInspection {
        let found = JournalFound { seq: 1200, replayed: 20, last: Time::from_s(1_800_000_000) };
        FolderInspection {
            folder: "/srv/era".into(),
            now: Timestamp::from_second(1_800_000_001).unwrap(),
            writable: Ok(()),
            free: Some((50 << 30, 1_000_000)),
            rows: Examined { databases, journal: Some(Ok(Some(found))) },
            limits: LimitsKind::Groups(Vec::new()),
        }
    }

    fn told(seen: &FolderInspection) -> String {
        super::super::render(&judge(seen), &look::plain())
    }

    #[test]
    fn a_folder_on_which_a_server_can_start_is_good_in_every_way() {
        let databases = ["era.db", "tables.db", "metrics.db"].map(|name| (name.to_owned(), Ok(())));
        insta::assert_snapshot!(told(&seen(databases.into())));
    }

    #[test]
    fn where_there_are_no_control_groups_nobody_is_told_to_switch_them_on() {
        let told = told(&FolderInspection { limits: LimitsKind::Kills, ..seen(Vec::new()) });
        assert!(told.contains("no control groups") && told.contains("docker://"), "{told}");
        assert!(!told.contains("Delegate"), "{told}");
    }

    #[test]
    fn what_stands_in_the_way_is_told_with_what_to_do() {
        let damaged = |what: &str| StoreError::Damaged {
            what: format!("/srv/era/{what}"),
            problem: "row 7 missing from index".to_owned(),
        };
        let absent = std::io::Error::from(std::io::ErrorKind::NotFound);
        let mut seen = seen(vec![
            ("era.db".to_owned(), Err(damaged("era.db"))),
            ("tables.db".to_owned(), Err(damaged("tables.db"))),
            (
                "metrics.db".to_owned(),
                Err(StoreError::File { path: "/srv/era/metrics.db".into(), source: absent }),
            ),
        ]);
        seen.writable = Err("Read-only file system (os error 30)".to_owned());
        seen.free = Some((10 << 20, 5));
        seen.limits = LimitsKind::Groups(vec!["control groups cannot be used in full".to_owned()]);
        seen.now = Timestamp::from_second(1_799_999_000).unwrap();
        insta::assert_snapshot!(told(&seen));
        let other = StoreError::OtherVersion { segment: 3, what: "core", found: 9, ours: 1 };
        seen.rows.journal = Some(Err(other));
        assert!(told(&seen).contains("start the release that wrote it"), "{}", told(&seen));
    }
}
