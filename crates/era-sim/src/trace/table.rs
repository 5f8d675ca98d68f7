//! Tables with a header: cells by the names of their columns, and errors that name the line and
//! the column. What the columns mean is known to the formats.

use std::io::{BufRead, Chain};

use super::gather::{seconds, within};
use super::number::{decimal, mib_of_gib};
use super::source::unreadable;
use crate::BadInput;

/// A table that is being read, row by row.
pub(crate) struct Table<R> {
    reader: csv::Reader<Chain<R, &'static [u8]>>,
    header: Vec<Box<str>>,
    record: csv::ByteRecord,
}

/// A column, by the name that the file gives it.
pub(crate) struct Column {
    index: usize,
    name: Box<str>,
}

/// One row of a table.
pub(crate) struct Row<'t> {
    record: &'t csv::ByteRecord,
    pub(crate) line: u64,
}

/// Lines end with a line feed, the last one too: so a line's number can be told from the reader's
/// position. A carriage return before it is taken off the last cell.
fn reader<R: BufRead>(source: R, header: bool) -> csv::Reader<Chain<R, &'static [u8]>> {
    csv::ReaderBuilder::new()
        .has_headers(header)
        .flexible(true)
        .terminator(csv::Terminator::Any(b'\n'))
        .from_reader(source.chain(&b"\n"[..]))
}

impl<R: BufRead> Table<R> {
    /// A table whose first line is its header.
    pub(crate) fn new(source: R) -> Result<Table<R>, BadInput> {
        let mut reader = reader(source, true);
        let header = reader.byte_headers().map_err(bad_row)?;
        let mut names: Vec<Box<str>> = Vec::new();
        for name in header {
            let name = std::str::from_utf8(name).map_err(|_| {
                BadInput::new("the header is not UTF-8: is this a table of text?").line(1)
            })?;
            let name: Box<str> = name.trim().into();
            if names.contains(&name) && !name.is_empty() {
                let problem = "two columns have this name: keep one";
                return Err(BadInput::new(problem).line(1).field(&*name));
            }
            names.push(name);
        }
        if names.is_empty() {
            return Err(BadInput::new("the file is empty: it has no header"));
        }
        Ok(Table { reader, header: names, record: csv::ByteRecord::new() })
    }

    /// A table without a header, whose columns are known to be these.
    pub(crate) fn with_columns(source: R, columns: &[&str]) -> Table<R> {
        let header = columns.iter().map(|name| (*name).into()).collect();
        Table { reader: reader(source, false), header, record: csv::ByteRecord::new() }
    }

    /// The column with the first of these names that the table has.
    pub(crate) fn column(&self, names: &[&str]) -> Option<Column> {
        let index =
            names.iter().find_map(|name| self.header.iter().position(|column| **column == **name));
        index.map(|index| Column { index, name: self.header[index].clone() })
    }

    /// The same for a column that must be there.
    pub(crate) fn required(&self, names: &[&str]) -> Result<Column, BadInput> {
        self.column(names).ok_or_else(|| {
            let problem =
                format!("the header has no such column: it has {}", self.header.join(","));
            BadInput::new(problem).line(1).field(names[0])
        })
    }

    /// The next row, until there is none.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>, BadInput> {
        loop {
            if !self.reader.read_byte_record(&mut self.record).map_err(bad_row)? {
                return Ok(None);
            }
            // A line that is empty but for the carriage return of Windows.
            if self.record.len() > 1 || self.record.as_slice() != b"\r" {
                break;
            }
        }
        // The reader stands behind the line end; a quoted cell may hold more of them. (Where the
        // record began it does not say rightly if there were empty lines before.)
        let inside = self.record.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64;
        let line = (self.reader.position().line() - 1).saturating_sub(inside);
        if self.record.len() != self.header.len() {
            return Err(uneven(self.header.len(), self.record.len()).line(line));
        }
        Ok(Some(Row { record: &self.record, line }))
    }
}

