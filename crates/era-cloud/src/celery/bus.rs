//! Redis, as far as Celery's transport and ours use it. Thin: what is written where is decided by
//! the pure modules beside it, and what must happen in one step is a script.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use era_core::units::Time;
use redis::aio::{ConnectionManager, ConnectionManagerConfig, MultiplexedConnection, PubSub};
use redis::{
    AsyncConnectionConfig, ErrorKind, FromRedisValue, RedisError, Script, TlsCertificates,
};

use super::envelope::Envelope;
use super::fence::fenced;
use super::names::{self, RedisAddress};
use super::queue;
use super::result::{self, Meta};
use crate::clock::MachineClock;

/// How long one command may take.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// How long a blocking read waits before it is asked again.
pub const BLOCK_TIME: Duration = Duration::from_secs(1);
/// How long results are kept.
const RESULT_TIME: Duration = Duration::from_secs(7 * 86_400);
/// Most entries of the stream of what nobody could serve.
const DEAD_MAX: usize = 10_000;

/// Why Redis did not do something.
#[derive(Debug, thiserror::Error)]
#[error("Redis at {address} did not {doing}: {answer}: {}", self.advice())]
pub struct BusError {
    /// Where it is, without its password.
    pub address: String,
    /// What was asked of it.
    pub doing: &'static str,
    /// What it said. Not its source: the sentence has it already.
    pub answer: RedisError,
}

impl BusError {
    /// Whether another server writes there now, and this one may not.
    pub fn is_deposed(&self) -> bool {
        self.answer.code() == Some("FENCED")
    }

    /// What to do about it.
    fn advice(&self) -> &'static str {
        if self.answer.kind() == ErrorKind::AuthenticationFailed {
            return PASSWORD;
        }
        match self.answer.code() {
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => PASSWORD,
            Some("OOM") => "its memory is full: raise its maxmemory, or remove what nobody needs",
            Some("MISCONF") => {
                "it cannot write to its disk: make room on that machine, and see its log"
            }
            Some("READONLY") => "it is a replica: give the address of the one that is written to",
            Some("FENCED") => "another server leads this site, and this one may write nothing more",
            Some("LOADING") => "it is starting: try again in a moment",
            _ if self.answer.to_string().contains("UnknownIssuer") => {
                "if it has an authority of its own, name that: rediss://HOST:PORT/DATABASE?ca=FILE"
            }
            _ if self.doing.contains("authority") => "give a certificate as a PEM file: ?ca=FILE",
            _ if self.answer.to_string().contains("DB index") => {
                "it has fewer databases: give a smaller number after the last slash"
            }
            _ => "is it running, and is this its address?",
        }
    }
}

const PASSWORD: &str = "write its password into the address: redis://:PASSWORD@HOST:PORT/DATABASE";

/// A connection that mends itself, and what is needed for more of them. A clone shares.
#[derive(Clone)]
pub struct Bus {
    address: Arc<RedisAddress>,
    client: redis::Client,
    manager: ConnectionManager,
    tags: Arc<Tags>,
    clock: MachineClock,
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bus").field("address", &self.address.shown()).finish_non_exhaustive()
    }
}

/// Where delivery tags come from: unlike any other process's, and counted.
#[derive(Debug)]
struct Tags {
    prefix: String,
    next: AtomicU64,
}

/// A message that a worker holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The list that it was in.
    pub key: String,
    /// By what it is acknowledged; empty for what is no message, which lies with the dead already.
    pub tag: String,
    /// As it lay there.
    pub raw: Vec<u8>,
}

/// A task that was kept from other workers until it was over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub id: String,
    /// Where no result says that it is over: for how long its claim does.
    pub remembered: Option<Duration>,
}

impl Claimed {
    pub(super) fn add_let_go(&self, all: &mut redis::Pipeline) {
        let key = names::claim(&self.id);
        match self.remembered {
            None => all.cmd("DEL").arg(key).ignore(),
            Some(time) => {
                let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                all.cmd("SET").arg(key).arg(names::NOBODY).arg("PX").arg(ms).ignore()
            }
        };
    }
}

