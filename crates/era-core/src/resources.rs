//! What a replica asks for and what a node has, written as Kubernetes writes it:
//! `cpu: 500m`, `memory: 16Gi`, `gpu: 2`, `gpu: 0.5`, `gpu.model: h100`, `gpu.memory: 40Gi`,
//! and named devices.
//!
//! Inside, amounts are integers: thousandths of a core, MiB, thousandths of a GPU. This module
//! knows nothing of time, prices or nodes.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Name;

/// The kinds of resource that have a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Thousandths of a core.
    Cpu,
    Memory,
    /// Thousandths of a GPU.
    Gpu,
}

impl Resource {
    /// All of them, in the order of every [`PerResource`].
    pub const ALL: [Resource; 3] = [Resource::Cpu, Resource::Memory, Resource::Gpu];

    /// How many units make what a price list calls one: a core, a GiB, a GPU.
    pub const fn units_per_whole(self) -> u64 {
        match self {
            Resource::Cpu | Resource::Gpu => 1000,
            Resource::Memory => 1024,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
            Resource::Gpu => "gpu",
        })
    }
}

/// One value for each priced resource.
pub type PerResource<T> = [T; 3];

/// Most GPUs that one node may have; a share left is kept for each of them.
pub const GPUS_PER_NODE_MAX: usize = 32;
/// Most kinds of named devices in one request or node.
pub const DEVICE_KINDS_MAX: usize = 8;
/// One whole GPU, in thousandths.
pub const WHOLE_GPU: u32 = 1000;

/// What one replica needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Resources {
    /// Thousandths of a core.
    pub cpu: u32,
    pub memory: u32,
    /// Thousandths of a GPU: below 1000 a share of one, otherwise a multiple of 1000.
    pub gpu: u32,
    /// Only GPUs of this model.
    pub gpu_model: Option<Name>,
    /// Only GPUs with at least so many MiB.
    pub gpu_memory: Option<u32>,
    /// Named devices, by count.
    pub devices: BTreeMap<Name, u32>,
}

/// Why a resource could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum BadQuantity {
    /// The number cannot be read.
    #[error("{key}: `{text}` is not a quantity: write for example {example}")]
    Unreadable {
        key: String,
        /// What was written.
        text: String,
        /// What would be right.
        example: &'static str,
    },
    /// The number is below zero.
    #[error("{key}: `{text}` must not be negative: give 0 or more")]
    Negative {
        key: String,
        /// What was written.
        text: String,
    },
    /// The number is read but out of range.
    #[error("{key}: `{text}` is out of range: {limit}")]
    OutOfRange {
        key: String,
        /// What was written.
        text: String,
        /// What the range is.
        limit: &'static str,
    },
    /// Bytes, and too few to be meant: a number without a unit.
    #[error("{key}: `{text}` is {bytes} bytes: write {meant}i or {meant}")]
    FewBytes {
        key: String,
        /// What was written.
        text: String,
        /// How many bytes that is.
        bytes: String,
        /// What was likely meant, such as `16G`.
        meant: String,
    },
    /// A GPU amount that is neither a share of one nor whole.
    #[error("gpu: `{text}` is neither a share of one GPU (such as 0.5) nor a whole number")]
    BrokenGpu {
        /// What was written.
        text: String,
    },
    /// A resource or device name that cannot be one.
    #[error(transparent)]
    Name(#[from] crate::units::BadName),
    /// Too many kinds of devices.
    #[error("too many kinds of devices: at most 8")]
    TooManyDevices,
}

impl Resources {
    /// The amount of a priced resource.
    pub fn amount(&self, resource: Resource) -> u32 {
        match resource {
            Resource::Cpu => self.cpu,
            Resource::Memory => self.memory,
            Resource::Gpu => self.gpu,
        }
    }

    /// Whole GPUs, or `None` where a share of one is asked for.
    pub fn whole_gpus(&self) -> Option<u32> {
        self.gpu.is_multiple_of(WHOLE_GPU).then_some(self.gpu / WHOLE_GPU)
    }

