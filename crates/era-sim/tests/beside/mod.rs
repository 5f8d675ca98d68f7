//! Files that stand beside the project and are not part of it.

use std::path::PathBuf;

/// Where such a file is. Where it is absent, whoever asks says so and does nothing.
pub(crate) fn shared(file: &str) -> Option<PathBuf> {
    let root = std::env::var_os("ERA_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let path = root.join(file);
    if !path.exists() {
        #[allow(clippy::print_stderr)] // a skipped test says so
        {
            eprintln!("skipped: {} is not there", path.display());
        }
        return None;
    }
    Some(path)
}
