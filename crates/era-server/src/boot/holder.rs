//! Where the tasks of a site are: on a machine, an engine, or behind a Redis. It is written beside
//! the lease of whoever runs tasks, so that another one that takes the lease and asks elsewhere does
//! not take all that runs for lost, and run it a second time.

use era_app::machine;
use era_store::Lease;

use super::BootError;

/// What has tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskHolder {
    /// By what it is told from others: its kind and a name that it keeps.
    id: String,
    /// What it is, as users read it.
    place: String,
}

impl TaskHolder {
    /// One of this kind, by a name that no other of the kind has.
    pub(super) fn new(kind: &str, name: &str, place: String) -> TaskHolder {
        let plain = |c: char| if c.is_ascii_graphic() { c } else { '-' };
        TaskHolder { id: format!("{kind}:{}", name.chars().map(plain).collect::<String>()), place }
    }

    /// The processes of this machine.
    pub(super) fn here() -> TaskHolder {
        TaskHolder::new("machine", machine::id(), format!("the machine {}", machine::name()))
    }

    /// As the database has it: what may be long is cut.
    fn written(&self) -> String {
        format!("{} {}", self.id, self.place).chars().take(255).collect()
    }

    /// What the database has; `None` where nobody ever ran a task.
    fn read(text: &str) -> Option<TaskHolder> {
        let (id, place) = text.split_once(' ')?;
        Some(TaskHolder { id: id.to_owned(), place: place.to_owned() })
    }

    /// Writes down that tasks are here from now on, or says where so many of them still are. Those
    /// of one that is named as gone for good are lost.
    pub(super) async fn settle(
        &self,
        lease: &Lease,
        tasks: usize,
        gone: Option<&str>,
    ) -> Result<(), BootError> {
        match TaskHolder::read(&lease.leader().await?.contact) {
            Some(there) if there.id != self.id && tasks > 0 && gone != Some(&there.id) => {
                let (here, TaskHolder { id, place }) = (self.place.clone(), there);
                Err(BootError::Elsewhere { tasks, place, here, id })
            }
            _ => Ok(lease.tell(&self.written()).await?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use era_store::{LeaseRole, Store};

    use super::*;

    #[tokio::test]
    async fn tasks_that_run_elsewhere_are_not_taken_for_lost_unless_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).await.unwrap();
        let lease = store.lease_of(LeaseRole::Cloud);
        let span = Duration::from_secs(60);
        assert_eq!(lease.acquire_with("a", None, span).await.unwrap(), None);
        let [first, other] = ["1", "2"]
            .map(|name| TaskHolder::new("machine", name, format!("the machine node-{name}")));
        first.settle(&lease, 3, None).await.unwrap();
        first.settle(&lease, 3, None).await.unwrap();
        let refused = other.settle(&lease, 3, None).await.unwrap_err().to_string();
        for part in ["3 tasks", "the machine node-1", "the machine node-2", "--abandon machine:1"] {
            assert!(refused.contains(part), "{refused}");
        }
        assert!(other.settle(&lease, 3, Some("machine:2")).await.is_err(), "another one is gone");
        // It is still the first one's.
        first.settle(&lease, 3, None).await.unwrap();
        // Once nothing runs, or it is said that what ran is gone, they may be elsewhere.
        other.settle(&lease, 0, None).await.unwrap();
        first.settle(&lease, 3, Some("machine:2")).await.unwrap();
        assert_eq!(TaskHolder::read(&lease.leader().await.unwrap().contact), Some(first));
        assert_ne!(TaskHolder::here().id, "machine:");
    }
}
