//! Progress bars, for people and for programs.
//!
//! A person sees a bar where there is a terminal. A program that starts this one with
//! `ERA_PROGRESS=lines` reads `progress DONE OF` on standard error twice a second.

use std::io::Write;
use std::time::Duration;

use indicatif::ProgressBar;

const EVERY: Duration = Duration::from_millis(500);

/// The same bar, told of in lines too where that is asked for.
pub(crate) fn told(bar: ProgressBar) -> ProgressBar {
    if std::env::var_os("ERA_PROGRESS").is_some_and(|how| how == "lines") {
        let watched = bar.clone();
        // It ends with its bar, or with the program.
        std::thread::spawn(move || {
            while !watched.is_finished() {
                let of = watched.length().unwrap_or(0);
                // Whoever does not listen any more has no use for the rest either.
                if writeln!(std::io::stderr(), "progress {} {of}", watched.position()).is_err() {
                    return;
                }
                std::thread::sleep(EVERY);
            }
        });
    }
    bar
}
