//! Logging in and out, tokens, and one's own password.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use era_api::Page;
use era_api::account::{
    LoggedIn, Login, Me, NewToken, PasswordChange, Scope, TokenInfo, TokenMade,
};
use era_api::page::PageAsk;
use era_app::audit;
use era_app::auth::token::Live;
use era_app::auth::{LoginError, NewSession, OWN_MACHINE, TOKENS_MAX, UserEntry, scopes_of};
use era_app::paging;
use era_app::wire::{Wrong, credits};
use era_core::ledger::Account;
use era_core::units::UserId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audit::stamp;
use super::caller::{COOKIE_PLAIN, COOKIE_SECURE};
use super::serve::Encrypted;
use super::{Body, Caller, Failure, From, Path, Query, Session};
use crate::App;

/// Longest time a token may be good for.
const VALID_S_MAX: u64 = 366 * 24 * 3600;
/// Longest label.
const LABEL_MAX: usize = 100;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(log_in, me, log_out))
        .routes(routes!(tokens, make_token))
        .routes(routes!(end_token))
        .routes(routes!(others_tokens))
        .routes(routes!(end_others_token))
        .routes(routes!(change_password))
}

/// Log in with name and password. Gives a token, or with `cookie` a browser's session.
#[utoipa::path(post, path = "/sessions", tag = "sessions", security(()), request_body = Login,
    responses((status = 201, body = LoggedIn)))]
async fn log_in(
    State(app): State<App>,
    from: From,
    encrypted: Option<Extension<Encrypted>>,
    Body(login): Body<Login>,
) -> Result<Response, Failure> {
    check_label(login.label.as_deref())?;
    let (user, issued) = match app.auth.log_in(&login, from.0).await {
        Ok(entered) => entered,
        Err(error) => {
            if matches!(error, LoginError::Wrong) {
                audit::note(&app, &login.user, from.0, "login.failed", &login.user, false).await;
            }
            return Err(error.into());
        }
    };
    audit::note(&app, &user.name, from.0, "login", &issued.live.id, true).await;
    let mut logged = LoggedIn {
        me: describe(&app, &user, &issued.live),
        token: None,
        csrf: issued.live.csrf.clone(),
        expires: stamp(issued.live.expires),
    };
    if !login.cookie {
        logged.token = Some(issued.secret);
        return Ok((StatusCode::CREATED, Json(logged)).into_response());
    }
    let secure = encrypted.is_some_and(|Extension(Encrypted(yes))| yes);
    let age_s = (issued.live.expires - issued.live.created) / 1000;
    let cookie = cookie(secure, &issued.secret, age_s)?;
    Ok((StatusCode::CREATED, [(header::SET_COOKIE, cookie)], Json(logged)).into_response())
}

/// Who is asking.
#[utoipa::path(get, path = "/sessions", tag = "sessions", responses((status = 200, body = Me)))]
async fn me(State(app): State<App>, session: Session) -> Json<Me> {
    Json(describe(&app, &session.account, &session.live))
}

/// Log out: the token or session that is used here ends.
#[utoipa::path(delete, path = "/sessions", tag = "sessions", responses((status = 204)))]
async fn log_out(
    State(app): State<App>,
    session: Session,
    from: From,
    encrypted: Option<Extension<Encrypted>>,
) -> Result<Response, Failure> {
    app.auth.end(&session.live).await?;
    audit::note(&app, &session.caller.name, from.0, "logout", &session.live.id, true).await;
    let secure = encrypted.is_some_and(|Extension(Encrypted(yes))| yes);
    let gone = cookie(secure, "", 0)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, gone)]).into_response())
}

fn cookie(secure: bool, secret: &str, age_s: i64) -> Result<HeaderValue, Failure> {
    let (name, flag) = if secure { (COOKIE_SECURE, "; Secure") } else { (COOKIE_PLAIN, "") };
    let text = format!("{name}={secret}; Path=/; Max-Age={age_s}; HttpOnly; SameSite=Lax{flag}");
    HeaderValue::from_str(&text).map_err(|error| Failure::internal(&error))
}

fn describe(app: &App, user: &UserEntry, live: &Live) -> Me {
    let balance = app.driver.snapshot().ledger().balance(Account::Wallet(user.id));
    Me {
        id: user.id.0,
        name: user.name.clone(),
        group: app.auth.directory().group_name(user.group),
        role: user.role,
        balance: credits(balance),
        must_change_password: live.limited,
        csrf: live.csrf.clone(),
    }
}

fn check_label(label: Option<&str>) -> Result<(), Failure> {
    let Some(label) = label else { return Ok(()) };
    if label == OWN_MACHINE {
        return Err(Failure::bad_field("label", Wrong::OwnMachine));
    }
    let good = (1..=LABEL_MAX).contains(&label.chars().count());
    if good && !label.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Failure::bad_field("label", Wrong::Text { most: LABEL_MAX }))
}

/// One's own live tokens and sessions, by their public names.
#[utoipa::path(get, path = "/tokens", tag = "sessions", params(PageAsk),
    responses((status = 200, body = Page<TokenInfo>)))]
async fn tokens(
    State(app): State<App>,
    caller: Caller,
    Query(ask): Query<PageAsk>,
) -> Result<Json<Page<TokenInfo>>, Failure> {
    list(&app, caller.user, ask)
}

