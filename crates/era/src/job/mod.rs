//! From what somebody wrote to a job that can be handed in: a YAML file ([`mod@file`]), the header of
//! a Slurm script ([`script`]) and flags ([`flags`]), laid over each other as a [`Draft`]. What is
//! left unsaid is the server's to say.
//!
//! Everything here is a function of texts and of the reader's clock; nothing talks to a server.

pub(crate) mod draft;
pub(crate) mod file;
pub(crate) mod flags;
pub(crate) mod past;
pub(crate) mod script;

pub(crate) use draft::{Code, Draft, Script};
pub(crate) use era_spec::SpanSpec;
pub(crate) use flags::JobFlags;

/// What is wrong with a job as it was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    #[error("{path}:{line}:{column}: {what}")]
    InFile { path: String, line: u64, column: u64, what: String },
    #[error("{path}:{line}: {what}")]
    InScript { path: String, line: usize, what: String },
    #[error("{path} cannot be read: {why}")]
    Unreadable { path: String, why: String },
    #[error("{path} is larger than {limit} KiB: a job's file only describes it")]
    TooLarge { path: String, limit: u64 },
    #[error("nothing to run: give a command after `--`, or a job's file")]
    NoCommand,
    #[error("{flag}: {what}")]
    Flag { flag: &'static str, what: String },
    #[error("{0}")]
    Contradiction(String),
}

/// Most bytes of a job's file or of a script's header.
pub(crate) const FILE_BYTES_MAX: u64 = 256 << 10;

/// The text of a small file.
pub(crate) fn read_small(path: &std::path::Path) -> Result<String, JobError> {
    let named = path.display().to_string();
    match std::fs::File::open(path) {
        Ok(file) => read_limited(file, &named),
        Err(error) => Err(JobError::Unreadable { path: named, why: error.to_string() }),
    }
}

/// The text of what is small, or should be.
pub(crate) fn read_limited(from: impl std::io::Read, named: &str) -> Result<String, JobError> {
    use std::io::Read;
    let path = named.to_owned();
    let mut text = String::new();
    match from.take(FILE_BYTES_MAX + 1).read_to_string(&mut text) {
        Err(error) => Err(JobError::Unreadable { path, why: error.to_string() }),
        Ok(_) if text.len() as u64 > FILE_BYTES_MAX => {
            Err(JobError::TooLarge { path, limit: FILE_BYTES_MAX >> 10 })
        }
        Ok(_) => Ok(text),
    }
}
