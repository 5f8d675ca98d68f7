//! The configuration centre: a site's settings as Redis distributes them, for every process to
//! watch.
//!
//! Settings are inputs of the journal; the server puts those in force into Redis, and says so on a
//! channel. Who may set what is not known here.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::celery::bus::{Bus, BusError};

/// The hash that holds them, and the channel that tells of a change.
pub const KEY: &str = "era:settings";
/// How long it is until a process looks whether it missed something.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How long it is until a lost connection is tried again.
const AGAIN: Duration = Duration::from_millis(500);

/// Settings by name, each a value of JSON. Lengths of time are seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(pub BTreeMap<String, Value>);

impl Values {
    /// A length of time.
    pub fn span(&self, name: &str) -> Option<Duration> {
        let seconds = self.0.get(name)?.as_f64()?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    fn read(fields: BTreeMap<String, Vec<u8>>) -> Values {
        let value = |(name, bytes): (String, Vec<u8>)| {
            serde_json::from_slice(&bytes).ok().map(|value| (name, value))
        };
        Values(fields.into_iter().filter_map(value).collect())
    }
}

/// What is in force now.
pub async fn read(bus: &Bus) -> Result<Values, BusError> {
    let fields = bus.run("show settings", redis::cmd("HGETALL").arg(KEY)).await?;
    Ok(Values::read(fields))
}

/// Settings that are watched.
#[derive(Debug)]
pub struct WatchedSettings {
    values: watch::Receiver<Values>,
    task: JoinHandle<()>,
}

impl WatchedSettings {
    /// Begins to watch.
    pub fn watch(bus: Bus) -> WatchedSettings {
        let (tell, values) = watch::channel(Values::default());
        let task = tokio::spawn(async move {
            while !tell.is_closed() {
                if let Err(error) = follow(&bus, &tell).await {
                    tracing::warn!(%error, "settings are not followed: trying again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        });
        WatchedSettings { values, task }
    }

    /// What is in force, as far as it is known here.
    pub fn current(&mut self) -> Values {
        self.values.borrow_and_update().clone()
    }

    /// Waits for a change; `false` when there will be none.
    pub async fn changed(&mut self) -> bool {
        self.values.changed().await.is_ok()
    }
}

impl Drop for WatchedSettings {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(bus: &Bus, tell: &watch::Sender<Values>) -> Result<(), BusError> {
    let mut listening = bus.listening().await?;
    let heard = listening.subscribe(KEY).await;
    heard.map_err(|e| bus.broken("let us hear of settings", e))?;
    let mut messages = listening.on_message();
    loop {
        let values = read(bus).await?;
        tell.send_if_modified(|now| {
            let news = *now != values;
            *now = values;
            news
        });
        match tokio::time::timeout(LOOK_EVERY, messages.next()).await {
            Ok(Some(_)) | Err(_) => {}
            Ok(None) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_seconds() {
        let fields = [("lease", "2.5"), ("backfill", "\"easy\""), ("odd", "{"), ("grace", "-1")];
        let fields = fields.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        let values = Values::read(BTreeMap::from(fields));
        assert_eq!(values.span("lease"), Some(Duration::from_millis(2500)));
        assert_eq!(values.span("backfill"), None);
        assert_eq!(values.span("grace"), None);
        assert_eq!(values.0.len(), 3);
    }
}
