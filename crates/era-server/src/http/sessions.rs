//! Logging in and out, tokens, and one's own password.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use era_api::Page;
use era_api::account::{LoggedIn, Login, Me, NewToken, PasswordChange, TokenInfo, TokenMade};
use era_api::page::PageAsk;
use era_app::sessions;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::caller::{COOKIE_PLAIN, COOKIE_SECURE};
use super::proxy::Encrypted;
use super::{Body, Call, ClientAddr, Failure, Path, Query, Session};
use crate::App;

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
    from: ClientAddr,
    encrypted: Option<Extension<Encrypted>>,
    Body(login): Body<Login>,
) -> Result<Response, Failure> {
    let (mut logged, issued) = sessions::log_in(&app, from.0, &login).await?;
    if !login.cookie {
        logged.token = Some(issued.secret);
        return Ok((StatusCode::CREATED, Json(logged)).into_response());
    }
    let age_s = (issued.live.expires - issued.live.created) / 1000;
    let cookie = cookie(encrypted, &issued.secret, age_s)?;
    Ok((StatusCode::CREATED, [(header::SET_COOKIE, cookie)], Json(logged)).into_response())
}

/// Who is asking.
#[utoipa::path(get, path = "/sessions", tag = "sessions", responses((status = 200, body = Me)))]
async fn me(State(app): State<App>, session: Session) -> Json<Me> {
    Json(sessions::me(&app, &session))
}

/// Log out: the token or session that is used here ends.
#[utoipa::path(delete, path = "/sessions", tag = "sessions", responses((status = 204)))]
async fn log_out(
    State(app): State<App>,
    session: Session,
    from: ClientAddr,
    encrypted: Option<Extension<Encrypted>>,
) -> Result<Response, Failure> {
    sessions::log_out(&app, &session, from.0).await?;
    let gone = cookie(encrypted, "", 0)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, gone)]).into_response())
}

fn cookie(
    encrypted: Option<Extension<Encrypted>>,
    secret: &str,
    age_s: i64,
) -> Result<HeaderValue, Failure> {
    let secure = encrypted.is_some_and(|Extension(Encrypted(yes))| yes);
    let (name, flag) = if secure { (COOKIE_SECURE, "; Secure") } else { (COOKIE_PLAIN, "") };
    let text = format!("{name}={secret}; Path=/; Max-Age={age_s}; HttpOnly; SameSite=Lax{flag}");
    HeaderValue::from_str(&text).map_err(|error| Failure::internal(&error))
}

/// One's own live tokens and sessions, by their public names.
#[utoipa::path(get, path = "/tokens", tag = "sessions", params(PageAsk),
    responses((status = 200, body = Page<TokenInfo>)))]
async fn tokens(call: Call, Query(ask): Query<PageAsk>) -> Result<Json<Page<TokenInfo>>, Failure> {
    Ok(Json(sessions::tokens(&call.app, &call.caller, ask)?))
}

/// The live tokens and sessions of an account, by their public names. For administrators.
#[utoipa::path(get, path = "/users/{name}/tokens", tag = "users",
    params(("name" = String, Path), PageAsk), responses((status = 200, body = Page<TokenInfo>)))]
async fn others_tokens(
    call: Call,
    Path(name): Path<String>,
    Query(ask): Query<PageAsk>,
) -> Result<Json<Page<TokenInfo>>, Failure> {
    Ok(Json(sessions::others_tokens(&call.app, &call.caller, &name, ask)?))
}

/// Revoke a token or end a session of an account. For administrators.
#[utoipa::path(delete, path = "/users/{name}/tokens/{id}", tag = "users",
    params(("name" = String, Path), ("id" = String, Path)), responses((status = 204)))]
async fn end_others_token(
    call: Call,
    Path((name, id)): Path<(String, String)>,
) -> Result<StatusCode, Failure> {
    sessions::end_others_token(&call.app, &call.caller, call.from, &name, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Make a token, which may do no more than the one that is used here.
#[utoipa::path(post, path = "/tokens", tag = "sessions", request_body = NewToken,
    responses((status = 201, body = TokenMade)))]
async fn make_token(
    call: Call,
    Body(wanted): Body<NewToken>,
) -> Result<(StatusCode, Json<TokenMade>), Failure> {
    let made = sessions::make_token(&call.app, &call.caller, call.from, wanted).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Revoke one of one's own tokens.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "sessions", params(("id" = String, Path)),
    responses((status = 204)))]
async fn end_token(call: Call, Path(id): Path<String>) -> Result<StatusCode, Failure> {
    sessions::end_token(&call.app, &call.caller, call.from, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Change one's own password. All other sessions and tokens end, but that of the server's own machine.
#[utoipa::path(put, path = "/password", tag = "sessions", request_body = PasswordChange,
    responses((status = 204)))]
async fn change_password(
    State(app): State<App>,
    session: Session,
    from: ClientAddr,
    Body(change): Body<PasswordChange>,
) -> Result<StatusCode, Failure> {
    sessions::change_password(&app, &session, from.0, &change).await?;
    Ok(StatusCode::NO_CONTENT)
}
