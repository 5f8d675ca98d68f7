//! How transfers look: bars on a terminal, nothing elsewhere.

use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over so many bytes, with rate and time left; hidden where standard error is no terminal.
pub(crate) fn bar(what: &str, bytes: u64) -> anyhow::Result<ProgressBar> {
    let style = "{msg:9} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left";
    let bar = ProgressBar::new(bytes).with_style(ProgressStyle::with_template(style)?);
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    Ok(bar)
}

/// Bytes as people read them.
pub(crate) fn bytes(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

/// A sentence beside the answer, on standard error.
pub(crate) fn note(sentence: &str) {
    // Whoever does not read them does not miss them.
    let _ = writeln!(std::io::stderr(), "{sentence}");
}
