//! What is called how in Redis: keys of our own, ids of tasks, addresses.

use std::path::PathBuf;
use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::JobId;
use redis::ConnectionAddr;

use super::result::TaskState;

/// Which site uses this database.
pub const SITE: &str = "era:site";
/// Which server gives launches and orders.
pub const LAUNCHER: &str = "era:launcher";
/// The names of nodes that have a worker.
pub const NODES: &str = "era:nodes";
/// The names of nodes that were sent something and do not take it.
pub const UNTAKEN: &str = "era:untaken";
/// Launches by task: what is to be run. What is not in it must not start.
pub const LAUNCHES: &str = "era:launches";
/// Which worker has taken which launch.
pub const CLAIMS: &str = "era:claims";
/// What workers report beside results: samples, checkpoints.
pub const REPORTS: &str = "era:reports";
/// Messages that nobody here can serve, with the reason.
pub const DEAD: &str = "era:dead";
/// Which worker of ours holds which message.
pub const TAKEN: &str = "era:taken";
/// Celery's: messages that were taken and not acknowledged.
pub const UNACKED: &str = "unacked";
/// Celery's: since when.
pub const UNACKED_INDEX: &str = "unacked_index";
/// Celery's: who looks for messages that were taken too long ago.
pub const UNACKED_MUTEX: &str = "unacked_mutex";

/// A node as its worker last described it.
pub fn node(name: &str) -> String {
    format!("era:node:{name}")
}

/// Orders for a node beside launches.
pub fn orders(node: &str) -> String {
    format!("era:orders:{node}")
}

/// Is there while a worker lives.
pub fn worker(name: &str) -> String {
    format!("era:worker:{name}")
}

/// Who holds the claim of a task that is over, where no result says so.
pub const NOBODY: &str = "";

/// Is there while a worker runs a task of this id: the worker's name.
pub fn claim(id: &str) -> String {
    format!("era:claim:{id}")
}

/// Is there once a Celery worker has sent what follows such an end of a task.
pub fn followed(id: &str, status: TaskState) -> String {
    format!("era:followed:{id}:{status:?}")
}

/// The task of ours that Celery calls by this id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CeleryId {
    pub site: String,
    pub task: TaskId,
}

impl std::fmt::Display for CeleryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TaskId { job, part, attempt, rank } = self.task;
        write!(f, "era-{}-{}-{part}-{attempt}-{rank}", self.site, job.0)
    }
}

impl CeleryId {
    /// Reads an id; `None` for one that is not ours.
    pub fn read(text: &str) -> Option<CeleryId> {
        let mut parts = text.strip_prefix("era-")?.split('-');
        let mut next = || parts.next();
        let id = CeleryId {
            site: next()?.to_owned(),
            task: TaskId {
                job: JobId(next()?.parse().ok()?),
                part: next()?.parse().ok()?,
                attempt: next()?.parse().ok()?,
                rank: next()?.parse().ok()?,
            },
        };
        (next().is_none() && is_site(&id.site)).then_some(id)
    }
}

/// Whether this can be a site's id: eight letters and digits of base 16.
pub fn is_site(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Where Redis is, and how patient those who share it are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisAddress {
    /// As a client of Redis reads it.
    pub url: String,
    pub database: i64,
    /// How long a task may run without its worker being heard of.
    pub lease: Duration,
    /// After how long Celery takes a message for abandoned (its `visibility_timeout`).
    pub visibility: Duration,
    /// The authority that vouches for it, as a PEM file; the public ones where there is none.
    pub authority: Option<PathBuf>,
}

/// Why an address is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadRedisAddress {
    /// Another kind of broker.
    #[error(
        "`{0}` is no broker that is known here: write celery://HOST:PORT/DATABASE or redis://…"
    )]
    Scheme(String),
    /// It cannot be read.
    #[error("the address of Redis cannot be read: {0}")]
    Url(String),
    /// An option is unknown.
    #[error(
        "`{0}` is no option of this address: use lease and visibility, in seconds, and ca, a file"
    )]
    Option(String),
    /// There is nothing that an authority could vouch for.
    #[error("ca is the authority of an encrypted Redis: write rediss://HOST:PORT/DATABASE?ca=FILE")]
    NothingEncrypted,
    /// An option is out of range.
    #[error("{0} must be {1} to {2} seconds")]
    Range(&'static str, u64, u64),
}

/// How long a task may run without its worker being heard of, where nothing else is said.
const LEASE: Duration = Duration::from_secs(15);
/// Celery's own default.
const VISIBILITY: Duration = Duration::from_secs(3600);

