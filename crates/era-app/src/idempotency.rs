//! Idempotency keys: whoever repeats a creation with the same key gets the same answer, and the
//! creation happens once.
//!
//! A key is claimed on the disk before the work and answered after it; if the server goes down in
//! between, a repetition is told that the outcome is not known, rather than done again. Jobs and
//! holds are not kept here: the core knows their keys itself, in the same transaction as their
//! effect ([`core_key`]). A key belongs to its account, so accounts cannot collide.

use era_core::units::{Name, UserId};
use era_store::accounts::{Claim, KeyedAnswer};

use crate::Services;
use crate::auth::token::hex;
use crate::error::{AppError, Kind};

/// Longest key.
pub const KEY_MAX: usize = 255;

/// The key of a submission as the core keeps it: of bounded length, and the account's own.
pub fn core_key(user: UserId, key: &str) -> Option<Name> {
    let hash = blake3::hash(format!("{}\n{key}", user.0).as_bytes());
    Name::new(&hex(&hash.as_bytes()[..24])).ok()
}

/// How often a creation was asked for with its key.
pub enum KeyUse {
    /// For the first time: it is to be carried out.
    First(ClaimedKey),
    /// Again, with what was answered then.
    Again(KeyedAnswer),
}

/// A key under which a creation is carried out now.
pub struct ClaimedKey {
    user: UserId,
    name: String,
}

/// Claims a key of an account for a creation with this fingerprint, which says what makes it
/// another one. `field` is what brought the key, as the caller knows it.
pub async fn claim(
    services: &Services,
    user: UserId,
    key: &str,
    fingerprint: &str,
    field: &str,
) -> Result<KeyUse, AppError> {
    let name = hex(blake3::hash(key.as_bytes()).as_bytes());
    match services
        .auth
        .rows()
        .claim_key(user.0, &name, fingerprint, services.clock.machine().0)
        .await?
    {
        Claim::New => Ok(KeyUse::First(ClaimedKey { user, name })),
        Claim::Answered(answer) => Ok(KeyUse::Again(answer)),
        Claim::Other => {
            let detail = "the key was used before with another request: use a new key";
            Err(AppError::new(Kind::Invalid, "key_reused", detail).about(field))
        }
        Claim::Unanswered => {
            let detail = "the same request is being carried out, or was when the server stopped: \
                          look whether it was done before you use a new key";
            let error = AppError::new(Kind::Conflict, "outcome_unknown", detail);
            Err(error.about(field).after(1))
        }
    }
}

impl ClaimedKey {
    /// Nothing was done: the key may be used again.
    pub async fn free(self, services: &Services) -> Result<(), AppError> {
        Ok(services.auth.rows().free_key(self.user.0, &self.name).await?)
    }

    /// It was done, and this was answered.
    pub async fn answered(
        self,
        services: &Services,
        status: u16,
        body: String,
    ) -> Result<(), AppError> {
        let answer = KeyedAnswer { status, body: without_secrets(body) };
        Ok(services.auth.rows().answer_key(self.user.0, &self.name, &answer).await?)
    }
}

/// Secrets that are told once are not told again, and not kept.
fn without_secrets(body: String) -> String {
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(&body) else { return body };
    let Some(map) = value.as_object_mut() else { return body };
    let told_once = ["token", "secret", "password"];
    let mut found = false;
    for field in told_once {
        if let Some(secret) = map.get_mut(field).filter(|secret| secret.is_string()) {
            *secret = serde_json::Value::from("(told once)");
            found = true;
        }
    }
    if found { value.to_string() } else { body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_accounts_do_not_collide_and_are_names_of_the_core() {
        let (a, b) = (core_key(UserId(1), "k").unwrap(), core_key(UserId(2), "k").unwrap());
        assert_ne!(a, b);
        assert_eq!(core_key(UserId(1), "k").unwrap(), a);
        assert!(core_key(UserId(1), &"x".repeat(KEY_MAX)).is_some());
    }

    #[test]
    fn secrets_are_not_kept() {
        let kept = without_secrets(r#"{"token":"era_1","info":{"id":"x"}}"#.into());
        assert!(!kept.contains("era_1") && kept.contains("\"id\""), "{kept}");
        assert_eq!(without_secrets("[1]".into()), "[1]");
    }
}
