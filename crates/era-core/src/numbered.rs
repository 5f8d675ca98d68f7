//! Maps with numbers for keys, in a form that every reader can read back.
//!
//! JSON writes such keys as texts. A reader that has to look ahead for a tag, as every command is
//! read, keeps them as texts and then does not take them for numbers; this one takes both.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

struct Number(u64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Number, D::Error> {
        from.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }
    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        Ok(Number(number))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
        text.parse().map(Number).map_err(|_| E::custom(format!("`{text}` is not a number")))
    }
}

/// Reads a map whose keys are numbers, or texts of numbers.
pub(crate) fn deserialize<'de, D, K, V>(from: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: TryFrom<u64> + Ord,
    V: Deserialize<'de>,
{
    let map: Vec<(Number, V)> = Pairs::deserialize(from)?.0;
    let key = |n: u64| K::try_from(n).map_err(|_| D::Error::custom(format!("{n} is too large")));
    map.into_iter().map(|(Number(n), value)| Ok((key(n)?, value))).collect()
}

struct Pairs<V>(Vec<(Number, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Pairs<V>, D::Error> {
        from.deserialize_map(PairsVisitor(std::marker::PhantomData))
    }
}

struct PairsVisitor<V>(std::marker::PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<V> {
    type Value = Pairs<V>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map with numbers for keys")
    }
    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs<V>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}
