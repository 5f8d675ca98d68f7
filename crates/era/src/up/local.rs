//! Commands of the user who started the server need no login: a token lies in a file that only
//! this user can read, and the user's own configuration says where.

use std::path::Path;

use anyhow::Context;
use era_api::account::Role;
use era_server::App;
use era_server::auth::sessions::{NewSession, scopes_of};

use crate::cli::config;

/// What the token is for, as lists of tokens show it.
pub(super) const LABEL: &str = "commands on the server's own machine";
/// A new one is made at every start.
const VALID_MS: i64 = 365 * 24 * 3_600_000;

/// Leaves a fresh token for this user's own commands, and ends the one of the last start.
pub(super) async fn introduce(
    app: &App,
    label: &str,
    data: &Path,
    url: &str,
) -> anyhow::Result<()> {
    let auth = &app.auth;
    let directory = auth.directory();
    let administrators = directory.users().filter(|user| user.role == Role::Administrator);
    let Some(account) = administrators.filter(|user| user.enabled).min_by_key(|user| user.id)
    else {
        return Ok(());
    };
    for old in auth.tokens_of(account.id).iter().filter(|token| token.label == label) {
        auth.end(old).await?;
    }
    let wanted = NewSession {
        label: label.to_owned(),
        scopes: scopes_of(account.role),
        valid_ms: VALID_MS,
        cookie: false,
        limited: false,
    };
    let issued = auth.issue(account, wanted).await?;
    let file = data.join("local-token");
    config::write_private(&file, issued.secret.as_bytes())?;
    config::record_local(url, &file).context("this user's commands cannot be told where it runs")
}
