//! A job's terminal on this one: keys go there, what it shows comes here, and the window's size
//! follows.
//!
//! Written for whatever system a client runs on: the size is looked at now and then rather than
//! told by a signal, and one loop both types and shows.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use era_api::client::{ClientError, FromTerminal, Terminal};
use era_api::job::JobSpec;
use era_api::terminal::TerminalEnd;

use super::connection::Common;
use super::exit::BadUsage;
use super::follow::is_passing;
use super::look::note;
use crate::clock::instant;

/// How often the window's size is looked at.
const SIZE_EVERY: Duration = Duration::from_millis(250);
/// How long a key is waited for before it is looked whether something is to be shown: while
/// something happens, and else.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(20);
const BUSY: Duration = Duration::from_secs(1);
/// So much is shown before keys are looked at.
const PIECES_MAX: usize = 64;
/// How often in a row, and after how long, a connection that broke is made again.
const TRIES_MAX: u32 = 30;
const AGAIN: Duration = Duration::from_secs(1);

/// Ctrl-C as a key.
const CTRL_C: u8 = 3;

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The task is over.
    Over(TerminalEnd),
    /// Whoever sat here left, and the task goes on.
    Detached,
}

/// Refuses where nobody can type.
pub(crate) fn must_be_here() -> anyhow::Result<()> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    let what = "this is no terminal, so nobody could type into the job's: leave --pty out, or \
                hand the job in with --detach and use `era attach` at a terminal";
    Err(BadUsage(what.to_owned()).into())
}

/// Tells a job with a terminal which kind this one is.
pub(crate) fn tell_kind(job: &mut JobSpec) {
    if let (true, Ok(kind)) = (job.work.terminal, std::env::var("TERM")) {
        job.work.env.entry("TERM".to_owned()).or_insert(kind);
    }
}

/// Attaches to a running job, and again should the connection break, until its task is over or
/// whoever sits here leaves.
pub(crate) fn attend(common: &Common, job: u64, rank: u32) -> anyhow::Result<Left> {
    let mut terminal = common.client()?.attach(job, rank)?;
    note(&format!("Attached to job {job}; `~.` at the beginning of a line leaves it running."));
    let (keys, mut escape) = (keys(), Escape::new());
    let raw = Raw::on()?;
    loop {
        let broke = match session(&mut terminal, &keys, &mut escape) {
            Err(error) => match error.downcast::<ClientError>() {
                Ok(broke) if is_passing(&broke) => broke,
                Ok(other) => return Err(other.into()),
                Err(other) => return Err(other),
            },
            left => {
                drop(raw);
                // What was shown may have ended in the middle of a line.
                writeln!(std::io::stderr())?;
                return left;
            }
        };
        write!(std::io::stderr(), "\r\n{broke}: trying again\r\n")?;
        terminal = match again(common, job, rank, &keys, &mut escape)? {
            Some(terminal) => terminal,
            None => return Ok(Left::Detached),
        };
    }
}

