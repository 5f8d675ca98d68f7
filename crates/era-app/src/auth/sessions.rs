//! Logging in and out, tokens, and who is behind one.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError};

use era_api::account::{Role, Scope};
use era_core::units::UserId;
use era_store::StoreError;
use era_store::accounts::TokenRow;

use super::Caller;
use super::password::HashError;
use super::token::{self, LiveToken};
use super::{Auth, UserEntry};

/// Most live tokens and sessions of an account.
pub const TOKENS_MAX: usize = 200;
/// How long a token that a login gave is good.
const LOGIN_MS: i64 = 30 * 24 * 3_600_000;
/// How long a browser's session is good.
const COOKIE_MS: i64 = 7 * 24 * 3_600_000;
/// How long somebody with a one-time password may take to change it.
const LIMITED_MS: i64 = 3_600_000;

/// The label of tokens that a server leaves in a file for commands of its own user. Nobody else may
/// label a token so.
pub const OWN_MACHINE: &str = "commands on the server's own machine";

/// Why nobody was logged in.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// No such account, or not its password, or it may not.
    #[error("no account has this name and password: check both, or ask an administrator")]
    Wrong,
    /// Too many wrong passwords.
    #[error("too many wrong passwords: try again in {} s", .wait_ms.div_euclid(1000) + 1)]
    Throttled {
        /// For how long.
        wait_ms: i64,
    },
    /// The password could not be checked.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// The system gives no random numbers.
    #[error("no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A token or session that is wanted.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// What it is for.
    pub label: String,
    /// What it may be used for.
    pub scopes: Vec<Scope>,
    /// How long it is good.
    pub valid_ms: i64,
    /// Whether it is a browser's, which must send a second secret back with changes.
    pub cookie: bool,
    /// Whether it is good for changing the password and nothing else.
    pub limited: bool,
}

/// A token or session that was made.
#[derive(Debug)]
pub struct Issued {
    /// The secret, told once.
    pub secret: String,
    /// As it is known from now on.
    pub live: Arc<LiveToken>,
}

/// The account and the very token behind what somebody asks; also good while a one-time password
/// has not been changed.
#[derive(Clone)]
pub struct Session {
    /// The account with its rights.
    pub caller: Caller,
    /// The account as the directory has it.
    pub account: Arc<UserEntry>,
    pub live: Arc<LiveToken>,
}

/// All that a role can give to a token.
pub fn scopes_of(role: Role) -> Vec<Scope> {
    match role {
        Role::User => vec![Scope::Read, Scope::Write],
        Role::GroupAdministrator | Role::Administrator => {
            vec![Scope::Read, Scope::Write, Scope::Admin]
        }
    }
}

impl Auth {
    /// Logs in by name and password, from an address.
    pub async fn log_in(
        &self,
        login: &era_api::account::Login,
        from: IpAddr,
    ) -> Result<(Arc<UserEntry>, Issued), LoginError> {
        let throttled =
            self.throttle(|throttle| throttle.attempt(&login.user, from, self.now_ms()));
        throttled.map_err(|wait_ms| LoginError::Throttled { wait_ms })?;
        self.before_login().await?;
        let user = self.directory().user_named(&login.user).cloned();
        let stored = user.as_ref().map(|user| user.password.clone());
        let right = self.hasher.check(login.password.clone(), stored).await?;
        let user = match user.filter(|user| right && user.enabled) {
            Some(user) => user,
            None => return Err(LoginError::Wrong),
        };
        self.throttle(|throttle| throttle.right(&login.user, from));
        let issued = self.issue(&user, session_for(login, &user)).await?;
        // While the password was checked it may have been changed, or the account disabled. Either
        // that is seen here, or the token was there to be ended with all others.
        self.before_login().await?;
        let is_same = |now: &Arc<UserEntry>| {
            now.enabled && now.password == user.password && now.role >= user.role
        };
        if !self.directory().user(user.id).is_some_and(is_same) {
            self.end(&issued.live).await?;
            return Err(LoginError::Wrong);
        }
        Ok((user, issued))
    }

