//! Whatever goes wrong in a request, as problem details.
//!
//! What is the caller's fault is told in full; what is ours is logged in full, and told as little
//! more than that it happened.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use era_api::Problem;
use era_core::refusal::Refusal;
use era_store::StoreError;

use crate::auth::password::HashError;
use crate::auth::{AccountError, LoginError};
use crate::driver::Unanswered;
use crate::wire::{BadField, Wrong};

/// A request that failed.
#[derive(Debug)]
pub struct Failure(pub Box<Problem>);

/// What travels with a response, so that the request's id can be written into its body.
#[derive(Clone)]
pub(super) struct Told(pub(super) Box<Problem>);

impl Failure {
    /// With this status, code and sentence.
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Failure {
        Failure(Box::new(Problem::new(status.as_u16(), code, detail)))
    }

    /// The same, about this field.
    #[must_use]
    pub fn about(self, field: &str) -> Failure {
        Failure(Box::new(self.0.about(field)))
    }

    /// The same, to be tried again after a while.
    #[must_use]
    pub fn after(mut self, seconds: u32) -> Failure {
        self.0.retry_after_s = Some(seconds);
        self
    }

    /// Something is our fault: it is logged, and not told.
    pub fn internal(error: &dyn std::error::Error) -> Failure {
        tracing::error!(error = %Chain(error), "a request failed");
        let detail = "something went wrong in the server: its log has the request's id";
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// Nobody knows the caller.
    pub fn unauthenticated(detail: &str) -> Failure {
        Failure::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail)
    }

    /// The caller may not.
    pub fn forbidden(detail: impl Into<String>) -> Failure {
        Failure::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// There is no such thing, or the caller may not know of it.
    pub fn not_found(what: &str, name: impl std::fmt::Display) -> Failure {
        let detail = format!("there is no {what} `{name}` that you may see: list them first");
        Failure::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// A field makes no sense.
    pub fn bad_field(field: &str, wrong: impl Into<Wrong>) -> Failure {
        Failure::wrong(StatusCode::UNPROCESSABLE_ENTITY, "bad_field", wrong.into()).about(field)
    }

    /// With this status and code, and what is wrong for programs too.
    pub fn wrong(status: StatusCode, code: &str, wrong: Wrong) -> Failure {
        let mut failure = Failure::new(status, code, wrong.to_string());
        failure.0.parameters = crate::wire::parameters(&wrong);
        failure
    }

    /// A refusal of the core, with what would be possible instead.
    pub fn refused(refusal: &Refusal, counter: &era_core::quote::CounterOffers) -> Failure {
        let mut failure = Failure::from(refusal);
        failure.0.counter_offers = crate::wire::counter_offers(counter);
        failure
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

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::BAD_REQUEST);
        let mut response = (status, axum::Json(&*self.0)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, kind);
        if let Some(seconds) = self.0.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let how = HeaderValue::from_static("Bearer realm=\"era\"");
            headers.insert(header::WWW_AUTHENTICATE, how);
        }
        response.extensions_mut().insert(Told(self.0));
        response
    }
}

