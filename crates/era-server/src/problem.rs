//! How whatever goes wrong is told, over HTTP and over TCP alike: as problem details.

use axum::http::StatusCode;
use era_api::Problem;
use era_app::AppError;
use era_app::error::{Cause, Kind};

fn status_of(kind: Kind) -> StatusCode {
    match kind {
        Kind::Malformed => StatusCode::BAD_REQUEST,
        Kind::Unauthenticated => StatusCode::UNAUTHORIZED,
        Kind::Unpaid => StatusCode::PAYMENT_REQUIRED,
        Kind::Forbidden => StatusCode::FORBIDDEN,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::Conflict => StatusCode::CONFLICT,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        Kind::TooMany => StatusCode::TOO_MANY_REQUESTS,
        Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Kind::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
    }
}

/// The problem details of an error.
pub(crate) fn of(AppError(cause): AppError) -> Problem {
    let Cause { kind, code, sentence, field, parameters, retry_after_s, counter_offers } = *cause;
    let mut problem = Problem::new(status_of(kind).as_u16(), &code, sentence);
    problem.field = field;
    problem.parameters = parameters;
    problem.retry_after_s = retry_after_s;
    problem.counter_offers = counter_offers;
    problem
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_core::Refusal;
    use era_core::units::JobId;

    #[test]
    fn a_refusal_becomes_problem_details_of_a_fitting_status() {
        let problem = of(Refusal::UnknownJob { job: JobId(1) }.into());
        assert_eq!((problem.status, problem.code.as_str()), (404, "unknown_job"));
        assert_eq!(problem.field.as_deref(), Some("job"));
        let problem = of(Refusal::OutOfOrder { given: 1, expected: 2 }.into());
        assert_eq!(problem.status, 500);
    }
}
