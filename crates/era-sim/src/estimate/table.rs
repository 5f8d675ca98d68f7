//! Rows of features, each column cut into a few bins: all that a booster looks at.

use era_core::estimate::feature::{FEATURES, Features};
use era_core::queue::fixed::Fixed;

/// Most bins of a column.
const BINS: usize = 64;

/// Features in bins, column by column.
pub struct Table {
    pub(super) rows: usize,
    pub(super) columns: Vec<Column>,
}

/// One feature of all rows.
pub(super) struct Column {
    /// Its number.
    pub(super) feature: u8,
    /// A value is in the first bin whose edge it does not exceed; beyond the last edge in one
    /// more.
    pub(super) edges: Vec<Fixed>,
    /// The bin of each row.
    pub(super) bins: Vec<u8>,
}

impl Table {
    /// A table of these rows, without some features.
    pub fn new(rows: &[&Features], without: &[u8]) -> Table {
        let features = (0..FEATURES as u8).filter(|feature| !without.contains(feature));
        // A column that is everywhere the same has nothing to tell.
        let columns = features.filter_map(|feature| Column::new(rows, feature)).collect();
        Table { rows: rows.len(), columns }
    }
}

impl Column {
    fn new(rows: &[&Features], feature: u8) -> Option<Column> {
        let values: Vec<Fixed> = rows.iter().map(|row| row.get(feature)).collect();
        let edges = edges(&values);
        if edges.is_empty() {
            return None;
        }
        let bin = |value: &Fixed| edges.partition_point(|edge| edge < value) as u8;
        let bins = values.iter().map(bin).collect();
        Some(Column { feature, edges, bins })
    }
}

/// Values that cut a column into parts of about the same size.
fn edges(values: &[Fixed]) -> Vec<Fixed> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let Some(last) = sorted.last().copied() else { return Vec::new() };
    let mut edges: Vec<Fixed> =
        (1..BINS).map(|bin| sorted[(sorted.len() * bin / BINS).min(sorted.len() - 1)]).collect();
    // A value that is rare but far out is cut off too.
    edges.insert(0, sorted[0]);
    edges.dedup();
    edges.retain(|edge| *edge < last);
    edges
}
