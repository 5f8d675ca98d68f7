//! What the core answered, as a handler gives it on.

use axum::http::StatusCode;
use era_core::{Command, Reply};
use era_store::accounts::AuditRow;

use super::caller::Caller;
use super::extract::From;
use super::failure::Failure;
use crate::App;
use crate::auth::now_ms;
use crate::driver::Answer;

/// Carries out what an administrator asks for, and writes down who asked and whether it was done.
pub(super) async fn audited(
    app: &App,
    caller: &Caller,
    from: From,
    what: &str,
    target: &str,
    command: Command,
) -> Result<StatusCode, Failure> {
    let answer = done(app.driver.ask(command, None).await?);
    let line = AuditRow {
        id: 0,
        at: now_ms(),
        who: caller.name.clone(),
        origin: from.0.to_string(),
        what: what.to_owned(),
        target: target.to_owned(),
        done: answer.is_ok(),
    };
    app.auth.rows().audit(&line).await?;
    answer
}

/// Nothing to tell but that it is done; or the refusal.
pub(super) fn done(answer: Answer) -> Result<StatusCode, Failure> {
    match answer.reply {
        Reply::Done | Reply::Ignored => Ok(StatusCode::NO_CONTENT),
        other => Err(refused(other)),
    }
}

/// The refusal of an answer that was not the one hoped for.
pub(super) fn refused(reply: Reply) -> Failure {
    match reply {
        Reply::Refused { refusal, counter } => Failure::refused(&refusal, &counter),
        other => {
            let detail = "the scheduler answered another question: report this as a fault";
            tracing::error!(?other, "an answer that fits no question");
            Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
        }
    }
}