impl RedisAddress {
    /// Reads `celery://…`, with or without the scheme of Redis behind it, or that alone. Options
    /// stand behind a question mark: `?lease=15&visibility=3600&ca=FILE`.
    pub fn read(text: &str) -> Result<RedisAddress, BadRedisAddress> {
        let rest = text.strip_prefix("celery://").unwrap_or(text);
        let (url, query) = rest.split_once('?').unwrap_or((rest, ""));
        let url = match url.split_once("://") {
            Some(("redis" | "rediss" | "redis+unix" | "unix" | "valkey" | "valkeys", _)) => {
                url.to_owned()
            }
            Some((scheme, _)) => return Err(BadRedisAddress::Scheme(scheme.to_owned())),
            None if text.starts_with("celery://") => format!("redis://{url}"),
            None => return Err(BadRedisAddress::Scheme(shown(text))),
        };
        let (lease, visibility) = (LEASE, VISIBILITY);
        let mut address = RedisAddress { url, database: 0, lease, visibility, authority: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            address.option(pair)?;
        }
        let info = redis::IntoConnectionInfo::into_connection_info(address.url.as_str())
            .map_err(|e| BadRedisAddress::Url(e.to_string()))?;
        address.database = info.redis_settings().db();
        if address.authority.is_some() && !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            return Err(BadRedisAddress::NothingEncrypted);
        }
        Ok(address)
    }

    fn option(&mut self, pair: &str) -> Result<(), BadRedisAddress> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let within = |name: &'static str, least: u64, most: u64| {
            let seconds = value.parse::<u64>().ok().filter(|s| (least..=most).contains(s));
            seconds.map(Duration::from_secs).ok_or(BadRedisAddress::Range(name, least, most))
        };
        match name {
            "lease" => self.lease = within("lease", 1, 3600)?,
            "visibility" => self.visibility = within("visibility", 1, 30 * 86_400)?,
            "ca" if !value.is_empty() => self.authority = Some(value.into()),
            _ => return Err(BadRedisAddress::Option(name.to_owned())),
        }
        Ok(())
    }

    /// The machine that it is on, and its port there, where it has one.
    pub fn host(&self) -> Option<(String, u16)> {
        let info = redis::IntoConnectionInfo::into_connection_info(self.url.as_str()).ok()?;
        match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some((host.clone(), *port))
            }
            _ => None,
        }
    }

    /// As it may be shown: without its password.
    pub fn shown(&self) -> String {
        shown(&self.url)
    }
}

/// An address without what stands before the `@`.
fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    match (rest.rsplit_once('@'), scheme) {
        (None, _) => url.to_owned(),
        (Some((_, place)), "") => format!("***@{place}"),
        (Some((_, place)), scheme) => format!("{scheme}://***@{place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> CeleryId {
        let task = TaskId { job: JobId(7), part: 1, attempt: 2, rank: 3 };
        CeleryId { site: "0123abcd".into(), task }
    }

    #[test]
    fn an_id_leads_back_to_its_task() {
        assert_eq!(id().to_string(), "era-0123abcd-7-1-2-3");
        assert_eq!(CeleryId::read(&id().to_string()), Some(id()));
    }

    #[test]
    fn ids_of_others_are_not_taken_for_ours() {
        for text in [
            "3340e1da-85bd-416a-a1d0-8294500d31e7",
            "era-",
            "era-0123abcd-7-1-2",
            "era-0123abcd-7-1-2-3-4",
            "era-XYZ-7-1-2-3",
            "era-0123abcd-7-1-2--3",
        ] {
            assert_eq!(CeleryId::read(text), None, "{text}");
        }
    }

    #[test]
    fn addresses_are_read_with_their_options() {
        let plain = RedisAddress::read("celery://localhost:6390/2").expect("read");
        assert_eq!((plain.url.as_str(), plain.database), ("redis://localhost:6390/2", 2));
        assert_eq!(plain.lease, Duration::from_secs(15));
        let nested = RedisAddress::read("celery://redis://localhost/1?lease=5&visibility=60");
        let nested = nested.expect("read");
        assert_eq!((nested.database, nested.lease), (1, Duration::from_secs(5)));
        assert_eq!(nested.visibility, Duration::from_secs(60));
        let vouched = RedisAddress::read("celery://rediss://localhost/1?ca=/etc/era/ca.pem");
        let authority = vouched.expect("read").authority;
        assert_eq!(authority.as_deref(), Some("/etc/era/ca.pem".as_ref()));
    }

    #[test]
    fn a_wrong_address_says_what_is_wrong() {
        let refused = |text: &str| RedisAddress::read(text).expect_err(text).to_string();
        assert!(refused("amqp://localhost").contains("no broker that is known"));
        assert!(refused("localhost").contains("celery://HOST"));
        assert!(refused("ada:s3cret@localhost").contains("`***@localhost` is no broker"));
        assert!(refused("celery://localhost?leese=5").contains("`leese` is no option"));
        assert!(refused("celery://localhost?lease=0").contains("1 to 3600"));
        assert!(refused("celery://localhost?ca=ca.pem").contains("rediss://HOST"));
        assert!(refused("rediss://localhost?ca=").contains("`ca` is no option"));
    }

    #[test]
    fn a_password_is_never_shown() {
        let address = RedisAddress::read("celery://:secret@localhost:6379/0").expect("read");
        assert_eq!(address.shown(), "redis://***@localhost:6379/0");
        let wrong =
            RedisAddress::read("celery://amqp://u:secret@localhost").expect_err("no broker");
        assert!(!wrong.to_string().contains("secret"));
    }
}
