//! The line between a replica and the leader: JSON objects, one a line, sealed by the leader's
//! secret (`seal`).
//!
//! The secret is made anew by every scheduler that starts and stands in the database beside the
//! lease: whoever may read that may ask the scheduler, and nobody else. It never goes over the
//! line.

use std::io;
use std::time::Duration;

use era_core::Command;
use era_drive::Answer;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use super::seal;
use crate::auth::token::hex;

/// Longest line.
const LINE_MAX: usize = 16 << 20;
/// How long each end may take to show what it knows, and to take what it is told.
const HELLO_TIME: Duration = Duration::from_secs(3);
const WRITE_TIME: Duration = Duration::from_secs(10);

/// How a leader is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct Contact {
    /// A name or number, and a port.
    pub address: String,
    secret: [u8; 32],
}

impl Contact {
    /// At this address, by a new secret.
    pub fn new(address: &str) -> Result<Contact, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Contact { address: address.to_owned(), secret })
    }

    /// As the database has it.
    pub fn written(&self) -> String {
        format!("{} {}", self.address, hex(&self.secret))
    }

    /// What the database has; `None` for a leader that takes nothing from afar.
    pub fn read(text: &str) -> Option<Contact> {
        let (address, secret) = text.split_once(' ')?;
        let secret = *blake3::Hash::from_hex(secret).ok()?.as_bytes();
        Some(Contact { address: address.to_owned(), secret })
    }
}

/// What is asked of the leader.
#[derive(Debug, Serialize)]
pub(super) struct ForwardedInput<'a> {
    pub(super) id: u64,
    pub(super) command: &'a Command,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<&'a RawValue>,
}

/// The same, as the leader gets it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceivedInput {
    pub(super) id: u64,
    pub(super) command: Command,
    #[serde(default)]
    pub(super) note: Option<Box<RawValue>>,
}

/// What the leader tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LeaderMessage {
    /// What became of something that was asked.
    Answer { id: u64, answer: Answer },
    /// The last entry that is durable.
    Committed(u64),
}

/// A connection whose ends trust each other.
pub(super) struct Link {
    lines: FramedRead<ReadHalf<TlsStream<TcpStream>>, LinesCodec>,
    out: WriteHalf<TlsStream<TcpStream>>,
}

impl Link {
    /// Reaches a leader.
    pub(super) async fn connect(contact: &Contact) -> io::Result<Link> {
        let hello = async {
            let stream = TcpStream::connect(&contact.address).await?;
            stream.set_nodelay(true)?;
            seal::connect(stream, &contact.secret).await
        };
        within(HELLO_TIME, hello).await.map(Link::over)
    }

    /// Lets a replica in that knows the secret.
    pub(super) async fn accept(stream: TcpStream, contact: &Contact) -> io::Result<Link> {
        stream.set_nodelay(true)?;
        within(HELLO_TIME, seal::accept(stream, &contact.secret)).await.map(Link::over)
    }

    fn over(stream: TlsStream<TcpStream>) -> Link {
        let (read, out) = tokio::io::split(stream);
        Link { lines: FramedRead::new(read, LinesCodec::new_with_max_length(LINE_MAX)), out }
    }

