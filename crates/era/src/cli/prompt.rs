//! Questions to whoever sits at the terminal.

use std::io::{BufRead, IsTerminal, Read, Write};

use anyhow::{Context, bail};

/// Most of what is typed without being shown: more than anybody takes.
const TYPED_BYTES_MAX: usize = 64 << 10;

/// Whether somebody can be asked.
pub(crate) fn somebody_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether standard input is typed.
pub(crate) fn somebody_types() -> bool {
    std::io::stdin().is_terminal()
}

/// One line of an answer.
pub(crate) fn line(question: &str) -> anyhow::Result<String> {
    write!(std::io::stderr(), "{question}")?;
    std::io::stderr().flush()?;
    let mut answer = String::new();
    let read = std::io::stdin().lock().take(4096).read_line(&mut answer)?;
    if read == 0 {
        bail!("nobody answered");
    }
    Ok(answer.trim().to_owned())
}

/// Yes or no; an empty answer is yes.
pub(crate) fn yes(question: &str) -> anyhow::Result<bool> {
    loop {
        match line(&format!("{question} [Y/n] "))?.to_ascii_lowercase().as_str() {
            "" | "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}

/// A password, not shown while it is typed; from a pipe, its first line.
pub(crate) fn password(question: &str) -> anyhow::Result<String> {
    if !somebody_types() {
        let mut line = String::new();
        std::io::stdin().lock().take(4096).read_line(&mut line)?;
        return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
    }
    write!(std::io::stderr(), "{question}")?;
    std::io::stderr().flush()?;
    crossterm::terminal::enable_raw_mode().context("the terminal cannot hide what is typed")?;
    let typed = typed();
    crossterm::terminal::disable_raw_mode()?;
    writeln!(std::io::stderr())?;
    typed
}

fn typed() -> anyhow::Result<String> {
    use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, read};
    let mut text = String::new();
    loop {
        let Event::Key(key) = read()? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match key.code {
            KeyCode::Enter => return Ok(text),
            KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                bail!("given up")
            }
            KeyCode::Char(letter) if text.len() < TYPED_BYTES_MAX => text.push(letter),
            KeyCode::Backspace => _ = text.pop(),
            _ => {}
        }
    }
}
