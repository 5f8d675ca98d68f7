//! Scalars that a job writes as TensorBoard event files into its outputs, read while they grow.
//!
//! Event files are TFRecords of protobuf messages (`frame`, `event`). Only what a scalar needs
//! is read of them; images, histograms and graphs are passed over. A scalar is called after its
//! folder in the outputs and its tag, as TensorBoard calls it: `fine-tune/loss`.
//!
//! A job may write anything there, so everything has a limit, links are not followed, and a file
//! that makes no sense is left alone from then on.

mod event;
mod frame;
mod tail;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use era_core::units::Time;

use crate::Sample;
use crate::log::{METRIC_NAME_MAX, STEP_MAX, is_metric_name};
use event::Scalar;
use tail::Tail;

/// Most event files of a job.
const FILES_MAX: usize = 256;
/// Most folders and files that are looked at in a job's outputs.
const ENTRIES_MAX: usize = 20_000;
/// Deepest folder that is looked into.
const DEPTH_MAX: usize = 8;
/// Most bytes that are read at a look; the rest waits for the next.
const BYTES_PER_LOOK_MAX: u64 = 16 << 20;
/// Most values that are taken at a look; the rest waits for the next.
const VALUES_PER_LOOK_MAX: usize = 20_000;

/// Follows the event files under a folder.
#[derive(Debug)]
pub struct Scalars {
    folder: PathBuf,
    files: BTreeMap<PathBuf, Tail>,
}

impl Scalars {
    /// Follows what is written under a job's outputs.
    pub fn new(folder: &Path) -> Scalars {
        Scalars { folder: folder.to_owned(), files: BTreeMap::new() }
    }

    /// What was written since the last look. Files that cannot be read are told to the log and
    /// left alone.
    pub fn look(&mut self, now: Time) -> Vec<Sample> {
        self.find_files();
        let mut bytes_left = BYTES_PER_LOOK_MAX;
        let mut samples = Vec::new();
        for (path, tail) in &mut self.files {
            let place = path.strip_prefix(&self.folder).ok().and_then(Path::parent);
            let prefix = place.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
            let values_left = VALUES_PER_LOOK_MAX.saturating_sub(samples.len());
            let scalars = tail.read(path, values_left, &mut bytes_left);
            samples.extend(scalars.into_iter().filter_map(|scalar| sample(&prefix, scalar, now)));
        }
        samples
    }

    /// Looks for files that TensorBoard would take for event files, without following links.
    fn find_files(&mut self) {
        let mut folders = vec![(self.folder.clone(), 0)];
        let mut seen = 0;
        while let Some((folder, depth)) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                seen += 1;
                if seen > ENTRIES_MAX || self.files.len() >= FILES_MAX {
                    return;
                }
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && depth < DEPTH_MAX {
                    folders.push((entry.path(), depth + 1));
                } else if kind.is_file() && is_event_file(&entry.file_name().to_string_lossy()) {
                    self.files.entry(entry.path()).or_default();
                }
            }
        }
    }
}

fn is_event_file(name: &str) -> bool {
    name.contains("tfevents")
}

/// A scalar as it is recorded; `None` where it is not finite.
fn sample(folder: &str, scalar: Scalar, now: Time) -> Option<Sample> {
    let name = metric_name(folder, &scalar.tag)?;
    let step = scalar.step.clamp(0, STEP_MAX.cast_signed()).cast_unsigned();
    let ms = scalar.wall_time_s * 1000.0;
    let in_range = ms.is_finite() && ms > 0.0 && ms < Time::LATEST.0 as f64;
    let at = if in_range { Time(ms as i64) } else { now };
    scalar.value.is_finite().then_some(Sample { name, step, at, value: scalar.value })
}

/// A name that metrics may have. What is too long loses its beginning: the tag stands at the end.
fn metric_name(folder: &str, tag: &str) -> Option<String> {
    let long = if folder.is_empty() { tag.to_owned() } else { format!("{folder}/{tag}") };
    let clean = |c: char| match c {
        '/' | '_' | '.' | '-' => c,
        c if c.is_ascii_alphanumeric() => c,
        _ => '_',
    };
    let mut name: String = long.chars().map(clean).collect();
    if name.len() > METRIC_NAME_MAX {
        name = name.split_off(name.len() - METRIC_NAME_MAX);
    }
    if name.starts_with("usage/") {
        name.replace_range(..6, "usage_");
    }
    is_metric_name(&name).then_some(name)
}

#[cfg(test)]
mod tests;
