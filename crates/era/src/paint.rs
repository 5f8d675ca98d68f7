//! Colours. Middle tones of the 256-colour palette only, which read well on black and on white.

use std::io::IsTerminal;

/// What a piece of text means; the colour follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Title,
    Quiet,
    Good,
    Bad,
    Warn,
    Accent,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Tone::Title => "1",
            Tone::Quiet => "38;5;244",
            Tone::Good => "38;5;35",
            Tone::Bad => "38;5;167",
            Tone::Warn => "38;5;172",
            Tone::Accent => "38;5;68",
        }
    }
}

/// Backgrounds for jobs, with black text; neighbours differ.
const JOBS: [u8; 12] = [110, 180, 150, 176, 116, 216, 186, 146, 108, 174, 152, 144];
/// From cheap to dear.
const HEAT: [u8; 5] = [108, 72, 178, 172, 167];

/// Whether to colour at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Colours for a terminal that shows them, unless its user would rather not.
    pub(crate) fn for_stdout(no_color: bool) -> Paint {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Paint { on: !no_color && !refused && !dumb && std::io::stdout().is_terminal() }
    }

    /// No colours, wherever it is written.
    pub(crate) fn plain() -> Paint {
        Paint { on: false }
    }

    /// Whether there are colours.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    #[cfg(test)]
    pub(crate) fn off() -> Paint {
        Paint { on: false }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        self.wrap(tone.code(), text)
    }

    /// A stretch of a job's bar: a letter a cell, or colour with one letter at its head.
    pub(crate) fn bar(self, job: usize, letter: char, cells: usize) -> String {
        if !self.on {
            return letter.to_string().repeat(cells);
        }
        let text = format!("{letter}{}", " ".repeat(cells.saturating_sub(1)));
        self.wrap(&format!("38;5;16;48;5;{}", JOBS[job % JOBS.len()]), &text)
    }

    /// Text in the colour of `level`, out of `levels`.
    pub(crate) fn heat(self, level: usize, levels: usize, text: &str) -> String {
        let at = level * (HEAT.len() - 1) / levels.max(1);
        self.wrap(&format!("38;5;{}", HEAT[at.min(HEAT.len() - 1)]), text)
    }
}
