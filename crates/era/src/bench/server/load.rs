//! Load that costs little beside what it measures: requests that were written beforehand, over
//! connections that stay open, from one thread.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::clock::instant;

/// What a load came to.
pub(super) struct LoadOutcome {
    /// Answers in a second.
    pub(super) per_second: f64,
    /// How long each took, in order of length.
    latencies: Vec<Duration>,
}

impl LoadOutcome {
    /// Milliseconds within which this share of them was answered.
    pub(super) fn percentile_ms(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * share) as usize;
        self.latencies.get(at).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// A connection that stays open.
pub(in crate::bench) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(in crate::bench) async fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, read: Vec::with_capacity(1 << 16) })
    }

    /// Sends a request and waits for its answer: status and body.
    pub(in crate::bench) async fn ask(&mut self, request: &[u8]) -> Result<(u16, &[u8])> {
        self.stream.write_all(request).await?;
        self.read.clear();
        let head = loop {
            ensure!(self.stream.read_buf(&mut self.read).await? > 0, "the server hung up");
            if let Some(end) = self.read.windows(4).position(|w| w == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let text = std::str::from_utf8(&self.read[..head])?;
        let status = text.get(9..12).and_then(|s| s.parse().ok()).context("no status")?;
        let length = text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        let length: usize = match (status, length) {
            (_, Some(length)) => length,
            (204, None) => 0,
            _ => bail!("an answer of unknown length: {text}"),
        };
        while self.read.len() < head + length {
            ensure!(self.stream.read_buf(&mut self.read).await? > 0, "the server hung up");
        }
        Ok((status, &self.read[head..head + length]))
    }
}

/// A request as it goes over the wire.
pub(in crate::bench) fn request(method: &str, path: &str, token: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} /api/v1{path} HTTP/1.1\r\nhost: era\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// As many as can be answered: each connection asks again once it is answered.
pub(super) async fn closed(
    address: SocketAddr,
    connections: usize,
    span: Duration,
    request: &[u8],
    expected: u16,
) -> Result<LoadOutcome> {
    let begun = instant();
    let one = async || -> Result<Vec<Duration>> {
        let mut connection = Connection::open(address).await?;
        let mut latencies = Vec::new();
        while begun.elapsed() < span {
            let asked = instant();
            let (status, body) = connection.ask(request).await?;
            ensure!(status == expected, "{status}: {}", String::from_utf8_lossy(body));
            latencies.push(asked.elapsed());
        }
        Ok(latencies)
    };
    gather(begun, (0..connections).map(|_| one())).await
}

/// At a steady rate: a request is late if its answer is, whatever the others do.
pub(super) async fn paced(
    address: SocketAddr,
    connections: usize,
    span: Duration,
    rate: f64,
    request: &[u8],
) -> Result<LoadOutcome> {
    let begun = instant();
    let gap = Duration::from_secs_f64(connections as f64 / rate);
    let one = async |nth: usize| -> Result<Vec<Duration>> {
        let mut connection = Connection::open(address).await?;
        let mut latencies = Vec::new();
        let mut due = begun + gap.mul_f64(nth as f64 / connections as f64);
        while due < begun + span {
            tokio::time::sleep_until(due.into()).await;
            let (status, _) = connection.ask(request).await?;
            ensure!(status == 200, "{status}");
            latencies.push(due.elapsed());
            due += gap;
        }
        Ok(latencies)
    };
    gather(begun, (0..connections).map(one)).await
}

async fn gather(
    begun: Instant,
    all: impl Iterator<Item = impl Future<Output = Result<Vec<Duration>>>>,
) -> Result<LoadOutcome> {
    let mut latencies = Vec::new();
    for each in futures_util::future::join_all(all).await {
        latencies.extend(each?);
    }
    let per_second = latencies.len() as f64 / begun.elapsed().as_secs_f64();
    latencies.sort_unstable();
    Ok(LoadOutcome { per_second, latencies })
}

/// Lines over TCP, many under way at a time: answers in a second.
pub(super) async fn lines(
    address: SocketAddr,
    token: &str,
    span: Duration,
    line: &str,
) -> Result<f64> {
    /// Requests that are under way.
    const WINDOW: usize = 256;
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut read, mut write) = stream.into_split();
    let auth = format!("{{\"id\":0,\"op\":\"auth\",\"token\":\"{token}\"}}\n");
    write.write_all(auth.as_bytes()).await?;
    let mut buffer = vec![0; 1 << 18];
    let told = read.read(&mut buffer).await?;
    let answer = String::from_utf8_lossy(&buffer[..told]).into_owned();
    ensure!(!answer.contains("\"code\""), "not let in: {answer}");
    let batch = line.repeat(WINDOW / 2);
    write.write_all(batch.as_bytes()).await?;
    let begun = instant();
    let (mut answered, mut outstanding) = (0_u64, WINDOW / 2);
    while begun.elapsed() < span {
        if outstanding <= WINDOW / 2 {
            write.write_all(batch.as_bytes()).await?;
            outstanding += WINDOW / 2;
        }
        let told = read.read(&mut buffer).await?;
        ensure!(told > 0, "the server hung up");
        // An answer that came in two pieces is looked at in part only.
        ensure!(!buffer[..told].starts_with(b"{\"id\":1,\"error\""), "a quote was refused");
        let ends = buffer[..told].iter().filter(|byte| **byte == b'\n').count();
        outstanding = outstanding.saturating_sub(ends);
        answered += ends as u64;
    }
    Ok(answered as f64 / begun.elapsed().as_secs_f64())
}
