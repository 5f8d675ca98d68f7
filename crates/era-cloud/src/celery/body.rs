//! Bodies of messages: JSON, MessagePack and YAML to values and back.
//!
//! Pickle is refused, since reading it runs code, and so is whatever else a value of JSON cannot
//! hold (bytes, extensions of MessagePack).

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use serde::Deserialize as _;
use serde_json::Value;
use serde_saphyr::{Budget, Options};

/// Longest body that is read or written.
pub const BODY_BYTES_MAX: usize = 16 << 20;
/// Deepest nesting that is read, in every format: readers go down with it, and stacks end. JSON's
/// reader has the same limit by itself.
const DEPTH_MAX: usize = 128;

/// How a body is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyFormat {
    #[default]
    Json,
    Msgpack,
    Yaml,
}

/// Why a body cannot be read or written.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadBody {
    /// It would run code.
    #[error("pickle runs code when it is read: send JSON, MessagePack or YAML")]
    Pickle,
    /// Nobody here reads that.
    #[error("content type `{0}` is not understood: send JSON, MessagePack or YAML")]
    Unknown(String),
    /// It is compressed.
    #[error("bodies compressed as `{0}` are not understood: compress it with gzip, or not at all")]
    Compressed(String),
    /// It is more than it looked like.
    #[error(
        "the body has more than {BODY_BYTES_MAX} bytes once it is unpacked: send at most that, and \
         large data as files"
    )]
    TooLongUnpacked,
    /// It is no text in UTF-8.
    #[error("content encoding `{0}` is not understood: send utf-8")]
    Encoding(String),
    /// It is not what its content type says.
    #[error("the body is no {0}: {1}")]
    Malformed(&'static str, String),
    /// It is too long.
    #[error("the body has {0} bytes: send at most {BODY_BYTES_MAX}, and large data as files")]
    TooLong(usize),
}

impl BodyFormat {
    pub fn of(content_type: &str) -> Result<BodyFormat, BadBody> {
        // `application/json; charset=utf-8` is JSON too.
        let plain = content_type.split(';').next().unwrap_or_default().trim();
        match plain {
            "application/json" => Ok(BodyFormat::Json),
            "application/x-msgpack" | "application/msgpack" => Ok(BodyFormat::Msgpack),
            "application/x-yaml" | "application/yaml" => Ok(BodyFormat::Yaml),
            "application/x-python-serialize" => Err(BadBody::Pickle),
            _ => Err(BadBody::Unknown(plain.chars().take(100).collect())),
        }
    }

    /// What Celery calls its content type.
    pub fn content_type(self) -> &'static str {
        match self {
            BodyFormat::Json => "application/json",
            BodyFormat::Msgpack => "application/x-msgpack",
            BodyFormat::Yaml => "application/x-yaml",
        }
    }

    /// What Celery calls its encoding.
    pub fn content_encoding(self) -> &'static str {
        match self {
            BodyFormat::Json | BodyFormat::Yaml => "utf-8",
            BodyFormat::Msgpack => "binary",
        }
    }

    fn name(self) -> &'static str {
        match self {
            BodyFormat::Json => "JSON",
            BodyFormat::Msgpack => "MessagePack",
            BodyFormat::Yaml => "YAML",
        }
    }

    pub fn read(self, bytes: &[u8]) -> Result<Value, BadBody> {
        if bytes.len() > BODY_BYTES_MAX {
            return Err(BadBody::TooLong(bytes.len()));
        }
        let text = |why: String| BadBody::Malformed(self.name(), why);
        match self {
            BodyFormat::Json => serde_json::from_slice(bytes).map_err(|e| text(e.to_string())),
            BodyFormat::Msgpack => {
                let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
                reader.set_max_depth(DEPTH_MAX);
                Value::deserialize(&mut reader).map_err(|e| text(e.to_string()))
            }
            BodyFormat::Yaml => {
                let words = std::str::from_utf8(bytes).map_err(|e| text(e.to_string()))?;
                let budget = Budget { max_depth: DEPTH_MAX, ..Budget::default() };
                let options =
                    Options { budget: Some(budget), with_snippet: false, ..Options::default() };
                let read = serde_saphyr::from_str_with_options(words, options);
                read.map_err(|e| text(first_line(&e.to_string())))
            }
        }
    }

    pub fn write(self, value: &Value) -> Result<Vec<u8>, BadBody> {
        let failed = |why: String| BadBody::Malformed(self.name(), why);
        let bytes = match self {
            // JSON is YAML, and the same to every reader of it.
            BodyFormat::Json | BodyFormat::Yaml => {
                serde_json::to_vec(value).map_err(|e| failed(e.to_string()))
            }
            BodyFormat::Msgpack => rmp_serde::to_vec(value).map_err(|e| failed(e.to_string())),
        }?;
        if bytes.len() > BODY_BYTES_MAX {
            return Err(BadBody::TooLong(bytes.len()));
        }
        Ok(bytes)
    }
}