    /// The next line; `None` where the other end is gone. What is not waited for to its end is
    /// not lost.
    pub(super) async fn next(&mut self) -> io::Result<Option<String>> {
        match self.lines.next().await.transpose() {
            Ok(line) => Ok(line),
            // Whoever is killed does not take leave; a line that was cut short is none.
            Err(LinesCodecError::Io(gone)) if gone.kind() == io::ErrorKind::UnexpectedEof => {
                Ok(None)
            }
            Err(LinesCodecError::Io(error)) => Err(error),
            Err(LinesCodecError::MaxLineLengthExceeded) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Sends lines. An end that does not take them in time is given up.
    pub(super) async fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let sent = async {
            self.out.write_all(lines).await?;
            self.out.flush().await
        };
        within(WRITE_TIME, sent).await
    }
}

async fn within<T>(time: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(time, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

pub(super) fn line<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// A line as a value.
pub(super) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> io::Result<T> {
    serde_json::from_str(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn meet(replica: &Contact, leader: &Contact) -> (io::Result<Link>, io::Result<Link>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let replica = Contact { address, ..replica.clone() };
        tokio::join!(Link::connect(&replica), async {
            Link::accept(listener.accept().await?.0, leader).await
        })
    }

    #[tokio::test]
    async fn only_those_who_know_the_secret_meet() {
        let contact = Contact::new("here:1").unwrap();
        let (replica, leader) = meet(&contact, &contact).await;
        let (mut replica, mut leader) = (replica.unwrap(), leader.unwrap());
        replica.write(b"{}\n").await.unwrap();
        assert_eq!(leader.next().await.unwrap().as_deref(), Some("{}"));
        let other = Contact::new("here:1").unwrap();
        let (replica, leader) = meet(&other, &contact).await;
        assert!(replica.is_err() && leader.is_err());
    }

    /// Whoever takes any key for the leader's, and has another or none of its own.
    #[tokio::test]
    async fn a_replica_that_believes_everything_is_not_believed() {
        for own in [None, Some([7; 32])] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let contact = Contact::new("here:1").unwrap();
            let secret = contact.secret;
            let stranger = tokio::spawn(async move {
                let stream = TcpStream::connect(address).await?;
                let mut stream = seal::tests::pretend(stream, &secret, own).await?;
                stream.write_all(b"{}\n").await
            });
            let stream = listener.accept().await.unwrap().0;
            assert!(Link::accept(stream, &contact).await.is_err(), "{own:?}");
            let _ = stranger.await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_asked_cannot_be_read_on_the_way() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let between = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let leader = Contact::new(&listener.local_addr().unwrap().to_string()).unwrap();
        let address = between.local_addr().unwrap().to_string();
        let replica = Contact { address, ..leader.clone() };
        // Somebody on the way, who passes everything on and keeps what came from the replica.
        let tapped = tokio::spawn(async move {
            let (mut near, _) = between.accept().await.unwrap();
            let mut far = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let ahead = tokio::spawn(async move {
                Link::accept(listener.accept().await.unwrap().0, &leader)
                    .await
                    .unwrap()
                    .next()
                    .await
            });
            let (mut seen, mut piece) = (Vec::new(), vec![0; 4096]);
            let (mut from, mut back) = near.split();
            let (mut reply, mut on) = far.split();
            tokio::select! {
                _ = tokio::io::copy(&mut reply, &mut back) => {}
                () = async {
                    while let Ok(count @ 1..) = from.read(&mut piece).await {
                        seen.extend_from_slice(&piece[..count]);
                        on.write_all(&piece[..count]).await.unwrap();
                    }
                } => {}
            }
            (seen, ahead.await.unwrap().unwrap())
        });
        let mut link = Link::connect(&replica).await.unwrap();
        link.write(b"a word that is nobody's business\n").await.unwrap();
        drop(link);
        let (seen, got) = tapped.await.unwrap();
        assert_eq!(got.as_deref(), Some("a word that is nobody's business"));
        assert!(seen.len() > 100 && !seen.windows(6).any(|part| part == b"nobody"));
    }

    #[tokio::test]
    async fn a_stranger_is_not_listened_to_for_long() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stranger = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        stranger.write_all(&[b'x'; 1024]).await.unwrap();
        let contact = Contact::new("here:1").unwrap();
        let refused = Link::accept(listener.accept().await.unwrap().0, &contact).await;
        assert_eq!(refused.err().map(|e| e.kind()), Some(io::ErrorKind::InvalidData));
    }

    #[tokio::test]
    async fn those_who_have_met_may_say_much() {
        let contact = Contact::new("here:1").unwrap();
        let (replica, leader) = meet(&contact, &contact).await;
        let (mut replica, mut leader) = (replica.unwrap(), leader.unwrap());
        let long = "x".repeat(LINE_MAX / 8);
        let text = format!("{long}\n");
        let (sent, got) = tokio::join!(replica.write(text.as_bytes()), leader.next());
        sent.unwrap();
        assert!(got.unwrap().as_deref() == Some(&long));
    }

    #[test]
    fn a_contact_is_read_as_it_was_written() {
        let contact = Contact::new("db.example:7633").unwrap();
        assert!(Contact::read(&contact.written()) == Some(contact));
        for none in ["", "here:1", "here:1 ", "here:1 abc"] {
            assert!(Contact::read(none).is_none(), "{none}");
        }
    }
}
