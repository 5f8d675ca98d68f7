//! Why something that was asked for is not done, whatever protocol asked.
//!
//! What is the caller's fault is told in full; what is ours is logged in full, and told as little
//! more than that it happened. How a protocol says it (a status, a line) is the protocol's.

use era_api::Parameters;
use era_api::quote::CounterOffersView;
use era_core::offer::Declined;
use era_core::refusal::Refusal;
use era_store::StoreError;
use era_store::files::{BadHash, FilesError};

use crate::wire::{BadField, Wrong};

/// Something that was asked for and is not done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.sentence)]
pub struct AppError(pub Box<Cause>);

/// Why it is not done.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// What a caller can do about it.
    pub kind: Kind,
    /// Stable, for programs.
    pub code: String,
    /// What is wrong and what would be right.
    pub sentence: String,
    /// The field that it is about.
    pub field: Option<String>,
    /// What the sentence says besides its code, for whoever puts it in words of their own.
    pub parameters: Parameters,
    /// After how many seconds it may be asked again, where waiting helps.
    pub retry_after_s: Option<u32>,
    /// What would be possible instead of a refused bid.
    pub counter_offers: Option<CounterOffersView>,
}

/// What a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The question cannot be read.
    Malformed,
    /// Nobody knows the caller.
    Unauthenticated,
    /// The caller has too little money.
    Unpaid,
    /// The caller may not.
    Forbidden,
    /// There is no such thing, or the caller may not know of it.
    NotFound,
    /// It does not go with what there is now.
    Conflict,
    /// What was sent is too large.
    TooLarge,
    /// What was asked for makes no sense.
    Invalid,
    /// The caller asks too often, or has too much open.
    TooMany,
    /// It is our fault.
    Internal,
    Unavailable,
    /// There is no room left to keep it.
    NoSpace,
}

impl AppError {
    /// Of this kind, with this code and sentence.
    pub fn new(kind: Kind, code: &str, sentence: impl Into<String>) -> AppError {
        AppError(Box::new(Cause {
            kind,
            code: code.to_owned(),
            sentence: sentence.into(),
            field: None,
            parameters: Parameters::new(),
            retry_after_s: None,
            counter_offers: None,
        }))
    }

    /// The same, about this field.
    #[must_use]
    pub fn about(mut self, field: &str) -> AppError {
        self.0.field = Some(field.to_owned());
        self
    }

    /// The same, to be tried again after a while.
    #[must_use]
    pub fn after(mut self, seconds: u32) -> AppError {
        self.0.retry_after_s = Some(seconds);
        self
    }

    /// Something is our fault: it is logged, and not told.
    pub fn internal(error: &dyn std::error::Error) -> AppError {
        tracing::error!(error = %Chain(error), "a request failed");
        let sentence = "something went wrong in the server: its log has the request's id";
        AppError::new(Kind::Internal, "internal", sentence)
    }

    /// Nobody knows the caller.
    pub fn unauthenticated(sentence: &str) -> AppError {
        AppError::new(Kind::Unauthenticated, "unauthenticated", sentence)
    }

    /// The caller may not.
    pub fn forbidden(sentence: impl Into<String>) -> AppError {
        AppError::new(Kind::Forbidden, "forbidden", sentence)
    }

    /// There is no such thing, or the caller may not know of it.
    pub fn not_found(what: &str, name: impl std::fmt::Display) -> AppError {
        let sentence = format!("there is no {what} `{name}` that you may see: list them first");
        AppError::new(Kind::NotFound, "not_found", sentence)
    }

    /// A field makes no sense.
    pub fn bad_field(field: &str, wrong: impl Into<Wrong>) -> AppError {
        AppError::wrong(Kind::Invalid, "bad_field", &wrong.into()).about(field)
    }

    /// Of this kind and code, and what is wrong for programs too.
    pub fn wrong(kind: Kind, code: &str, wrong: &Wrong) -> AppError {
        let mut error = AppError::new(kind, code, wrong.to_string());
        error.0.parameters = crate::wire::parameters(wrong);
        error
    }

    /// A refusal of the core, with what would be possible instead.
    pub fn refused(refusal: &Refusal, counter: &era_core::offer::CounterOffers) -> AppError {
        let mut error = AppError::from(refusal);
        error.0.counter_offers = crate::wire::counter_offers(counter);
        error
    }
}

/// An error with all that it came from.
struct Chain<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

fn kind_of(refusal: &Refusal) -> Kind {
    match refusal {
        Refusal::Unknown { .. }
        | Refusal::UnknownUser { .. }
        | Refusal::UnknownGroup { .. }
        | Refusal::UnknownNode { .. }
        | Refusal::UnknownJob { .. }
        | Refusal::UnknownHold { .. } => Kind::NotFound,
        Refusal::NotYours { .. } | Refusal::NotGroupAdmin { .. } | Refusal::OthersBid { .. } => {
            Kind::Forbidden
        }
        Refusal::Funds { .. } => Kind::Unpaid,
        Refusal::WrongState { .. }
        | Refusal::Exists { .. }
        | Refusal::NodeBusy { .. }
        | Refusal::InUse { .. }
        | Refusal::NoRoom
        | Refusal::TooDear { .. }
        | Refusal::PriceRose { .. }
        | Refusal::LevelShare { .. }
        | Refusal::QuotaConcurrent { .. }
        | Refusal::QuotaPeriod { .. }
        | Refusal::QuotaSum { .. }
        | Refusal::TooManyHolds { .. }
        | Refusal::Limit { .. } => Kind::Conflict,
        // The driver numbers inputs and tells the time: these are never the caller's fault.
        Refusal::OutOfOrder { .. } | Refusal::BadTime { .. } => Kind::Internal,
        // What remains is about what the request says.
        _ => Kind::Invalid,
    }
}

