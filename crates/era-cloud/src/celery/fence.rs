//! Who may write to Redis on a site's behalf: one server at a time. One that was paused and comes
//! back is refused by Redis itself, in the same step in which it would have written, as the journal
//! refuses it.
//!
//! Beside what is written stands who writes: a generation of the lead, and a word that no other
//! process has. Whoever is not named there asks the *database* whether it leads, and takes the
//! place if so, whoever has it: a site that was restored counts anew, and a Redis may lose its
//! memory. It takes the place only from whom it saw there before it asked, so that nobody who is
//! paused in between takes it from a newer one.
//!
//! What the lead is, and who has it, is not known here ([`Leadership`]).

use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use redis::{Arg, FromRedisValue, Pipeline, Script, ScriptInvocation};
use tokio::sync::SetOnce;

use super::bus::{Bus, BusError, random_hex};

/// How long it is until a database that did not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// A script that is carried out by whoever may write, and by nobody else.
macro_rules! fenced {
    ($file:literal) => {
        concat!(include_str!("lua/fence.lua"), include_str!($file))
    };
}
pub(super) use fenced;

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/take_over.lua")));
static WRITE: LazyLock<Script> = LazyLock::new(|| Script::new(fenced!("lua/write.lua")));

/// What makes a server the one that writes.
pub trait Leadership: Send + Sync {
    /// How often the lead had been taken when this server took it.
    fn generation(&self) -> u64;

    /// Whether nobody has taken it since, or why that cannot be said.
    fn holds(&self) -> Pin<Box<dyn Future<Output = Result<bool, String>> + Send + '_>>;
}

/// The right of one server to write.
pub struct LeaseFence {
    bus: Bus,
    key: &'static str,
    lead: Arc<dyn Leadership>,
    /// The generation, and a word that no other process has.
    name: String,
    /// Set once it was found that another one has it.
    deposed: SetOnce<()>,
}

impl LeaseFence {
    /// The right to write what this key guards. Nothing is asked yet.
    pub fn new(bus: Bus, key: &'static str, lead: Arc<dyn Leadership>) -> LeaseFence {
        let name = format!("{} {}", lead.generation(), random_hex::<8>());
        LeaseFence { bus, key, lead, name, deposed: SetOnce::new() }
    }

    /// Redis, for what only reads.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// From here on nobody older writes: what is read after this changes by our hand alone.
    pub async fn take(&self) -> Result<(), BusError> {
        self.write("let us write", &redis::pipe()).await
    }

    /// Carries out commands in one step, or nothing at all once somebody else leads.
    pub async fn write(&self, doing: &'static str, commands: &Pipeline) -> Result<(), BusError> {
        self.write_if(doing, None, commands).await.map(drop)
    }

    /// The same as long as a key is what it was; whether it is.
    pub async fn write_if(
        &self,
        doing: &'static str,
        was: Option<(&str, &str)>,
        commands: &Pipeline,
    ) -> Result<bool, BusError> {
        let fill = |call: &mut ScriptInvocation<'_>| {
            if let Some((key, _)) = was {
                call.key(key);
            }
            call.arg(was.map_or("", |(_, value)| value));
            for command in commands.cmd_iter() {
                let words = command.args_iter();
                call.arg(words.len());
                for word in words {
                    // Cursors are for scans, which write nothing.
                    call.arg(if let Arg::Simple(word) = word { word } else { b"0" });
                }
            }
        };
        self.script(doing, &WRITE, fill).await
    }

    /// Runs a script that begins with the fence: `fenced!`.
    pub async fn script<T: FromRedisValue>(
        &self,
        doing: &'static str,
        script: &Script,
        fill: impl Fn(&mut ScriptInvocation<'_>),
    ) -> Result<T, BusError> {
        loop {
            let filled = |call: &mut ScriptInvocation<'_>| {
                fill(call);
                call.key(self.key).arg(&self.name);
            };
            match self.bus.script(doing, script, filled).await {
                Err(error) if error.is_deposed() => self.take_over(error).await?,
                done => return done,
            }
        }
    }

    /// Somebody else is named. If this server leads all the same, it takes that one's place.
    async fn take_over(&self, refused: BusError) -> Result<(), BusError> {
        // Looked at before the database is asked: whoever leads later is not driven out.
        let seen = redis::cmd("GET").arg(self.key).clone();
        let seen: Option<String> = self.bus.run("say who writes", &seen).await?;
        if !self.leads().await {
            return Err(refused);
        }
        tracing::info!(
            instead_of = seen,
            key = self.key,
            "this server writes to Redis from now on"
        );
        let taken = self.bus.script("let us write", &TAKE, |call| {
            call.key(self.key).arg(&self.name).arg(seen.as_deref().unwrap_or_default());
        });
        taken.await
    }

    /// Whether this server leads, by the word of the database: for what is decided elsewhere than
    /// in Redis. Nothing is, until that is known.
    pub async fn leads(&self) -> bool {
        loop {
            match self.lead.holds().await {
                Ok(true) => return true,
                Ok(false) => break,
                Err(error) => tracing::warn!(error, "whether this server leads is not known"),
            }
            tokio::time::sleep(AGAIN).await;
        }
        // Only the first to notice says so.
        if self.deposed.set(()).is_ok() {
            tracing::error!(name = self.name, "another server leads: nothing is written from here");
        }
        false
    }

    /// Comes back once another server was found to lead.
    pub async fn deposed(&self) {
        self.deposed.wait().await;
    }
}
