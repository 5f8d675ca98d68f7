//! The gate that connections come through: only so many at a time, and none that stands still.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum_server::accept::Accept;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Lets connections in, as long as there are not too many.
#[derive(Clone, Debug)]
pub struct ConnectionGate<A> {
    within: A,
    permits: Arc<Semaphore>,
    idle: Duration,
    /// Whether rejected connections get an error response; an encrypted connection cannot.
    tells: bool,
}

impl<A> ConnectionGate<A> {
    /// Lets at most so many in at a time, and cuts off who neither sends nor receives for so long.
    pub fn new(
        within: A,
        connections_max: usize,
        idle: Duration,
        tells: bool,
    ) -> ConnectionGate<A> {
        ConnectionGate { within, permits: Arc::new(Semaphore::new(connections_max)), idle, tells }
    }
}

const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
content-type: application/problem+json\r\ncontent-length: 157\r\n\r\n\
{\"type\":\"urn:era:too_many_connections\",\"title\":\"too many connections\",\"status\":503,\
\"detail\":\"too many connections: try again\",\"code\":\"too_many_connections\"}\n";

impl<A, S> Accept<TcpStream, S> for ConnectionGate<A>
where
    A: Accept<TimedConnection, S> + Clone + Send + 'static,
    A::Future: Send,
    A::Stream: Send,
    A::Service: Send,
    S: Send + 'static,
{
    type Stream = A::Stream;
    type Service = A::Service;
    type Future =
        Pin<Box<dyn Future<Output = io::Result<(A::Stream, A::Service)>> + Send + 'static>>;

    fn accept(&self, mut stream: TcpStream, service: S) -> Self::Future {
        let (within, idle, tells) = (self.within.clone(), self.idle, self.tells);
        let permit = self.permits.clone().try_acquire_owned();
        Box::pin(async move {
            let Ok(permit) = permit else {
                metrics::counter!("era_http_connections_refused_total").increment(1);
                if tells {
                    // Whoever does not take it within a moment is not worth waiting for.
                    let told = stream.write_all(FULL);
                    let _ = tokio::time::timeout(Duration::from_millis(200), told).await;
                }
                return Err(io::Error::other("too many connections"));
            };
            // Answers are small and awaited: they must not wait for more to come.
            stream.set_nodelay(true)?;
            within.accept(TimedConnection::new(stream, permit, idle), service).await
        })
    }
}

/// A connection that is cut off when nothing moves for long.
#[derive(Debug)]
pub struct TimedConnection {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
    idle: Duration,
    deadline: Pin<Box<Sleep>>,
}

impl TimedConnection {
    fn new(stream: TcpStream, permit: OwnedSemaphorePermit, idle: Duration) -> TimedConnection {
        TimedConnection { stream, _permit: permit, idle, deadline: Box::pin(sleep(idle)) }
    }

    /// What moved puts the end off; what did not may have come to it.
    fn judge<T>(
        &mut self,
        moved: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if moved.is_ready() {
            let end = Instant::now() + self.idle;
            self.deadline.as_mut().reset(end);
            return moved;
        }
        ready!(self.deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "nothing moved for too long")))
    }
}

impl AsyncRead for TimedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let moved = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.judge(moved, cx)
    }
}

impl AsyncWrite for TimedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let moved = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.judge(moved, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let moved = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.judge(moved, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
