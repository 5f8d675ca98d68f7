//! Who is asking, and what they may.
//!
//! A request brings a token (`authorization: Bearer era_…`) or a browser's session cookie. With a
//! cookie every change must also bring the session's second secret (`x-csrf-token`), and a
//! WebSocket must come from this very site. What may be done to whose job or data is decided by
//! whoever handles these, with the questions below.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use era_api::account::Scope;
use era_app::auth::token::LiveToken;
use era_app::auth::{Caller, Session};
use subtle::ConstantTimeEq;

use super::open_session::OpenSession;
use super::{Failure, extract};
use crate::App;

/// The cookie of a session, where all is encrypted.
pub const COOKIE_SECURE: &str = "__Host-era_session";
/// The same on plain loopback, where browsers refuse the former.
pub const COOKIE_PLAIN: &str = "era_session";
/// Brings the second secret of a session back.
pub const CSRF_HEADER: &str = "x-csrf-token";

/// What a request brings to say who it is.
fn presented(headers: &HeaderMap) -> Option<(&str, bool)> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| (token.trim(), false));
    }
    let cookies = headers.get_all(header::COOKIE).into_iter();
    let pairs = cookies.filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(';'));
    let ours = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or("").trim();
        name == COOKIE_SECURE || name == COOKIE_PLAIN
    };
    let pair = pairs.into_iter().find(|pair| ours(pair))?;
    Some((pair.split_once('=')?.1.trim(), true))
}

/// A browser's request must show that it comes from our own page.
fn from_our_page(parts: &Parts, live: &LiveToken) -> Result<(), Failure> {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    if parts.headers.contains_key(header::UPGRADE) {
        let origin = header("origin").and_then(|origin| origin.split_once("://"));
        let same = origin.is_some_and(|(_, host)| Some(host) == header("host"));
        return match same {
            true => Ok(()),
            false => Err(Failure::forbidden("the WebSocket was opened by another site's page")),
        };
    }
    if matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let sent = header(CSRF_HEADER).unwrap_or("");
    let expected = live.csrf.as_deref().unwrap_or("");
    // An empty one is never right, whatever is expected.
    if !sent.is_empty() && bool::from(sent.as_bytes().ct_eq(expected.as_bytes())) {
        return Ok(());
    }
    let detail = format!("a change by cookie must bring `{CSRF_HEADER}` as the login gave it");
    Err(Failure::new(StatusCode::FORBIDDEN, "csrf", detail))
}

async fn session(parts: &Parts, app: &App) -> Result<Session, Failure> {
    let (token, cookie) = presented(&parts.headers).ok_or_else(|| {
        Failure::unauthenticated("log in first: send `authorization: Bearer` with a token")
    })?;
    let (account, live) = app.auth.session_looked_up(token).await?.ok_or_else(|| {
        Failure::unauthenticated("this token is unknown, expired or revoked: log in again")
    })?;
    if cookie {
        from_our_page(parts, &live)?;
    } else if live.csrf.is_some() {
        // A session's secret is for the cookie, where scripts cannot read it.
        return Err(Failure::unauthenticated("a session is no token: make a token"));
    }
    let caller = era_app::auth::caller(&account, &live);
    Ok(Session { caller, account, live })
}

impl FromRequestParts<App> for Session {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Session, Failure> {
        session(parts, app).await
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Caller, Failure> {
        let Session { caller, live, .. } = session(parts, app).await?;
        if live.limited {
            let detail = "the one-time password must be changed first: PUT /api/v1/password";
            return Err(Failure::new(StatusCode::FORBIDDEN, "password_must_change", detail));
        }
        caller.may(match parts.method {
            Method::GET | Method::HEAD | Method::OPTIONS => Scope::Read,
            _ => Scope::Write,
        })?;
        // What is opened by this request must not outlast its token.
        if parts.headers.contains_key(header::UPGRADE) {
            let open = OpenSession::new(app, &live, parts.extensions.get())?;
            parts.extensions.insert(open);
        }
        Ok(caller)
    }
}

/// One call of somebody who is known: what it is made to, who makes it, and from which address.
pub struct Call {
    pub app: App,
    pub caller: Caller,
    pub from: IpAddr,
}

impl FromRequestParts<App> for Call {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Call, Failure> {
        let caller = Caller::from_request_parts(parts, app).await?;
        Ok(Call { app: app.clone(), caller, from: extract::address(parts) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_by_header_or_by_cookie() {
        let read = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            presented(&headers).map(|(token, cookie)| (token.to_owned(), cookie))
        };
        assert_eq!(read("authorization", "bearer era_1"), Some(("era_1".into(), false)));
        assert_eq!(read("authorization", "Basic x"), None);
        assert_eq!(read("cookie", "a=b; era_session=era_2"), Some(("era_2".into(), true)));
        assert_eq!(read("cookie", "__Host-era_session=era_3"), Some(("era_3".into(), true)));
        assert_eq!(read("cookie", "xera_session=era_2"), None);
    }
}
