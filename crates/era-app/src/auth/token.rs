//! Opaque tokens: random, told once, kept as hashes, all live ones in memory.
//!
//! Since every live token is known, one that is not there is refused without the database: a
//! stranger who sends garbage costs a hash and nothing else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use era_api::account::Scope;
use era_core::units::UserId;
use era_store::accounts::TokenRow;

/// What every token begins with, so that leaked ones can be searched for.
pub const PREFIX: &str = "era_";
/// Hexadecimal digits behind it: 256 bits.
const DIGITS: usize = 64;
/// How many of them are its public name.
const ID_DIGITS: usize = 12;

pub type TokenHash = [u8; 32];

/// A token that is live.
#[derive(Debug)]
pub struct LiveToken {
    /// Its public name.
    pub id: String,
    pub user: UserId,
    /// What it is for.
    pub label: String,
    /// What it may be used for.
    pub scopes: Vec<Scope>,
    /// What a browser has to send back with changes.
    pub csrf: Option<String>,
    /// Whether it is good for changing the password and nothing else.
    pub limited: bool,
    /// Since when, in milliseconds.
    pub created: i64,
    pub expires: i64,
    used: AtomicI64,
    hash: TokenHash,
}

impl LiveToken {
    /// As it is kept; `None` where its hash is none, so that it can never be presented.
    fn of(row: &TokenRow) -> Option<LiveToken> {
        let hash = *blake3::Hash::from_hex(&row.hash).ok()?.as_bytes();
        Some(LiveToken {
            id: row.id.clone(),
            user: UserId(row.user),
            label: row.label.clone(),
            scopes: scopes(row.scopes),
            csrf: row.csrf.clone(),
            limited: row.limited,
            created: row.created,
            expires: row.expires,
            used: AtomicI64::new(row.used.unwrap_or(0)),
            hash,
        })
    }

    /// When it was last used, to the minute.
    pub fn used(&self) -> Option<i64> {
        Some(self.used.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }
}

/// A new secret, in hexadecimal.
pub fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; DIGITS / 2];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The public name of a token, and its hash, where it looks like one at all.
pub fn recognise(token: &str) -> Option<(String, TokenHash)> {
    let digits = token.strip_prefix(PREFIX)?;
    let plain = digits.len() == DIGITS
        && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let hash = || *blake3::hash(token.as_bytes()).as_bytes();
    plain.then(|| (format!("{PREFIX}{}", &digits[..ID_DIGITS]), hash()))
}

pub fn bits(scopes: &[Scope]) -> u8 {
    scopes.iter().fold(0, |bits, scope| bits | 1 << (*scope as u8))
}

fn scopes(bits: u8) -> Vec<Scope> {
    let all = [Scope::Read, Scope::Write, Scope::Admin];
    all.into_iter().filter(|scope| bits & (1 << (*scope as u8)) != 0).collect()
}

/// All live tokens.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    live: RwLock<HashMap<TokenHash, Arc<LiveToken>>>,
}

impl Tokens {
    pub(super) fn of(rows: Vec<TokenRow>) -> Tokens {
        let tokens = Tokens::default();
        for row in rows {
            // A hash that is none can never be presented, so its row is as good as absent.
            tokens.add(&row);
        }
        tokens
    }

    pub(super) fn add(&self, row: &TokenRow) {
        if let Some(live) = LiveToken::of(row) {
            self.write(|all| all.insert(live.hash, Arc::new(live)));
        }
    }

    /// These are live now, and no others; when one was used is remembered.
    pub(super) fn replace(&self, rows: Vec<TokenRow>) {
        let fresh: HashMap<TokenHash, Arc<LiveToken>> = rows
            .iter()
            .filter_map(LiveToken::of)
            .map(|live| {
                let before = self.read(|all| all.get(&live.hash).and_then(|old| old.used()));
                live.used.fetch_max(before.unwrap_or(0), Ordering::Relaxed);
                (live.hash, Arc::new(live))
            })
            .collect();
        self.write(|all| *all = fresh);
    }

    /// The live token behind what somebody presents.
    pub(super) fn find(&self, token: &str, now: i64) -> Option<Arc<LiveToken>> {
        let (_, hash) = recognise(token)?;
        let live = self.read(|all| all.get(&hash).cloned())?;
        if live.expires <= now {
            return None;
        }
        if now - live.used.load(Ordering::Relaxed) >= 60_000 {
            live.used.store(now, Ordering::Relaxed);
        }
        Some(live)
    }

    /// Whether a token that was found is live still.
    pub(super) fn has(&self, live: &LiveToken, now: i64) -> bool {
        self.read(|all| all.get(&live.hash).is_some_and(|live| live.expires > now))
    }

    pub(super) fn of_user(&self, user: UserId, now: i64) -> Vec<Arc<LiveToken>> {
        let theirs = |live: &&Arc<LiveToken>| live.user == user && live.expires > now;
        let mut found: Vec<_> =
            self.read(|all| all.values().filter(theirs).cloned().collect::<Vec<_>>());
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found
    }

    pub(super) fn remove(&self, live: &LiveToken) {
        self.write(|all| all.remove(&live.hash));
    }

    /// Ends all tokens of a user, but perhaps one, which loses its limits.
    pub(super) fn remove_of(&self, user: UserId, but: Option<&str>, but_labelled: Option<&str>) {
        self.write(|all| {
            let stays = |live: &LiveToken| {
                Some(live.id.as_str()) == but || Some(live.label.as_str()) == but_labelled
            };
            all.retain(|_, live| live.user != user || stays(live));
            for live in all.values_mut().filter(|live| live.user == user) {
                let freed = LiveToken {
                    limited: false,
                    id: live.id.clone(),
                    label: live.label.clone(),
                    scopes: live.scopes.clone(),
                    csrf: live.csrf.clone(),
                    used: AtomicI64::new(live.used.load(Ordering::Relaxed)),
                    ..**live
                };
                *live = Arc::new(freed);
            }
        });
    }

    /// Forgets what has expired and says whether there was any, and gives when the others were
    /// used, where that was since a moment.
    pub(super) fn tend(&self, since: i64, now: i64) -> (bool, Vec<(String, i64)>) {
        self.write(|all| {
            let before = all.len();
            all.retain(|_, live| live.expires > now);
            let used = |live: &Arc<LiveToken>| {
                let at = live.used().filter(|at| *at >= since)?;
                Some((live.id.clone(), at))
            };
            (all.len() < before, all.values().filter_map(used).collect())
        })
    }

    // Nothing is left half-done behind these locks, so a poisoned one is as good as any.
    fn read<T>(&self, look: impl FnOnce(&HashMap<TokenHash, Arc<LiveToken>>) -> T) -> T {
        look(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut HashMap<TokenHash, Arc<LiveToken>>) -> T) -> T {
        change(&mut self.live.write().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_survive_as_bits() {
        for given in [vec![], vec![Scope::Read], vec![Scope::Read, Scope::Write, Scope::Admin]] {
            assert_eq!(scopes(bits(&given)), given);
        }
    }

    #[test]
    fn only_what_looks_like_a_token_is_hashed() {
        let token = format!("{PREFIX}{}", secret().unwrap());
        let (id, hash) = recognise(&token).unwrap();
        assert_eq!(id, token[..16]);
        assert_eq!(hash, *blake3::hash(token.as_bytes()).as_bytes());
        let upper = token.to_uppercase();
        let long = format!("{token}0");
        for bad in ["", "era_", "Bearer x", &token[1..], &upper, &long, &token[..67]] {
            assert_eq!(recognise(bad), None, "{bad}");
        }
    }
}
