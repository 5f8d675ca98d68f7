//! The platform's own folders: what a server or a worker keeps, and a backup of it.
//!
//! Any name may be given to one, so it is known by a file in it. Sent as somebody's code or data it
//! would be large, changed while it is read, and full of what is nobody else's business.

use std::io;
use std::path::Path;

/// The file that marks one.
const MARK: &str = ".era-folder";
const SAYS: &str = "This folder is kept by ERA. Its commands never send it as code or data.\n";

/// Marks a folder as the platform's own.
#[cfg(unix)]
pub(crate) fn mark(folder: &Path) -> io::Result<()> {
    let file = folder.join(MARK);
    if file.is_file() { Ok(()) } else { std::fs::write(file, SAYS) }
}

/// Whether a folder is the platform's own.
pub(crate) fn is_marked(folder: &Path) -> bool {
    folder.join(MARK).is_file()
}

/// Whether a folder is one of the platform's own, or within one and no job's: a job's folders, at
/// `jobs/N/NAME` and below, are its owner's.
pub(crate) fn is_within_one(folder: &Path) -> bool {
    let Some(own) = folder.ancestors().find(|ancestor| is_marked(ancestor)) else { return false };
    let within = folder.strip_prefix(own).unwrap_or(Path::new(""));
    let steps: Vec<_> = within.iter().filter_map(|step| step.to_str()).collect();
    !matches!(steps[..], ["jobs", job, _, ..] if job.parse::<u64>().is_ok())
}
