//! Words in lists and filters: those that are known here, and what is said of one that is not.

use era_spec::plain::{self, ParserMessage, nearest};
use serde::de::DeserializeOwned;

use super::{BadField, Wrong};

/// A word that is none of those known here, with the one that was probably meant.
pub fn unknown_word(given: &str, known: &[&str]) -> Wrong {
    let given: String = given.chars().take(40).collect();
    let meant = nearest(&given, known).map(str::to_owned);
    Wrong::Unknown { given, meant, known: known.iter().map(|&word| word.to_owned()).collect() }
}

/// Words by comma, each of which a value of this type is written as.
pub fn words<T: DeserializeOwned>(field: &str, text: &str) -> Result<Vec<T>, BadField> {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};
    let read = |word: &str| {
        let word: StrDeserializer<'_, Error> = word.trim().into_deserializer();
        T::deserialize(word).map_err(|error| unread_word(field, &error.to_string()))
    };
    text.split(',').map(read).collect()
}

/// Kinds of events by comma.
pub fn kinds(text: &str) -> Result<Vec<String>, BadField> {
    let read = |word: &str| {
        let bare = serde_json::json!({ "type": word.trim() });
        // Of a kind that is known it says at most that something is missing.
        match serde_json::from_value::<era_core::Event>(bare) {
            Err(error) if error.to_string().starts_with("unknown variant") => {
                Err(unread_word("event", &error.to_string()))
            }
            _ => Ok(word.trim().to_owned()),
        }
    };
    let kinds: std::collections::BTreeSet<_> =
        text.split(',').map(read).collect::<Result<_, _>>()?;
    Ok(kinds.into_iter().collect())
}

fn unread_word(field: &str, problem: &str) -> BadField {
    let ParserMessage { given, .. } = plain::said(problem, "field");
    let known: Vec<&str> = problem.split('`').skip(3).step_by(2).collect();
    let wrong = given.map(|given| unknown_word(&given, &known));
    BadField::new(field, wrong.unwrap_or(Wrong::Word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parameters;

    #[test]
    fn words_are_read_by_comma_and_an_unknown_one_is_told_with_the_nearest() {
        use era_core::cluster::Health;
        assert_eq!(words::<Health>("health", "up, lost").unwrap(), [Health::Up, Health::Lost]);
        assert_eq!(kinds("running,ended, running").unwrap(), ["ended", "running"]);
        for (told, field, given, meant) in [
            (words::<Health>("health", "lots").unwrap_err(), "health", "lots", "lost"),
            (kinds("ended,runing").unwrap_err(), "event", "runing", "running"),
        ] {
            let parameters = parameters(&told.problem);
            assert_eq!(told.field, field);
            assert_eq!(
                (&parameters["given"], &parameters["meant"]),
                (&given.into(), &meant.into())
            );
        }
    }
}
