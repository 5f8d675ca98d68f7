//! Secrets: variables that jobs find in their environment, and that nobody is told again.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

/// Longest name of a secret.
pub const NAME_MAX: usize = 64;
/// Most bytes of a secret's value.
pub const VALUE_BYTES_MAX: usize = 32 << 10;
/// Most secrets of an account.
pub const SECRETS_MAX: usize = 64;
/// Most secrets of a job.
pub const OF_JOB_MAX: usize = 16;

/// A secret, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Secret {
    /// What the variable is called.
    pub name: String,
    /// When it was set.
    pub set: Timestamp,
}

/// The value of a secret: 1 byte to 32 KiB of text without a zero byte.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSecret {
    /// The value. It is told to jobs that name the secret, and to nobody else.
    #[serde(deserialize_with = "untold")]
    #[schema(write_only, min_length = 1, max_length = 32768)]
    pub value: String,
}

// The value is not shown, wherever this is.
impl std::fmt::Debug for NewSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSecret").finish_non_exhaustive()
    }
}

/// A text; a complaint does not repeat what was given instead.
fn untold<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map_err(|_| serde::de::Error::custom("give the value as a text"))
}

/// Whether a secret may be called so: as variables are, in capitals, and none of the platform's.
pub fn is_name(name: &str) -> bool {
    let letter = |c: u8| c.is_ascii_uppercase() || c == b'_';
    let mut bytes = name.bytes();
    name.len() <= NAME_MAX
        && bytes.next().is_some_and(letter)
        && bytes.all(|c| letter(c) || c.is_ascii_digit())
        && !name.starts_with("ERA_")
}

/// Whether there may be such a value.
pub fn is_value(value: &str) -> bool {
    (1..=VALUE_BYTES_MAX).contains(&value.len()) && !value.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_variables_in_capitals() {
        let longest = "A".repeat(NAME_MAX);
        for name in ["A", "_", "WANDB_API_KEY", "_A9", longest.as_str()] {
            assert!(is_name(name), "{name}");
        }
        let long = format!("{longest}A");
        for name in ["", "a", "9A", "A-B", "A=B", "A B", "Ä", "A\n", "ERA_TOKEN", long.as_str()] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_value_is_a_text_of_some_length_that_a_variable_can_hold() {
        let longest = "x".repeat(VALUE_BYTES_MAX);
        assert!(is_value("x") && is_value("-----BEGIN\nEND-----\n") && is_value(&longest));
        assert!(!is_value("") && !is_value("a\0b") && !is_value(&format!("{longest}x")));
    }

    #[test]
    fn a_value_is_told_by_no_complaint_and_no_debug_output() {
        for text in
            ["{\"value\": 271828}", "{\"value\": [\"271828\"]}", "{\"value\": {\"271828\": 1}}"]
        {
            let told = serde_json::from_str::<NewSecret>(text).unwrap_err().to_string();
            assert!(told.contains("as a text") && !told.contains("271828"), "{told}");
        }
        let secret = NewSecret { value: "271828".to_owned() };
        assert!(!format!("{secret:?}").contains("271828"));
    }
}
