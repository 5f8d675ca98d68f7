//! Where a job stands.

use serde::{Deserialize, Serialize};

/// Where a job stands.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// In a queue.
    Waiting,
    /// It has a promise that has not begun.
    Promised,
    /// Its tasks were sent out.
    Starting,
    Running,
    /// It was told to stop.
    Stopping,
    /// Every task exited with 0.
    Succeeded,
    /// A task exited with another code.
    Failed,
    /// Its owner gave it up, or what it waited for cannot be any more.
    Cancelled,
    /// Its owner gave back what was left.
    Released,
    /// Its time was over.
    LimitReached,
    /// The promise could not be kept.
    Broken,
}

impl JobState {
    /// All of them, in order.
    pub const ALL: [JobState; 11] = [
        JobState::Waiting,
        JobState::Promised,
        JobState::Starting,
        JobState::Running,
        JobState::Stopping,
        JobState::Succeeded,
        JobState::Failed,
        JobState::Cancelled,
        JobState::Released,
        JobState::LimitReached,
        JobState::Broken,
    ];

    /// Its place among [`JobState::ALL`], by which tables keep it.
    pub fn number(self) -> i64 {
        self as i64
    }

    /// The state with this number.
    pub fn numbered(number: i64) -> Option<JobState> {
        JobState::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether the job is over.
    pub fn is_over(self) -> bool {
        self >= JobState::Succeeded
    }

    /// As it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Waiting => "waiting",
            JobState::Promised => "promised",
            JobState::Starting => "starting",
            JobState::Running => "running",
            JobState::Stopping => "stopping",
            JobState::Succeeded => "succeeded",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
            JobState::Released => "released",
            JobState::LimitReached => "limit_reached",
            JobState::Broken => "broken",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_by_its_number() {
        for state in JobState::ALL {
            assert_eq!(JobState::numbered(state.number()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert_eq!(JobState::numbered(11), None);
    }
}
