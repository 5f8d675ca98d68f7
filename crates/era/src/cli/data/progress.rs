//! How transfers look: bars on a terminal, nothing elsewhere.

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