/// So many random bytes, in base 16.
pub fn random_hex<const N: usize>() -> String {
    let mut bytes = [0; N];
    // Without randomness the system cannot run much else either; time tells processes apart.
    #[expect(
        clippy::disallowed_methods,
        reason = "it tells processes apart, and nothing goes by it"
    )]
    if getrandom::fill(&mut bytes).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = now.map_or(0, |since| since.as_nanos()) ^ u128::from(std::process::id());
        let from = nanos.to_le_bytes();
        bytes.iter_mut().zip(from.iter().cycle()).for_each(|(to, from)| *to = *from);
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Bus {
    /// Connects, and says what is wrong if that is not possible.
    pub async fn connect(address: &RedisAddress, clock: MachineClock) -> Result<Bus, BusError> {
        let failed = |answer| BusError { address: address.shown(), doing: "answer", answer };
        let client = match &address.authority {
            None => redis::Client::open(address.url.as_str()).map_err(failed)?,
            Some(file) => {
                let unread = |answer: std::io::Error| BusError {
                    doing: "become trusted, since the file of its authority cannot be read",
                    ..failed(answer.into())
                };
                let root_cert = Some(tokio::fs::read(file).await.map_err(unread)?);
                let certificates = TlsCertificates { client_tls: None, root_cert };
                redis::Client::build_with_tls(address.url.as_str(), certificates).map_err(failed)?
            }
        };
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(ANSWER_TIME))
            .set_connection_timeout(Some(ANSWER_TIME))
            .set_number_of_retries(1)
            .set_max_delay(Duration::from_millis(500));
        let manager = client.get_connection_manager_with_config(config).await.map_err(failed)?;
        let tags = Arc::new(Tags { prefix: random_hex::<8>(), next: AtomicU64::new(0) });
        let bus = Bus { address: Arc::new(address.clone()), client, manager, tags, clock };
        bus.run("answer a ping", &redis::cmd("PING")).await.map(|_: String| bus)
    }

    /// Where it is.
    pub fn address(&self) -> &RedisAddress {
        &self.address
    }

    /// The clock of this machine, which stamps are by.
    pub fn clock(&self) -> &MachineClock {
        &self.clock
    }

    /// The time by it.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// A delivery tag that no other message has.
    pub fn tag(&self) -> String {
        let n = self.tags.next.fetch_add(1, Ordering::Relaxed);
        format!("{}-{n}", self.tags.prefix)
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(RedisError) -> BusError + use<'_> {
        move |answer| BusError { address: self.address.shown(), doing, answer }
    }

    pub async fn run<T: FromRedisValue>(
        &self,
        doing: &'static str,
        command: &redis::Cmd,
    ) -> Result<T, BusError> {
        command.query_async(&mut self.manager.clone()).await.map_err(self.failed(doing))
    }

    /// Several commands at once.
    pub async fn run_all<T: FromRedisValue>(
        &self,
        doing: &'static str,
        commands: &redis::Pipeline,
    ) -> Result<T, BusError> {
        commands.query_async(&mut self.manager.clone()).await.map_err(self.failed(doing))
    }

    pub async fn script<T: FromRedisValue>(
        &self,
        doing: &'static str,
        script: &Script,
        fill: impl FnOnce(&mut redis::ScriptInvocation<'_>),
    ) -> Result<T, BusError> {
        let mut call = script.prepare_invoke();
        fill(&mut call);
        call.invoke_async(&mut self.manager.clone()).await.map_err(self.failed(doing))
    }

    /// A connection of its own for commands that wait.
    pub async fn waiting(&self) -> Result<MultiplexedConnection, BusError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(ANSWER_TIME))
            .set_response_timeout(Some(BLOCK_TIME + ANSWER_TIME));
        let connected = self.client.get_multiplexed_async_connection_with_config(&config).await;
        connected.map_err(self.failed("take another connection"))
    }

    /// A connection that hears what is published.
    pub async fn listening(&self) -> Result<PubSub, BusError> {
        self.client.get_async_pubsub().await.map_err(self.failed("let us listen"))
    }

    /// An error of a connection of its own.
    pub fn broken(&self, doing: &'static str, answer: RedisError) -> BusError {
        self.failed(doing)(answer)
    }

    /// Puts messages into their queues, each at the place of its priority.
    pub async fn publish(&self, envelopes: &[Envelope]) -> Result<(), BusError> {
        let mut all = redis::pipe();
        for envelope in envelopes {
            add_publish(&mut all, envelope);
        }
        self.run_all("take messages", &all).await
    }

    /// Takes up to `most` messages from these lists; `popped` is one that was taken before.
    pub async fn take(
        &self,
        keys: &[String],
        most: usize,
        worker: &str,
        popped: Option<(&str, &[u8])>,
    ) -> Result<Vec<Delivery>, BusError> {
        let got: Vec<(String, String, Vec<u8>)> = self
            .script("give messages", &TAKE, |call| {
                for key in [names::UNACKED, names::UNACKED_INDEX, names::TAKEN, names::DEAD] {
                    call.key(key);
                }
                for key in keys {
                    call.key(key);
                }
                call.arg(most).arg(seconds(self.now())).arg(worker);
                if let Some((key, raw)) = popped {
                    call.arg(key).arg(raw);
                }
            })
            .await?;
        Ok(got.into_iter().map(|(key, tag, raw)| Delivery { key, tag, raw }).collect())
    }

    /// A message was served; its result, where somebody wants it, is kept in the same step, and the
    /// task is no longer kept from other workers.
    pub async fn acknowledge(
        &self,
        tag: &str,
        result: Option<&Meta>,
        claimed: Option<&Claimed>,
    ) -> Result<(), BusError> {
        let mut all = redis::pipe();
        all.atomic();
        if let Some(meta) = result {
            add_result(&mut all, meta);
        }
        if let Some(claimed) = claimed {
            claimed.add_let_go(&mut all);
        }
        add_acknowledge(&mut all, tag);
        self.run_all("acknowledge a message", &all).await
    }

    /// A message that nobody here can serve is put where a person finds it, with the reason, and
    /// those who wait for it are told.
    pub async fn bury(&self, taken: &Delivery, why: &str, told: &[Meta]) -> Result<(), BusError> {
        let mut all = redis::pipe();
        all.atomic();
        all.cmd("XADD").arg(names::DEAD).arg("MAXLEN").arg("~").arg(DEAD_MAX).arg("*");
        all.arg("queue").arg(queue::of_key(&taken.key)).arg("at").arg(seconds(self.now()));
        all.arg("why").arg(why).arg("message").arg(&taken.raw).ignore();
        told.iter().for_each(|meta| add_result(&mut all, meta));
        add_acknowledge(&mut all, &taken.tag);
        self.run_all("keep a message that cannot be served", &all).await
    }

    /// Keeps a result, and tells those who wait for it.
    pub async fn store(&self, meta: &Meta) -> Result<(), BusError> {
        let mut all = redis::pipe();
        all.atomic();
        add_result(&mut all, meta);
        self.run_all("keep a result", &all).await
    }

    /// What is kept of these tasks, in their order.
    pub async fn results(&self, ids: &[String]) -> Result<Vec<Option<Meta>>, BusError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut get = redis::cmd("MGET");
        for id in ids {
            get.arg(result::key(id));
        }
        let found: Vec<Option<Vec<u8>>> = self.run("give results", &get).await?;
        Ok(found.into_iter().map(|bytes| Meta::read(&bytes?)).collect())
    }

    /// Puts a held message back, unless somebody acknowledged it meanwhile. It goes to where it
    /// would be served next.
    pub async fn restore(&self, tag: &str) -> Result<bool, BusError> {
        let mut get = redis::cmd("HGET");
        get.arg(names::UNACKED).arg(tag);
        let Some(held): Option<Vec<u8>> = self.run("show a held message", &get).await? else {
            return Ok(false);
        };
        let Some((envelope, queue)) = self.route(&held).await? else { return Ok(false) };
        let Ok(back) = envelope.write() else { return Ok(false) };
        let restored: u8 = self
            .script("put a message back", &RESTORE, |call| {
                for key in [names::UNACKED, names::UNACKED_INDEX, names::TAKEN] {
                    call.key(key);
                }
                call.key(queue::key(&queue, envelope.priority())).arg(tag).arg(&held).arg(back);
            })
            .await?;
        Ok(restored == 1)
    }

    /// A held message, marked, and the queue that it goes back to.
    async fn route(&self, held: &[u8]) -> Result<Option<(Envelope, String)>, BusError> {
        let held = serde_json::from_slice::<(Envelope, Option<String>, Option<String>)>(held);
        let Ok((mut envelope, exchange, routing_key)) = held else { return Ok(None) };
        envelope.mark_redelivered();
        let routing_key = routing_key.unwrap_or_default();
        let exchange = exchange.unwrap_or_default();
        if exchange.is_empty() {
            return Ok(Some((envelope, routing_key)));
        }
        let mut members = redis::cmd("SMEMBERS");
        members.arg(queue::bindings_key(&exchange));
        let entries: Vec<String> = self.run("show the bindings of a queue", &members).await?;
        let bound = entries.iter().find_map(|entry| queue::bound(entry, &routing_key));
        Ok(bound.map(|queue| (envelope, queue.to_owned())))
    }
}

