//! The name of a content: its BLAKE3 hash.

use std::fmt;
use std::str::FromStr;

/// A text that is no hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no hash: give the 64 lower-case hex digits of a BLAKE3 hash")]
pub struct BadHash(String);

/// A BLAKE3 hash. Written as 64 digits in lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    pub fn of(bytes: &[u8]) -> ContentHash {
        ContentHash(*blake3::hash(bytes).as_bytes())
    }

    /// A number that is as good as random, the same for the same hash.
    pub(super) fn number(self) -> u64 {
        self.0.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

impl From<blake3::Hash> for ContentHash {
    fn from(hash: blake3::Hash) -> ContentHash {
        ContentHash(*hash.as_bytes())
    }
}

impl FromStr for ContentHash {
    type Err = BadHash;

    /// Only the canonical spelling is read, so that a hash has one name everywhere.
    fn from_str(text: &str) -> Result<ContentHash, BadHash> {
        let canonical = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if text.len() != 64 || !text.bytes().all(canonical) {
            return Err(BadHash(text.chars().take(80).collect()));
        }
        blake3::Hash::from_hex(text).map(ContentHash::from).map_err(|_| BadHash(text.to_owned()))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_reads_back_and_has_one_spelling() {
        let hash = ContentHash::of(b"abc");
        let text = hash.to_string();
        assert_eq!(text.parse::<ContentHash>().unwrap(), hash);
        let hostile = ["", "..", "../../etc/passwd", &text[1..], &format!("{text}0")];
        for wrong in hostile.into_iter().chain([text.to_uppercase().as_str()]) {
            assert!(wrong.parse::<ContentHash>().is_err(), "{wrong}");
        }
    }
}
