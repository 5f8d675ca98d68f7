//! Logs and metrics as they come, over a WebSocket: one JSON object, or a list of them, a
//! message. The server closes when the job is over and everything was sent.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tungstenite::client::IntoClientRequest;
use tungstenite::error::ProtocolError;
use tungstenite::handshake::HandshakeError;
use tungstenite::http::{HeaderValue, Uri, header};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Connector, Message, WebSocket};

use super::path::query;
use super::{CONNECT_MAX, Client, ClientError, tls};
use crate::PREFIX;
use crate::job::{LogFilter, LogLine, MetricFilter, MetricPoint};

/// Most bytes of a message.
const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// The longest silence: the server's heartbeats come far more often.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// Lines of a log as they are printed.
pub type LogStream = ItemStream<LogLine>;
/// Values of metrics as they are recorded.
pub type MetricStream = ItemStream<MetricPoint>;

/// A WebSocket.
pub(super) type Socket = WebSocket<MaybeTlsStream<TcpStream>>;

/// Items of a WebSocket, until the server closes it.
pub struct ItemStream<T> {
    url: String,
    path: String,
    socket: Socket,
    ready: std::collections::VecDeque<T>,
    over: bool,
}

impl Client {
    /// The log of a job from an offset on, until the job is over.
    pub fn follow_logs(&self, id: u64, ask: &LogFilter) -> Result<LogStream, ClientError> {
        self.follow(format!("/jobs/{id}/logs/ws{}", query(ask)))
    }

    /// The metrics of a job from now on, until the job is over.
    pub fn follow_metrics(&self, id: u64, ask: &MetricFilter) -> Result<MetricStream, ClientError> {
        self.follow(format!("/jobs/{id}/metrics/ws{}", query(ask)))
    }

    fn follow<T>(&self, path: String) -> Result<ItemStream<T>, ClientError> {
        let socket = self.socket(&path)?;
        Ok(ItemStream {
            url: self.url.clone(),
            path,
            socket,
            ready: Default::default(),
            over: false,
        })
    }

    /// A WebSocket to this path of the API.
    pub(super) fn socket(&self, path: &str) -> Result<Socket, ClientError> {
        let bad = || ClientError::BadAddress { url: self.url.clone() };
        let address = self.url.replacen("http", "ws", 1);
        let uri: Uri = format!("{address}{PREFIX}{path}").parse().map_err(|_| bad())?;
        let secure = uri.scheme_str() == Some("wss");
        let tcp = self.connect(&uri, if secure { 443 } else { 80 })?;
        let mut request = uri.into_client_request().map_err(|_| bad())?;
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| bad())?;
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        let connector = match secure {
            true => Connector::Rustls(tls::for_sockets(self.authority.as_deref())?),
            false => Connector::Plain,
        };
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let made = tungstenite::client_tls_with_config(request, tcp, Some(config), Some(connector));
        match made {
            Ok((socket, _)) => Ok(socket),
            Err(HandshakeError::Failure(error)) => Err(self.socket_error(path, error)),
            Err(HandshakeError::Interrupted(_)) => {
                Err(ClientError::TimedOut { url: self.url.clone() })
            }
        }
    }

    fn connect(&self, uri: &Uri, port: u16) -> Result<TcpStream, ClientError> {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let of_io = |e| ClientError::of_io(self.url.clone(), &e);
        let mut last = None;
        for address in (host, uri.port_u16().unwrap_or(port)).to_socket_addrs().map_err(of_io)? {
            match TcpStream::connect_timeout(&address, CONNECT_MAX) {
                Ok(tcp) => {
                    tcp.set_nodelay(true).map_err(of_io)?;
                    tcp.set_read_timeout(Some(SILENCE_MAX)).map_err(of_io)?;
                    return Ok(tcp);
                }
                Err(error) => last = Some(error),
            }
        }
        let last = last.unwrap_or_else(|| std::io::ErrorKind::NotFound.into());
        Err(of_io(last))
    }

    fn socket_error(&self, path: &str, error: tungstenite::Error) -> ClientError {
        match error {
            tungstenite::Error::Http(response) => {
                let status = response.status().as_u16();
                let body = response.into_body().unwrap_or_default();
                self.refusal(path, status, &body, "it does not say what it is".to_owned())
            }
            other => of_socket(&self.url, path, other),
        }
    }
}

