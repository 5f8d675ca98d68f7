//! One's own secrets: set and removed, and told to nobody but the jobs that name them.

use std::net::IpAddr;

use era_api::Page;
use era_api::page::PageAsk;
use era_api::secret::{NewSecret, SECRETS_MAX, Secret, VALUE_BYTES_MAX, is_name, is_value};
use era_core::units::Time;
use era_store::secrets::SecretRow;

use crate::auth::Caller;
use crate::error::{AppError, Kind};
use crate::wire::{Wrong, shown, stamp};
use crate::{Services, audit, paging};

fn describe(row: SecretRow) -> Secret {
    Secret { name: row.name, set: stamp(Time(row.changed)) }
}

/// One's own secrets by name, without their values.
pub async fn list(
    services: &Services,
    caller: &Caller,
    ask: PageAsk,
) -> Result<Page<Secret>, AppError> {
    let size = paging::size(&ask)?;
    let after = ask.cursor.unwrap_or_default();
    let rows = services.store.secrets().of(caller.user.0, &after, size as u32 + 1).await?;
    let secrets = rows.into_iter().map(describe).collect();
    Ok(paging::page(secrets, size, |secret: &Secret| secret.name.clone()))
}

/// Sets a secret of one's own, or another value for it. Jobs that start later find that one.
pub async fn set(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: String,
    NewSecret { value }: NewSecret,
) -> Result<Secret, AppError> {
    if !is_name(&name) {
        return Err(AppError::bad_field("name", Wrong::SecretName { given: shown(&name) }));
    }
    if !is_value(&value) {
        let kib = VALUE_BYTES_MAX >> 10;
        return Err(AppError::bad_field("value", Wrong::SecretValue { kib }));
    }
    let (now, most) = (services.clock.machine().0, SECRETS_MAX as u32);
    let done = services.store.secrets().set(caller.user.0, &name, &value, now, most).await?;
    audit::note(services, &caller.name, from, "secret.set", &name, done).await;
    if !done {
        let detail = format!("at most {SECRETS_MAX} secrets: remove one first");
        return Err(AppError::new(Kind::Conflict, "limit", detail));
    }
    Ok(describe(SecretRow { name, changed: now }))
}

/// Removes a secret of one's own. A job that names it and has not started will not start.
pub async fn remove(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
) -> Result<(), AppError> {
    let there = is_name(name) && services.store.secrets().remove(caller.user.0, name).await?;
    if !there {
        return Err(AppError::not_found("secret", shown(name)));
    }
    audit::note(services, &caller.name, from, "secret.remove", name, true).await;
    Ok(())
}
