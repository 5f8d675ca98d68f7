//! Changes that are not in the journal: of accounts, data sets and the laboratory; and that what
//! everybody may look at is no longer as it was, without what happened. They are sent to whoever
//! listens at that moment, and kept for nobody: they only say that a look is worth while.

use std::time::Duration;

use era_api::event::EventView;
use era_core::units::{GroupId, Time, UserId};
use era_store::tables::VisibleJobs;
use tokio::time::Instant;

/// A listener hears of the cluster no more often than this: each of them looks again then.
const CLUSTER_EVERY: Duration = Duration::from_secs(2);

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterChange {
    /// A data set or its files. Everybody hears that, and not which.
    Data,
    /// An account, its tokens, its money or its limits, or a group's.
    Account(Option<UserId>, Option<GroupId>),
    /// A run of the laboratory, which is for administrators.
    Lab,
    /// What is booked, priced, running or waiting. Everybody hears that, and neither what nor whose.
    Cluster,
}

impl ClusterChange {
    /// Whether somebody who may see so much hears of it.
    pub fn is_for(self, seen: VisibleJobs) -> bool {
        match self {
            ClusterChange::Data | ClusterChange::Cluster => true,
            ClusterChange::Account(account, team) => seen.allows(account, team),
            ClusterChange::Lab => seen == VisibleJobs::All,
        }
    }

    /// As it is told.
    pub fn event(self, at: Time) -> EventView {
        let (kind, sentence) = match self {
            ClusterChange::Data => ("data_changed", "Data sets changed."),
            ClusterChange::Account(..) => ("account_changed", "Accounts or groups changed."),
            ClusterChange::Lab => ("lab_changed", "The laboratory got on."),
            ClusterChange::Cluster => {
                ("cluster_changed", "The calendar, the cluster or the queues changed.")
            }
        };
        EventView {
            id: String::new(),
            at: crate::wire::stamp(at),
            event: kind.to_owned(),
            job: None,
            user: None,
            sentence: sentence.to_owned(),
            parameters: era_api::Parameters::new(),
        }
    }
}

/// When a listener is told next that the cluster changed: at once after a pause, and no change is
/// left untold.
#[derive(Debug, Default)]
pub struct Pulse {
    changed: bool,
    last: Option<Instant>,
}

impl Pulse {
    /// Takes note that the cluster changed, or may have.
    pub fn note(&mut self) {
        self.changed = true;
    }

    /// When it is to be told; `None` while there is nothing to tell.
    pub fn due(&self) -> Option<Instant> {
        let pause = |last: Instant| last + CLUSTER_EVERY;
        self.changed.then(|| self.last.map_or_else(Instant::now, pause))
    }

    /// It is told.
    pub fn told(&mut self) {
        *self = Pulse { changed: false, last: Some(Instant::now()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_hears_that_the_cluster_changed_and_nothing_else_of_it() {
        assert!(
            ClusterChange::Cluster.is_for(VisibleJobs::Own(UserId(1)))
                && ClusterChange::Cluster.is_for(VisibleJobs::All)
        );
        let told = ClusterChange::Cluster.event(Time(7));
        assert_eq!((told.event.as_str(), told.job, told.user), ("cluster_changed", None, None));
        assert!(told.id.is_empty() && told.parameters.is_empty());
    }

    #[test]
    fn a_burst_is_told_at_once_and_once_more_after_it() {
        let mut pulse = Pulse::default();
        assert_eq!(pulse.due(), None);
        pulse.note();
        assert!(pulse.due().is_some_and(|due| due <= Instant::now()), "at once");
        let before = Instant::now();
        pulse.told();
        assert_eq!(pulse.due(), None, "nothing new");
        for _ in 0..100 {
            pulse.note();
        }
        let due = pulse.due().unwrap();
        assert!(due >= before + CLUSTER_EVERY && due <= Instant::now() + CLUSTER_EVERY);
    }
}
