//! Values that people write in more than one way. A derived reader of such a value only says that
//! nothing matched; these say which word is unknown, and a parser adds where it stands.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};

use crate::{Credits, Replicas, Value};

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

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl ValueVisitor {
    fn flat<'de, T, E: de::Error>(amount: T) -> Result<Value, E>
    where
        T: IntoDeserializer<'de, E>,
    {
        Credits::deserialize(amount.into_deserializer()).map(Value::Flat)
    }
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount of credits, or a list of {\"by\": a time, \"worth\": an amount}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        ValueVisitor::flat(text)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
        ValueVisitor::flat(number)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
        ValueVisitor::flat(number)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
        ValueVisitor::flat(number)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Value::Steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ask;

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
        assert!(refused::<Replicas>(r#""two""#).contains("a number of replicas"));
        let told = refused::<Value>(r#"[{"by": "2026-01-01T00:00:00Z", "wort": 1}]"#);
        assert!(told.starts_with("unknown field `wort`"), "{told}");
        assert!(refused::<Value>(r#""lots""#).contains("`lots` is no amount"));
    }

    #[test]
    fn what_is_written_in_two_ways_is_read_as_it_was_written() {
        for value in [Value::Flat(Credits(2_500_000)), Value::Steps(Vec::new())] {
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
        for number in ["3", "3.0", "\"3\""] {
            assert_eq!(
                serde_json::from_str::<Value>(number).unwrap(),
                Value::Flat(Credits(3_000_000))
            );
        }
        for replicas in [Replicas::Fixed(3), Replicas::Range { min: 1, max: 2 }] {
            let text = serde_json::to_string(&replicas).unwrap();
            assert_eq!(serde_json::from_str::<Replicas>(&text).unwrap(), replicas);
        }
    }
}
