//! What is wrong with a file, a line of it, or an option: enough to find and mend it.

use std::fmt;
use std::path::{Path, PathBuf};

use era_core::Refusal;

/// Input from outside that cannot be used. Nothing was written because of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadInput {
    pub file: Option<PathBuf>,
    /// Its line, from 1.
    pub line: Option<u64>,
    /// The column, key or option.
    pub field: Option<String>,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl BadInput {
    /// Something is wrong, no matter where.
    pub fn new(problem: impl Into<String>) -> BadInput {
        BadInput { problem: problem.into(), ..BadInput::default() }
    }

    /// In this file.
    #[must_use]
    pub fn file(self, file: &Path) -> BadInput {
        BadInput { file: Some(file.to_owned()), ..self }
    }

    /// On this line, from 1.
    #[must_use]
    pub fn line(self, line: u64) -> BadInput {
        BadInput { line: Some(line), ..self }
    }

    /// In this column, key or option.
    #[must_use]
    pub fn field(self, field: impl Into<String>) -> BadInput {
        BadInput { field: Some(field.into()), ..self }
    }
}

impl From<Refusal> for BadInput {
    fn from(refusal: Refusal) -> BadInput {
        BadInput::new(refusal.to_string())
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut places = Vec::new();
        places.extend(self.file.as_ref().map(|file| file.display().to_string()));
        places.extend(self.line.map(|line| format!("line {line}")));
        places.extend(self.field.as_ref().map(|field| format!("`{field}`")));
        if !places.is_empty() {
            write!(f, "{}: ", places.join(", "))?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for BadInput {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_file_line_and_field() {
        let error = BadInput::new("give a whole number of seconds, not `x`");
        let error = error.file(Path::new("a.csv")).line(3).field("submit_s");
        assert_eq!(
            error.to_string(),
            "a.csv, line 3, `submit_s`: give a whole number of seconds, not `x`"
        );
        assert_eq!(BadInput::new("no").to_string(), "no");
    }
}
