//! Logging in and out, tokens, and one's own password.

use std::net::IpAddr;

use era_api::Page;
use era_api::account::{
    LoggedIn, Login, Me, NewToken, PasswordChange, Scope, TokenInfo, TokenMade,
};
use era_api::page::PageAsk;
use era_core::ledger::Account;
use era_core::units::{Time, UserId};

use crate::auth::token::LiveToken;
use crate::auth::{
    Caller, Issued, LoginError, NewSession, OWN_MACHINE, Session, TOKENS_MAX, UserEntry, scopes_of,
};
use crate::error::{AppError, Kind};
use crate::wire::{Wrong, credits, stamp};
use crate::{Services, audit, paging};

/// Longest time a token may be good for.
const VALID_S_MAX: u64 = 366 * 24 * 3600;
/// Longest label.
const LABEL_MAX: usize = 100;

/// Logs in by name and password. The secret is not in what is told of the login: a protocol hands
/// it over in its own way.
pub async fn log_in(
    services: &Services,
    from: IpAddr,
    login: &Login,
) -> Result<(LoggedIn, Issued), AppError> {
    check_label(login.label.as_deref())?;
    let (user, issued) = match services.auth.log_in(login, from).await {
        Ok(entered) => entered,
        Err(error) => {
            if matches!(error, LoginError::Wrong) {
                let who = &login.user;
                audit::note(services, who, from, "login.failed", who, false).await;
            }
            return Err(error.into());
        }
    };
    audit::note(services, &user.name, from, "login", &issued.live.id, true).await;
    let logged = LoggedIn {
        me: describe(services, &user, &issued.live),
        token: None,
        csrf: issued.live.csrf.clone(),
        expires: stamp(Time(issued.live.expires)),
    };
    Ok((logged, issued))
}

/// Who is asking.
pub fn me(services: &Services, session: &Session) -> Me {
    describe(services, &session.account, &session.live)
}

/// Ends the token or session that is used here.
pub async fn log_out(services: &Services, session: &Session, from: IpAddr) -> Result<(), AppError> {
    services.auth.end(&session.live).await?;
    audit::note(services, &session.caller.name, from, "logout", &session.live.id, true).await;
    Ok(())
}

fn describe(services: &Services, user: &UserEntry, live: &LiveToken) -> Me {
    let balance = services.driver.snapshot().ledger().balance(Account::Wallet(user.id));
    Me {
        id: user.id.0,
        name: user.name.clone(),
        group: services.auth.directory().group_name(user.group),
        role: user.role,
        balance: credits(balance),
        must_change_password: live.limited,
        csrf: live.csrf.clone(),
    }
}

fn check_label(label: Option<&str>) -> Result<(), AppError> {
    let Some(label) = label else { return Ok(()) };
    if label == OWN_MACHINE {
        return Err(AppError::bad_field("label", Wrong::OwnMachine));
    }
    let good = (1..=LABEL_MAX).contains(&label.chars().count());
    if good && !label.chars().any(char::is_control) {
        return Ok(());
    }
    Err(AppError::bad_field("label", Wrong::Text { most: LABEL_MAX }))
}

/// One's own live tokens and sessions, by their public names.
pub fn tokens(
    services: &Services,
    caller: &Caller,
    ask: PageAsk,
) -> Result<Page<TokenInfo>, AppError> {
    list(services, caller.user, ask)
}

/// The live tokens and sessions of an account. For administrators.
pub fn others_tokens(
    services: &Services,
    caller: &Caller,
    name: &str,
    ask: PageAsk,
) -> Result<Page<TokenInfo>, AppError> {
    caller.administers()?;
    list(services, account(services, name)?, ask)
}

fn list(services: &Services, user: UserId, ask: PageAsk) -> Result<Page<TokenInfo>, AppError> {
    let size = paging::size(&ask)?;
    let after = ask.cursor.unwrap_or_default();
    let all = services.auth.tokens_of(user);
    let some = all.iter().filter(|live| live.id > after).take(size + 1).map(|live| info(live));
    Ok(paging::page(some.collect(), size, |info: &TokenInfo| info.id.clone()))
}

fn account(services: &Services, name: &str) -> Result<UserId, AppError> {
    let found = services.auth.directory().user_named(name).map(|user| user.id);
    found.ok_or_else(|| AppError::not_found("user", name))
}

fn info(live: &LiveToken) -> TokenInfo {
    TokenInfo {
        id: live.id.clone(),
        label: live.label.clone(),
        scopes: live.scopes.clone(),
        created: stamp(Time(live.created)),
        expires: stamp(Time(live.expires)),
        used: live.used().map(|at| stamp(Time(at))),
    }
}

/// Makes a token, which may do no more than the one that is used here.
pub async fn make_token(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    wanted: NewToken,
) -> Result<TokenMade, AppError> {
    check_label(Some(&wanted.label))?;
    if !(1..=VALID_S_MAX).contains(&wanted.valid_s) {
        return Err(AppError::bad_field("valid_s", Wrong::Range { least: 1, most: VALID_S_MAX }));
    }
    let mut scopes = wanted.scopes;
    scopes.sort_unstable();
    scopes.dedup();
    let account = services.auth.directory().user(caller.user).cloned();
    let account = account.ok_or_else(|| AppError::not_found("user", &caller.name))?;
    let most = scopes_of(account.role);
    let beyond = |scope: &&Scope| !caller.scopes.contains(scope) || !most.contains(scope);
    if scopes.is_empty() || scopes.iter().any(|scope| beyond(&scope)) {
        return Err(AppError::bad_field("scopes", Wrong::Scopes));
    }
    if services.auth.tokens_of(caller.user).len() >= TOKENS_MAX {
        let detail = format!("at most {TOKENS_MAX} tokens at a time: revoke one first");
        return Err(AppError::new(Kind::Conflict, "too_many_tokens", detail));
    }
    let valid_ms = i64::try_from(wanted.valid_s).unwrap_or(i64::MAX / 1000).saturating_mul(1000);
    let session =
        NewSession { label: wanted.label, scopes, valid_ms, cookie: false, limited: false };
    let issued = services.auth.issue(&account, session).await?;
    audit::note(services, &caller.name, from, "token.create", &issued.live.id, true).await;
    Ok(TokenMade { token: issued.secret, info: info(&issued.live) })
}

/// Revokes one of one's own tokens.
pub async fn end_token(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    id: &str,
) -> Result<(), AppError> {
    end(services, caller, from, caller.user, id).await
}

/// Revokes a token or ends a session of an account. For administrators.
pub async fn end_others_token(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
    id: &str,
) -> Result<(), AppError> {
    caller.administers()?;
    end(services, caller, from, account(services, name)?, id).await
}

async fn end(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    user: UserId,
    id: &str,
) -> Result<(), AppError> {
    let all = services.auth.tokens_of(user);
    let live = all.iter().find(|live| live.id == id);
    let live = live.ok_or_else(|| AppError::not_found("token", id))?;
    services.auth.end(live).await?;
    audit::note(services, &caller.name, from, "token.revoke", &live.id, true).await;
    Ok(())
}

/// Changes one's own password. All other sessions and tokens end, but that of the server's own
/// machine.
pub async fn change_password(
    services: &Services,
    session: &Session,
    from: IpAddr,
    change: &PasswordChange,
) -> Result<(), AppError> {
    session.caller.may(Scope::Write)?;
    let (user, live) = (session.caller.user, &session.live.id);
    let done = services.auth.change_password(user, live, &change.old, &change.new, from).await;
    let name = &session.caller.name;
    audit::note(services, name, from, "password.change", name, done.is_ok()).await;
    Ok(done?)
}