/// The HTTP status of a refusal.
pub fn status_of(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Unknown { .. }
        | Refusal::UnknownUser { .. }
        | Refusal::UnknownGroup { .. }
        | Refusal::UnknownNode { .. }
        | Refusal::UnknownJob { .. }
        | Refusal::UnknownHold { .. } => StatusCode::NOT_FOUND,
        Refusal::NotYours { .. } | Refusal::NotGroupAdmin { .. } | Refusal::OthersBid { .. } => {
            StatusCode::FORBIDDEN
        }
        Refusal::Funds { .. } => StatusCode::PAYMENT_REQUIRED,
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
        | Refusal::Limit { .. } => StatusCode::CONFLICT,
        // The driver numbers inputs and tells the time: these are never the caller's fault.
        Refusal::OutOfOrder { .. } | Refusal::BadTime { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        // What remains is about what the request says.
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

impl From<&Refusal> for Failure {
    fn from(refusal: &Refusal) -> Failure {
        let status = status_of(refusal);
        if status.is_server_error() {
            return Failure::internal(refusal);
        }
        let mut failure = Failure::new(status, &refusal.code(), refusal.to_string());
        failure.0.parameters = crate::wire::tagged(refusal, "code").1;
        match refusal.field() {
            Some(field) => failure.about(field),
            None => failure,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::from(&refusal)
    }
}

impl From<BadField> for Failure {
    fn from(bad: BadField) -> Failure {
        Failure::bad_field(&bad.field, bad.problem)
    }
}

impl From<Unanswered> for Failure {
    fn from(unanswered: Unanswered) -> Failure {
        let (code, seconds) = match unanswered {
            Unanswered::Busy => ("busy", 1),
            Unanswered::Stopped => ("stopped", 5),
            Unanswered::NoLeader => ("no_leader", 2),
            Unanswered::Unknown => ("outcome_unknown", 1),
        };
        let detail = unanswered.to_string();
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).after(seconds)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::internal(&error)
    }
}

impl From<getrandom::Error> for Failure {
    fn from(error: getrandom::Error) -> Failure {
        Failure::internal(&error)
    }
}

impl From<HashError> for Failure {
    fn from(error: HashError) -> Failure {
        match error {
            HashError::Busy => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Failure::new(status, "busy", error.to_string()).after(2)
            }
            HashError::Failed => Failure::internal(&error),
        }
    }
}

fn throttled(sentence: String, wait_ms: i64) -> Failure {
    let seconds = u32::try_from(wait_ms.div_euclid(1000) + 1).unwrap_or(1);
    Failure::new(StatusCode::TOO_MANY_REQUESTS, "throttled", sentence).after(seconds)
}

impl From<LoginError> for Failure {
    fn from(error: LoginError) -> Failure {
        let sentence = error.to_string();
        match error {
            LoginError::Wrong => Failure::new(StatusCode::UNAUTHORIZED, "wrong_login", sentence),
            LoginError::Throttled { wait_ms } => throttled(sentence, wait_ms),
            LoginError::Hash(error) => error.into(),
            LoginError::Random(error) => error.into(),
            LoginError::Store(error) => error.into(),
        }
    }
}

impl From<AccountError> for Failure {
    fn from(error: AccountError) -> Failure {
        let sentence = error.to_string();
        match error {
            AccountError::Name(given) => {
                Failure::bad_field("name", Wrong::AccountName { told: sentence, given })
            }
            AccountError::Taken { .. } => {
                Failure::new(StatusCode::CONFLICT, "exists", sentence).about("name")
            }
            AccountError::Unknown { what, .. } => {
                Failure::new(StatusCode::NOT_FOUND, "not_found", sentence).about(what)
            }
            AccountError::SharedUser => {
                Failure::new(StatusCode::FORBIDDEN, "shared_user", sentence)
            }
            AccountError::LastAdministrator(_) => {
                Failure::new(StatusCode::CONFLICT, "last_administrator", sentence)
            }
            AccountError::Password(bad) => Failure::bad_field("password", bad),
            AccountError::WrongPassword => {
                Failure::new(StatusCode::FORBIDDEN, "wrong_password", sentence).about("old")
            }
            AccountError::Throttled { wait_ms } => throttled(sentence, wait_ms),
            AccountError::Refused(refusal) => Failure::from(&*refusal),
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
    use era_core::units::{JobId, Money, UserId};

    #[test]
    fn a_refusal_keeps_its_code_and_field_and_gets_a_fitting_status() {
        let cases: [(Refusal, u16, &str, Option<&str>); 6] = [
            (Refusal::UnknownJob { job: JobId(1) }, 404, "unknown_job", Some("job")),
            (Refusal::NotYours { job: JobId(1) }, 403, "not_yours", Some("job")),
            (Refusal::NoRoom, 409, "no_room", Some("window")),
            (Refusal::NothingAsked, 422, "nothing_asked", Some("each")),
            (Refusal::KeyReused, 422, "key_reused", Some("key")),
            (Refusal::Funds { balance: Money(0), needed: Money(1) }, 402, "funds", None),
        ];
        for (refusal, status, code, field) in cases {
            let Failure(problem) = Failure::from(refusal);
            assert_eq!((problem.status, problem.code.as_str()), (status, code));
            assert_eq!(problem.field.as_deref(), field);
        }
    }

    #[test]
    fn what_is_our_fault_is_not_told() {
        let secret = StoreError::Damaged { what: "secret table".into(), problem: "torn".into() };
        let Failure(problem) = Failure::from(secret);
        assert_eq!(problem.status, 500);
        assert!(!problem.detail.contains("secret"), "{}", problem.detail);
        let Failure(problem) = Failure::from(Refusal::OutOfOrder { given: 1, expected: 2 });
        assert_eq!(problem.status, 500);
    }

    #[test]
    fn who_waits_is_told_for_how_long() {
        let response = Failure::from(Unanswered::Busy).into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "1");
        let response = Failure::from(LoginError::Throttled { wait_ms: 2500 }).into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "3");
        let unknown = Failure::from(Refusal::UnknownUser { user: UserId(3) }).into_response();
        assert!(!unknown.headers().contains_key("retry-after"));
    }
}
