//! TFRecord framing: a length, its checksum, the bytes, their checksum.

/// Bytes before a record's data: its length and the checksum of that.
pub(super) const HEADER_BYTES: usize = 12;
/// Bytes behind a record's data: their checksum.
pub(super) const FOOTER_BYTES: usize = 4;

/// How long the data is that a header announces; `None` where the header makes no sense.
pub(super) fn data_bytes(header: &[u8; HEADER_BYTES]) -> Option<u64> {
    let (length, crc) = header.split_first_chunk::<8>()?;
    let crc = u32::from_le_bytes(crc.try_into().ok()?);
    (masked_crc(length) == crc).then_some(u64::from_le_bytes(*length))
}

/// Data without its checksum; `None` where it does not match.
pub(super) fn checked(data_and_footer: &[u8]) -> Option<&[u8]> {
    let (data, footer) = data_and_footer.split_last_chunk::<FOOTER_BYTES>()?;
    (masked_crc(data) == u32::from_le_bytes(*footer)).then_some(data)
}

/// Checksums stand in files that are themselves checksummed, so the format turns them round.
pub(super) fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_format() {
        // The first record of every event file says `brain.Event:2`; its length is 24.
        let header = [0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22];
        assert_eq!(data_bytes(&header), Some(24));
        let mut broken = header;
        broken[0] = 0x19;
        assert_eq!(data_bytes(&broken), None);
    }

    #[test]
    fn data_that_changed_is_refused() {
        let mut record = b"data".to_vec();
        record.extend(masked_crc(b"data").to_le_bytes());
        assert_eq!(checked(&record), Some(&b"data"[..]));
        record[0] ^= 1;
        assert_eq!(checked(&record), None);
        assert_eq!(checked(b"abc"), None);
    }
}
