//! Values that people write in more than one way. A derived reader of such a value only says that
//! nothing matched; these say which word is unknown, and a parser adds where it stands.
//!
//! What has a grammar is read from a text as well, by that grammar: a form sends what its reader
//! typed, and no client needs a grammar of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};

use crate::{AfterSpec, ArraySpec, Credits, Replicas, SpanSpec, ValueSpec, after, array};

/// Letters that are enough to begin a word: `mem` is `memory`.
pub const BEGINNING_MIN: usize = 3;

/// Resources that are no named devices.
const RESOURCES: &[&str] = &["cpu", "memory", "gpu", "gpu.model", "gpu.memory"];

/// Reads resources. Any other name is a device of the site's own, so only one that is almost that
/// of a resource is refused: whoever writes `memry` has not thought of a device.
pub fn resources<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(Amounts(PhantomData))
}

struct Amounts<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Amounts<V> {
    type Value = BTreeMap<String, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("amounts by resource, such as {\"cpu\": 4, \"memory\": \"16Gi\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut amounts = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if RESOURCES.iter().any(|known| is_slip(&name, known)) {
                return Err(de::Error::unknown_field(&name, RESOURCES));
            }
            amounts.insert(name, map.next_value()?);
        }
        Ok(amounts)
    }
}

/// Whether a word is a known one but for a slip of the finger, or its beginning. Short words with
/// another letter are words of their own: there are devices called `npu` and `tpu`.
fn is_slip(word: &str, known: &str) -> bool {
    if word.len() >= BEGINNING_MIN && word != known && known.starts_with(word) {
        // `gpu` begins `gpu.model`, and is a resource of its own.
        return !RESOURCES.contains(&word);
    }
    let short = known.len() <= 3;
    let distance = strsim::osa_distance(word, known);
    let other_letter = short && strsim::hamming(word, known) == Ok(1);
    (1..=if short { 1 } else { 2 }).contains(&distance) && !other_letter
}

impl<'de> Deserialize<'de> for Replicas {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Replicas, D::Error> {
        deserializer.deserialize_any(ReplicasVisitor)
    }
}

struct ReplicasVisitor;

impl<'de> Visitor<'de> for ReplicasVisitor {
    type Value = Replicas;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of replicas, or {\"min\": 2, \"max\": 8}")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Replicas, E> {
        u32::deserialize(number.into_deserializer()).map(Replicas::Fixed)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Replicas, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Replicas, A::Error> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Range {
            min: u32,
            max: u32,
        }
        let Range { min, max } = Range::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Replicas::Range { min, max })
    }
}

/// Reads a length of time in seconds: a number, or a text as [`SpanSpec`] reads it.
pub fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Seconds>::deserialize(deserializer)?.map(|Seconds(seconds)| seconds))
}

struct Seconds(u64);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
        deserializer.deserialize_any(SecondsVisitor)
    }
}

struct SecondsVisitor;

impl SecondsVisitor {
    /// What is no whole number of seconds is refused as any such number is.
    fn number<'de, T, E: de::Error>(number: T) -> Result<Seconds, E>
    where
        T: IntoDeserializer<'de, E>,
    {
        u64::deserialize(number.into_deserializer()).map(Seconds)
    }
}

