//! A Swarm of three nodes: daemons in three network namespaces, with a bridge between them.

use std::sync::atomic::{AtomicU32, Ordering};

use super::bed::{Daemon, Namespace, can, sh};

/// Three nodes, the first of them the manager.
pub(crate) struct Swarm {
    pub(crate) nodes: Vec<Daemon>,
    bridge: String,
}

impl Swarm {
    pub(crate) fn start() -> Option<Swarm> {
        can(Swarm::try_to())
    }

    fn try_to() -> Result<Swarm, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let bridge = format!("eb{}x{number}", std::process::id());
        sh("ip", &["link", "add", &bridge, "type", "bridge"])?;
        let mut swarm = Swarm { nodes: Vec::new(), bridge: bridge.clone() };
        sh("ip", &["link", "set", &bridge, "up"])?;
        // Else the host's own rules would judge what passes between the nodes.
        let filter = format!("/sys/class/net/{bridge}/bridge/nf_call_iptables");
        let _ = std::fs::write(filter, "0");
        let _ = std::fs::write("/proc/sys/net/bridge/bridge-nf-call-iptables", "0");
        for node in 1..=3 {
            let namespace = Namespace::new()?;
            let (host, address) = (swarm.link(node), format!("10.213.77.{node}/24"));
            sh(
                "ip",
                &[
                    "link",
                    "add",
                    &host,
                    "type",
                    "veth",
                    "peer",
                    "name",
                    "eth0",
                    "netns",
                    &namespace.0,
                ],
            )?;
            sh("ip", &["link", "set", &host, "master", &bridge, "up"])?;
            namespace.run(&["ip", "addr", "add", &address, "dev", "eth0"])?;
            namespace.run(&["ip", "link", "set", "eth0", "up"])?;
            swarm.nodes.push(Daemon::start(namespace, &[])?);
        }
        let [first, others @ ..] = &swarm.nodes[..] else { return Err("no node".into()) };
        first.docker(&[
            "swarm",
            "init",
            "--advertise-addr",
            "10.213.77.1",
            "--dispatcher-heartbeat",
            "1s",
        ])?;
        let token = first.docker(&["swarm", "join-token", "-q", "worker"])?;
        for (node, daemon) in (2..).zip(others) {
            let own = format!("10.213.77.{node}");
            daemon.docker(&[
                "swarm",
                "join",
                "--advertise-addr",
                &own,
                "--token",
                &token,
                "10.213.77.1:2377",
            ])?;
        }
        Ok(swarm)
    }

    fn link(&self, node: usize) -> String {
        format!("{}n{node}", self.bridge)
    }

    /// Parts a node from the others, or joins it with them again.
    pub(crate) fn cut(&self, node: usize, cut: bool) {
        let state = if cut { "down" } else { "up" };
        sh("ip", &["link", "set", &self.link(node), state]).expect("set");
    }

    pub(crate) fn address(&self) -> String {
        self.nodes[0].address()
    }

    /// The Swarm's own id of a node, by its place in the list.
    pub(crate) fn id(&self, place: usize) -> String {
        self.nodes[place].docker(&["info", "-f", "{{.Swarm.NodeID}}"]).expect("an id")
    }

    /// What a node is called, of these names: all have one host name, which the oldest keeps.
    pub(crate) fn name(&self, place: usize, names: &[String]) -> String {
        let id = self.id(place);
        let ends = |name: &&String| name.ends_with(&id[..6]);
        let first = || names.iter().min_by_key(|name| name.len());
        names.iter().find(ends).or_else(first).expect("named").clone()
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        // A worker that cannot reach its manager takes its time to end.
        for node in 1..=self.nodes.len() {
            let _ = sh("ip", &["link", "set", &self.link(node), "up"]);
        }
        while self.nodes.pop().is_some() {}
        let _ = sh("ip", &["link", "delete", &self.bridge]);
    }
}
