//! What tasks are called on an engine: names and labels from (job, part, attempt, rank), and back.
//!
//! Names make a second start a no-op; labels are how running tasks are found after a restart. The
//! site is part of both, so that two servers on one engine never take each other's tasks.

use std::collections::HashMap;

use era_core::job::TaskId;
use era_core::units::JobId;

/// Which server's something is.
pub(super) const SITE: &str = "era.site";
const JOB: &str = "era.job";
const PART: &str = "era.part";
const ATTEMPT: &str = "era.attempt";
const RANK: &str = "era.rank";
/// What something is for, where it is no task.
pub(super) const PURPOSE: &str = "era.purpose";

/// A server among those that share an engine: eight letters and digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteId(String);

impl SiteId {
    /// The site of a data folder: made up once, and kept in it.
    pub fn of(folder: &std::path::Path) -> std::io::Result<SiteId> {
        let file = folder.join("docker-site");
        match std::fs::read_to_string(&file) {
            Ok(text) if is_site(text.trim()) => return Ok(SiteId(text.trim().to_owned())),
            Ok(_) => {
                let what = format!("{} holds no site: remove it", file.display());
                return Err(std::io::Error::other(what));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut random = [0_u8; 4];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let site = SiteId(random.iter().map(|byte| format!("{byte:02x}")).collect());
        std::fs::create_dir_all(folder)?;
        // Of several servers that share the folder and begin at once, one names the site.
        let draft = folder.join(format!("docker-site-{}", site.0));
        std::fs::write(&draft, &site.0)?;
        let named = std::fs::hard_link(&draft, &file);
        std::fs::remove_file(&draft)?;
        match named {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => SiteId::of(folder),
            named => named.map(|()| site),
        }
    }

    /// A site of this name, for tests and benchmarks that share an engine.
    pub fn named(name: &str) -> Option<SiteId> {
        is_site(name).then(|| SiteId(name.to_owned()))
    }

    /// As labels have it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_site(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// What a task is called.
pub(super) fn task_name(site: &SiteId, task: TaskId) -> String {
    format!("{}-r{}", gang_name(site, task), task.rank)
}

/// What a gang's network is called.
pub(super) fn gang_name(site: &SiteId, task: TaskId) -> String {
    format!("era-{}-j{}-p{}-a{}", site.0, task.job.0, task.part, task.attempt)
}

/// What a rank is called in its gang's network.
pub(super) fn rank_name(rank: u32) -> String {
    format!("rank-{rank}")
}

pub(super) fn labels(site: &SiteId, task: TaskId) -> HashMap<String, String> {
    [
        (SITE, site.0.clone()),
        (JOB, task.job.0.to_string()),
        (PART, task.part.to_string()),
        (ATTEMPT, task.attempt.to_string()),
        (RANK, task.rank.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// The task that these labels name, if they are all there and this site's.
pub(super) fn task(site: &SiteId, labels: &HashMap<String, String>) -> Option<TaskId> {
    if labels.get(SITE)? != &site.0 || labels.contains_key(PURPOSE) {
        return None;
    }
    Some(TaskId {
        job: JobId(labels.get(JOB)?.parse().ok()?),
        part: labels.get(PART)?.parse().ok()?,
        attempt: labels.get(ATTEMPT)?.parse().ok()?,
        rank: labels.get(RANK)?.parse().ok()?,
    })
}

/// The filter that finds what is this site's.
pub(super) fn ours(site: &SiteId) -> HashMap<String, Vec<String>> {
    HashMap::from([("label".to_owned(), vec![format!("{SITE}={}", site.0)])])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> SiteId {
        SiteId::named("0a1b2c3d").expect("a site")
    }

    const TASK: TaskId = TaskId { job: JobId(7), part: 1, attempt: 3, rank: 12 };

    #[test]
    fn a_name_tells_job_part_attempt_and_rank() {
        assert_eq!(task_name(&site(), TASK), "era-0a1b2c3d-j7-p1-a3-r12");
        assert_eq!(gang_name(&site(), TASK), "era-0a1b2c3d-j7-p1-a3");
    }

    #[test]
    fn a_task_is_found_again_by_its_labels() {
        assert_eq!(task(&site(), &labels(&site(), TASK)), Some(TASK));
    }

    #[test]
    fn labels_of_others_name_no_task_of_ours() {
        let other = SiteId::named("ffffffff").expect("a site");
        assert_eq!(task(&other, &labels(&site(), TASK)), None);
        for key in [JOB, PART, ATTEMPT, RANK] {
            let mut broken = labels(&site(), TASK);
            broken.insert(key.to_owned(), "x".to_owned());
            assert_eq!(task(&site(), &broken), None, "{key}");
            broken.remove(key);
            assert_eq!(task(&site(), &broken), None, "{key}");
        }
    }

    #[test]
    fn a_folder_keeps_its_site() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = SiteId::of(folder.path()).expect("a site");
        assert_eq!(SiteId::of(folder.path()).expect("a site"), first);
        std::fs::write(folder.path().join("docker-site"), "../..").expect("write");
        assert!(SiteId::of(folder.path()).is_err(), "what is no site is not used as one");
    }
}
