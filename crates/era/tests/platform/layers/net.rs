//! Machines of their own for layers, as far as the network goes: namespaces on a bridge, whose links
//! are set down and up. What is cut off so hears nothing at all, not even that it is cut off.

use super::super::engines::bed::{Namespace, sh};

/// A bridge, and who is behind it.
pub(crate) struct Net {
    bridge: String,
    /// The first three numbers of its addresses.
    prefix: String,
    pub(crate) places: Vec<Place>,
}

/// A namespace with an address and a link.
pub(crate) struct Place {
    pub(crate) namespace: Namespace,
    pub(crate) address: String,
    link: String,
}

impl Net {
    /// One with so many places; why not where that cannot be.
    pub(crate) fn new(count: usize) -> Result<Net, String> {
        let bridge = format!("ec{}", std::process::id());
        let free = |third: &u32| {
            let network = format!("10.231.{third}.0/24");
            sh("ip", &["route", "show", &network]).is_ok_and(|routes| routes.is_empty())
        };
        let first = std::process::id() % 250;
        let third = (first..250).chain(0..first).find(free).ok_or("no network is free")?;
        sh("ip", &["link", "add", &bridge, "type", "bridge"])?;
        let prefix = format!("10.231.{third}");
        let mut net = Net { bridge, prefix, places: Vec::new() };
        sh("ip", &["addr", "add", &format!("{}/24", net.here()), "dev", &net.bridge])?;
        sh("ip", &["link", "set", &net.bridge, "up"])?;
        for number in 0..count {
            let place = net.place(number)?;
            net.places.push(place);
        }
        Ok(net)
    }

    fn place(&self, number: usize) -> Result<Place, String> {
        let namespace = Namespace::new()?;
        let (link, there) =
            (format!("{}n{number}", self.bridge), format!("{}e{number}", self.bridge));
        sh("ip", &["link", "add", &link, "type", "veth", "peer", "name", &there])?;
        sh("ip", &["link", "set", &there, "netns", &namespace.0])?;
        sh("ip", &["link", "set", &link, "master", &self.bridge, "up"])?;
        let address = format!("{}.{}", self.prefix, number + 11);
        namespace.run(&["ip", "addr", "add", &format!("{address}/24"), "dev", &there])?;
        namespace.run(&["ip", "link", "set", &there, "up"])?;
        Ok(Place { namespace, address, link })
    }

    /// The address of whoever is in no namespace of its own.
    pub(crate) fn here(&self) -> String {
        format!("{}.1", self.prefix)
    }

    pub(crate) fn set(&self, place: usize, up: bool) {
        let state = if up { "up" } else { "down" };
        sh("ip", &["link", "set", &self.places[place].link, state]).unwrap();
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.places.clear();
        let _ = sh("ip", &["link", "delete", &self.bridge]);
    }
}
