//! What processes sent and received over the machine's network, which they share with all others.
//!
//! The kernel counts bytes by TCP connection and tells them over netlink (`sock_diag(7)`, as `ss`
//! asks for them); whose a connection is, the open files of processes say. So this is a least
//! figure: what was opened and closed between two looks is not in it, nor anything but TCP. Within
//! the machine is no network.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use era_core::job::TaskId;
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// `SOCK_DIAG_BY_FAMILY`, both of the question and of its answers.
const BY_FAMILY: u16 = 20;
/// `NLMSG_ERROR` and `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`: all of them.
const ALL: u16 = 0x301;
/// `INET_DIAG_INFO`, the attribute that holds the counts.
const INFO: u16 = 2;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// All states but those that nobody has open: waiting for the other end's last word, listening.
const STATES: u32 = 0xfff & !(1 << 6) & !(1 << 10);
/// Lengths of a message's head, of what an answer begins with, and of an attribute's head.
const HEAD: usize = 16;
const ANSWER: usize = 72;
const ATTRIBUTE: usize = 4;

/// Received and sent bytes.
type Bytes = (u64, u64);

/// A connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Connection {
    /// Never used again, unlike the number of its file.
    cookie: u64,
    file: u64,
    to: IpAddr,
    bytes: Bytes,
}

/// Remembers what connections of tasks carried that are closed by now.
#[derive(Debug, Default)]
pub(super) struct Network {
    tasks: BTreeMap<TaskId, Carried>,
}

/// What a task's connections carried.
#[derive(Clone, Debug, Default)]
struct Carried {
    open: HashMap<u64, Bytes>,
    closed: Bytes,
}

impl Network {
    /// Received and sent bytes of each task so far, by its processes; nothing where the kernel
    /// does not tell.
    pub(super) fn look(&mut self, trees: &[(TaskId, &[u32])]) -> BTreeMap<TaskId, Bytes> {
        let all = if trees.is_empty() { Ok(Vec::new()) } else { connections() };
        let Ok(all) = all else { return BTreeMap::new() };
        self.take(trees, &all, sockets)
    }

    fn take(
        &mut self,
        trees: &[(TaskId, &[u32])],
        all: &[Connection],
        sockets: impl Fn(u32) -> Vec<u64>,
    ) -> BTreeMap<TaskId, Bytes> {
        let outward = all.iter().filter(|connection| !is_within(connection.to));
        let by_file: HashMap<u64, &Connection> = outward.map(|c| (c.file, c)).collect();
        let mut tasks = BTreeMap::new();
        for (task, tree) in trees {
            let mut carried = self.tasks.remove(task).unwrap_or_default();
            let mut files = HashSet::new();
            if !by_file.is_empty() {
                files.extend(tree.iter().flat_map(|pid| sockets(*pid)));
            }
            let open = files.iter().filter_map(|file| by_file.get(file));
            carried.now(open.map(|connection| (connection.cookie, connection.bytes)).collect());
            tasks.insert(*task, carried);
        }
        self.tasks = tasks;
        self.tasks.iter().map(|(task, carried)| (*task, carried.total())).collect()
    }
}

impl Carried {
    fn now(&mut self, open: HashMap<u64, Bytes>) {
        for (cookie, bytes) in &self.open {
            if !open.contains_key(cookie) {
                self.closed = sum(self.closed, *bytes);
            }
        }
        self.open = open;
    }

    fn total(&self) -> Bytes {
        self.open.values().fold(self.closed, |total, bytes| sum(total, *bytes))
    }
}

fn sum(a: Bytes, b: Bytes) -> Bytes {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}

/// Whether an address is this machine's own for itself.
fn is_within(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The numbers of the sockets that a process has open; none once it has ended.
fn sockets(pid: u32) -> Vec<u64> {
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let number = |file: std::fs::DirEntry| {
        let to = std::fs::read_link(file.path()).ok()?;
        to.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    files.flatten().filter_map(number).collect()
}

/// Every connection of the machine.
fn connections() -> io::Result<Vec<Connection>> {
    let kind = SocketType::DGRAM;
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, Some(SOCK_DIAG))?;
    let mut all = Vec::new();
    let mut piece = vec![0; 64 << 10];
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        rustix::net::send(&socket, &question(family), SendFlags::empty())?;
        let mut done = false;
        while !done {
            // The kernel has each piece ready when it is asked for.
            let (read, _) = rustix::net::recv(&socket, &mut piece[..], RecvFlags::DONTWAIT)?;
            done = answers(piece.get(..read).unwrap_or_default(), &mut all)?;
        }
    }
    Ok(all)
}

fn question(family: AddressFamily) -> Vec<u8> {
    let family = u8::try_from(family.as_raw()).unwrap_or(0);
    let mut all = Vec::with_capacity(HEAD + 56);
    all.extend(72_u32.to_ne_bytes());
    all.extend(BY_FAMILY.to_ne_bytes());
    all.extend(ALL.to_ne_bytes());
    all.extend([0; 8]);
    all.extend([family, TCP, 1 << (INFO - 1), 0]);
    all.extend(STATES.to_ne_bytes());
    // Which connection: any.
    all.extend([0; 48]);
    all
}

