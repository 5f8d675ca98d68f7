//! The journal, to take away. For administrators: it has everybody's inputs.

use era_store::journal::Export;

use crate::Services;
use crate::auth::Caller;
use crate::error::AppError;

/// Every input with what was decided about it, from a segment on; from the first where nothing is
/// said.
pub async fn export(
    services: &Services,
    caller: &Caller,
    segment: Option<u64>,
) -> Result<Export, AppError> {
    caller.administers()?;
    Ok(services.store.journal().export(segment).await?)
}
