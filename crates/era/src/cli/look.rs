//! How answers are shown: tables that fit the terminal, times in the reader's zone, JSON and
//! YAML for programs. A renderer is a function of a value and a [`Look`], so that it can be
//! tested without a terminal.

pub(crate) mod money;
pub(crate) mod quote;
pub(crate) mod stamps;

use std::io::Write;

use clap::ValueEnum;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Row, Table};
use era_api::Timestamp;
use era_api::job::JobState;
use jiff::Zoned;
use serde::Serialize;

use crate::paint::Paint;
use era_spec::{SpanSpec, when};

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    #[default]
    Table,
    /// For people, with all columns
    Wide,
    /// For programs, as the API gives it
    Json,
    /// The same as YAML
    Yaml,
}

/// What standard output can show, and when it is.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// Columns of the terminal; unlimited where it is none.
    pub(crate) width: Option<u16>,
    pub(crate) paint: Paint,
    /// Whether all columns are wanted.
    pub(crate) wide: bool,
    /// The reader's clock and zone.
    pub(crate) now: Zoned,
}

impl Look {
    /// A point in time as its reader says it.
    pub(crate) fn time(&self, at: Timestamp) -> String {
        when::show(at, &self.now)
    }

    /// The same, or a dash.
    pub(crate) fn time_or_dash(&self, at: Option<Timestamp>) -> String {
        at.map_or_else(|| "–".to_owned(), |at| self.time(at))
    }

    /// What a server says, with its times as its reader says them.
    pub(crate) fn sentence(&self, told: &str) -> String {
        stamps::local(told, &self.now)
    }

    /// A table with a row for each of these.
    pub(crate) fn rows<T, R: Into<Row>>(
        &self,
        headings: &[&str],
        of: impl IntoIterator<Item = T>,
        row: impl FnMut(T) -> R,
    ) -> String {
        let mut table = self.table(headings);
        table.add_rows(of.into_iter().map(row));
        finish(&table)
    }

    pub(crate) fn table(&self, headings: &[&str]) -> Table {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        match self.width {
            Some(width) => {
                table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width)
            }
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        if self.paint.is_on() {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let bold = |text: &&str| Cell::new(text).add_attribute(Attribute::Bold);
        table.set_header(headings.iter().map(bold).collect::<Vec<_>>());
        table
    }
}

/// How much of a line's beginning only says how it looks.
fn after_colours(line: &str) -> usize {
    let mut at = 0;
    while let Some(rest) = line[at..].strip_prefix("\u{1b}[") {
        match rest.find('m') {
            Some(end) => at += 2 + end + 1,
            None => break,
        }
    }
    at
}

/// A table as text, each line ended.
pub(crate) fn finish(table: &Table) -> String {
    let mut text = String::new();
    for line in table.to_string().lines() {
        // The first column needs no margin; colours come before it.
        let (colour, rest) = line.split_at(after_colours(line));
        text.push_str(colour);
        text.push_str(rest.strip_prefix(' ').unwrap_or(rest).trim_end());
        text.push('\n');
    }
    text
}

/// A number, to the right.
pub(crate) fn right(text: impl ToString) -> Cell {
    Cell::new(text.to_string()).set_alignment(CellAlignment::Right)
}

/// A job's state in its colour.
pub(crate) fn state(state: JobState) -> Cell {
    let color = match state {
        JobState::Running | JobState::Succeeded => Color::Green,
        JobState::Failed | JobState::Broken => Color::Red,
        JobState::LimitReached | JobState::Stopping => Color::Yellow,
        JobState::Promised | JobState::Starting => Color::Blue,
        JobState::Waiting | JobState::Cancelled | JobState::Released => Color::Reset,
    };
    Cell::new(state.as_str()).fg(color)
}

/// A length of time in words that a table has room for.
pub(crate) fn span(seconds: u64) -> String {
    SpanSpec { seconds }.to_string()
}

/// Writes an answer: for people by `render`, for programs as it is.
pub(crate) fn print<T: Serialize + ?Sized>(
    form: Form,
    value: &T,
    render: impl FnOnce(&T) -> String,
) -> anyhow::Result<()> {
    let text = match form {
        Form::Table | Form::Wide => render(value),
        Form::Json => serde_json::to_string_pretty(value)? + "\n",
        Form::Yaml => yaml(value)?,
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// A value as YAML; by way of JSON, so that both show the same.
fn yaml<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<String> {
    let mut text = serde_saphyr::to_string(&serde_json::to_value(value)?)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// A sentence for people on standard output, for commands whose answer is that it was done.
pub(crate) fn say(sentence: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{sentence}")?;
    Ok(())
}

/// A sentence beside the answer, on standard error.
pub(crate) fn note(sentence: &str) {
    // Whoever does not read them does not miss them.
    let _ = writeln!(std::io::stderr(), "{sentence}");
}

/// Bytes as people read them.
pub(crate) fn bytes(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") };
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

#[cfg(test)]
pub(crate) fn plain() -> Look {
    Look {
        width: Some(100),
        paint: Paint::off(),
        wide: false,
        now: "2026-11-15T14:30:00+01:00[Europe/Berlin]".parse().unwrap(),
    }
}
