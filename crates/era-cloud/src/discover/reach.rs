//! Where other machines reach this one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

/// Addresses for documentation, which nobody has: the way to them is the way to everywhere.
const ELSEWHERE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// The address by which whoever reaches `peer`, as we do, reaches us: the source address of our
/// route there. Where that is this very machine, it is the address of the default route; without
/// any network, the loopback, since all others are on this machine as well.
pub fn address_towards(peer: Option<(&str, u16)>) -> IpAddr {
    let peers = peer.and_then(|peer| peer.to_socket_addrs().ok());
    let peers = peers.into_iter().flatten().map(|peer| peer.ip()).chain(ELSEWHERE);
    let mut sources = peers.filter_map(|peer| source_towards(peer).ok());
    let usable = |source: &IpAddr| !source.is_loopback() && !source.is_unspecified();
    sources.find(usable).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Asks for the route, and sends nothing.
fn source_towards(peer: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match peer {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((peer, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// Whether this is the address of one machine, or a name that resolves to one here.
pub fn names_a_machine(host: &str) -> bool {
    let is_one = |at: SocketAddr| !at.ip().is_unspecified() && !at.ip().is_multicast();
    (host, 0).to_socket_addrs().is_ok_and(|mut found| found.any(is_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_on_this_machine_tells_nothing_of_how_others_reach_it() {
        let default = address_towards(None);
        assert_eq!(address_towards(Some(("127.0.0.1", 6379))), default);
        let own = default.to_string();
        assert_eq!(address_towards(Some((&own, 6379))), default, "we reach ourselves by it");
        assert!(UdpSocket::bind((default, 0)).is_ok(), "{default} is this machine's own");
    }

    #[test]
    fn a_machine_has_an_address_or_a_name_that_resolves() {
        for host in ["10.1.2.3", "fd00::1", "localhost"] {
            assert!(names_a_machine(host), "{host}");
        }
        for host in ["10.1.2.3:22", "", &"x".repeat(300), "0.0.0.0", "::", "224.0.0.1"] {
            assert!(!names_a_machine(host), "{host}");
        }
    }
}
