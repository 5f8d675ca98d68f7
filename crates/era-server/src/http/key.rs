//! The key that makes a repeated submission harmless. The core remembers it for a day, so it needs
//! no table of its own: the same key with the same job gives the same answer.

use axum::extract::OptionalFromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use era_core::units::{Name, UserId};

use super::failure::Failure;

/// The header that brings it.
pub const HEADER: &str = "idempotency-key";
/// Longest key.
const LENGTH_MAX: usize = 255;

/// A key that a caller chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// As the core keeps it: no account can hit upon another's.
    pub fn for_core(&self, user: UserId) -> Option<Name> {
        let hash = blake3::hash(self.0.as_bytes()).to_hex();
        Name::new(&format!("u{}-{}", user.0, &hash[..40])).ok()
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for Key {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Key>, Failure> {
        let Some(value) = parts.headers.get(HEADER) else { return Ok(None) };
        let text = value.to_str().ok().filter(|t| !t.is_empty() && t.len() <= LENGTH_MAX);
        match text {
            Some(text) => Ok(Some(Key(text.to_owned()))),
            None => {
                let detail = "an idempotency key has 1 to 255 printable ASCII characters";
                Err(Failure::new(StatusCode::BAD_REQUEST, "bad_key", detail).about(HEADER))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_two_accounts_never_meet() {
        let key = Key("same".into());
        let (one, two) = (key.for_core(UserId(1)), key.for_core(UserId(2)));
        assert!(one.is_some() && one != two);
        assert_ne!(one, Key("other".into()).for_core(UserId(1)));
    }
}
