//! The few protobuf fields of TensorBoard's `Event` that a scalar is made of.
//!
//! `Event { 1: double wall_time, 2: int64 step, 5: Summary { 1: repeated Value { 1: string tag,
//! 2: float simple_value, 8: TensorProto } } }`. A tensor counts if it has no dimensions. Unknown
//! fields are passed over; a message that ends in the middle gives what came before.

/// One value of one tag.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scalar {
    pub(super) tag: String,
    pub(super) step: i64,
    pub(super) wall_time_s: f64,
    pub(super) value: f64,
}

/// Most values of one event.
const VALUES_MAX: usize = 4096;
/// Longest tag that is read.
const TAG_BYTES_MAX: usize = 1024;

pub(super) fn scalars(event: &[u8]) -> Vec<Scalar> {
    let (mut wall_time_s, mut step, mut summaries) = (0.0, 0, Vec::new());
    for (number, value) in Fields(event) {
        match (number, value) {
            (1, FieldValue::Eight(bits)) => wall_time_s = f64::from_bits(bits),
            (2, FieldValue::Varint(n)) => step = n.cast_signed(),
            (5, FieldValue::Bytes(summary)) => summaries.push(summary),
            _ => {}
        }
    }
    let values = summaries.into_iter().flat_map(Fields).filter_map(|field| match field {
        (1, FieldValue::Bytes(value)) => tag_and_value(value),
        _ => None,
    });
    values.take(VALUES_MAX).map(|(tag, value)| Scalar { tag, step, wall_time_s, value }).collect()
}

fn tag_and_value(message: &[u8]) -> Option<(String, f64)> {
    let (mut tag, mut value) = (None, None);
    for field in Fields(message) {
        match field {
            (1, FieldValue::Bytes(text)) if text.len() <= TAG_BYTES_MAX => {
                tag = Some(String::from_utf8_lossy(text).into_owned());
            }
            (2, FieldValue::Four(bits)) => value = Some(f64::from(f32::from_bits(bits))),
            (8, FieldValue::Bytes(tensor)) => value = tensor_scalar(tensor).or(value),
            _ => {}
        }
    }
    Some((tag?, value?))
}

/// The value of a tensor without dimensions, of the types that scalars are written in.
fn tensor_scalar(tensor: &[u8]) -> Option<f64> {
    let (mut kind, mut value, mut content) = (0, None, None);
    for field in Fields(tensor) {
        match field {
            (1, FieldValue::Varint(n)) => kind = n,
            // A shape that names a dimension is no scalar's.
            (2, FieldValue::Bytes(shape)) if Fields(shape).any(|(number, _)| number == 2) => {
                return None;
            }
            (4, FieldValue::Bytes(bytes)) => content = Some(bytes),
            (5, FieldValue::Bytes(packed)) => {
                value = one(packed).map(|b| f64::from(f32::from_le_bytes(b)))
            }
            (5, FieldValue::Four(bits)) => value = Some(f64::from(f32::from_bits(bits))),
            (6, FieldValue::Bytes(packed)) => value = one(packed).map(f64::from_le_bytes),
            (6, FieldValue::Eight(bits)) => value = Some(f64::from_bits(bits)),
            (7 | 10, FieldValue::Bytes(packed)) => {
                value = varint(packed).map(|(n, _)| n.cast_signed() as f64);
            }
            (7 | 10, FieldValue::Varint(n)) => value = Some(n.cast_signed() as f64),
            _ => {}
        }
    }
    let from_content = |bytes: &[u8]| match kind {
        1 => one(bytes).map(|b| f64::from(f32::from_le_bytes(b))),
        2 => one(bytes).map(f64::from_le_bytes),
        3 => one(bytes).map(|b| f64::from(i32::from_le_bytes(b))),
        9 => one(bytes).map(|b| i64::from_le_bytes(b) as f64),
        _ => None,
    };
    // 7 is text, whose length must not be taken for a value.
    (kind != 7).then(|| value.or_else(|| from_content(content?))).flatten()
}

fn one<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// A field's value on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldValue<'a> {
    Varint(u64),
    Eight(u64),
    Four(u32),
    Bytes(&'a [u8]),
}

/// The fields of a message, one after the other, as far as they make sense.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, FieldValue<'a>);

    fn next(&mut self) -> Option<(u64, FieldValue<'a>)> {
        let (key, rest) = varint(self.0)?;
        let (value, rest) = match key & 7 {
            0 => varint(rest).map(|(n, rest)| (FieldValue::Varint(n), rest))?,
            1 => rest
                .split_first_chunk()
                .map(|(b, r)| (FieldValue::Eight(u64::from_le_bytes(*b)), r))?,
            2 => {
                let (length, rest) = varint(rest)?;
                let (bytes, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                (FieldValue::Bytes(bytes), rest)
            }
            5 => rest
                .split_first_chunk()
                .map(|(b, r)| (FieldValue::Four(u32::from_le_bytes(*b)), r))?,
            _ => return None,
        };
        self.0 = rest;
        Some((key >> 3, value))
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (n, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[n + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_scalar_is_read_from_its_bytes() {
        // wall_time 2.0, step 300, summary { value { tag "loss", simple_value 0.5 } }.
        let bytes = [
            0x09, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x10, 0xac, 0x02, 0x2a, 0x0d, 0x0a, 0x0b, 0x0a, 0x04,
            b'l', b'o', b's', b's', 0x15, 0, 0, 0, 0x3f,
        ];
        let expected = Scalar { tag: "loss".into(), step: 300, wall_time_s: 2.0, value: 0.5 };
        assert_eq!(scalars(&bytes), [expected]);
    }

    fn value_with_tensor(tensor: &[u8]) -> Vec<u8> {
        let mut value = vec![0x0a, 1, b'x', 0x42, tensor.len() as u8];
        value.extend_from_slice(tensor);
        value
    }

    #[test]
    fn a_tensor_without_dimensions_is_a_scalar() {
        let number = |tensor: &[u8]| tag_and_value(&value_with_tensor(tensor)).map(|(_, n)| n);
        let half = 0.5_f32.to_le_bytes();
        let packed = [&[0x08, 1, 0x12, 0, 0x2a, 4][..], &half].concat();
        assert_eq!(number(&packed), Some(0.5));
        let content = [&[0x08, 1, 0x22, 4][..], &half].concat();
        assert_eq!(number(&content), Some(0.5));
        let double = [&[0x08, 2, 0x32, 8][..], &0.25_f64.to_le_bytes()].concat();
        assert_eq!(number(&double), Some(0.25));
        assert_eq!(number(&[0x08, 3, 0x38, 7]), Some(7.0));
        // A vector of two, a text, and nothing at all are none.
        let vector = [&[0x08, 1, 0x12, 4, 0x12, 2, 0x08, 2, 0x2a, 8][..], &half, &half].concat();
        assert_eq!(number(&vector), None);
        assert_eq!(number(&[0x08, 7, 0x42, 1, b'a']), None);
        assert_eq!(number(&[]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(scalars(&bytes).len() <= bytes.len());
        }
    }
}
