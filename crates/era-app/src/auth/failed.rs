//! Why an account was not made, changed or logged in, as a use case says it.

use super::accounts::AccountError;
use super::password::{BadPassword, HashError, PASSWORD_MAX, PASSWORD_MIN};
use super::sessions::LoginError;
use crate::error::{AppError, Kind};
use crate::wire::Wrong;

impl From<BadPassword> for Wrong {
    fn from(bad: BadPassword) -> Wrong {
        match bad {
            BadPassword::Length => {
                Wrong::PasswordLength { least: PASSWORD_MIN, most: PASSWORD_MAX }
            }
            BadPassword::Guessable => Wrong::PasswordGuessable,
        }
    }
}

impl From<HashError> for AppError {
    fn from(error: HashError) -> AppError {
        match error {
            HashError::Busy => AppError::new(Kind::Unavailable, "busy", error.to_string()).after(2),
            HashError::Failed => AppError::internal(&error),
        }
    }
}

fn throttled(sentence: String, wait_ms: i64) -> AppError {
    let seconds = u32::try_from(wait_ms.div_euclid(1000) + 1).unwrap_or(1);
    AppError::new(Kind::TooMany, "throttled", sentence).after(seconds)
}

impl From<LoginError> for AppError {
    fn from(error: LoginError) -> AppError {
        let sentence = error.to_string();
        match error {
            LoginError::Wrong => AppError::new(Kind::Unauthenticated, "wrong_login", sentence),
            LoginError::Throttled { wait_ms } => throttled(sentence, wait_ms),
            LoginError::Hash(error) => error.into(),
            LoginError::Random(error) => error.into(),
            LoginError::Store(error) => error.into(),
        }
    }
}

impl From<AccountError> for AppError {
    fn from(error: AccountError) -> AppError {
        let sentence = error.to_string();
        match error {
            AccountError::Name(given) => {
                AppError::bad_field("name", Wrong::AccountName { told: sentence, given })
            }
            AccountError::Taken { .. } => {
                AppError::new(Kind::Conflict, "exists", sentence).about("name")
            }
            AccountError::Unknown { what, .. } => {
                AppError::new(Kind::NotFound, "not_found", sentence).about(what)
            }
            AccountError::SharedUser => AppError::new(Kind::Forbidden, "shared_user", sentence),
            AccountError::LastAdministrator(_) => {
                AppError::new(Kind::Conflict, "last_administrator", sentence)
            }
            AccountError::Password(bad) => AppError::bad_field("password", bad),
            AccountError::WrongPassword => {
                AppError::new(Kind::Forbidden, "wrong_password", sentence).about("old")
            }
            AccountError::Throttled { wait_ms } => throttled(sentence, wait_ms),
            AccountError::Refused(refusal) => AppError::from(&*refusal),
            AccountError::Unanswered(error) => error.into(),
            AccountError::Hash(error) => error.into(),
            AccountError::Random(error) => error.into(),
            AccountError::Store(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told_for_how_long() {
        let throttled = AppError::from(LoginError::Throttled { wait_ms: 2500 });
        assert_eq!((throttled.0.kind, throttled.0.retry_after_s), (Kind::TooMany, Some(3)));
    }

    #[test]
    fn a_bad_password_is_told_in_the_same_words_everywhere() {
        for bad in [BadPassword::Length, BadPassword::Guessable] {
            assert_eq!(Wrong::from(bad).to_string(), bad.to_string());
        }
    }
}
