//! Commands of the user who started the server need no login: a token lies in a file that only
//! this user can read, and the user's own configuration says where.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use era_api::account::{Role, Scope};
use era_app::Services;
use era_app::auth::sessions::{NewSession, OWN_MACHINE, scopes_of};
use era_app::auth::token::LiveToken;
use era_core::units::UserId;

use crate::cli::config;

/// For how long it is good. It outlives the server, so that whoever waits for a job while that is
/// started again need not know; a new one is made when half of it is over.
const VALID_MS: i64 = 365 * 24 * 3_600_000;
/// For how long a token stays good that another one took the place of. Several servers may start
/// at once, each leave a token, and a command hold the one that was overwritten.
const SETTLING_MS: i64 = 3_600_000;

/// Leaves a token for this user's own commands, and ends those that it takes the place of.
pub(super) async fn introduce(app: &Services, data: &Path, url: &str) -> anyhow::Result<()> {
    let auth = &app.auth;
    let directory = auth.directory();
    let administrators = directory.users().filter(|user| user.role == Role::Administrator);
    let Some(account) = administrators.filter(|user| user.enabled).min_by_key(|user| user.id)
    else {
        return Ok(());
    };
    let file = data.join("local-token");
    let scopes = scopes_of(account.role);
    let good = match kept(app, account.id, &scopes, &file).await? {
        Some(live) => live.id.clone(),
        None => {
            let wanted = NewSession {
                label: OWN_MACHINE.to_owned(),
                scopes,
                valid_ms: VALID_MS,
                cookie: false,
                limited: false,
            };
            let issued = auth.issue(account, wanted).await?;
            config::write_private(&file, issued.secret.as_bytes())?;
            issued.live.id.clone()
        }
    };
    let before = app.clock.machine().0 - SETTLING_MS;
    let is_old =
        |live: &LiveToken| live.label == OWN_MACHINE && live.id != good && live.created < before;
    for old in auth.tokens_of(account.id).iter().filter(|live| is_old(live)) {
        auth.end(old).await?;
    }
    config::record_local(url, &file).context("this user's commands cannot be told where it runs")
}

/// The token that an earlier server or another one left there, where it goes on being good.
async fn kept(
    app: &Services,
    account: UserId,
    scopes: &[Scope],
    file: &Path,
) -> anyhow::Result<Option<Arc<LiveToken>>> {
    let Ok(secret) = std::fs::read_to_string(file) else { return Ok(None) };
    let found = app.auth.session_looked_up(secret.trim()).await?;
    let lasts = |live: &LiveToken| live.expires - app.clock.machine().0 > VALID_MS / 2;
    // A newer version may know more scopes than the one that made it.
    let suffices = |live: &LiveToken| scopes.iter().all(|scope| live.scopes.contains(scope));
    let is_ours = |live: &LiveToken| live.user == account && live.label == OWN_MACHINE;
    let is_good = |live: &Arc<LiveToken>| is_ours(live) && suffices(live) && lasts(live);
    Ok(found.map(|(_, live)| live).filter(is_good))
}
