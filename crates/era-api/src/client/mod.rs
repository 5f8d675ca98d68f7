//! The typed client: one method for each operation of the API, blocking, on one kept connection.
//!
//! Made to be cheap: nothing is resolved, connected or set up for encryption before the first
//! request, so that a command is over in a few milliseconds. It does not know where an address
//! or a token came from, prints nothing and asks nobody.

mod accounts;
mod call;
mod cluster;
mod error;
mod events;
pub mod files;
mod jobs;
mod key;
mod market;
mod path;
mod queues;
mod reports;
mod settings;
mod stream;
mod terminal;
mod tls;
pub mod transfer;

use std::sync::OnceLock;
use std::time::Duration;

use ureq::Agent;
use ureq::config::Config;

pub use cluster::TimeRange;
pub use error::ClientError;
pub use path::{encode, query};
pub use reports::ServerHealth;
pub use stream::{ItemStream, LogStream, MetricStream};
pub use terminal::{FromTerminal, Terminal};

/// Bytes that are read and written at once.
const BUFFER: usize = 16 * 1024;
/// How long a connection may take to come about.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long an answer may take to begin.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// How long one may that the server has to work out first.
const SLOW_ANSWER_MAX: Duration = Duration::from_secs(1800);
/// Most bytes of a JSON answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// The road to a server.
#[derive(Debug)]
pub struct Client {
    url: String,
    token: Option<String>,
    authority: Option<Vec<u8>>,
    agent: OnceLock<Agent>,
}

impl Client {
    /// To the server at this address, such as `http://127.0.0.1:7632`, as whoever the token says.
    pub fn new(url: &str, token: Option<&str>) -> Result<Client, ClientError> {
        let url = path::base(url)?;
        Ok(Client { url, token: token.map(str::to_owned), authority: None, agent: OnceLock::new() })
    }

    /// The same, trusting the certificates in this PEM text and no others.
    #[must_use]
    pub fn trusting(mut self, pem: Vec<u8>) -> Client {
        self.authority = Some(pem);
        self
    }

    /// The server's address, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The token that goes with each request.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The connection; made at the first use.
    fn agent(&self) -> Result<&Agent, ClientError> {
        if let Some(agent) = self.agent.get() {
            return Ok(agent);
        }
        let mut config = Config::builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("era/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            // Both are filled with noughts first, which a short command should not wait for.
            .input_buffer_size(BUFFER)
            .output_buffer_size(BUFFER)
            .timeout_connect(Some(CONNECT_MAX))
            .timeout_recv_response(Some(ANSWER_MAX));
        if path::is_loopback(&self.url) {
            config = config.proxy(None);
        }
        if let Some(pem) = &self.authority {
            config = config.tls_config(tls::for_requests(pem)?);
        }
        Ok(self.agent.get_or_init(|| config.build().new_agent()))
    }
}
