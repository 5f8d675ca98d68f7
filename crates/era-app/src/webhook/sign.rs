//! Signatures: HMAC-SHA-256 of the moment and the body, so that nobody else can tell a receiver
//! anything, and nothing can be told again later.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The header with the signature.
pub const SIGNATURE: &str = "x-era-signature";
/// The header with the moment, in seconds since the epoch.
pub const TIMESTAMP: &str = "x-era-timestamp";

/// `v1=` and the HMAC of `timestamp.body`, in hexadecimal.
pub fn signature(secret: &str, timestamp_s: i64, body: &str) -> String {
    // A key of any length is accepted, so this never fails.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return String::new();
    };
    mac.update(timestamp_s.to_string().as_bytes());
    mac.update(b".");
    mac.update(body.as_bytes());
    format!("v1={}", crate::auth::token::hex(&mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_any_other_program_computes() {
        // printf '1700000000.{}' | openssl dgst -sha256 -hmac secret
        let expected = "v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163";
        assert_eq!(signature("secret", 1_700_000_000, "{}"), expected);
        assert_ne!(signature("secret", 1_700_000_001, "{}"), expected);
        assert_ne!(signature("other", 1_700_000_000, "{}"), expected);
    }
}