    /// Whether it asks for amounts alone: no share of a GPU, no model, no device.
    pub fn is_plain(&self) -> bool {
        self.gpu.is_multiple_of(WHOLE_GPU)
            && self.gpu_model.is_none()
            && self.gpu_memory.is_none()
            && self.devices.is_empty()
    }

    /// How many individual GPUs a replica touches.
    pub fn gpus_touched(&self) -> u32 {
        self.gpu.div_ceil(WHOLE_GPU)
    }

    /// Whether nothing at all is asked for.
    pub fn is_empty(&self) -> bool {
        self.cpu == 0 && self.memory == 0 && self.gpu == 0 && self.devices.values().all(|n| *n == 0)
    }

    /// Amounts of the priced resources for `replicas` of this.
    pub fn units(&self, replicas: u32) -> PerResource<u64> {
        Resource::ALL.map(|r| u64::from(self.amount(r)) * u64::from(replicas))
    }

    /// The same kind of replica, `n` times as large (a node's part of a total of GPUs).
    pub fn times(&self, n: u32) -> Resources {
        Resources {
            cpu: self.cpu.saturating_mul(n),
            memory: self.memory.saturating_mul(n),
            gpu: self.gpu.saturating_mul(n),
            gpu_model: self.gpu_model.clone(),
            gpu_memory: self.gpu_memory,
            devices: self.devices.iter().map(|(k, v)| (k.clone(), v.saturating_mul(n))).collect(),
        }
    }

    /// Reads resources from pairs as Kubernetes writes them.
    pub fn parse<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Resources, BadQuantity> {
        let mut out = Resources::default();
        for (key, text) in pairs {
            match key {
                "cpu" => out.cpu = parse_milli(key, text)?,
                "memory" => out.memory = parse_mib(key, text, Round::Up)?,
                "gpu" => {
                    out.gpu = parse_milli(key, text)?;
                    if out.gpu > WHOLE_GPU && !out.gpu.is_multiple_of(WHOLE_GPU) {
                        return Err(BadQuantity::BrokenGpu { text: text.into() });
                    }
                }
                "gpu.model" => out.gpu_model = Some(Name::new(text)?),
                "gpu.memory" => out.gpu_memory = Some(parse_mib(key, text, Round::Up)?),
                device => {
                    let count =
                        text.parse().map_err(|_| unreadable(device, text, "a count such as 1"))?;
                    out.devices.insert(Name::new(device)?, count);
                }
            }
        }
        if out.devices.len() > DEVICE_KINDS_MAX {
            return Err(BadQuantity::TooManyDevices);
        }
        Ok(out)
    }
}

impl TryFrom<BTreeMap<String, String>> for Resources {
    type Error = BadQuantity;
    fn try_from(map: BTreeMap<String, String>) -> Result<Resources, BadQuantity> {
        Resources::parse(map.iter().map(|(k, v)| (k.as_str(), v.as_str())))
    }
}

impl From<Resources> for BTreeMap<String, String> {
    fn from(r: Resources) -> BTreeMap<String, String> {
        let mut map = BTreeMap::new();
        let mut put = |key: &str, text: String| map.insert(key.to_owned(), text);
        if r.cpu > 0 {
            put("cpu", show_milli(r.cpu));
        }
        if r.memory > 0 {
            put("memory", show_mib(r.memory));
        }
        if r.gpu > 0 {
            put("gpu", show_decimal(r.gpu));
        }
        if let Some(model) = r.gpu_model {
            put("gpu.model", model.into());
        }
        if let Some(mib) = r.gpu_memory {
            put("gpu.memory", show_mib(mib));
        }
        for (name, count) in r.devices {
            put(name.as_str(), count.to_string());
        }
        map
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let map: BTreeMap<String, String> = self.clone().into();
        if map.is_empty() {
            return f.write_str("nothing");
        }
        let parts: Vec<String> = map.iter().map(|(k, v)| format!("{k}: {v}")).collect();
        f.write_str(&parts.join(", "))
    }
}