/// Unpacks a compressed body. What Celery calls gzip is zlib's format, under gzip's name.
pub fn unpack(how: &str, bytes: &[u8]) -> Result<Vec<u8>, BadBody> {
    if !["application/x-gzip", "gzip", "zlib"].contains(&how) {
        return Err(BadBody::Compressed(how.chars().take(100).collect()));
    }
    let mut unpacked = Vec::new();
    // One byte more than is allowed is enough to know that it is too much.
    let most = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let read = ZlibDecoder::new(bytes).take(most).read_to_end(&mut unpacked);
    read.map_err(|error| BadBody::Malformed("gzip of Celery's", error.to_string()))?;
    if unpacked.len() > BODY_BYTES_MAX {
        return Err(BadBody::TooLongUnpacked);
    }
    Ok(unpacked)
}

/// Readers of YAML show the place with a drawing; a sentence needs its first line.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;
    use serde_json::json;
    use std::io::Write as _;

    #[test]
    fn pickle_is_refused_and_so_is_what_nobody_knows() {
        assert_eq!(BodyFormat::of("application/x-python-serialize"), Err(BadBody::Pickle));
        assert_eq!(BodyFormat::of("text/html"), Err(BadBody::Unknown("text/html".into())));
        assert_eq!(BodyFormat::of("application/json; charset=utf-8"), Ok(BodyFormat::Json));
    }

    #[test]
    fn what_celery_wrote_is_read() {
        // As Celery 5.7 sends `f(1, b=2)`.
        let expected = json!([
            [1],
            {"b": 2},
            {"callbacks": null, "errbacks": null, "chain": null, "chord": null}
        ]);
        let yaml =
            "- - 1\n- b: 2\n- callbacks: null\n  chain: null\n  chord: null\n  errbacks: null\n";
        assert_eq!(BodyFormat::Yaml.read(yaml.as_bytes()), Ok(expected.clone()));
        let packed = b"\x93\x91\x01\x81\xa1b\x02\x84\xa9callbacks\xc0\xa8errbacks\xc0\xa5chain\xc0\xa5chord\xc0";
        assert_eq!(BodyFormat::Msgpack.read(packed), Ok(expected));
    }

    #[test]
    fn what_is_compressed_is_unpacked_as_far_as_a_body_may_be_long() {
        // `zlib.compress(b'[[1], {}, {}]')`, as Python wrote it.
        let packed = b"x\x9c\x8b\x8e6\x8c\xd5Q\xa8\xae\x05\xe1X\x00\x1b\xa8\x04*";
        assert_eq!(unpack("application/x-gzip", packed).as_deref(), Ok(&b"[[1], {}, {}]"[..]));
        let other = unpack("application/zstd", packed).expect_err("not understood");
        assert!(other.to_string().contains("`application/zstd`"), "{other}");
        assert!(matches!(unpack("zlib", &packed[..9]), Err(BadBody::Malformed(..))), "cut off");
        assert!(matches!(unpack("zlib", b"[[1]]"), Err(BadBody::Malformed(..))));
        let zeros = |count: usize| {
            let mut packer = ZlibEncoder::new(Vec::new(), flate2::Compression::best());
            packer.write_all(&vec![0; count]).expect("packed");
            packer.finish().expect("packed")
        };
        assert_eq!(unpack("zlib", &zeros(BODY_BYTES_MAX)).map(|all| all.len()), Ok(BODY_BYTES_MAX));
        let bomb = zeros(BODY_BYTES_MAX + 1);
        assert!(bomb.len() < 100_000);
        assert_eq!(unpack("zlib", &bomb), Err(BadBody::TooLongUnpacked));
    }

    #[test]
    fn broken_bodies_are_told_and_harm_nothing() {
        for format in [BodyFormat::Json, BodyFormat::Msgpack, BodyFormat::Yaml] {
            let deep = b"[".repeat(100_000);
            for bad in [&b"\xff\xfe\x00"[..], b"[1, ", b"{\"a\": [", &deep] {
                if format == BodyFormat::Msgpack && bad.first() != Some(&0xff) {
                    continue; // a letter is a number there
                }
                let read = format.read(bad);
                let told = matches!(read, Err(BadBody::Malformed(..)));
                assert!(told || format == BodyFormat::Msgpack, "{format:?} {:?}", bad.len());
            }
        }
        let nested = b"\x91".repeat(100_000);
        assert!(matches!(BodyFormat::Msgpack.read(&nested), Err(BadBody::Malformed(..))));
        let bytes = b"\xc4\x01\x00";
        assert!(matches!(BodyFormat::Msgpack.read(bytes), Err(BadBody::Malformed(..))));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_format_gives_back_what_it_was_given(value in values()) {
            let body = json!([[value], {}, {}]);
            for format in [BodyFormat::Json, BodyFormat::Msgpack, BodyFormat::Yaml] {
                let bytes = format.write(&body).expect("written");
                prop_assert_eq!(format.read(&bytes).expect("read"), body.clone());
            }
        }
    }
}
