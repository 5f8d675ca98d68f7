//! Whatever keeps a request from being answered, each with what to do about it.

use crate::Problem;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server said no.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// What was given as an address is none.
    #[error("`{url}` is no address of a server: write for example http://127.0.0.1:7632")]
    BadAddress {
        /// What was given.
        url: String,
    },
    /// Nobody answers there.
    #[error(
        "no server answers at {url} ({why}): start one with `era up`, or name another with --url or ERA_URL"
    )]
    Unreachable {
        url: String,
        /// What the machine said.
        why: String,
    },
    /// A proxy answers there, and none of the servers behind it.
    #[error(
        "{url} answers for servers of which it reaches none now (status {status}): try again in a few seconds, and if it lasts, tell whoever runs it"
    )]
    NobodyBehind {
        url: String,
        /// What it answered.
        status: u16,
    },
    /// Somebody answers, but cannot show who it is.
    #[error(
        "the certificate of {url} is not trusted ({why}): name the authority that signed it with --ca or ERA_CA"
    )]
    Certificate {
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The file of certificates that are to be trusted cannot be used.
    #[error("the certificates to trust cannot be used: {why}; give a PEM file with at least one")]
    BadAuthority {
        /// What is wrong with it.
        why: String,
    },
    /// The server knows no such operation, or this is no server of ERA.
    #[error(
        "{url} does not know {path}: {server}, this is era {client}; upgrade the older one, or check the address"
    )]
    NotKnown {
        url: String,
        path: String,
        /// What it says that it is.
        server: String,
        /// Our own version.
        client: &'static str,
    },
    /// It did not answer in time.
    #[error("{url} did not answer in time: it may be overloaded; try again")]
    TimedOut { url: String },
    /// The connection broke.
    #[error("the connection to {url} broke ({why}): try again")]
    Broken {
        url: String,
        /// What the machine said.
        why: String,
    },
    /// The answer is not what this version understands.
    #[error("{url} answered {path} with what this version does not understand ({why})")]
    NotUnderstood {
        url: String,
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no source of random numbers for a key.
    #[error("the system gave no random numbers for a request's key: {0}")]
    NoRandomness(String),
}

impl ClientError {
    /// The server's refusal, where it is one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            ClientError::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// From what the transport says.
    pub(super) fn of(url: &str, error: ureq::Error) -> ClientError {
        let url = url.to_owned();
        let why = error.to_string();
        match error {
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
                ClientError::Unreachable { url, why }
            }
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                ClientError::Unreachable { url, why }
            }
            ureq::Error::Timeout(_) => ClientError::TimedOut { url },
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) => ClientError::Certificate { url, why },
            ureq::Error::Io(error) => ClientError::of_io(url, &error),
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => ClientError::BadAddress { url },
            _ => ClientError::Broken { url, why },
        }
    }

    /// From what the machine says about a connection.
    pub(super) fn of_io(url: String, error: &std::io::Error) -> ClientError {
        use std::io::ErrorKind;
        let why = error.to_string();
        match error.kind() {
            ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NotFound
            | ErrorKind::AddrNotAvailable => ClientError::Unreachable { url, why },
            ErrorKind::TimedOut | ErrorKind::WouldBlock => ClientError::TimedOut { url },
            // Encryption reports a bad certificate as invalid data within an I/O error.
            ErrorKind::InvalidData if why.contains("certificate") => {
                ClientError::Certificate { url, why }
            }
            _ => ClientError::Broken { url, why },
        }
    }
}
