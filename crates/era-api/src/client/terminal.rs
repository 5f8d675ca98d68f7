//! The terminal of a running job, over a WebSocket. Unlike the rest of the client nothing here
//! waits: whoever is attached both types and sees.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use tungstenite::Message;
use tungstenite::stream::MaybeTlsStream;

use super::stream::{Socket, of_socket};
use super::{Client, ClientError};
use crate::terminal::{TerminalEnd, TerminalSize, TerminalWord};

/// The longest silence: the server's heartbeats come far more often.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// A connection to a terminal.
pub struct Terminal {
    url: String,
    path: String,
    socket: Socket,
    heard: Instant,
}

/// What came from a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromTerminal {
    Shown(Vec<u8>),
    /// The task is over; nothing follows.
    End(TerminalEnd),
}

impl Client {
    /// Attaches to the terminal of a running job's task.
    pub fn attach(&self, id: u64, rank: u32) -> Result<Terminal, ClientError> {
        let path = format!("/jobs/{id}/terminal?rank={rank}");
        let socket = self.socket(&path)?;
        let stream = match socket.get_ref() {
            MaybeTlsStream::Plain(stream) => stream,
            MaybeTlsStream::Rustls(stream) => &stream.sock,
            _ => return Err(ClientError::BadAddress { url: self.url.clone() }),
        };
        stream.set_nonblocking(true).map_err(|e| ClientError::of_io(self.url.clone(), &e))?;
        Ok(Terminal { url: self.url.clone(), path, socket, heard: now() })
    }
}

/// When something was heard, to tell how long a connection has been silent.
#[expect(clippy::disallowed_methods, reason = "a silent connection is given up in real time")]
fn now() -> Instant {
    Instant::now()
}

fn would_block(error: &tungstenite::Error) -> bool {
    matches!(error, tungstenite::Error::Io(error) if error.kind() == ErrorKind::WouldBlock)
}

impl Terminal {
    fn failed(&self, error: tungstenite::Error) -> ClientError {
        of_socket(&self.url, &self.path, error)
    }

    /// What has come; nothing if nothing has.
    pub fn hear(&mut self) -> Result<Option<FromTerminal>, ClientError> {
        loop {
            let message = match self.socket.read() {
                Ok(message) => message,
                Err(error) if would_block(&error) => {
                    let silent = self.heard.elapsed() > SILENCE_MAX;
                    let url = || self.url.clone();
                    return if silent {
                        Err(ClientError::TimedOut { url: url() })
                    } else {
                        Ok(None)
                    };
                }
                Err(error) => return Err(self.failed(error)),
            };
            self.heard = now();
            match message {
                Message::Binary(bytes) => return Ok(Some(FromTerminal::Shown(bytes.into()))),
                Message::Text(text) => {
                    let end = serde_json::from_str(&text).map_err(|error| {
                        let (url, path) = (self.url.clone(), self.path.clone());
                        ClientError::NotUnderstood { url, path, why: error.to_string() }
                    })?;
                    return Ok(Some(FromTerminal::End(end)));
                }
                Message::Close(frame) => {
                    let why = frame.map_or_else(|| "closed".to_owned(), |f| f.reason.to_string());
                    return Err(ClientError::Broken { url: self.url.clone(), why });
                }
                // A ping is answered by the library, with the next flush.
                _ => {}
            }
        }
    }

    /// Types, at the next [`Terminal::flush`] at the latest.
    pub fn type_in(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.put(Message::binary(bytes.to_vec()))
    }

    /// Tells the size of the window.
    pub fn resize(&mut self, rows: u16, cols: u16) -> Result<(), ClientError> {
        let word = TerminalWord::Resize(TerminalSize { rows, cols });
        self.put(Message::text(serde_json::to_string(&word).unwrap_or_default()))
    }

    fn put(&mut self, message: Message) -> Result<(), ClientError> {
        match self.socket.write(message) {
            // It is kept, and sent later.
            Err(error) if !would_block(&error) => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    /// Sends what it can, and says whether that was all.
    pub fn flush(&mut self) -> Result<bool, ClientError> {
        match self.socket.flush() {
            Ok(()) => Ok(true),
            Err(error) if would_block(&error) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }
}