/// Adds a publication to others.
pub(super) fn add_publish(all: &mut redis::Pipeline, envelope: &Envelope) {
    let Ok(bytes) = envelope.write() else { return };
    all.cmd("LPUSH")
        .arg(queue::key(envelope.routing_key(), envelope.priority()))
        .arg(bytes)
        .ignore();
}

pub(super) fn add_result(all: &mut redis::Pipeline, meta: &Meta) {
    let (key, text) = (result::key(&meta.task_id), meta.write());
    all.cmd("SETEX").arg(&key).arg(RESULT_TIME.as_secs()).arg(&text).ignore();
    all.cmd("PUBLISH").arg(&key).arg(&text).ignore();
}

fn add_acknowledge(all: &mut redis::Pipeline, tag: &str) {
    all.cmd("ZREM").arg(names::UNACKED_INDEX).arg(tag).ignore();
    all.cmd("HDEL").arg(names::UNACKED).arg(tag).ignore();
    all.cmd("HDEL").arg(names::TAKEN).arg(tag).ignore();
}

/// An instant as Celery's transport writes it.
pub(super) fn seconds(at: Time) -> String {
    format!("{}.{:03}", at.0 / 1000, at.0 % 1000)
}

macro_rules! script {
    ($name:ident, $text:expr) => {
        pub(super) static $name: std::sync::LazyLock<Script> =
            std::sync::LazyLock::new(|| Script::new($text));
    };
}

script!(TAKE, include_str!("lua/take.lua"));
script!(RESTORE, include_str!("lua/restore.lua"));
script!(JOIN, include_str!("lua/join.lua"));
script!(BEAT, include_str!("lua/beat.lua"));
script!(CLAIM, include_str!("lua/claim.lua"));
script!(CALL_OFF, fenced!("lua/call_off.lua"));
script!(LOSE, fenced!("lua/lose.lua"));
