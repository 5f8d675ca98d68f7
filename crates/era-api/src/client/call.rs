//! One request and its answer. What is safe to repeat is repeated when the connection breaks:
//! reading, putting and deleting, and a creation whose key the server knows again.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::Body;
use ureq::http::{Method, Request, Response, StatusCode, header};

use super::{ANSWER_BYTES_MAX, Client, ClientError, SLOW_ANSWER_MAX, key};
use crate::{PREFIX, Problem};

/// How often a request is tried in all.
const TRIES_MAX: u32 = 3;
/// The longest wait that a server may ask for before a repeat.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Most bytes of an answer that comes line by line.
const LINES_BYTES_MAX: u64 = 1 << 30;
/// Most bytes of a refusal.
const PROBLEM_BYTES_MAX: u64 = 1 << 20;

/// The header that makes a creation safe to repeat.
pub(super) const KEY_HEADER: &str = "idempotency-key";

impl Client {
    /// What is at this path, below the prefix.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.read(path, self.send(Method::GET, path, None, None)?)
    }

    /// The same where the server works for long before it answers. It is never repeated: it would
    /// work for as long again.
    pub fn get_slow<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let request = self.request(Method::GET, path).header(header::ACCEPT, "application/json");
        let request = request.body(()).map_err(|_| self.bad_address(path))?;
        let agent = self.agent()?;
        let patient = agent.configure_request(request);
        let patient = patient.timeout_recv_response(Some(SLOW_ANSWER_MAX)).build();
        let answer = agent.run(patient).map_err(|e| ClientError::of(&self.url, e))?;
        self.read(path, self.judge(path, answer)?)
    }

    /// Creates something, with a key of its own.
    pub fn post<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let key = key::draw()?;
        let body = self.body(path, body)?;
        self.read(path, self.send(Method::POST, path, Some(&body), Some(&key))?)
    }

    /// Does something to what is there, without an answer beyond that it was done.
    pub fn act<B: Serialize + ?Sized>(&self, path: &str, body: &B) -> Result<(), ClientError> {
        let key = key::draw()?;
        let body = self.body(path, body)?;
        self.send(Method::POST, path, Some(&body), Some(&key)).map(drop)
    }

    /// Does something that takes long, and hands out each line of its answer as it comes, until
    /// `take` says no. It is never repeated.
    pub fn post_for_lines<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
        mut take: impl FnMut(T) -> bool,
    ) -> Result<(), ClientError> {
        let body = self.body(path, body)?;
        let answer = self.judge(path, self.once(&Method::POST, path, Some(&body), None)?)?;
        let reader = answer.into_body().into_reader();
        for line in BufReader::new(reader.take(LINES_BYTES_MAX)).lines() {
            let line = line.map_err(|e| self.not_understood(path, &e))?;
            let read = serde_json::from_str(&line).map_err(|e| self.not_understood(path, &e))?;
            if !take(read) {
                break;
            }
        }
        Ok(())
    }

    /// Puts something in its place.
    pub fn put<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let body = self.body(path, body)?;
        self.read(path, self.send(Method::PUT, path, Some(&body), None)?)
    }

    /// Changes some of what is there. The same change twice is the same change.
    pub fn patch<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let body = self.body(path, body)?;
        self.read(path, self.send(Method::PATCH, path, Some(&body), None)?)
    }

    /// Takes something away.
    pub fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, path, None, None).map(drop)
    }

    /// The bytes at this path as they come, such as the journal.
    pub fn download(&self, path: &str) -> Result<impl Read + use<>, ClientError> {
        let response = self.send(Method::GET, path, None, None)?;
        Ok(response.into_body().into_with_config().limit(u64::MAX).reader())
    }

    fn body<B: Serialize + ?Sized>(&self, path: &str, body: &B) -> Result<Vec<u8>, ClientError> {
        serde_json::to_vec(body).map_err(|e| self.not_understood(path, &e))
    }

    fn read<T: DeserializeOwned>(
        &self,
        path: &str,
        response: Response<Body>,
    ) -> Result<T, ClientError> {
        let empty = response.status() == StatusCode::NO_CONTENT;
        let mut body = response.into_body();
        let bytes = body
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_vec()
            .map_err(|e| ClientError::of(&self.url, e))?;
        let bytes: &[u8] = if empty && bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(bytes).map_err(|e| self.not_understood(path, &e))
    }

    fn not_understood(&self, path: &str, why: &dyn std::fmt::Display) -> ClientError {
        let path = path.to_owned();
        ClientError::NotUnderstood { url: self.url.clone(), path, why: why.to_string() }
    }

    /// Sends, repeats where that is safe and of use, and gives a good answer or an error.
    fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&[u8]>,
        key: Option<&str>,
    ) -> Result<Response<Body>, ClientError> {
        let safe = method != Method::POST || key.is_some();
        let mut tries = 1;
        loop {
            let outcome = self.once(&method, path, body, key);
            match pause_before_repeat(&outcome, safe, tries) {
                Some(pause) => std::thread::sleep(pause),
                None => return self.judge(path, outcome?),
            }
            tries += 1;
        }
    }

    fn once(
        &self,
        method: &Method,
        path: &str,
        body: Option<&[u8]>,
        key: Option<&str>,
    ) -> Result<Response<Body>, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{PREFIX}{path}", self.url))
            .header(header::ACCEPT, "application/json");
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(key) = key {
            request = request.header(KEY_HEADER, key);
        }
        let bad = |_| ClientError::BadAddress { url: format!("{}{PREFIX}{path}", self.url) };
        let agent = self.agent()?;
        let answer = match body {
            Some(body) => {
                let request = request.header(header::CONTENT_TYPE, "application/json");
                agent.run(request.body(body).map_err(bad)?)
            }
            None => agent.run(request.body(()).map_err(bad)?),
        };
        answer.map_err(|e| ClientError::of(&self.url, e))
    }

    /// A good answer, or what the server said against it.
    pub(super) fn judge(
        &self,
        path: &str,
        response: Response<Body>,
    ) -> Result<Response<Body>, ClientError> {
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let server = described(&response);
        let mut body = response.into_body();
        let bytes = body
            .with_config()
            .limit(PROBLEM_BYTES_MAX)
            .read_to_vec()
            .map_err(|e| ClientError::of(&self.url, e))?;
        Err(self.refusal(path, status.as_u16(), &bytes, server))
    }

    /// What an answer that is no success means.
    pub(super) fn refusal(
        &self,
        path: &str,
        status: u16,
        body: &[u8],
        server: String,
    ) -> ClientError {
        if let Ok(problem) = serde_json::from_slice::<Problem>(body) {
            return ClientError::Refused(Box::new(problem));
        }
        let (url, path) = (self.url.clone(), path.to_owned());
        match status {
            300..=399 | 404 | 405 | 501 => {
                let client = env!("CARGO_PKG_VERSION");
                ClientError::NotKnown { url, path, server, client }
            }
            // A server of ERA says what is wrong; these are a proxy's own words.
            502..=504 => ClientError::NobodyBehind { url, status },
            _ => ClientError::NotUnderstood { url, path, why: format!("status {status}") },
        }
    }
}

