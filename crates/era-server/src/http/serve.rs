//! Listening: plain on loopback, encrypted anywhere, and over when the caller says so.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use axum_server::Handle;
use axum_server::accept::DefaultAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use hyper_util::rt::TokioTimer;

use super::gate::ConnectionGate;
use super::open_session::Stopping;
use super::proxy;

/// How a server listens.
#[derive(Clone, Debug)]
pub struct Serving {
    /// Certificate and key, as PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether unencrypted connections are taken from anywhere: passwords and tokens can then be
    /// read on the way.
    pub insecure: bool,
    /// Whether a proxy stands before it that says who asks, and how.
    pub proxied: bool,
    /// Most connections at a time.
    pub connections_max: usize,
    /// How long the head of a request may take.
    pub head_time: Duration,
    /// How long a connection may stand still.
    pub idle_time: Duration,
    /// How long requests may go on when the server is told to stop.
    pub stop_time: Duration,
}

impl Default for Serving {
    fn default() -> Serving {
        Serving {
            tls: None,
            insecure: false,
            proxied: false,
            connections_max: 4096,
            head_time: Duration::from_secs(15),
            idle_time: Duration::from_secs(120),
            stop_time: Duration::from_secs(10),
        }
    }
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Everybody could read along.
    #[error(
        "{0} is not loopback, and without TLS passwords and tokens can be read on the way: give a certificate and a key, or say that you accept that"
    )]
    Plain(SocketAddr),
    /// Certificate or key cannot be used.
    #[error("{} and {}: {problem}: give a certificate and its key as PEM files", .cert.display(), .key.display())]
    Tls {
        /// The certificate's file.
        cert: PathBuf,
        key: PathBuf,
        /// What is wrong.
        problem: std::io::Error,
    },
    /// The system does not let it listen.
    #[error("listening failed: {0}")]
    Listen(#[from] std::io::Error),
}

impl Serving {
    /// Refuses an address on which others could read along, unless that was accepted.
    pub fn check(&self, address: SocketAddr) -> Result<(), ServeError> {
        let safe = self.tls.is_some() || self.insecure || address.ip().to_canonical().is_loopback();
        if safe { Ok(()) } else { Err(ServeError::Plain(address)) }
    }

    /// What encrypts connections, where there is a certificate.
    pub(crate) async fn encryption(&self) -> Result<Option<RustlsConfig>, ServeError> {
        let Some((cert, key)) = &self.tls else { return Ok(None) };
        let problem = |problem| ServeError::Tls { cert: cert.clone(), key: key.clone(), problem };
        Ok(Some(RustlsConfig::from_pem_file(cert, key).await.map_err(problem)?))
    }
}

/// Serves routes until `stop` is there, and then until the requests under way are answered.
pub async fn serve_routes(
    listener: TcpListener,
    routes: axum::Router,
    serving: &Serving,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    serving.check(listener.local_addr()?)?;
    let encryption = serving.encryption().await?;
    listener.set_nonblocking(true)?;
    let handle = Handle::new();
    let (stopping, stop_time) = (handle.clone(), serving.stop_time);
    let ending = Stopping::default();
    let routes = routes.layer(axum::Extension(ending.clone()));
    let stopper = tokio::spawn(async move {
        stop.await;
        // What stays open by itself would use up all the time that others have.
        ending.0.cancel();
        stopping.graceful_shutdown(Some(stop_time));
    });
    let routes = match serving.proxied {
        true => routes.layer(axum::middleware::from_fn(proxy::believe)),
        false => routes,
    };
    let routes = routes.layer(axum::Extension(proxy::Encrypted(serving.tls.is_some())));
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    let (most, idle) = (serving.connections_max, serving.idle_time);
    let server = axum_server::from_tcp(listener)?.handle(handle);
    let served = match encryption {
        None => {
            let gate = ConnectionGate::new(DefaultAcceptor, most, idle, true);
            let mut server = server.acceptor(gate);
            hurry(server.http_builder(), serving.head_time);
            server.serve(service).await
        }
        Some(config) => {
            let gate = ConnectionGate::new(DefaultAcceptor, most, idle, false);
            let mut server = server.acceptor(RustlsAcceptor::new(config).acceptor(gate));
            hurry(server.http_builder(), serving.head_time);
            server.serve(service).await
        }
    };
    stopper.abort();
    Ok(served?)
}

type Builder = hyper_util::server::conn::auto::Builder<hyper_util::rt::TokioExecutor>;

/// Slow clients are cut off: the head of a request must come in time.
fn hurry(builder: &mut Builder, head_time: Duration) {
    let mut http1 = builder.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(head_time).max_buf_size(64 * 1024);
    let mut http2 = builder.http2();
    http2
        .timer(TokioTimer::new())
        .max_concurrent_streams(128)
        .max_header_list_size(64 * 1024)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(Duration::from_secs(20));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_served_without_encryption_unless_that_was_accepted() {
        let plain = Serving::default();
        for loopback in ["127.0.0.1:1", "[::1]:1", "127.8.8.8:1", "[::ffff:127.0.0.1]:1"] {
            assert!(plain.check(loopback.parse().unwrap()).is_ok(), "{loopback}");
        }
        for open in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"] {
            let open = open.parse().unwrap();
            let refused = plain.check(open).unwrap_err().to_string();
            assert!(refused.contains("TLS"), "{refused}");
            assert!(Serving { insecure: true, ..plain.clone() }.check(open).is_ok());
            let tls = Some(("cert".into(), "key".into()));
            assert!(Serving { tls, ..plain.clone() }.check(open).is_ok());
        }
    }
}