/// One GPU of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gpu {
    /// Its model, such as `h100`.
    pub model: Name,
    /// Its memory in MiB.
    pub memory: u32,
}

/// What a node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Capacity {
    /// Thousandths of a core.
    pub cpu: u32,
    pub memory: u32,
    /// Its GPUs, one by one.
    pub gpus: Vec<Gpu>,
    /// Named devices, by count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<Name, u32>,
}

impl Capacity {
    /// The total of a priced resource.
    pub fn amount(&self, resource: Resource) -> u64 {
        match resource {
            Resource::Cpu => u64::from(self.cpu),
            Resource::Memory => u64::from(self.memory),
            Resource::Gpu => self.gpus.len() as u64 * u64::from(WHOLE_GPU),
        }
    }

    /// Whether an empty node of this kind could hold one such replica.
    pub fn could_hold(&self, each: &Resources) -> bool {
        let suitable = self.gpus.iter().filter(|g| suits(g, each)).count();
        each.cpu <= self.cpu
            && each.memory <= self.memory
            && each.gpus_touched() as usize <= suitable
            && each.devices.iter().all(|(k, n)| self.devices.get(k).copied().unwrap_or(0) >= *n)
    }

    /// How many such replicas an empty node of this kind could hold, at most `most`.
    pub fn count(&self, each: &Resources, most: u32) -> u32 {
        let times = |has: u32, needed: u32| has.checked_div(needed).unwrap_or(most);
        let suitable = self.gpus.iter().filter(|g| suits(g, each)).count() as u32;
        let gpus = match each.whole_gpus() {
            Some(gpus) => times(suitable, gpus),
            None => suitable.saturating_mul(WHOLE_GPU / each.gpu.clamp(1, WHOLE_GPU)),
        };
        let devices =
            each.devices.iter().map(|(k, n)| times(self.devices.get(k).copied().unwrap_or(0), *n));
        let least = [times(self.cpu, each.cpu), times(self.memory, each.memory), gpus];
        devices.chain(least).min().unwrap_or(most).min(most)
    }
}

/// Whether a GPU is of the model and memory asked for.
pub fn suits(gpu: &Gpu, each: &Resources) -> bool {
    each.gpu_model.as_ref().is_none_or(|m| *m == gpu.model)
        && each.gpu_memory.is_none_or(|mib| mib <= gpu.memory)
}

/// Which way a byte count that is no whole MiB goes: requests up, capacities down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// To the next MiB.
    Up,
    /// To the MiB below.
    Down,
}

/// Reads `2`, `0.5`, `500m` into thousandths.
pub fn parse_milli(key: &str, text: &str) -> Result<u32, BadQuantity> {
    let unreadable = || unreadable(key, text, "2, 0.5 or 500m");
    let out_of_range = || BadQuantity::OutOfRange {
        key: key.into(),
        text: text.chars().take(40).collect(),
        limit: "at most 1000000, and no finer than a thousandth",
    };
    let (digits, scale) = match text.strip_suffix('m') {
        Some(milli) => (milli, 1),
        None => (text, 1000),
    };
    let (whole, fraction) = split_decimal(digits).ok_or_else(unreadable)?;
    let mut amount = whole.checked_mul(scale).ok_or_else(out_of_range)?;
    let mut place = scale;
    for digit in fraction.bytes() {
        place /= 10;
        let value = u64::from(digit - b'0');
        if place == 0 && value != 0 {
            return Err(out_of_range());
        }
        amount += value * place;
    }
    u32::try_from(amount).ok().filter(|a| *a <= 1_000_000_000).ok_or_else(out_of_range)
}

