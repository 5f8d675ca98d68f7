//! Who may write to Redis: whoever leads. A leader that was paused and comes back is refused by
//! Redis itself, in the same step in which it would have written, as the journal refuses it.
//!
//! Beside what is told stands who told it last: a generation of the lead, and a word that no other
//! process has. An older generation is refused. One that the *database* says to be in force may
//! take the place even of a higher one: a site that was restored counts anew.

use std::sync::LazyLock;

use era_cloud::celery::bus::{Bus, random_hex};
use era_store::Lease;
use redis::Script;

use super::FeedError;

/// Who wrote last.
const KEY: &str = "era:feeder";

static FENCED: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("fenced.lua")));

/// The right of one leader to write.
pub(super) struct Pen {
    bus: Bus,
    lease: Lease,
    generation: u64,
    /// The generation, and a word that no other process has.
    name: String,
}

/// Commands that are carried out in one step.
#[derive(Default)]
pub(super) struct Commands(Vec<Vec<String>>);

impl Commands {
    /// Adds one.
    pub(super) fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.push(words.map(str::to_owned).into());
    }
}

impl Pen {
    pub(super) fn new(bus: Bus, lease: Lease) -> Pen {
        let generation = lease.generation();
        let name = format!("{generation} {}", random_hex::<8>());
        Pen { bus, lease, generation, name }
    }

    pub(super) fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Carries out commands, or nothing at all once somebody else leads.
    pub(super) async fn write(
        &self,
        doing: &'static str,
        commands: &Commands,
    ) -> Result<(), FeedError> {
        self.write_if(doing, None, commands).await.map(drop)
    }

    /// The same as long as a key is what it was; whether it is.
    pub(super) async fn write_if(
        &self,
        doing: &'static str,
        was: Option<(&str, &str)>,
        commands: &Commands,
    ) -> Result<bool, FeedError> {
        let text = serde_json::json!(commands.0).to_string();
        let mut instead_of = String::new();
        loop {
            let said: String = self
                .bus
                .script(doing, &FENCED, |call| {
                    call.key(KEY);
                    if let Some((key, _)) = was {
                        call.key(key);
                    }
                    let value = was.map_or("", |(_, value)| value);
                    call.arg(&self.name).arg(&instead_of).arg(value).arg(&text);
                })
                .await?;
            match said.as_str() {
                "done" => return Ok(true),
                "moved" => return Ok(false),
                _ => {}
            }
            if self.lease.leader().await?.generation != self.generation {
                return Err(FeedError::Deposed);
            }
            tracing::warn!(said, "Redis was fed by another site, or by this one before a restore");
            instead_of = said;
        }
    }
}
