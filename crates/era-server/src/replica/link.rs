//! The line between a replica and the leader: JSON objects, one a line, once each end has shown
//! the other that it knows the leader's secret.
//!
//! The secret is made anew whenever the lead is taken and stands in the database beside the lease:
//! whoever may read that may ask the scheduler. It never goes over the line, but what is asked
//! does, unencrypted: the line is for loopback, or for a network that is the site's own.

use std::io;
use std::time::Duration;

use era_core::Command;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use crate::auth::token::hex;
use crate::driver::Answer;

/// Longest line, and longest of one who has not shown yet that it may be here.
const LINE_MAX: usize = 16 << 20;
const HELLO_MAX: usize = 1024;
/// How long each end may take to show what it knows, and to take what it is told.
const HELLO_TIME: Duration = Duration::from_secs(3);
const WRITE_TIME: Duration = Duration::from_secs(10);

/// How a leader is reached.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Contact {
    /// A name or number, and a port.
    pub(crate) address: String,
    secret: [u8; 32],
}

impl Contact {
    /// At this address, by a new secret.
    pub(crate) fn new(address: &str) -> Result<Contact, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Contact { address: address.to_owned(), secret })
    }

    /// As the database has it.
    pub(crate) fn written(&self) -> String {
        format!("{} {}", self.address, hex(&self.secret))
    }

    /// What the database has; `None` for a leader that takes nothing from afar.
    pub(crate) fn read(text: &str) -> Option<Contact> {
        let (address, secret) = text.split_once(' ')?;
        let secret = *blake3::Hash::from_hex(secret).ok()?.as_bytes();
        Some(Contact { address: address.to_owned(), secret })
    }

    fn proof(&self, whose: &str, theirs: &str, ours: &str) -> blake3::Hash {
        blake3::keyed_hash(&self.secret, format!("{whose}\n{theirs}\n{ours}").as_bytes())
    }
}

/// What is asked of the leader.
#[derive(Debug, Serialize)]
pub(super) struct Ask<'a> {
    pub(super) id: u64,
    pub(super) command: &'a Command,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<&'a RawValue>,
}

/// The same, as the leader gets it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Got {
    pub(super) id: u64,
    pub(super) command: Command,
    #[serde(default)]
    pub(super) note: Option<Box<RawValue>>,
}

/// What the leader tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    /// What became of something that was asked.
    Answer { id: u64, answer: Answer },
    /// The last entry that is durable.
    Committed(u64),
}

/// A number that is used once, and what shows that a secret is known.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    nonce: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
}

/// A connection whose ends trust each other.
pub(super) struct Link {
    lines: FramedRead<OwnedReadHalf, LinesCodec>,
    out: OwnedWriteHalf,
}

impl Link {
    /// Reaches a leader.
    pub(super) async fn connect(contact: &Contact) -> io::Result<Link> {
        let hello = async {
            let mut link = Link::over(TcpStream::connect(&contact.address).await?)?;
            let leader: Hello = link.read_hello().await?;
            let nonce = nonce()?;
            let proof = contact.proof("replica", &leader.nonce, &nonce);
            let ours = Hello { nonce: nonce.clone(), proof: Some(proof.to_hex().to_string()) };
            link.write(&line(&ours)?).await?;
            let shown: Hello = link.read_hello().await?;
            expect(&shown, contact.proof("leader", &nonce, &leader.nonce))?;
            Ok(link.trusted())
        };
        within(HELLO_TIME, hello).await
    }

    /// Lets a replica in that knows the secret.
    pub(super) async fn accept(stream: TcpStream, contact: &Contact) -> io::Result<Link> {
        let hello = async {
            let mut link = Link::over(stream)?;
            let nonce = nonce()?;
            link.write(&line(&Hello { nonce: nonce.clone(), proof: None })?).await?;
            let replica: Hello = link.read_hello().await?;
            expect(&replica, contact.proof("replica", &nonce, &replica.nonce))?;
            let proof = contact.proof("leader", &replica.nonce, &nonce);
            let ours = Hello { nonce, proof: Some(proof.to_hex().to_string()) };
            link.write(&line(&ours)?).await?;
            Ok(link.trusted())
        };
        within(HELLO_TIME, hello).await
    }

    fn over(stream: TcpStream) -> io::Result<Link> {
        stream.set_nodelay(true)?;
        let (read, out) = stream.into_split();
        Ok(Link { lines: FramedRead::new(read, LinesCodec::new_with_max_length(HELLO_MAX)), out })
    }

    /// The same, once the other end has shown what it knows.
    fn trusted(self) -> Link {
        let lines = self.lines.map_decoder(|_| LinesCodec::new_with_max_length(LINE_MAX));
        Link { lines, out: self.out }
    }

    async fn read_hello(&mut self) -> io::Result<Hello> {
        let text = self.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        read(&text)
    }

    /// The next line; `None` where the other end is gone. What is not waited for to its end is
    /// not lost.
    pub(super) async fn next(&mut self) -> io::Result<Option<String>> {
        self.lines.next().await.transpose().map_err(|error| match error {
            LinesCodecError::Io(error) => error,
            LinesCodecError::MaxLineLengthExceeded => io::ErrorKind::InvalidData.into(),
        })
    }

    /// Sends lines. An end that does not take them in time is given up.
    pub(super) async fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        within(WRITE_TIME, self.out.write_all(lines)).await
    }
}

async fn within<T>(time: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(time, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn nonce() -> io::Result<String> {
    crate::auth::token::secret().map_err(io::Error::other)
}

fn expect(shown: &Hello, right: blake3::Hash) -> io::Result<()> {
    let proof = shown.proof.as_deref().and_then(|proof| blake3::Hash::from_hex(proof).ok());
    // Hashes are compared in constant time.
    if proof == Some(right) { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// A value as a line.
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
        assert!(replica.is_err());
        assert_eq!(leader.err().map(|e| e.kind()), Some(io::ErrorKind::PermissionDenied));
    }

    #[tokio::test]
    async fn a_stranger_is_not_listened_to_for_long() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stranger = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        stranger.write_all(&[b'x'; HELLO_MAX + 1]).await.unwrap();
        let contact = Contact::new("here:1").unwrap();
        let refused = Link::accept(listener.accept().await.unwrap().0, &contact).await;
        assert_eq!(refused.err().map(|e| e.kind()), Some(io::ErrorKind::InvalidData));
    }

    #[tokio::test]
    async fn those_who_have_met_may_say_much() {
        let contact = Contact::new("here:1").unwrap();
        let (replica, leader) = meet(&contact, &contact).await;
        let (mut replica, mut leader) = (replica.unwrap(), leader.unwrap());
        let long = "x".repeat(HELLO_MAX * 64);
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