/// Reads `16Gi`, `512Mi`, `1.5G`, `129e6`, or plain bytes, into MiB; `16GiB` and `16GB` too, as
/// people write them. A number alone is bytes, so one that is less than a MiB has lost its unit.
pub fn parse_mib(key: &str, text: &str, round: Round) -> Result<u32, BadQuantity> {
    let written = || text.chars().take(40).collect::<String>();
    let out_of_range =
        || BadQuantity::OutOfRange { key: key.into(), text: written(), limit: "at most 1Pi" };
    let bytes = parse_bytes(key, text)?;
    let (number, unit) = split_unit(text);
    let is_nothing = number.bytes().all(|b| matches!(b, b'0' | b'.'));
    if unit_bytes(unit).is_none() && bytes < 1 << 20 && !is_nothing {
        let plain = if unit.is_empty() { number.to_owned() } else { bytes.to_string() };
        let meant = format!("{plain}{}", if bytes < 256 { "G" } else { "M" });
        return Err(BadQuantity::FewBytes {
            key: key.into(),
            text: written(),
            bytes: plain,
            meant,
        });
    }
    let mib = match round {
        Round::Up => bytes.div_ceil(1 << 20),
        Round::Down => bytes >> 20,
    };
    u32::try_from(mib).ok().filter(|m| *m <= 1 << 30).ok_or_else(out_of_range)
}

/// Reads the same into bytes, for what may be small.
pub fn parse_bytes(key: &str, text: &str) -> Result<u128, BadQuantity> {
    let unreadable = || unreadable(key, text, "16Gi, 512Mi or 2G");
    let (number, unit) = split_unit(text);
    let power = || match unit {
        "" => Some(0),
        exponent => exponent.strip_prefix(['e', 'E'])?.parse::<u32>().ok().filter(|p| *p <= 18),
    };
    let scale = match unit_bytes(unit) {
        Some(bytes) => bytes,
        None => 10u128.pow(power().ok_or_else(unreadable)?),
    };
    let (whole, fraction) = split_decimal(number).ok_or_else(unreadable)?;
    let mut bytes = u128::from(whole) * scale;
    let mut place = scale;
    for digit in fraction.bytes() {
        place /= 10;
        bytes += u128::from(digit - b'0') * place;
    }
    Ok(bytes)
}

/// A number and its unit.
fn split_unit(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count())
}

fn unreadable(key: &str, text: &str, example: &'static str) -> BadQuantity {
    let (key, text) = (key.into(), text.chars().take(40).collect::<String>());
    let below_zero =
        text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    match below_zero {
        true => BadQuantity::Negative { key, text },
        false => BadQuantity::Unreadable { key, text, example },
    }
}

/// What a unit of memory stands for: `G`, `Gi`, and the same with a `B`.
fn unit_bytes(unit: &str) -> Option<u128> {
    let unit = unit.strip_suffix('B').unwrap_or(unit);
    let (letter, base) = match unit.strip_suffix('i') {
        Some(letter) => (letter, 1024),
        None => (unit, 1000),
    };
    let power = match letter {
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        _ => return None,
    };
    Some(u128::pow(base, power))
}

/// Splits `12.5` into its whole part and the digits after the point; both sides digits only.
fn split_decimal(text: &str) -> Option<(u64, &str)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.is_empty() || fraction.len() > 9 {
        return None;
    }
    Some((whole.parse().ok().filter(|w| *w < 1 << 60)?, fraction))
}

/// `500m`, or `2` where it is whole.
pub fn show_milli(milli: u32) -> String {
    if milli.is_multiple_of(1000) { (milli / 1000).to_string() } else { format!("{milli}m") }
}

/// `0.5`, or `2` where it is whole.
pub fn show_decimal(milli: u32) -> String {
    crate::units::Milli(milli).to_string()
}

