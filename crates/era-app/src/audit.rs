//! The audit trail: every change of the house is written down, whether or not it was done.

use std::net::IpAddr;

use era_store::StoreError;
use era_store::accounts::AuditRow;

use crate::Services;
use crate::auth::now_ms;

/// Writes a line. That it could not be written does not undo what was done: it is logged.
pub async fn note(
    services: &Services,
    who: &str,
    from: IpAddr,
    what: &str,
    target: &str,
    done: bool,
) {
    if let Err(error) = record(services, who, from, what, target, done).await {
        tracing::error!(%error, who, what, target, done, "the audit trail cannot be written");
    }
}

/// Writes a line that somebody depends on, or says that it could not be written.
pub(crate) async fn record(
    services: &Services,
    who: &str,
    from: IpAddr,
    what: &str,
    target: &str,
    done: bool,
) -> Result<(), StoreError> {
    let line = AuditRow {
        id: 0,
        at: now_ms(),
        who: who.chars().take(63).collect(),
        origin: from.to_string(),
        what: what.to_owned(),
        // Targets may come from strangers: no control characters, and an end.
        target: target.chars().filter(|c| !c.is_control()).take(200).collect(),
        done,
    };
    services.auth.rows().audit(&line).await
}
