//! A job's log as it grows, over a connection that is made again when it breaks: the server may
//! be restarted while a job runs.

use std::time::Duration;

use era_api::client::{Client, ClientError};
use era_api::job::{LogFilter, LogLine};

use super::look::note;

/// How often in a row a connection is made again without a line in between.
const TRIES_MAX: u32 = 30;
/// The failure of so many in a row is told.
const TOLD_AT: u32 = 2;
/// Between two of them.
const PAUSE: Duration = Duration::from_secs(1);

/// Gives each line to `take` until the job is over, or until `take` says that it is enough.
pub(crate) fn lines(
    client: &Client,
    job: u64,
    mut ask: LogFilter,
    mut take: impl FnMut(LogLine) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let mut failed = 0;
    loop {
        let broke = match client.follow_logs(job, &ask) {
            Ok(stream) => {
                let mut broke = None;
                for line in stream {
                    match line {
                        Ok(line) => {
                            failed = 0;
                            ask.from = Some(line.next);
                            if !take(line)? {
                                return Ok(());
                            }
                        }
                        Err(error) => broke = Some(error),
                    }
                }
                broke
            }
            Err(error) => Some(error),
        };
        let Some(error) = broke else { return Ok(()) };
        if !bears_with(&error, &mut failed) {
            return Err(error.into());
        }
    }
}

/// Asks for as long as a server may be away: it is started again, or another takes its place.
pub(crate) fn patiently<T>(ask: impl Fn() -> Result<T, ClientError>) -> Result<T, ClientError> {
    let mut failed = 0;
    loop {
        match ask() {
            Err(error) if bears_with(&error, &mut failed) => {}
            answered => return answered,
        }
    }
}

/// Waits a moment, where that may help. Whoever waits for longer is told why.
fn bears_with(error: &ClientError, failed: &mut u32) -> bool {
    *failed += 1;
    if *failed > TRIES_MAX || !is_passing(error) {
        return false;
    }
    if *failed == TOLD_AT {
        note(&format!("{error}: trying again"));
    }
    std::thread::sleep(PAUSE);
    true
}

/// Whether it may be gone in a moment.
pub(crate) fn is_passing(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. }
        | ClientError::NobodyBehind { .. }
        | ClientError::TimedOut { .. }
        | ClientError::Broken { .. } => true,
        ClientError::Refused(problem) => problem.status == 503,
        _ => false,
    }
}

/// A line as people read it, with its end: with its replica where there are several, with its
/// time on request. A piece of a line that goes on has no end yet.
pub(crate) fn shown(line: &LogLine, ranks: bool, time: Option<&jiff::tz::TimeZone>) -> String {
    let mut text = String::new();
    if let Some(zone) = time {
        let at = line.at.to_zoned(zone.clone());
        text += &at.strftime("%Y-%m-%d %H:%M:%S%.3f ").to_string();
    }
    if ranks {
        text += &format!("[{}] ", line.rank);
    }
    text += &tamed(&line.text);
    if !line.goes_on {
        text.push('\n');
    }
    text
}

/// Colours and cursors are the job's own affair; what could take over a terminal is not.
fn tamed(text: &str) -> std::borrow::Cow<'_, str> {
    let hostile = |c: char| c.is_control() && !matches!(c, '\t' | '\r' | '\x1b');
    let commands = text.contains("\x1b]") || text.contains("\x1bP") || text.contains("\x1b_");
    if !commands && !text.contains(hostile) {
        return text.into();
    }
    let plain = |c: char| if c == '\x1b' || hostile(c) { '\u{fffd}' } else { c };
    text.chars().map(plain).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> LogLine {
        LogLine {
            next: 1,
            at: "2026-11-15T12:00:00.25Z".parse().unwrap(),
            attempt: 1,
            rank: 3,
            stream: "out".to_owned(),
            text: text.to_owned(),
            goes_on: false,
        }
    }

    #[test]
    fn a_line_comes_as_it_was_printed_or_with_rank_and_time() {
        assert_eq!(shown(&line("hi"), false, None), "hi\n");
        let piece = LogLine { goes_on: true, ..line("hi") };
        assert_eq!(shown(&piece, false, None), "hi", "the rest follows");
        let utc = jiff::tz::TimeZone::UTC;
        let with_all = shown(&line("hi"), true, Some(&utc));
        assert_eq!(with_all, "2026-11-15 12:00:00.250 [3] hi\n");
    }

    #[test]
    fn colours_pass_and_what_takes_over_a_terminal_does_not() {
        assert_eq!(shown(&line("\x1b[31mred\x1b[0m"), false, None), "\x1b[31mred\x1b[0m\n");
        assert_eq!(shown(&line("\x1b]0;title\x07"), false, None), "\u{fffd}]0;title\u{fffd}\n");
        assert_eq!(shown(&line("a\u{0}b"), false, None), "a\u{fffd}b\n");
    }
}