impl<'t> Row<'t> {
    /// A cell's text; empty where the table has no such column.
    pub(crate) fn text(&self, column: Option<&Column>) -> Result<&'t str, BadInput> {
        let Some(column) = column else { return Ok("") };
        let bytes = self.record.get(column.index).unwrap_or_default();
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let text = std::str::from_utf8(bytes);
        text.map_err(|_| self.bad(column, "the text is not UTF-8"))
    }

    /// A cell that must not be empty.
    pub(crate) fn filled(&self, column: &Column) -> Result<&'t str, BadInput> {
        match self.text(Some(column))? {
            "" => Err(self.bad(column, "it is empty")),
            text => Ok(text),
        }
    }

    /// A decimal number in units of `10^-digits`; `None` where the cell is empty.
    pub(crate) fn decimal(
        &self,
        column: Option<&Column>,
        digits: u32,
    ) -> Result<Option<i64>, BadInput> {
        self.parsed(column, "number", |text| decimal(text, digits))
    }

    /// A time or a length of time in seconds; `None` where the cell is empty.
    pub(crate) fn seconds(&self, column: Option<&Column>) -> Result<Option<i64>, BadInput> {
        self.checked(column, self.decimal(column, 0)?, seconds)
    }

    /// A time that the row must have.
    pub(crate) fn required_seconds(&self, column: &Column) -> Result<i64, BadInput> {
        self.filled(column)?;
        self.seconds(Some(column))?.ok_or_else(|| self.bad(column, "it is empty"))
    }

    /// GPUs or processors in thousandths; zero where the cell is empty.
    pub(crate) fn milli(&self, column: Option<&Column>) -> Result<u32, BadInput> {
        Ok(self.known_milli(column)?.unwrap_or(0))
    }

    /// The same, `None` where the cell is empty.
    pub(crate) fn known_milli(&self, column: Option<&Column>) -> Result<Option<u32>, BadInput> {
        self.size(column, self.decimal(column, 3)?)
    }

    /// Memory in MiB from GiB; zero where the cell is empty.
    pub(crate) fn mib_of_gib(&self, column: Option<&Column>) -> Result<u32, BadInput> {
        Ok(self.known_mib_of_gib(column)?.unwrap_or(0))
    }

    /// The same, `None` where the cell is empty.
    pub(crate) fn known_mib_of_gib(
        &self,
        column: Option<&Column>,
    ) -> Result<Option<u32>, BadInput> {
        self.size(column, self.parsed(column, "number of GiB", mib_of_gib)?)
    }

    /// An amount in micro-credits from credits; `None` where the cell is empty.
    pub(crate) fn credits(&self, column: Option<&Column>) -> Result<Option<i64>, BadInput> {
        self.checked(column, self.decimal(column, 6)?, |value| within(value, 0..=i64::MAX))
    }

    /// What is wrong in a cell of this row.
    pub(crate) fn bad(&self, column: &Column, problem: impl Into<String>) -> BadInput {
        BadInput::new(problem).line(self.line).field(&*column.name)
    }

    fn size(&self, column: Option<&Column>, value: Option<i64>) -> Result<Option<u32>, BadInput> {
        let value = self.checked(column, value, |value| within(value, 0..=i64::from(u32::MAX)))?;
        Ok(value.and_then(|value| u32::try_from(value).ok()))
    }

    fn parsed(
        &self,
        column: Option<&Column>,
        what: &str,
        parse: impl Fn(&str) -> Option<i64>,
    ) -> Result<Option<i64>, BadInput> {
        let (text, Some(column)) = (self.text(column)?, column) else { return Ok(None) };
        if text.is_empty() {
            return Ok(None);
        }
        let value = parse(text);
        let problem = || self.bad(column, format!("give a {what}, not `{}`", brief(text)));
        value.map(Some).ok_or_else(problem)
    }

    fn checked(
        &self,
        column: Option<&Column>,
        value: Option<i64>,
        check: impl Fn(i64) -> Result<i64, String>,
    ) -> Result<Option<i64>, BadInput> {
        let (Some(value), Some(column)) = (value, column) else { return Ok(None) };
        check(value).map(Some).map_err(|problem| self.bad(column, problem))
    }
}

/// The beginning of a text, short enough for an error.
pub(crate) fn brief(text: &str) -> String {
    let mut brief: String =
        text.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect();
    if brief.len() < text.len() {
        brief.push('…');
    }
    brief
}

fn uneven(expected: usize, found: usize) -> BadInput {
    BadInput::new(format!("the header has {expected} columns, this line {found}"))
}

fn bad_row(error: csv::Error) -> BadInput {
    let line = error.position().map(csv::Position::line);
    let error = match error.into_kind() {
        csv::ErrorKind::Io(error) => unreadable(error),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            uneven(expected_len as usize, len as usize)
        }
        kind => BadInput::new(format!("cannot be read as a table: {kind:?}")),
    };
    match line {
        Some(line) => error.line(line),
        None => error,
    }
}