/// What a server says that it is.
fn described(response: &Response<Body>) -> String {
    let named = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok());
    match (named("x-era-version"), named("server")) {
        (Some(version), _) => format!("it is era {version}"),
        (None, Some(server)) => format!("it says that it is {server}"),
        (None, None) => "it does not say what it is".to_owned(),
    }
}

/// How long to wait before the same request goes out again; `None` where it does not.
fn pause_before_repeat(
    outcome: &Result<Response<Body>, ClientError>,
    safe: bool,
    tries: u32,
) -> Option<Duration> {
    if tries >= TRIES_MAX {
        return None;
    }
    let usual = Duration::from_millis(50 << tries);
    match outcome {
        Err(ClientError::Broken { .. }) if safe => Some(usual),
        Err(_) => None,
        Ok(response) => match response.status() {
            // Nothing was done: the server says so itself, and when to come again.
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                let asked = response.headers().get(header::RETRY_AFTER)?;
                let seconds = asked.to_str().ok()?.trim().parse().ok()?;
                let pause = Duration::from_secs(seconds).max(usual);
                (pause <= PAUSE_MAX).then_some(pause)
            }
            // Whoever is behind the proxy is being replaced, which a proxy may not notice for the
            // two seconds after which it looks again.
            StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT if safe => {
                Some(Duration::from_secs(tries.into()))
            }
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests;
