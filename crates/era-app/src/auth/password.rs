//! Passwords: argon2id, on threads of their own, only a few at a time.
//!
//! A check takes as long whether or not the account exists, so that names cannot be found out by
//! the clock.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

/// Shortest password that is accepted.
pub const PASSWORD_MIN: usize = 10;
/// Longest password that is accepted, in bytes.
pub const PASSWORD_MAX: usize = 512;
/// How many passwords are hashed at a time: each takes [`MEMORY_KIB`] and a core.
const AT_A_TIME: usize = 2;
/// How many may wait for that before others are turned away.
const WAITING_MAX: usize = 32;
/// OWASP's first choice for argon2id is 46 MiB and one pass; this takes 50 to 100 ms on a core.
const MEMORY_KIB: u32 = 47_104;
const PASSES: u32 = 1;

/// Why a password was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPassword {
    /// Too short or too long.
    #[error("a password has {PASSWORD_MIN} to {PASSWORD_MAX} characters: choose another")]
    Length,
    /// One that is guessed at once.
    #[error(
        "this password is too easily guessed: choose one that is not the account's name or one letter"
    )]
    Guessable,
}

/// Why nothing was hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    /// Too many at a time.
    #[error("too many log in at this moment: try again in a few seconds")]
    Busy,
    /// The library or the system refused.
    #[error("the password could not be hashed")]
    Failed,
}

/// Whether a password may be chosen for an account of this name.
pub fn acceptable(password: &str, name: &str) -> Result<(), BadPassword> {
    if password.chars().count() < PASSWORD_MIN || password.len() > PASSWORD_MAX {
        return Err(BadPassword::Length);
    }
    let mut letters = password.chars();
    let first = letters.next();
    if password.eq_ignore_ascii_case(name) || letters.all(|letter| Some(letter) == first) {
        return Err(BadPassword::Guessable);
    }
    Ok(())
}

/// A password that is told once: 16 letters and digits that cannot be mistaken for each other,
/// 80 bits.
pub fn one_time() -> Result<String, getrandom::Error> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 && at % 4 == 0 {
            text.push('-');
        }
        text.push(char::from(LETTERS[usize::from(byte % 32)]));
    }
    Ok(text)
}

/// Hashes and checks passwords.
pub struct Hasher {
    running: Semaphore,
    waiting: Semaphore,
}

impl Default for Hasher {
    fn default() -> Hasher {
        Hasher { running: Semaphore::new(AT_A_TIME), waiting: Semaphore::new(WAITING_MAX) }
    }
}

fn argon2() -> Option<Argon2<'static>> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).ok()?;
    Some(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// Hashes here and now.
fn hash(password: &str) -> Option<String> {
    argon2()?.hash_password(password.as_bytes()).ok().map(|hash| hash.to_string())
}

/// Checks here and now. Without a hash it only takes the time.
fn check(password: &str, stored: Option<&str>) -> bool {
    let Some(stored) = stored else {
        let _ = hash(password);
        return false;
    };
    match PasswordHash::new(stored) {
        Ok(stored) => {
            argon2().is_some_and(|a| a.verify_password(password.as_bytes(), &stored).is_ok())
        }
        Err(_) => false,
    }
}

impl Hasher {
    /// The hash of a password, as it is stored.
    pub async fn hash(&self, password: String) -> Result<String, HashError> {
        self.apart(move || hash(&password)).await?.ok_or(HashError::Failed)
    }

    /// Whether a password is the one that was hashed.
    pub async fn check(&self, password: String, stored: Option<String>) -> Result<bool, HashError> {
        self.apart(move || check(&password, stored.as_deref())).await
    }

    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HashError> {
        let _waiting = self.waiting.try_acquire().map_err(|_| HashError::Busy)?;
        let _running = self.running.acquire().await.map_err(|_| HashError::Failed)?;
        tokio::task::spawn_blocking(work).await.map_err(|_| HashError::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_known_again_and_no_other() {
        let hasher = Hasher::default();
        let stored = hasher.hash("correct horse".into()).await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=47104,t=1,p=1$"), "{stored}");
        assert!(hasher.check("correct horse".into(), Some(stored.clone())).await.unwrap());
        assert!(!hasher.check("correct horsf".into(), Some(stored)).await.unwrap());
        assert!(!hasher.check("correct horse".into(), None).await.unwrap());
        assert!(!hasher.check("correct horse".into(), Some("damaged".into())).await.unwrap());
    }

    #[test]
    fn short_long_and_obvious_passwords_are_refused() {
        assert_eq!(acceptable("ninechars", "ada"), Err(BadPassword::Length));
        assert_eq!(acceptable(&"xy".repeat(300), "ada"), Err(BadPassword::Length));
        assert_eq!(acceptable("aaaaaaaaaaaa", "ada"), Err(BadPassword::Guessable));
        assert_eq!(acceptable("Ada-Lovelace", "ada-lovelace"), Err(BadPassword::Guessable));
        assert_eq!(acceptable("ten chars!", "ada"), Ok(()));
    }

    #[test]
    fn one_time_passwords_differ_and_are_acceptable() {
        let (a, b) = (one_time().unwrap(), one_time().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.len(), 19);
        assert_eq!(acceptable(&a, "admin"), Ok(()));
    }
}