/// Takes the connections out of a piece of the answer, and says whether it was the last.
fn answers(mut piece: &[u8], all: &mut Vec<Connection>) -> io::Result<bool> {
    while !piece.is_empty() {
        let length = u32_at(piece, 0).and_then(|length| usize::try_from(length).ok());
        let message = length.and_then(|length| piece.get(HEAD..length));
        let (Some(length), Some(kind), Some(message)) = (length, u16_at(piece, 4), message) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        match kind {
            DONE => return Ok(true),
            ERROR => {
                let code = u32_at(message, 0).map_or(0, |code| code.cast_signed().wrapping_neg());
                return Err(io::Error::from_raw_os_error(code));
            }
            BY_FAMILY => all.extend(answer(message)),
            _ => {}
        }
        piece = piece.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

fn answer(message: &[u8]) -> Option<Connection> {
    let to = message.get(24..40)?;
    let to = match i32::from(*message.first()?) == i32::from(AddressFamily::INET.as_raw()) {
        true => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(to.get(..4)?).ok()?)),
        false => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(to).ok()?)),
    };
    let (cookie, file) = (u64_at(message, 44)?, u32_at(message, 68)?);
    let mut attributes = message.get(ANSWER..)?;
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let length = usize::from(length);
        let value = attributes.get(ATTRIBUTE..length)?;
        if kind == INFO {
            // Of `struct tcp_info`; older kernels have less of it.
            let bytes = (u64_at(value, 128)?, u64_at(value, 120)?);
            return Some(Connection { cookie, file: file.into(), to, bytes });
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use tokio::time::Instant;

    use era_core::units::JobId;

    use super::*;

    fn task(job: u64) -> TaskId {
        TaskId { job: JobId(job), part: 0, attempt: 1, rank: 0 }
    }

    fn connection(cookie: u64, to: [u8; 4], bytes: Bytes) -> Connection {
        Connection { cookie, file: cookie + 100, to: to.into(), bytes }
    }

    #[test]
    fn the_kernel_tells_what_a_connection_of_ours_carried() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                assert!(address.starts_with('['), "every machine has the older loopback");
                continue;
            };
            let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut far, _) = listener.accept().unwrap();
            near.write_all(&[7; 12_345]).unwrap();
            far.read_exact(&mut [0; 12_345]).unwrap();
            let to = near.peer_addr().unwrap().ip();
            // A byte counts as sent once its arrival is confirmed, which may take a moment.
            let begun = Instant::now();
            loop {
                let ours: HashSet<u64> = sockets(std::process::id()).into_iter().collect();
                let all = connections().unwrap();
                let mine = all.iter().filter(|c| c.to == to && ours.contains(&c.file));
                let mut bytes: Vec<Bytes> = mine.map(|c| c.bytes).collect();
                bytes.sort_unstable();
                // Other tests of this process may have connections too.
                let there = |one: Bytes| bytes.contains(&one);
                // The first byte of all that is confirmed stands for the connection itself.
                if there((12_345, 0)) && (there((0, 12_346)) || there((0, 12_345))) {
                    break;
                }
                assert!(begun.elapsed() < Duration::from_secs(10), "{bytes:?}");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    #[test]
    fn what_a_closed_connection_carried_still_counts_and_nothing_within_the_machine() {
        let files = |pid: u32| match pid {
            1 => vec![101, 102, 103],
            2 => vec![104],
            _ => Vec::new(),
        };
        let mut network = Network::default();
        let trees: [(TaskId, &[u32]); 2] = [(task(1), &[1, 9]), (task(2), &[2])];
        let far = [10, 0, 0, 1];
        let first = [
            connection(1, far, (5, 50)),
            connection(2, far, (1, 10)),
            connection(3, [127, 0, 0, 1], (900, 900)),
            connection(4, far, (7, 70)),
            connection(5, far, (999, 999)),
        ];
        let looked = network.take(&trees, &first, files);
        assert_eq!(looked[&task(1)], (6, 60));
        assert_eq!(looked[&task(2)], (7, 70));
        let second = [connection(2, far, (2, 20)), connection(4, far, (7, 71))];
        let looked = network.take(&trees, &second, files);
        assert_eq!(looked[&task(1)], (7, 70));
        assert_eq!(looked[&task(2)], (7, 71));
        // A task that is over is forgotten.
        assert_eq!(network.take(&trees[..1], &[], files).len(), 1);
        assert_eq!(network.take(&trees, &[], files)[&task(2)], (0, 0));
    }

    #[test]
    fn an_answer_cut_short_is_no_answer() {
        let mut all = Vec::new();
        let mut message = vec![0; HEAD + ANSWER];
        let length = u32::try_from(message.len()).unwrap();
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        for end in 1..message.len() {
            let wrong = answers(&message[..end], &mut all).unwrap_err();
            assert_eq!(wrong.kind(), io::ErrorKind::InvalidData, "{end}");
        }
        assert!(!answers(&message, &mut all).unwrap());
        assert_eq!(all, [], "it counts nothing");
        message[4..6].copy_from_slice(&DONE.to_ne_bytes());
        assert!(answers(&message, &mut all).unwrap());
        message[4..6].copy_from_slice(&ERROR.to_ne_bytes());
        message[HEAD..HEAD + 4].copy_from_slice(&(-1_i32).to_ne_bytes());
        let refused = answers(&message, &mut all).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        // A length of nothing must not turn round for ever.
        message[..4].copy_from_slice(&0_u32.to_ne_bytes());
        assert!(answers(&message, &mut all).is_err());
    }
}
