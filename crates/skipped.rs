//! For tests that need what a machine may not have: one that cannot be run says why, and is counted.
//!
//! What is counted goes to the file that `ERA_SKIPPED` names, a line for each: the test, a tab, and
//! why. `scripts/skips` reads it, and knows which may be (`.ci/skips`). Tests in Python and of the page
//! write to the same file. A harness of tests would say that they passed.

use std::io::Write as _;

/// This test is not run, for this reason.
pub(crate) fn skipped(why: &str) {
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    // Whoever runs a test gives its name to the thread that it runs on.
    let thread = std::thread::current();
    let line = format!("{}\t{why}\n", thread.name().unwrap_or("a test"));
    // Nobody reads it where neither can be written.
    let _ = write!(std::io::stderr(), "SKIPPED: {line}");
    if let Some(file) = std::env::var_os("ERA_SKIPPED") {
        // In one write, so that tests beside each other do not mix their lines.
        let opened = std::fs::File::options().create(true).append(true).open(file);
        let _ = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
