//! Which addresses webhooks may reach: those of the open internet, and others only where the
//! server was started so. The addresses are checked that a connection is really made to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Where webhooks may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EgressPolicy {
    /// The open internet.
    Public,
    /// Also private addresses and this machine.
    Anywhere,
}

/// The longest URL.
pub const URL_MAX: usize = 2048;

/// Refuses what cannot be the address of a webhook. Where its name leads is found out later.
pub fn check_url(url: &str, egress: EgressPolicy) -> Result<(), &'static str> {
    if url.len() > URL_MAX {
        return Err("the URL is longer than 2048 characters: give a shorter one");
    }
    let uri: Uri = url.parse().map_err(|_| "this is no URL: give for example https://host/path")?;
    if !matches!(uri.scheme_str(), Some("https" | "http")) {
        return Err("a webhook is told by http or https: give for example https://host/path");
    }
    let authority = uri.authority().ok_or("the URL has no host: give for example https://host/")?;
    if authority.as_str().contains('@') {
        return Err("the URL has a name or password in it: leave them out");
    }
    let host = authority.host().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(ip) if egress == EgressPolicy::Public && !is_public(ip) => {
            Err("the address is private, and this server tells nobody there")
        }
        _ if host.is_empty() => Err("the URL has no host: give for example https://host/path"),
        _ => Ok(()),
    }
}

/// Whether an address is one of the open internet.
pub fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => public_v4(ip),
        IpAddr::V6(ip) => public_v6(ip),
    }
}

fn public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !(a == 0
        || a == 10
        || a == 127
        || (a == 100 && (64..128).contains(&b))
        || (a == 169 && b == 254)
        || (a == 172 && (16..32).contains(&b))
        || (a == 192 && b == 168)
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        || (a == 198 && b == 51 && c == 100)
        || (a == 203 && b == 0 && c == 113)
        || a >= 224)
}

fn public_v6(ip: Ipv6Addr) -> bool {
    let s = ip.segments();
    // Only global unicast is public, without documentation, and without what wraps an IPv4
    // address that would have to be looked at again (6to4, Teredo); NAT64 lies outside of it.
    (s[0] & 0xe000) == 0x2000
        && !(s[0] == 0x2001 && (s[1] == 0xdb8 || s[1] < 0x200))
        && s[0] != 0x2002
        && s[0] != 0x3fff
}

/// Resolves names, and leaves only addresses that may be reached.
#[derive(Debug)]
pub struct GuardedResolver {
    egress: EgressPolicy,
    names: DefaultResolver,
}

impl GuardedResolver {
    pub fn new(egress: EgressPolicy) -> GuardedResolver {
        GuardedResolver { egress, names: DefaultResolver::default() }
    }
}

/// A name led to private addresses only.
#[derive(Debug, thiserror::Error)]
#[error("the host has only private addresses, and this server tells nobody there")]
pub struct Private;

impl Resolver for GuardedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.names.resolve(uri, config, timeout)?;
        if self.egress == EgressPolicy::Anywhere {
            return Ok(found);
        }
        let mut open = self.empty();
        for address in found.iter().filter(|address| is_public(address.ip())) {
            open.push(*address);
        }
        if open.is_empty() { Err(ureq::Error::Other(Box::new(Private))) } else { Ok(open) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_not_the_open_internet() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001:0:1::",
            "2001:db8::1",
            "::10.0.0.1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn a_url_names_a_host_that_may_be_told() {
        for good in ["https://example.org/x", "http://example.org:8080", "https://1.1.1.1/"] {
            assert_eq!(check_url(good, EgressPolicy::Public), Ok(()), "{good}");
        }
        for bad in [
            "",
            "example.org",
            "ftp://example.org",
            "https://",
            "https://u:p@example.org",
            "http://127.0.0.1/",
            "http://[::1]/",
            "http://169.254.169.254/latest",
            "file:///etc",
        ] {
            assert!(check_url(bad, EgressPolicy::Public).is_err(), "{bad}");
        }
        assert_eq!(check_url("http://127.0.0.1:9/", EgressPolicy::Anywhere), Ok(()));
        assert!(
            check_url(&format!("https://a/{}", "x".repeat(URL_MAX)), EgressPolicy::Public).is_err()
        );
    }
}
