//! Credits: exact to the millionth, written as a decimal string.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount of credits, kept in millionths. On the wire a decimal string such as `"12.50"`;
/// a plain JSON number is read too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, utoipa::ToSchema)]
#[schema(value_type = String, pattern = r"^-?[0-9]{1,10}(\.[0-9]{1,6})?$", example = "12.50")]
pub struct Credits(pub i64);

/// What is no amount of credits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no amount of credits: write for example 30 or 12.50")]
pub struct BadCredits(String);

impl Credits {
    /// Nothing.
    pub const ZERO: Credits = Credits(0);
}

impl FromStr for Credits {
    type Err = BadCredits;

    fn from_str(text: &str) -> Result<Credits, BadCredits> {
        let bad = || BadCredits(text.chars().take(40).collect());
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let numeric = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !numeric(whole) || !numeric(fraction) || whole.len() > 10 || fraction.len() > 6 {
            return Err(bad());
        }
        let whole: i64 = whole.parse().map_err(|_| bad())?;
        let millionths: i64 = format!("{fraction:0<6}").parse().map_err(|_| bad())?;
        let micro = whole * 1_000_000 + millionths;
        Ok(Credits(if negative { -micro } else { micro }))
    }
}

impl fmt::Display for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micro = self.0.unsigned_abs();
        let mut digits = format!("{:06}", micro % 1_000_000);
        while digits.len() > 2 && digits.ends_with('0') {
            digits.pop();
        }
        write!(f, "{sign}{}.{digits}", micro / 1_000_000)
    }
}

impl Serialize for Credits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Credits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Credits, D::Error> {
        struct Reading;
        impl Visitor<'_> for Reading {
            type Value = Credits;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount of credits such as \"12.50\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Credits, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, whole: i64) -> Result<Credits, E> {
                whole.to_string().parse().map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Credits, E> {
                whole.to_string().parse().map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Credits, E> {
                number.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_are_exact_and_read_back() {
        for (text, micro) in [("12.50", 12_500_000), ("0.000001", 1), ("-3", -3_000_000)] {
            let read: Credits = text.parse().unwrap();
            assert_eq!(read.0, micro, "{text}");
            assert_eq!(read.to_string().parse::<Credits>().unwrap(), read);
        }
        assert_eq!(serde_json::from_str::<Credits>("0.1").unwrap(), Credits(100_000));
        assert_eq!(serde_json::to_string(&Credits(30_000_000)).unwrap(), "\"30.00\"");
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for bad in ["", "1e3", "1.2345678", ".5", "5.", "99999999999", "NaN", "1,5", "--1"] {
            assert!(bad.parse::<Credits>().is_err(), "{bad}");
        }
    }
}