/// Connects again: the server may be restarted while a job runs. Nothing if whoever sits here would
/// rather leave.
fn again(
    common: &Common,
    job: u64,
    rank: u32,
    keys: &Receiver<Vec<u8>>,
    escape: &mut Escape,
) -> anyhow::Result<Option<Terminal>> {
    let mut tries = 0;
    loop {
        // Nobody but us hears the keys for now.
        match keys.recv_timeout(AGAIN) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Ok(pressed) => {
                escape.take(&pressed);
                if escape.leaves || pressed.contains(&CTRL_C) {
                    return Ok(None);
                }
                continue;
            }
        }
        tries += 1;
        match common.client()?.attach(job, rank) {
            Ok(terminal) => return Ok(Some(terminal)),
            Err(error) if tries < TRIES_MAX && is_passing(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Types and shows until either end leaves.
fn session(
    terminal: &mut Terminal,
    keys: &Receiver<Vec<u8>>,
    escape: &mut Escape,
) -> anyhow::Result<Left> {
    let mut out = std::io::stdout().lock();
    let (mut size, mut looked) = (None, None::<Instant>);
    let mut busy = instant();
    loop {
        if looked.is_none_or(|at| at.elapsed() >= SIZE_EVERY) {
            looked = Some(instant());
            // One that does not know its size says that it has none.
            let now =
                crossterm::terminal::size().ok().filter(|(cols, rows)| *cols > 0 && *rows > 0);
            if let Some((cols, rows)) = now.filter(|_| now != size) {
                terminal.resize(rows, cols)?;
                size = now;
            }
        }
        let mut pieces = 0;
        while pieces < PIECES_MAX {
            match terminal.hear()? {
                Some(FromTerminal::Shown(bytes)) => out.write_all(&bytes)?,
                Some(FromTerminal::End(end)) => {
                    out.flush()?;
                    return Ok(Left::Over(end));
                }
                None => break,
            }
            pieces += 1;
        }
        if pieces > 0 {
            out.flush()?;
            busy = instant();
        }
        let pause = match pieces {
            PIECES_MAX => Duration::ZERO,
            _ if busy.elapsed() < BUSY => PAUSE_MIN,
            _ => PAUSE_MAX,
        };
        if !terminal.flush()? {
            // What was typed before comes first.
            std::thread::sleep(pause);
            continue;
        }
        match keys.recv_timeout(pause) {
            Ok(pressed) => {
                busy = instant();
                let typed = escape.take(&pressed);
                if !typed.is_empty() {
                    terminal.type_in(&typed)?;
                    terminal.flush()?;
                }
                if escape.leaves {
                    return Ok(Left::Detached);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(Left::Detached),
        }
    }
}

/// Keys as they are pressed, for as long as the command runs.
fn keys() -> Receiver<Vec<u8>> {
    let (sender, keys) = sync_channel(16);
    std::thread::spawn(move || {
        let mut pressed = [0; 4096];
        while let Ok(read) = std::io::Read::read(&mut std::io::stdin().lock(), &mut pressed) {
            if read == 0 || sender.send(pressed[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    keys
}

/// This terminal gives every key as it is, until the value is dropped.
struct Raw {
    #[cfg(windows)]
    before: Option<u32>,
}

impl Raw {
    fn on() -> std::io::Result<Raw> {
        #[cfg(windows)]
        let before = console::mode();
        crossterm::terminal::enable_raw_mode()?;
        #[cfg(windows)]
        console::speak_as_terminals_do();
        Ok(Raw {
            #[cfg(windows)]
            before,
        })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // It cannot be helped where it fails.
        let _ = crossterm::terminal::disable_raw_mode();
        #[cfg(windows)]
        console::restore(self.before);
    }
}

/// What Windows' console needs to be told beside, so that arrows are sent as other terminals send
/// them, and what is shown is obeyed as others obey it.
#[cfg(windows)]
mod console {
    use crossterm_winapi::{ConsoleMode, Handle};

    /// `ENABLE_VIRTUAL_TERMINAL_INPUT`.
    const AS_TERMINALS_DO: u32 = 0x0200;

    fn console() -> Option<ConsoleMode> {
        Handle::current_in_handle().ok().map(ConsoleMode::from)
    }

    pub(super) fn mode() -> Option<u32> {
        console()?.mode().ok()
    }

    pub(super) fn speak_as_terminals_do() {
        crossterm::ansi_support::supports_ansi();
        if let (Some(console), Some(mode)) = (console(), mode()) {
            // Without it arrows are not sent, and all else works.
            let _ = console.set_mode(mode | AS_TERMINALS_DO);
        }
    }

    pub(super) fn restore(before: Option<u32>) {
        if let (Some(console), Some(before)) = (console(), before) {
            let _ = console.set_mode(before);
        }
    }
}

/// Finds `~.` at the beginning of a line among the keys, as ssh does; `~~` there is one `~`.
#[derive(Debug, PartialEq, Eq)]
struct Escape {
    begins_line: bool,
    tilde: bool,
    leaves: bool,
}

impl Escape {
    fn new() -> Escape {
        Escape { begins_line: true, tilde: false, leaves: false }
    }

    /// What of these keys is for the job.
    fn take(&mut self, keys: &[u8]) -> Vec<u8> {
        let mut typed = Vec::with_capacity(keys.len());
        for key in keys {
            if self.leaves {
                break;
            }
            if std::mem::take(&mut self.tilde) {
                match key {
                    b'.' => self.leaves = true,
                    b'~' => {}
                    _ => typed.push(b'~'),
                }
            } else if self.begins_line && *key == b'~' {
                (self.tilde, self.begins_line) = (true, false);
                continue;
            }
            if !self.leaves {
                typed.push(*key);
            }
            self.begins_line = matches!(key, b'\r' | b'\n');
        }
        typed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str) -> (String, bool) {
        let mut escape = Escape::new();
        let typed: Vec<u8> = keys.bytes().flat_map(|key| escape.take(&[key])).collect();
        let mut at_once = Escape::new();
        assert_eq!(at_once.take(keys.as_bytes()), typed, "however they arrive");
        assert_eq!(at_once, escape);
        (String::from_utf8(typed).unwrap(), escape.leaves)
    }

    #[test]
    fn a_tilde_and_a_dot_leave_at_the_beginning_of_a_line_only() {
        assert_eq!(typed("~."), (String::new(), true));
        assert_eq!(typed("ls\r~.never"), ("ls\r".to_owned(), true));
        assert_eq!(typed("ls ~.\r"), ("ls ~.\r".to_owned(), false));
        assert_eq!(typed("~~."), ("~.".to_owned(), false));
        assert_eq!(typed("~/bin\r"), ("~/bin\r".to_owned(), false));
        assert_eq!(typed("~\r~."), ("~\r".to_owned(), true));
    }
}