pub(super) fn of_socket(url: &str, path: &str, error: tungstenite::Error) -> ClientError {
    match error {
        tungstenite::Error::Io(error) => ClientError::of_io(url.to_owned(), &error),
        tungstenite::Error::Tls(error) => {
            ClientError::Certificate { url: url.to_owned(), why: error.to_string() }
        }
        tungstenite::Error::ConnectionClosed
        | tungstenite::Error::AlreadyClosed
        | tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            ClientError::Broken { url: url.to_owned(), why: "closed".to_owned() }
        }
        other => ClientError::NotUnderstood {
            url: url.to_owned(),
            path: path.to_owned(),
            why: other.to_string(),
        },
    }
}

impl<T: DeserializeOwned> ItemStream<T> {
    fn not_understood(&self, why: &dyn std::fmt::Display) -> ClientError {
        let (url, path) = (self.url.clone(), self.path.clone());
        ClientError::NotUnderstood { url, path, why: why.to_string() }
    }

    fn take(&mut self, text: &str) -> Result<(), ClientError> {
        if text.trim_start().starts_with('[') {
            let items: Vec<T> = serde_json::from_str(text).map_err(|e| self.not_understood(&e))?;
            self.ready.extend(items);
        } else {
            let item = serde_json::from_str(text).map_err(|e| self.not_understood(&e))?;
            self.ready.push_back(item);
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), ClientError> {
        match self.socket.read() {
            Ok(Message::Text(text)) => self.take(&text),
            Ok(Message::Close(frame)) => {
                self.over = true;
                match frame {
                    Some(frame) if u16::from(frame.code) != 1000 => {
                        let url = self.url.clone();
                        Err(ClientError::Broken { url, why: frame.reason.to_string() })
                    }
                    _ => Ok(()),
                }
            }
            // A ping is answered by the library, with the next write.
            Ok(_) => Ok(_ = self.socket.flush()),
            Err(error) => {
                self.over = true;
                Err(of_socket(&self.url, &self.path, error))
            }
        }
    }
}

impl<T: DeserializeOwned> Iterator for ItemStream<T> {
    type Item = Result<T, ClientError>;

    fn next(&mut self) -> Option<Result<T, ClientError>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            if self.over {
                return None;
            }
            if let Err(error) = self.receive() {
                return Some(Err(error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tungstenite::protocol::CloseFrame;
    use tungstenite::protocol::frame::coding::CloseCode;

    use super::*;

    /// One WebSocket that sends these texts and closes with this code.
    fn serve(texts: Vec<String>, code: CloseCode) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (tcp, _) = listener.accept().unwrap();
            let mut socket = tungstenite::accept(tcp).unwrap();
            for text in texts {
                socket.send(Message::Ping(vec![1].into())).unwrap();
                socket.send(Message::text(text)).unwrap();
            }
            socket.close(Some(CloseFrame { code, reason: "enough".into() })).unwrap();
            while socket.read().is_ok() {}
        });
        url
    }

    fn line(next: u64) -> String {
        format!(
            r#"{{"next":{next},"at":"2026-11-15T12:00:00Z","attempt":1,"rank":0,"stream":"out","text":"hi"}}"#
        )
    }

    #[test]
    fn lines_come_alone_or_together_until_the_server_closes() {
        let url = serve(vec![line(1), format!("[{},{}]", line(2), line(3))], CloseCode::Normal);
        let client = Client::new(&url, Some("t")).unwrap();
        let lines: Vec<u64> = client
            .follow_logs(7, &LogFilter::default())
            .unwrap()
            .map(|line| line.unwrap().next)
            .collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn an_early_close_is_an_error_and_not_an_end() {
        let url = serve(vec![line(1)], CloseCode::Away);
        let client = Client::new(&url, None).unwrap();
        let lines: Vec<_> = client.follow_logs(7, &LogFilter::default()).unwrap().collect();
        assert_eq!(lines.len(), 2);
        assert!(matches!(lines[1], Err(ClientError::Broken { .. })));
    }
}
