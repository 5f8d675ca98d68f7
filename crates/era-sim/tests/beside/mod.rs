//! Files that stand beside the project and are not part of it.

#[path = "../../../skipped.rs"]
pub(crate) mod skipped;

use std::path::PathBuf;

/// Where such a file is. Where it is absent the test is skipped.
pub(crate) fn shared(file: &str) -> Option<PathBuf> {
    let root = std::env::var_os("ERA_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let path = root.join(file);
    if !path.exists() {
        let beside = "beside the project, nor where ERA_SHARED points";
        skipped::skipped(&format!("no shared/{file} {beside}"));
        return None;
    }
    Some(path)
}
