//! The audit trail: every change of the house is written down, whether or not it was done.

use std::net::IpAddr;

use era_api::Page;
use era_api::account::{AuditFilter, AuditLine};
use era_api::page::PageAsk;
use era_core::units::Time;
use era_store::StoreError;
use era_store::accounts::{AuditAsk, AuditRow};

use crate::auth::Caller;
use crate::error::AppError;
use crate::wire::stamp;
use crate::{Services, paging};

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
        at: services.clock.machine().0,
        who: who.chars().take(63).collect(),
        origin: from.to_string(),
        what: what.to_owned(),
        // Targets may come from strangers: no control characters, and an end.
        target: target.chars().filter(|c| !c.is_control()).take(200).collect(),
        done,
    };
    services.auth.rows().audit(&line).await
}

/// The audit trail, newest first. For administrators.
pub async fn list(
    services: &Services,
    caller: &Caller,
    filter: AuditFilter,
) -> Result<Page<AuditLine>, AppError> {
    caller.administers()?;
    let page = PageAsk { cursor: filter.cursor, limit: filter.limit };
    let size = paging::size(&page)?;
    let ask = AuditAsk {
        who: filter.who,
        what: filter.what,
        target: filter.target,
        since: filter.since.map(|at| at.as_millisecond()),
        until: filter.until.map(|at| at.as_millisecond()),
        before: paging::number(&page, u64::MAX)?,
    };
    let rows = services.auth.rows().audit_lines(&ask, size as u32 + 1).await?;
    let lines = rows.into_iter().map(line).collect();
    Ok(paging::page(lines, size, |line: &AuditLine| line.id.to_string()))
}

fn line(row: AuditRow) -> AuditLine {
    AuditLine {
        id: row.id,
        at: stamp(Time(row.at)),
        who: row.who,
        from: row.origin,
        what: row.what,
        target: row.target,
        done: row.done,
    }
}