/// `16Gi`, or `512Mi` where it is no whole GiB.
pub fn show_mib(mib: u32) -> String {
    if mib.is_multiple_of(1024) { format!("{}Gi", mib / 1024) } else { format!("{mib}Mi") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, text: &str) -> Result<Resources, BadQuantity> {
        Resources::parse([(key, text)])
    }

    #[test]
    fn quantities_read_as_kubernetes_writes_them() {
        for (text, milli) in [("500m", 500), ("2", 2000), ("0.5", 500), ("1.250", 1250), ("0", 0)] {
            assert_eq!(read("cpu", text).unwrap().cpu, milli, "{text}");
        }
        for (text, mib) in [
            ("16Gi", 16_384),
            ("512Mi", 512),
            ("0", 0),
            ("1048576", 1),
            ("1048577", 2),
            ("1k", 1),
            ("1G", 954),
            ("16G", 15_259),
            ("16GB", 15_259),
            ("16GiB", 16_384),
            ("512MiB", 512),
            ("2TB", 1_907_349),
            ("129e6", 124),
            ("1.5Gi", 1536),
        ] {
            assert_eq!(read("memory", text).unwrap().memory, mib, "{text}");
        }
        assert_eq!(parse_mib("memory", "1G", Round::Down).unwrap(), 953);
    }

    #[test]
    fn a_gpu_is_a_share_of_one_or_a_whole_number() {
        assert_eq!(read("gpu", "0.5").unwrap().gpu, 500);
        assert_eq!(read("gpu", "2").unwrap().whole_gpus(), Some(2));
        assert!(matches!(read("gpu", "1.5"), Err(BadQuantity::BrokenGpu { .. })));
    }

    #[test]
    fn nonsense_is_refused_with_what_would_be_right() {
        for bad in ["", "-1", "1e", "NaN", "0x10", "1 ", "..", "1.2.3", "inf", "0.00001"] {
            assert!(read("cpu", bad).is_err(), "{bad:?}");
        }
        for bad in
            ["", "-1Gi", "16Gb", "16 GB", "16BB", "16iB", "1e99", "Gi", "99999999999999999999"]
        {
            assert!(read("memory", bad).is_err(), "{bad:?}");
        }
        let message = read("memory", "16Gb").unwrap_err().to_string();
        assert_eq!(
            message,
            "memory: `16Gb` is not a quantity: write for example 16Gi, 512Mi or 2G"
        );
    }

    #[test]
    fn bytes_that_are_too_few_to_be_meant_are_refused_with_what_was() {
        for (text, told) in [
            ("1", "1 bytes: write 1Gi or 1G"),
            ("16", "16 bytes: write 16Gi or 16G"),
            ("0.5", "0.5 bytes: write 0.5Gi or 0.5G"),
            ("512", "512 bytes: write 512Mi or 512M"),
            ("1048575", "1048575 bytes: write 1048575Mi or 1048575M"),
            ("4e3", "4000 bytes: write 4000Mi or 4000M"),
        ] {
            for key in ["memory", "gpu.memory"] {
                let said = read(key, text).unwrap_err().to_string();
                assert_eq!(said, format!("{key}: `{text}` is {told}"));
            }
        }
    }

    /// Whatever unit is written, with or without its `B`: the same amount, by the plain sum.
    #[test]
    fn every_unit_reads_with_and_without_its_byte() {
        for (power, letter) in (1u32..).zip(["K", "M", "G", "T", "P"]) {
            for (base, i) in [(1000u64, ""), (1024, "i")] {
                let bytes = base.pow(power);
                let mib = if bytes > 1 << 50 { None } else { Some(bytes.div_ceil(1 << 20)) };
                for b in ["", "B"] {
                    let text = format!("1{letter}{i}{b}");
                    let read = parse_mib("memory", &text, Round::Up).ok().map(u64::from);
                    assert_eq!(read, mib, "{text}");
                }
            }
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let all = Resources::parse([
            ("cpu", "1500m"),
            ("memory", "10Gi"),
            ("gpu", "0.25"),
            ("gpu.model", "h100"),
            ("gpu.memory", "40Gi"),
            ("fpga", "2"),
        ])
        .unwrap();
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(
            json,
            r#"{"cpu":"1500m","fpga":"2","gpu":"0.25","gpu.memory":"40Gi","gpu.model":"h100","memory":"10Gi"}"#
        );
        assert_eq!(serde_json::from_str::<Resources>(&json).unwrap(), all);
    }
}