    /// Makes a token for an account.
    pub async fn issue(&self, user: &UserEntry, wanted: NewSession) -> Result<Issued, LoginError> {
        let now = self.now_ms();
        let secret = format!("{}{}", token::PREFIX, token::secret()?);
        let (id, hash) = token::recognise(&secret).ok_or(LoginError::Wrong)?;
        let row = TokenRow {
            id,
            hash: token::hex(&hash),
            user: user.id.0,
            label: wanted.label,
            scopes: token::bits(&wanted.scopes),
            csrf: if wanted.cookie { Some(token::secret()?) } else { None },
            limited: wanted.limited,
            created: now,
            expires: now.saturating_add(wanted.valid_ms),
            used: None,
        };
        self.make_room(user.id, now).await?;
        self.rows.add_token(&row).await?;
        self.tokens.add(&row);
        let live = self.tokens.find(&secret, now).ok_or(LoginError::Wrong)?;
        Ok(Issued { secret, live })
    }

    /// Ends the oldest tokens of an account that has as many as it may.
    async fn make_room(&self, user: UserId, now: i64) -> Result<(), StoreError> {
        let mut theirs = self.tokens.of_user(user, now);
        theirs.sort_by_key(|live| std::cmp::Reverse(live.created));
        for oldest in theirs.iter().skip(TOKENS_MAX - 1) {
            self.end(oldest).await?;
        }
        Ok(())
    }

    /// The live token behind what somebody presents, and its account.
    pub fn session(&self, presented: &str) -> Option<(Arc<UserEntry>, Arc<LiveToken>)> {
        let live = self.tokens.find(presented, self.now_ms())?;
        let user = self.directory.load().user(live.user).filter(|user| user.enabled).cloned()?;
        Some((user, live))
    }

    /// Who is behind a token. Nobody, while a one-time password has not been changed.
    pub fn caller(&self, presented: &str) -> Option<Caller> {
        let (user, live) = self.session(presented)?;
        (!live.limited).then(|| caller(&user, &live))
    }

    /// Whether a token that was found before is good still.
    pub fn is_good(&self, live: &LiveToken) -> bool {
        let enabled = self.directory.load().user(live.user).is_some_and(|user| user.enabled);
        enabled && self.tokens.has(live, self.now_ms())
    }

    /// All live tokens of an account, by their public names.
    pub fn tokens_of(&self, user: UserId) -> Vec<Arc<LiveToken>> {
        self.tokens.of_user(user, self.now_ms())
    }

    pub async fn end(&self, live: &LiveToken) -> Result<(), StoreError> {
        self.rows.remove_token(&live.id).await?;
        self.tokens.remove(live);
        Ok(())
    }

    /// Ends all tokens of an account.
    pub(super) async fn end_all(&self, user: UserId) -> Result<(), StoreError> {
        self.rows.remove_tokens_of(user.0, None, None).await?;
        self.tokens.remove_of(user, None, None);
        Ok(())
    }

    /// Ends what a password gave, or gives to whoever has stolen it: all tokens of an account but
    /// perhaps one, which loses its limits, and [`OWN_MACHINE`]. That one no password ever gave.
    /// It lies in a file for which one has to be the server's user, who needs no token.
    pub(super) async fn end_logins(
        &self,
        user: UserId,
        but: Option<&str>,
    ) -> Result<(), StoreError> {
        self.rows.remove_tokens_of(user.0, but, Some(OWN_MACHINE)).await?;
        self.tokens.remove_of(user, but, Some(OWN_MACHINE));
        Ok(())
    }

    /// Whether an attempt of an account with its own password may be made now.
    pub(super) fn throttle<T>(&self, act: impl FnOnce(&mut super::Throttle) -> T) -> T {
        act(&mut self.throttle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn session_for(login: &era_api::account::Login, user: &UserEntry) -> NewSession {
    let label = login.label.clone().unwrap_or_else(|| match login.cookie {
        true => "browser".to_owned(),
        false => "login".to_owned(),
    });
    let valid_ms = match (user.one_time, login.cookie) {
        (true, _) => LIMITED_MS,
        (false, true) => COOKIE_MS,
        (false, false) => LOGIN_MS,
    };
    NewSession {
        label,
        scopes: scopes_of(user.role),
        valid_ms,
        cookie: login.cookie,
        limited: user.one_time,
    }
}

/// An account with the rights that it has through a token: without [`Scope::Admin`] everybody is
/// a plain user.
pub fn caller(user: &UserEntry, live: &LiveToken) -> Caller {
    let role = if live.scopes.contains(&Scope::Admin) { user.role } else { Role::User };
    Caller {
        user: user.id,
        name: user.name.clone(),
        group: user.group,
        role,
        scopes: live.scopes.clone(),
    }
}
