//! Upgrades: the state of a closed segment of an older version, brought to ours.
//!
//! A binary carries out again only what its own version decided. So the release that wrote a
//! segment must have closed it, which a clean stop does: then a state stands for all that came
//! before, and it is changed from version to version until it is of ours. What it becomes is the
//! beginning of a new segment; the old ones stay as they are.

use era_core::State;
use serde_json::Value;

use super::Journal;
use super::segment::{OURS, Segment, Versions};
use crate::StoreError;

mod phases;

/// What makes a state of one version a state of a later one.
pub(super) struct Migration {
    pub(super) from: Versions,
    pub(super) to: Versions,
    /// Changes the state as it is kept; says what stands in the way.
    pub(super) change: fn(&mut Value) -> Result<(), String>,
}

/// Every step there is, one for each change of a version. Steps stay here for as long as somebody may
/// come from the version that they begin with.
const STEPS: &[Migration] = &[
    // It decides otherwise about parts that are lost together, and about exits told late; what it
    // knows has the same form.
    Migration {
        from: Versions { core: 1, wire: 1 },
        to: Versions { core: 2, wire: 1 },
        change: |_| Ok(()),
    },
    // It preempts otherwise, and waits for the nodes of a gang that fails. What it knows more of a
    // part is nothing at first.
    Migration {
        from: Versions { core: 2, wire: 1 },
        to: Versions { core: 3, wire: 1 },
        change: |_| Ok(()),
    },
    // It decides the same; what a part has while it waits, is booked or runs stands in its phase.
    Migration {
        from: Versions { core: 3, wire: 1 },
        to: Versions { core: 4, wire: 1 },
        change: phases::bring,
    },
];

impl Journal {
    /// Whether this version wrote the journal from this segment on; from the first where nothing is
    /// said.
    pub async fn is_ours_from(&self, segment: Option<u64>) -> Result<bool, StoreError> {
        let heads = self.heads().await?;
        let mut from = heads.iter().filter(|head| segment.is_none_or(|from| head.number >= from));
        Ok(from.all(|head| head.versions() == OURS))
    }

    /// Brings the newest segment to this version, if an older one wrote it; says whether it did.
    /// For whoever leads, before anything is restored.
    pub async fn migrate(&self) -> Result<bool, StoreError> {
        self.migrate_by(STEPS).await
    }

    pub(super) async fn migrate_by(&self, steps: &'static [Migration]) -> Result<bool, StoreError> {
        let Some(head) = self.heads().await?.pop() else { return Ok(false) };
        let found = head.versions();
        if found == OURS {
            return Ok(false);
        }
        let Some(chain) = chain(steps, found) else { return head.check().map(|()| false) };
        let (segment, last) = (head.number, self.last_seq().await?);
        let behind = (last + 1).saturating_sub(head.first_seq);
        if behind > 0 {
            return Err(StoreError::Unclosed { segment, behind });
        }
        let text = self.state_text(segment).await?;
        let changed = tokio::task::spawn_blocking(move || change(&text, &chain)).await;
        let state = changed.unwrap_or_else(|fault| Err(fault.to_string()));
        let wrong = |problem| StoreError::Damaged {
            what: format!("segment {segment} of the journal, brought to this version,"),
            problem,
        };
        let state = state.map_err(wrong)?;
        if state.seq() != last {
            return Err(wrong(format!("its state is of input {}, not of {last}", state.seq())));
        }
        self.begin_segment(&Segment::of(&state)).await?;
        tracing::info!(segment, ?found, ours = ?OURS, "the journal was brought to this version");
        Ok(true)
    }
}

/// The steps from a version to ours, in order; `None` where no road leads there.
fn chain(steps: &'static [Migration], found: Versions) -> Option<Vec<&'static Migration>> {
    let (mut at, mut chain) = (found, Vec::new());
    // A road that comes back to where it was has more steps than there are.
    while at != OURS && chain.len() <= steps.len() {
        let step = steps.iter().find(|step| step.from == at)?;
        chain.push(step);
        at = step.to;
    }
    (at == OURS).then_some(chain)
}

fn change(text: &str, chain: &[&Migration]) -> Result<Box<State>, String> {
    let mut state: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    for step in chain {
        (step.change)(&mut state)?;
        if let Some(version) = state.get_mut("core_version") {
            *version = step.to.core.into();
        }
    }
    serde_json::from_value(state).map_err(|e| e.to_string())
}
