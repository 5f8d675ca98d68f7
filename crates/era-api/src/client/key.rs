//! Idempotency keys: drawn once for a creation, sent again with every retry of it.

use std::fmt::Write;

use super::ClientError;

/// A key that nobody else draws.
pub(super) fn draw() -> Result<String, ClientError> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|e| ClientError::NoRandomness(e.to_string()))?;
    let mut key = String::with_capacity(32);
    for byte in bytes {
        // A `String` takes whatever is written to it.
        let _ = write!(key, "{byte:02x}");
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_keys_are_alike() {
        let key = super::draw().unwrap();
        assert_eq!(key.len(), 32);
        assert_ne!(key, super::draw().unwrap());
    }
}
