//! The fast, language-neutral door to the scheduling layer: one JSON object a line, pipelined.
//!
//! ```text
//! > {"id":1,"op":"auth","token":"era_…"}
//! < {"id":1,"ok":{"user":"ada"}}
//! > {"id":2,"op":"quote","ask":{"ask":{"resources":{"cpu":"1"},"duration_s":60}}}
//! > {"id":3,"op":"submit","key":"k1","job":{"work":{"command":["true"]},"ask":{…}}}
//! > {"id":4,"op":"cancel","job":17}
//! > {"id":5,"op":"status","job":17}
//! > {"id":6,"op":"status","job":16}
//! < {"id":2,"ok":{"quote":{"price":…}}}
//! < {"id":4,"error":{"code":"unknown_job",…}}
//! < {"id":6,"ok":{"job":16,"state":"ended",…,"outcome":{"code":"failed",…},"exit_code":7}}
//! ```
//!
//! Bodies are those of REST: `QuoteAsk`, `JobSpec`; errors are its problem details. Answers carry
//! the id of their question and come as they are ready, quotes in the order in which they were
//! asked. What is read together is answered together: a quote is computed in place, on one
//! snapshot for all that were read at once. Whoever finds no place is told so in a line of the
//! id 0. Where the server has a certificate, lines are encrypted as HTTP is.

mod connection;
mod line;
mod permits;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use era_app::Services;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Longest line, in bytes: a job with all that it may carry fits.
pub const LINE_MAX: usize = 512 * 1024;
/// Most connections at a time.
pub const CONNECTIONS_MAX: usize = 256;
/// Most questions of a connection that wait for the scheduler; further ones are read when some
/// are answered.
pub const OUTSTANDING_MAX: usize = 1024;
/// Most of those without a place that are told so at a time; further ones are just closed.
const TOLD_MAX: usize = 64;
/// How long a peer may take to agree on how the connection is encrypted.
const GREETING_TIME: Duration = Duration::from_secs(10);

/// A place where lines are taken.
pub struct LineListener {
    listener: TcpListener,
    encryption: Option<TlsAcceptor>,
    /// Where it is.
    pub address: SocketAddr,
}

impl LineListener {
    /// Takes them there, encrypted if something does that.
    pub fn new(
        listener: std::net::TcpListener,
        encryption: Option<TlsAcceptor>,
    ) -> io::Result<LineListener> {
        let listener = TcpListener::from_std(listener)?;
        Ok(LineListener { address: listener.local_addr()?, listener, encryption })
    }

    /// Serves until it is told to stop, and then until what was asked is answered.
    pub async fn serve(self, app: Services, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let permits = permits::ConnectionPermits::default();
        let turned_away = Arc::new(Semaphore::new(TOLD_MAX));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let (stream, from): (_, SocketAddr) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Too many open files, or a peer that left: neither is over at once.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let encryption = self.encryption.clone();
            // Who finds no place is turned away, so that those inside are served.
            let Ok(place) = places.clone().try_acquire_owned() else {
                tracing::warn!(%from, "turned away: {CONNECTIONS_MAX} connections are open");
                if let Ok(told) = turned_away.clone().try_acquire_owned() {
                    connections.spawn(async move {
                        let _told = told;
                        if let Ok(stream) = open(stream, encryption).await {
                            connection::turn_away(stream).await;
                        }
                    });
                }
                continue;
            };
            let (app, permits, stop) = (app.clone(), permits.clone(), stop.clone());
            connections.spawn(async move {
                let _place = place;
                let opened = tokio::select! {
                    () = stop.cancelled() => return,
                    opened = open(stream, encryption) => opened,
                };
                let ended = match opened {
                    Ok(stream) => connection::serve(stream, app, permits, stop).await,
                    Err(error) => Err(error.into()),
                };
                tracing::debug!(%from, ?ended, "a connection is over");
            });
        }
        while connections.join_next().await.is_some() {}
    }
}

/// A connection, plain or encrypted.
trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// The connection as lines go over it.
async fn open(
    stream: TcpStream,
    encryption: Option<TlsAcceptor>,
) -> io::Result<Box<dyn ByteStream>> {
    stream.set_nodelay(true)?;
    let Some(encryption) = encryption else { return Ok(Box::new(stream)) };
    match tokio::time::timeout(GREETING_TIME, encryption.accept(stream)).await {
        Ok(greeted) => Ok(Box::new(greeted?)),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