impl From<&Refusal> for AppError {
    fn from(refusal: &Refusal) -> AppError {
        let kind = kind_of(refusal);
        if kind == Kind::Internal {
            return AppError::internal(refusal);
        }
        let mut error = AppError::new(kind, &refusal.code(), refusal.to_string());
        error.0.parameters = crate::wire::tagged(refusal, "code").1;
        match refusal.field() {
            Some(field) => error.about(field),
            None => error,
        }
    }
}

impl From<Refusal> for AppError {
    fn from(refusal: Refusal) -> AppError {
        AppError::from(&refusal)
    }
}

impl From<Declined> for AppError {
    fn from(declined: Declined) -> AppError {
        AppError::refused(&declined.refusal, &declined.counter)
    }
}

impl From<BadField> for AppError {
    fn from(bad: BadField) -> AppError {
        AppError::bad_field(&bad.field, bad.problem)
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> AppError {
        AppError::internal(&error)
    }
}

impl From<getrandom::Error> for AppError {
    fn from(error: getrandom::Error) -> AppError {
        AppError::internal(&error)
    }
}

impl From<BadHash> for AppError {
    fn from(error: BadHash) -> AppError {
        FilesError::from(error).into()
    }
}

impl From<FilesError> for AppError {
    fn from(error: FilesError) -> AppError {
        use FilesError as E;
        let (kind, code, field) = match &error {
            E::BadHash(_) => (Kind::Invalid, "bad_hash", Some("hash")),
            E::Path(_) => (Kind::Invalid, "bad_path", Some("path")),
            E::BadName(_) => (Kind::Invalid, "bad_name", Some("name")),
            E::TooManyFiles { .. } => (Kind::Invalid, "too_many_files", None),
            E::TooManyShares(_) => (Kind::Invalid, "too_many_shares", Some("shared_with")),
            E::TooLarge { .. } => (Kind::TooLarge, "file_too_large", None),
            E::Busy => (Kind::Conflict, "upload_busy", None),
            E::TooManyUploads(_) => (Kind::TooMany, "too_many_uploads", None),
            E::Offset { .. } => (Kind::Conflict, "wrong_offset", Some("offset")),
            E::Mismatch { .. } => (Kind::Invalid, "hash_mismatch", Some("hash")),
            E::Quota { .. } => (Kind::NoSpace, "storage_quota", None),
            E::DiskFull => (Kind::NoSpace, "disk_full", None),
            E::Missing(_) => (Kind::Invalid, "files_missing", Some("files")),
            E::WrongSize { .. } => (Kind::Invalid, "wrong_size", Some("files")),
            E::UnknownBlob(_) => (Kind::NotFound, "unknown_blob", None),
            E::UnknownTree(_) => (Kind::NotFound, "unknown_tree", None),
            E::UnknownData(_) => (Kind::NotFound, "unknown_data_set", None),
            E::UnknownFile(_) => (Kind::NotFound, "unknown_file", Some("path")),
            E::Taken(_) => (Kind::Conflict, "name_taken", Some("name")),
            E::NotYours(_) => (Kind::Forbidden, "not_yours", None),
            E::Stopped => (Kind::Unavailable, "stopping", None),
            E::Store(cause) => {
                // What the system says may name paths: it goes to the log, not to the caller.
                tracing::error!(%cause, "the files cannot be read or written");
                let sentence = "the server could not read or write its files: see its log";
                return AppError::new(Kind::Internal, "store", sentence);
            }
        };
        let mut failed = AppError::new(kind, code, error.to_string());
        let limits: &[(&str, u64)] = match &error {
            E::TooLarge { bytes, limit } => &[("bytes", *bytes), ("limit", *limit)],
            E::Quota { used, limit } => &[("used", *used), ("limit", *limit)],
            _ => &[],
        };
        let limits = limits.iter().map(|(name, bytes)| ((*name).to_owned(), (*bytes).into()));
        failed.0.parameters = limits.collect();
        match field {
            Some(field) => failed.about(field),
            None => failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_core::units::{JobId, Money};

    #[test]
    fn a_refusal_keeps_its_code_and_field_and_is_of_a_fitting_kind() {
        let cases: [(Refusal, Kind, &str, Option<&str>); 6] = [
            (Refusal::UnknownJob { job: JobId(1) }, Kind::NotFound, "unknown_job", Some("job")),
            (Refusal::NotYours { job: JobId(1) }, Kind::Forbidden, "not_yours", Some("job")),
            (Refusal::NoRoom, Kind::Conflict, "no_room", Some("window")),
            (Refusal::NothingAsked, Kind::Invalid, "nothing_asked", Some("each")),
            (Refusal::KeyReused, Kind::Invalid, "key_reused", Some("key")),
            (Refusal::Funds { balance: Money(0), needed: Money(1) }, Kind::Unpaid, "funds", None),
        ];
        for (refusal, kind, code, field) in cases {
            let AppError(cause) = AppError::from(refusal);
            assert_eq!((cause.kind, cause.code.as_str()), (kind, code));
            assert_eq!(cause.field.as_deref(), field);
        }
    }

    #[test]
    fn what_is_our_fault_is_not_told() {
        let secret = StoreError::Damaged { what: "secret table".into(), problem: "torn".into() };
        let AppError(cause) = AppError::from(secret);
        assert_eq!(cause.kind, Kind::Internal);
        assert!(!cause.sentence.contains("secret"), "{}", cause.sentence);
        let AppError(cause) = AppError::from(Refusal::OutOfOrder { given: 1, expected: 2 });
        assert_eq!(cause.kind, Kind::Internal);
    }
}
