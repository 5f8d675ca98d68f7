//! What jobs tell and use, written to InfluxDB as well: line protocol, version 1 or 2.
//!
//! It is a copy for those who draw their curves elsewhere, and nothing waits for it: values come
//! in the batches in which they are recorded, a bounded number of batches waits, and what does not
//! fit is counted and dropped. A batch that the server cannot take now is sent again for a while;
//! one that it refuses is not.
//!
//! ```text
//! era,job=7,part=0,rank=1 loss=0.25,step=300i 1800000000000
//! ```

use std::fmt;
use std::fmt::Write;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use era_store::samples::NewSample;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use ureq::Agent;
use ureq::http::Uri;

/// How long the server may take.
const TIME: Duration = Duration::from_secs(10);
/// Batches that wait before more are dropped.
const WAITING_MAX: usize = 64;
/// How often a batch is tried: for about two minutes.
const TRIES_MAX: u32 = 8;
/// Most bytes of an answer that are told.
const ANSWER_MAX: usize = 200;

/// Where values go. Passwords and tokens are never written out.
#[derive(Clone, PartialEq, Eq)]
pub struct InfluxAddress {
    write: String,
    authorization: Option<String>,
    shown: String,
}

/// What is no address of an InfluxDB.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no InfluxDB: {0}: give http://USER:PASSWORD@HOST:8086/DATABASE (version 1) or \
     http://HOST:8086?org=ORG&bucket=BUCKET&token=TOKEN (version 2)"
)]
pub struct BadInfluxAddress(&'static str);

impl FromStr for InfluxAddress {
    type Err = BadInfluxAddress;

    fn from_str(text: &str) -> Result<InfluxAddress, BadInfluxAddress> {
        let uri: Uri = text.parse().map_err(|_| BadInfluxAddress("it cannot be read as a URL"))?;
        let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme));
        let scheme =
            scheme.ok_or(BadInfluxAddress("it does not begin with http:// or https://"))?;
        let authority = uri.authority().ok_or(BadInfluxAddress("it has no host"))?.as_str();
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let base = format!("{scheme}://{host}");
        let query = uri.query().unwrap_or_default();
        let named = |name: &str| {
            query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)
        };
        if let Some((_, bucket)) = named("bucket") {
            let org = named("org").map_or("", |(_, org)| org);
            let token = named("token").map(|(_, token)| decoded(token));
            let token = token.map(|token| format!("Token {}", String::from_utf8_lossy(&token)));
            return Ok(InfluxAddress {
                write: format!("{base}/api/v2/write?org={org}&bucket={bucket}&precision=ms"),
                authorization: token,
                shown: format!("{base}?org={org}&bucket={bucket}"),
            });
        }
        let database = uri.path().trim_start_matches('/');
        if database.is_empty() || database.contains('/') {
            return Err(BadInfluxAddress("it names neither a database nor a bucket"));
        }
        Ok(InfluxAddress {
            write: format!("{base}/write?db={database}&precision=ms"),
            // In the URL they are written as a URL must have them; in the header as they are.
            authorization: user.map(|user| format!("Basic {}", STANDARD.encode(decoded(user)))),
            shown: format!("{base}/{database}"),
        })
    }
}

/// What is meant by a part of a URL: `%3A` is a colon.
fn decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

impl fmt::Display for InfluxAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for InfluxAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Where batches are handed in. What waits is still sent once nobody can hand in any more.
pub struct Influx {
    waiting: mpsc::Sender<String>,
}

impl Influx {
    /// Hands a batch in; drops it where too many wait.
    pub fn tell(&self, batch: &[NewSample]) {
        if !batch.is_empty() && self.waiting.try_send(lines(batch)).is_err() {
            tracing::warn!(values = batch.len(), "InfluxDB does not keep up: values are dropped");
        }
    }
}

pub fn start(address: InfluxAddress) -> (Influx, JoinHandle<()>) {
    let (waiting, mut taken) = mpsc::channel(WAITING_MAX);
    let config = Agent::config_builder()
        .timeout_global(Some(TIME))
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent("era/1")
        .build();
    let agent = Agent::new_with_config(config);
    let sender = tokio::spawn(async move {
        while let Some(lines) = taken.recv().await {
            send(&agent, &address, lines).await;
        }
    });
    (Influx { waiting }, sender)
}

/// Sends a batch, and tries again for a while.
async fn send(agent: &Agent, address: &InfluxAddress, lines: String) {
    let lines = std::sync::Arc::new(lines);
    for tried in 1..=TRIES_MAX {
        let (agent, to, body) = (agent.clone(), address.clone(), lines.clone());
        let sent = tokio::task::spawn_blocking(move || post(&agent, &to, &body)).await;
        match sent {
            Ok(SendOutcome::Taken) => return,
            Ok(SendOutcome::Refused(why)) => {
                tracing::error!(%address, why, "InfluxDB refuses values: they are dropped");
                return;
            }
            Ok(SendOutcome::Later(why)) if tried < TRIES_MAX => {
                tracing::debug!(%address, why, tried, "InfluxDB is tried again");
                tokio::time::sleep(Duration::from_secs(1 << tried.min(5))).await;
            }
            Ok(SendOutcome::Later(why)) => {
                tracing::error!(%address, why, "InfluxDB is away: values are dropped");
            }
            // The server is going down.
            Err(_) => return,
        }
    }
}

enum SendOutcome {
    Taken,
    Later(String),
    Refused(String),
}

fn post(agent: &Agent, address: &InfluxAddress, lines: &str) -> SendOutcome {
    let mut request = agent.post(&address.write).content_type("text/plain; charset=utf-8");
    if let Some(authorization) = &address.authorization {
        request = request.header("authorization", authorization);
    }
    let mut answer = match request.send(lines) {
        Ok(answer) => answer,
        Err(error) => return SendOutcome::Later(error.to_string()),
    };
    let status = answer.status();
    if status.is_success() {
        return SendOutcome::Taken;
    }
    let said = answer.body_mut().with_config().limit(1 << 16).read_to_string().unwrap_or_default();
    let said: String = said.chars().take(ANSWER_MAX).collect();
    let why = format!("{status}: {}", said.trim());
    match status.as_u16() {
        429 | 500.. => SendOutcome::Later(why),
        _ => SendOutcome::Refused(why),
    }
}

/// A batch in line protocol, a line for each value.
fn lines(batch: &[NewSample]) -> String {
    let mut text = String::with_capacity(batch.len() * 64);
    for sample in batch.iter().filter(|sample| sample.value.is_finite()) {
        let NewSample { job, part, rank, name, step, at, value } = sample;
        let _ = write!(text, "era,job={},part={part},rank={rank} ", job.0);
        push_key(&mut text, name);
        // Steps beyond what a signed number holds are of nobody's making.
        let step = i64::try_from(*step).unwrap_or(i64::MAX);
        let _ = writeln!(text, "={value:?},step={step}i {}", at.0);
    }
    text
}

/// A name as the key of a field. A job may tell one with anything in it, and no line may end
/// before its time.
fn push_key(text: &mut String, name: &str) {
    // The name of our own field is not a job's to take.
    if name == "step" {
        text.push('_');
    }
    for c in name.chars() {
        match c {
            ',' | '=' | ' ' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text.push('_'),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests;
