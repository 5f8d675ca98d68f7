//! What would have happened: asked of whoever can replay a journal under another rule.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use era_core::units::{NodeId, Time};
use era_store::{Store, StoreError};

use super::ReportPeriod;

/// What came of a period in a replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counterfactual {
    /// Jobs that were accepted.
    pub jobs: u64,
    pub refusals: u64,
    /// Jobs that were started.
    pub started: u64,
    /// Mean wait from submission to the first start.
    pub wait_s: Option<f64>,
    /// Runs that ended, but for those that were given up.
    pub runs: u64,
    /// Of them, those that succeeded.
    pub runs_ok: u64,
    /// What machines gave out within the period: thousandths of a core, MiB and thousandths of a
    /// GPU, each times milliseconds.
    pub given: BTreeMap<NodeId, [i64; 3]>,
    /// By model of GPU, what jobs on them paid in millionths of a credit, and thousandths of a GPU
    /// times milliseconds that they had.
    pub by_model: BTreeMap<String, (i64, u128)>,
}

/// A period, replayed twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replays {
    /// Under the rules that it had: what this lacks of what happened is the method's own error.
    pub with: Counterfactual,
    /// First come first served and on demand.
    pub without: Counterfactual,
}

/// Replays a journal, as it was and without ERA.
pub trait Laboratory: Send + Sync {
    /// What came of the jobs that were handed in in `[from, to)`. The journal is a file as
    /// `era replay` reads it. Takes as long as it takes, and may block.
    fn replay(&self, journal: &Path, from: Time, to: Time) -> Result<Replays, String>;
}

/// The period replayed; `None` where another version of the core decided part of it, which this one
/// cannot carry out again.
pub async fn replays(
    laboratory: Arc<dyn Laboratory>,
    store: &Store,
    period: ReportPeriod,
) -> Result<Option<Replays>, StoreError> {
    let file = scratch(store.folder())?;
    let journal = store.journal();
    let segment = journal.segment_before(period.from).await?;
    if !journal.is_ours_from(segment).await? {
        return Ok(None);
    }
    journal.export_to(segment, file.path()).await?;
    let replay = move || laboratory.replay(file.path(), period.from, period.to);
    let replayed = tokio::task::spawn_blocking(replay);
    let damaged = |problem: String| StoreError::Damaged { what: "the journal".to_owned(), problem };
    let replayed = replayed.await.map_err(|e| damaged(e.to_string()))?;
    replayed.map(Some).map_err(damaged)
}

/// A file of a name that nobody else has, gone when nobody needs it any more: several may ask for
/// the same period at a time.
fn scratch(folder: &Path) -> Result<tempfile::NamedTempFile, StoreError> {
    let file = tempfile::Builder::new().prefix("report-").suffix(".ndjson").tempfile_in(folder);
    file.map_err(|source| StoreError::File { path: folder.to_owned(), source })
}