fn list(app: &App, user: UserId, ask: PageAsk) -> Result<Json<Page<TokenInfo>>, Failure> {
    let size = paging::size(&ask)?;
    let after = ask.cursor.unwrap_or_default();
    let all = app.auth.tokens_of(user);
    let some = all.iter().filter(|live| live.id > after).take(size + 1).map(|live| info(live));
    Ok(Json(paging::page(some.collect(), size, |info: &TokenInfo| info.id.clone())))
}

/// The live tokens and sessions of an account, by their public names. For administrators.
#[utoipa::path(get, path = "/users/{name}/tokens", tag = "users",
    params(("name" = String, Path), PageAsk), responses((status = 200, body = Page<TokenInfo>)))]
async fn others_tokens(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(ask): Query<PageAsk>,
) -> Result<Json<Page<TokenInfo>>, Failure> {
    caller.administers()?;
    list(&app, account(&app, &name)?, ask)
}

/// Revoke a token or end a session of an account. For administrators.
#[utoipa::path(delete, path = "/users/{name}/tokens/{id}", tag = "users",
    params(("name" = String, Path), ("id" = String, Path)), responses((status = 204)))]
async fn end_others_token(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path((name, id)): Path<(String, String)>,
) -> Result<StatusCode, Failure> {
    caller.administers()?;
    end(&app, &caller, from, account(&app, &name)?, &id).await
}

fn account(app: &App, name: &str) -> Result<UserId, Failure> {
    let found = app.auth.directory().user_named(name).map(|user| user.id);
    found.ok_or_else(|| Failure::not_found("user", name))
}

fn info(live: &Live) -> TokenInfo {
    TokenInfo {
        id: live.id.clone(),
        label: live.label.clone(),
        scopes: live.scopes.clone(),
        created: stamp(live.created),
        expires: stamp(live.expires),
        used: live.used().map(stamp),
    }
}

/// Make a token, which may do no more than the one that is used here.
#[utoipa::path(post, path = "/tokens", tag = "sessions", request_body = NewToken,
    responses((status = 201, body = TokenMade)))]
async fn make_token(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Body(wanted): Body<NewToken>,
) -> Result<(StatusCode, Json<TokenMade>), Failure> {
    check_label(Some(&wanted.label))?;
    if !(1..=VALID_S_MAX).contains(&wanted.valid_s) {
        return Err(Failure::bad_field("valid_s", Wrong::Range { least: 1, most: VALID_S_MAX }));
    }
    let mut scopes = wanted.scopes;
    scopes.sort_unstable();
    scopes.dedup();
    let account = app.auth.directory().user(caller.user).cloned();
    let account = account.ok_or_else(|| Failure::not_found("user", &caller.name))?;
    let most = scopes_of(account.role);
    let beyond = |scope: &&Scope| !caller.scopes.contains(scope) || !most.contains(scope);
    if scopes.is_empty() || scopes.iter().any(|scope| beyond(&scope)) {
        return Err(Failure::bad_field("scopes", Wrong::Scopes));
    }
    if app.auth.tokens_of(caller.user).len() >= TOKENS_MAX {
        let detail = format!("at most {TOKENS_MAX} tokens at a time: revoke one first");
        return Err(Failure::new(StatusCode::CONFLICT, "too_many_tokens", detail));
    }
    let valid_ms = i64::try_from(wanted.valid_s).unwrap_or(i64::MAX / 1000).saturating_mul(1000);
    let session =
        NewSession { label: wanted.label, scopes, valid_ms, cookie: false, limited: false };
    let issued = app.auth.issue(&account, session).await?;
    audit::note(&app, &caller.name, from.0, "token.create", &issued.live.id, true).await;
    let made = TokenMade { token: issued.secret, info: info(&issued.live) };
    Ok((StatusCode::CREATED, Json(made)))
}

/// Revoke one of one's own tokens.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "sessions", params(("id" = String, Path)),
    responses((status = 204)))]
async fn end_token(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(id): Path<String>,
) -> Result<StatusCode, Failure> {
    end(&app, &caller, from, caller.user, &id).await
}

async fn end(
    app: &App,
    caller: &Caller,
    from: From,
    user: UserId,
    id: &str,
) -> Result<StatusCode, Failure> {
    let all = app.auth.tokens_of(user);
    let live = all.iter().find(|live| live.id == id);
    let live = live.ok_or_else(|| Failure::not_found("token", id))?;
    app.auth.end(live).await?;
    audit::note(app, &caller.name, from.0, "token.revoke", &live.id, true).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Change one's own password. All other sessions and tokens end, but that of the server's own machine.
#[utoipa::path(put, path = "/password", tag = "sessions", request_body = PasswordChange,
    responses((status = 204)))]
async fn change_password(
    State(app): State<App>,
    session: Session,
    from: From,
    Body(change): Body<PasswordChange>,
) -> Result<StatusCode, Failure> {
    session.caller.may(Scope::Write)?;
    let (user, live) = (session.caller.user, &session.live.id);
    let done = app.auth.change_password(user, live, &change.old, &change.new, from.0).await;
    let name = &session.caller.name;
    audit::note(&app, name, from.0, "password.change", name, done.is_ok()).await;
    done?;
    Ok(StatusCode::NO_CONTENT)
}
