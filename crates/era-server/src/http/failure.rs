//! Whatever goes wrong in a request, as problem details.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use era_api::Problem;

/// A request that failed.
#[derive(Debug)]
pub struct Failure(pub Box<Problem>);

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
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::BAD_REQUEST);
        let mut response = (status, axum::Json(&*self.0)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}
