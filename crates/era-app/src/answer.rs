//! What the core answered, as a use case gives it on.

use std::net::IpAddr;

use era_core::{Command, Reply};
use era_drive::Answer;

use crate::auth::Caller;
use crate::error::{AppError, Kind};
use crate::{Services, audit};

/// Carries out what an administrator asks for, and writes down who asked and whether it was done.
pub async fn audited(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    what: &str,
    target: &str,
    command: Command,
) -> Result<(), AppError> {
    let answer = done(services.driver.ask(command, None).await?);
    audit::record(services, &caller.name, from, what, target, answer.is_ok()).await?;
    answer
}

/// Nothing to tell but that it is done; or the refusal.
pub fn done(answer: Answer) -> Result<(), AppError> {
    match answer.reply {
        Reply::Done | Reply::Ignored => Ok(()),
        other => Err(refused(other)),
    }
}

/// The refusal of an answer that was not the one hoped for.
pub fn refused(reply: Reply) -> AppError {
    match reply {
        Reply::Refused { refusal, counter } => AppError::refused(&refusal, &counter),
        other => {
            let detail = "the scheduler answered another question: report this as a fault";
            tracing::error!(?other, "an answer that fits no question");
            AppError::new(Kind::Internal, "internal", detail)
        }
    }
}