impl<'de> Visitor<'de> for SecondsVisitor {
    type Value = Seconds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of seconds, or a length of time such as \"2h30m\"")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Seconds, E> {
        Ok(Seconds(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Seconds, E> {
        SecondsVisitor::number(number)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Seconds, E> {
        SecondsVisitor::number(number)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Seconds, E> {
        let span: SpanSpec = text.parse().map_err(E::custom)?;
        Ok(Seconds(span.seconds))
    }
}

impl<'de> Deserialize<'de> for ArraySpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ArraySpec, D::Error> {
        deserializer.deserialize_any(ArrayVisitor)
    }
}

struct ArrayVisitor;

impl<'de> Visitor<'de> for ArrayVisitor {
    type Value = ArraySpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("indices such as {\"from\": 0, \"to\": 99}, or \"0-99%10\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ArraySpec, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ArraySpec, A::Error> {
        array::read_fields(MapAccessDeserializer::new(map))
    }
}

/// Reads what a job comes after: a list of jobs, or a text as [`after::read`] reads it, alone or in
/// the list.
pub fn afters<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<AfterSpec>, D::Error> {
    deserializer.deserialize_any(AftersVisitor)
}

struct AftersVisitor;

impl<'de> Visitor<'de> for AftersVisitor {
    type Value = Vec<AfterSpec>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs such as [{\"job\": 12}], or \"12, 13:any\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<AfterSpec>, E> {
        after::read(text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<AfterSpec>, A::Error> {
        let mut all = Vec::new();
        while let Some(Afters(some)) = list.next_element()? {
            all.extend(some);
        }
        Ok(all)
    }
}

/// One item of the list.
struct Afters(Vec<AfterSpec>);

impl<'de> Deserialize<'de> for Afters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Afters, D::Error> {
        deserializer.deserialize_any(AftersItemVisitor).map(Afters)
    }
}

struct AftersItemVisitor;

impl<'de> Visitor<'de> for AftersItemVisitor {
    type Value = Vec<AfterSpec>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a job such as {\"job\": 12, \"when\": \"any\"}, or \"12:any\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<AfterSpec>, E> {
        after::read(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<AfterSpec>, A::Error> {
        AfterSpec::deserialize(MapAccessDeserializer::new(map)).map(|after| vec![after])
    }
}

impl<'de> Deserialize<'de> for ValueSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ValueSpec, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl ValueVisitor {
    fn flat<'de, T, E: de::Error>(amount: T) -> Result<ValueSpec, E>
    where
        T: IntoDeserializer<'de, E>,
    {
        Credits::deserialize(amount.into_deserializer()).map(ValueSpec::Flat)
    }
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = ValueSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount of credits, or a list of {\"by\": a time, \"worth\": an amount}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ValueSpec, E> {
        ValueVisitor::flat(text)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<ValueSpec, E> {
        ValueVisitor::flat(number)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<ValueSpec, E> {
        ValueVisitor::flat(number)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<ValueSpec, E> {
        ValueVisitor::flat(number)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ValueSpec, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(ValueSpec::Steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ask, JobSpec};

    fn refused<T: serde::de::DeserializeOwned>(text: &str) -> String {
        serde_json::from_str::<T>(text).err().expect(text).to_string()
    }

    #[test]
    fn a_misspelt_resource_is_refused_and_a_device_is_not() {
        let ask = |name: &str| format!(r#"{{"resources": {{"{name}": 4}}, "duration_s": 1}}"#);
        let slips =
            ["memry", "memroy", "mem0ri", "mem", "gup", "cpus", "gpu_model", "gpumemory", "Memory"];
        for slip in slips {
            let told = refused::<Ask>(&ask(slip));
            assert!(told.starts_with(&format!("unknown field `{slip}`, expected")), "{told}");
        }
        for name in RESOURCES.iter().copied().chain(["fpga", "npu", "tpu", "disk", "nic"]) {
            let read: Ask = serde_json::from_str(&ask(name)).expect(name);
            assert!(read.resources.contains_key(name));
        }
    }

    #[test]
    fn what_is_written_in_two_ways_says_which_word_is_wrong() {
        let told = refused::<Replicas>(r#"{"min": 1, "mx": 2}"#);
        assert!(told.starts_with("unknown field `mx`"), "{told}");
        let told = refused::<Replicas>(r#"{"min": 1, "max": 2, "step": 1}"#);
        assert!(told.starts_with("unknown field `step`"), "{told}");
        assert!(refused::<Replicas>("4294967296").contains("4294967296"));
        assert!(refused::<Replicas>(r#""two""#).contains("`two` is no number of replicas"));
        assert!(refused::<ArraySpec>(r#""9-1""#).contains("`9-1` is no array"));
        assert!(refused::<ArraySpec>(r#"{"from": 1, "too": 2}"#).contains("unknown field `too`"));
        let ask = |duration: &str| refused::<Ask>(&format!(r#"{{"duration_s": {duration}}}"#));
        assert!(ask(r#""soon""#).contains("`soon` is no length of time"));
        assert!(ask("-5").contains("integer `-5`"));
        let job = |after: &str| refused::<JobSpec>(&format!(r#"{{"after": {after}}}"#));
        assert!(job(r#"[{"job": 1}, "x"]"#).contains("`x` is no dependency"));
        assert!(job(r#"[{"jab": 1}]"#).contains("unknown field `jab`"));
        let told = refused::<ValueSpec>(r#"[{"by": "2026-01-01T00:00:00Z", "wort": 1}]"#);
        assert!(told.starts_with("unknown field `wort`"), "{told}");
        assert!(refused::<ValueSpec>(r#""lots""#).contains("`lots` is no amount"));
    }

    #[test]
    fn a_text_is_read_as_the_value_that_it_means() {
        let job = |text: &str| serde_json::from_str::<JobSpec>(text).expect(text);
        let texts = job(r#"{"ask": {"duration_s": "1h30m", "replicas": "2..8"},
            "array": "0-99:2%10", "after": "12, 13:any"}"#);
        let values = job(r#"{"ask": {"duration_s": 5400, "replicas": {"min": 2, "max": 8}},
            "array": {"from": 0, "to": 99, "step": 2, "limit": 10},
            "after": [{"job": 12}, {"job": 13, "when": "any"}]}"#);
        assert_eq!(texts, values);
        assert_eq!(job(r#"{"after": ["12", {"job": 13, "when": "any"}]}"#).after, values.after);
        assert_eq!(job(r#"{"ask": {"duration_s": null}}"#), JobSpec::default());
        assert_eq!(job(&serde_json::to_string(&values).unwrap()), values);
    }

    #[test]
    fn what_is_written_in_two_ways_is_read_as_it_was_written() {
        for value in [ValueSpec::Flat(Credits(2_500_000)), ValueSpec::Steps(Vec::new())] {
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<ValueSpec>(&text).unwrap(), value);
        }
        for number in ["3", "3.0", "\"3\""] {
            assert_eq!(
                serde_json::from_str::<ValueSpec>(number).unwrap(),
                ValueSpec::Flat(Credits(3_000_000))
            );
        }
        for replicas in [Replicas::Fixed(3), Replicas::Range { min: 1, max: 2 }] {
            let text = serde_json::to_string(&replicas).unwrap();
            assert_eq!(serde_json::from_str::<Replicas>(&text).unwrap(), replicas);
        }
    }
}
