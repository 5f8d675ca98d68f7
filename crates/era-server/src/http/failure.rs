//! Whatever goes wrong in a request, as problem details.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use era_api::Problem;
use era_app::AppError;
use era_app::driver::Unanswered;
use era_app::wire::Wrong;
use era_store::StoreError;
use era_store::files::{BadHash, FilesError};

use crate::problem;

/// A request that failed.
#[derive(Debug)]
pub struct Failure(pub Box<Problem>);

/// What travels with a response, so that the request's id can be written into its body.
#[derive(Clone)]
pub(super) struct FailureBody(pub(super) Box<Problem>);

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
        AppError::internal(error).into()
    }

    /// Nobody knows the caller.
    pub fn unauthenticated(detail: &str) -> Failure {
        AppError::unauthenticated(detail).into()
    }

    /// The caller may not.
    pub fn forbidden(detail: impl Into<String>) -> Failure {
        AppError::forbidden(detail).into()
    }

    /// There is no such thing, or the caller may not know of it.
    pub fn not_found(what: &str, name: impl std::fmt::Display) -> Failure {
        AppError::not_found(what, name).into()
    }

    /// A field makes no sense.
    pub fn bad_field(field: &str, wrong: impl Into<Wrong>) -> Failure {
        AppError::bad_field(field, wrong).into()
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Failure {
        Failure(Box::new(problem::of(error)))
    }
}

/// What a handler meets by itself is said as a use case would say it.
macro_rules! as_a_use_case_says {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                AppError::from(error).into()
            }
        })*
    };
}

as_a_use_case_says!(BadHash, FilesError, StoreError, Unanswered);

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
        response.extensions_mut().insert(FailureBody(self.0));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_app::auth::LoginError;
    use era_core::Refusal;
    use era_core::units::UserId;

    #[test]
    fn who_waits_is_told_for_how_long() {
        let response = Failure::from(Unanswered::Busy).into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "1");
        let response =
            Failure::from(AppError::from(LoginError::Throttled { wait_ms: 2500 })).into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "3");
        let unknown = AppError::from(Refusal::UnknownUser { user: UserId(3) });
        let unknown = Failure::from(unknown).into_response();
        assert!(!unknown.headers().contains_key("retry-after"));
    }
}
