//! The leader's end: what replicas ask goes to the driver, and its answers go back.
//!
//! Whether somebody may ask was decided where the question came in; a replica that knows the
//! secret is believed.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::link::{Contact, LeaderMessage, Link, ReceivedInput, line, read};
use crate::driver::Handle;

/// Most replicas at a time.
const REPLICAS_MAX: usize = 256;
/// Most questions of one that wait for the driver; it is read on once some are answered.
const OUTSTANDING_MAX: usize = 4096;
/// How often a replica is told something at least, so that it knows that the line is whole.
pub(super) const TELL_EVERY: Duration = Duration::from_secs(1);
/// How long it is until another connection is tried after one could not be taken.
const AGAIN: Duration = Duration::from_millis(50);

/// Takes replicas until it is stopped.
pub async fn serve(
    listener: TcpListener,
    driver: Handle,
    contact: Contact,
    stop: CancellationToken,
) {
    let permits = Arc::new(Semaphore::new(REPLICAS_MAX));
    let contact = Arc::new(contact);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            tracing::warn!(%from, "a replica is turned away: there are {REPLICAS_MAX} already");
            continue;
        };
        let (driver, contact, stop) = (driver.clone(), contact.clone(), stop.clone());
        tokio::spawn(async move {
            let ended = tokio::select! {
                () = stop.cancelled() => Ok(()),
                ended = one(stream, from, driver, &contact) => ended,
            };
            if let Err(error) = ended {
                tracing::warn!(%error, %from, "a replica is gone");
            }
            drop(permit);
        });
    }
}

async fn one(
    stream: TcpStream,
    from: SocketAddr,
    driver: Handle,
    contact: &Contact,
) -> io::Result<()> {
    let mut link = Link::accept(stream, contact).await?;
    tracing::info!(%from, "a replica is there");
    let mut committed = driver.committed();
    let mut pending = FuturesUnordered::new();
    let mut beat = tokio::time::interval(TELL_EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut out = Vec::new();
    loop {
        tokio::select! {
            biased;
            _ = beat.tick() => out.extend(line(&LeaderMessage::Committed(*committed.borrow()))?),
            Some(first) = pending.next(), if !pending.is_empty() => {
                let mut next = Some(first);
                // All that are answered by now go together.
                while let Some((id, answered)) = next {
                    // Whether it happened is not known here: the replica finds out, or says so.
                    let Ok(answer) = answered else { return Ok(()) };
                    out.extend(line(&LeaderMessage::Answer { id, answer })?);
                    next = pending.next().now_or_never().flatten();
                }
            }
            text = link.next(), if pending.len() < OUTSTANDING_MAX => {
                let Some(text) = text? else { return Ok(()) };
                let ReceivedInput { id, command, note } = read(&text)?;
                let Ok(answer) = driver.hand_in_patiently(command, note).await else {
                    return Ok(());
                };
                pending.push(async move { (id, answer.await) });
                continue;
            }
            changed = committed.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                let last = *committed.borrow_and_update();
                out.extend(line(&LeaderMessage::Committed(last))?);
            }
        }
        if !out.is_empty() {
            link.write(&out).await?;
            out.clear();
        }
    }
}
