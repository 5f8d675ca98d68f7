//! Rows of features, each column cut into a few bins: all that a booster looks at.

use era_core::estimate::feature::{FEATURES, Features};
use era_core::queue::fixed::Fixed;

/// How finely columns are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// For what rises and falls with a feature.
    Coarse,
    /// For what hangs on single values, such as one owner's habit: as fine as it goes.
    Fine,
}

impl Cut {
    /// Most bins of a column.
    const fn bins(self) -> usize {
        match self {
            Cut::Coarse => 64,
            Cut::Fine => 255,
        }
    }
}

/// Features in bins, column by column.
pub struct Table {
    pub(super) rows: usize,
    pub(super) columns: Vec<Column>,
}

/// One feature of all rows.
pub(super) struct Column {
    pub(super) feature: u8,
    /// A value is in the first bin whose edge it does not exceed; beyond the last edge in one
    /// more.
    pub(super) edges: Vec<Fixed>,
    /// The bin of each row.
    pub(super) bins: Vec<u8>,
}

impl Table {
    /// A table of these rows, without some features.
    pub fn new(rows: &[&Features], without: &[u8], cut: Cut) -> Table {
        let features = (0..FEATURES as u8).filter(|feature| !without.contains(feature));
        // A column that is everywhere the same has nothing to tell.
        let columns =
            features.filter_map(|feature| Column::new(rows, feature, cut.bins())).collect();
        Table { rows: rows.len(), columns }
    }
}

impl Column {
    fn new(rows: &[&Features], feature: u8, bins: usize) -> Option<Column> {
        let values: Vec<Fixed> = rows.iter().map(|row| row.get(feature)).collect();
        let edges = edges(&values, bins);
        if edges.is_empty() {
            return None;
        }
        let bin = |value: &Fixed| edges.partition_point(|edge| edge < value) as u8;
        let bins = values.iter().map(bin).collect();
        Some(Column { feature, edges, bins })
    }
}

/// Values that cut a column into parts of about the same size.
fn edges(values: &[Fixed], bins: usize) -> Vec<Fixed> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let Some(last) = sorted.last().copied() else { return Vec::new() };
    let mut edges: Vec<Fixed> =
        (1..bins).map(|bin| sorted[(sorted.len() * bin / bins).min(sorted.len() - 1)]).collect();
    // A value that is rare but far out is cut off too.
    edges.insert(0, sorted[0]);
    edges.dedup();
    edges.retain(|edge| *edge < last);
    edges
}
