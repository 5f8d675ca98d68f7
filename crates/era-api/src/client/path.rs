//! Addresses and paths: what may be written into them, and how.

use std::fmt::Write;

use serde::Serialize;

use super::ClientError;

/// An address without its slash at the end; `http://` where nothing is said.
pub(super) fn base(url: &str) -> Result<String, ClientError> {
    let bad = || ClientError::BadAddress { url: url.chars().take(200).collect() };
    let (scheme, place) = match url.trim().split_once("://") {
        Some((scheme @ ("http" | "https"), place)) => (scheme, place),
        Some(_) => return Err(bad()),
        None => ("http", url.trim()),
    };
    let text = format!("{scheme}://{}", place.trim_end_matches('/'));
    let uri: ureq::http::Uri = text.parse().map_err(|_| bad())?;
    let plain = uri.query().is_none() && uri.host().is_some_and(|host| !host.is_empty());
    let no_user = uri.authority().is_some_and(|at| !at.as_str().contains('@'));
    if plain && no_user { Ok(text) } else { Err(bad()) }
}

/// Whether the address is this machine's own, where no proxy stands between.
pub(super) fn is_loopback(url: &str) -> bool {
    let Ok(uri) = url.parse::<ureq::http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// One segment of a path, with everything escaped that means something in an address.
pub fn encode(segment: &str) -> String {
    let mut text = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte));
            }
            // A `String` takes whatever is written to it.
            other => _ = write!(text, "%{other:02X}"),
        }
    }
    text
}

/// The fields of a value as a query, `?` included; empty where there is none. Fields are flat:
/// text, numbers and yes or no.
pub fn query<T: Serialize>(fields: &T) -> String {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(fields) else {
        return String::new();
    };
    // By name, so that the same question is the same address.
    let fields: std::collections::BTreeMap<_, _> = fields.into_iter().collect();
    let mut text = String::new();
    for (name, value) in fields {
        let value = match value {
            serde_json::Value::Null => continue,
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(&encode(&name));
        text.push('=');
        text.push_str(&encode(&value));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobFilter;

    #[test]
    fn an_address_is_kept_without_its_last_slash() {
        assert_eq!(base("http://127.0.0.1:7632/").unwrap(), "http://127.0.0.1:7632");
        assert_eq!(base("gpu.example.org:7632").unwrap(), "http://gpu.example.org:7632");
        assert_eq!(base("https://example.org/era/").unwrap(), "https://example.org/era");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for bad in ["", "ftp://example.org", "http://", "http://a b", "http://me:pw@example.org"] {
            assert!(base(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for (url, expected) in [
            ("http://127.0.0.1:7632", true),
            ("http://localhost", true),
            ("http://[::1]:80", true),
            ("http://192.0.2.1", false),
            ("http://localhost.example.org", false),
        ] {
            assert_eq!(is_loopback(url), expected, "{url}");
        }
    }

    #[test]
    fn a_name_cannot_leave_its_segment() {
        assert_eq!(encode("../a b/c?d#e%"), "..%2Fa%20b%2Fc%3Fd%23e%25");
        assert_eq!(encode("ünï"), "%C3%BCn%C3%AF");
    }

    #[test]
    fn a_filter_becomes_a_query_of_what_was_said() {
        assert_eq!(query(&JobFilter::default()), "");
        let filter = JobFilter {
            state: Some("waiting,running".to_owned()),
            limit: Some(5),
            ..JobFilter::default()
        };
        assert_eq!(query(&filter), "?limit=5&state=waiting%2Crunning");
    }
}
