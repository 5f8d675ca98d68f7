//! Nodes and their leases, as the scheduler's side sees them.
//!
//! A node that renews its lease is there. One that has not been seen to renew it for longer than
//! the lease is certainly without tasks, by its own supervisor's doing: only then is it given up,
//! in one step with all that it could still start. Everything is measured by our own steady clock;
//! when Redis itself was away, or is another than before, all counting begins anew.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use era_core::job::TaskId;
use futures_util::future::join_all;
use tokio::time::Instant;

use super::Shared;
use super::orders::BATCH_MAX;
use super::waiting::AWAY_PATIENCE;
use crate::celery::bus::{self, BusError};
use crate::celery::names::{self, CeleryId};
use crate::celery::queue;
use crate::executor::{ExecutorReport, FoundNode};

/// How often nodes are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What is added to a lease, for clocks that run at different speeds and for slow machines.
const MARGIN: Duration = Duration::from_secs(2);
/// Most nodes that are followed.
const NODES_MAX: usize = 20_000;

/// A node as it was last seen.
#[derive(Debug)]
struct SeenNode {
    found: FoundNode,
    beat: String,
    /// When this beat was first seen.
    since: Instant,
    /// The lease of this renewal, and of the one before it: a task may still run by that.
    leases: (Duration, Duration),
    told: bool,
}

/// A node as Redis shows it.
pub(super) struct Shown {
    found: FoundNode,
    beat: String,
    lease: Duration,
}

/// The nodes as they were last seen.
#[derive(Debug, Default)]
struct Nodes {
    all: BTreeMap<String, SeenNode>,
    /// Which run of Redis this was.
    redis: String,
}

impl Nodes {
    /// What is seen now; gives the nodes that are news.
    fn see(&mut self, name: String, shown: Shown, now: Instant) -> Option<FoundNode> {
        let Shown { found, beat, lease } = shown;
        let new = SeenNode { found, beat, since: now, leases: (lease, lease), told: true };
        let Some(seen) = self.all.get_mut(&name) else {
            let found = new.found.clone();
            self.all.insert(name, new);
            return Some(found);
        };
        let news = !seen.told || seen.found != new.found;
        if seen.beat != new.beat {
            *seen = SeenNode { leases: (lease, seen.leases.0), ..new };
        }
        seen.told = true;
        news.then(|| seen.found.clone())
    }

    /// Those that were not seen to renew for longer than their lease, with their last beat.
    fn lapsed(&self, now: Instant) -> Vec<(String, String)> {
        let lease = |seen: &SeenNode| seen.leases.0.max(seen.leases.1);
        let gone =
            |seen: &SeenNode| now.saturating_duration_since(seen.since) > lease(seen) + MARGIN;
        let gone = self.all.iter().filter(|(_, seen)| gone(seen));
        gone.map(|(name, seen)| (name.clone(), seen.beat.clone())).collect()
    }

    /// Counting begins anew.
    fn begin_anew(&mut self, now: Instant) {
        self.all.values_mut().for_each(|seen| seen.since = now);
    }
}

/// Follows the nodes until the executor is gone.
pub(super) async fn follow(shared: Arc<Shared>) {
    let mut nodes = Nodes::default();
    loop {
        match look(&shared, &mut nodes).await {
            Ok(()) => shared.is_back(Instant::now()),
            Err(error) => {
                let away = shared.is_away(&error, Instant::now());
                if away >= AWAY_PATIENCE {
                    without_redis(&shared, &mut nodes, &error.to_string()).await;
                }
                nodes.begin_anew(Instant::now());
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Nothing can be started without Redis. A node on which nothing of ours may run is lost, before
/// what was to start there, so that nothing is planned there anew. What runs goes on for as long as
/// its worker reaches Redis, and nobody here can know for how long that is.
async fn without_redis(shared: &Shared, nodes: &mut Nodes, why: &str) {
    for (name, seen) in &mut nodes.all {
        let given_up = shared.give_up_waiting(name, why).await;
        let empty = shared.known().on_node(name).len() == given_up.len();
        if empty && seen.told {
            tracing::warn!(node = name, "a node cannot be reached without Redis");
            shared.report([ExecutorReport::NodeLost { name: name.clone() }]).await;
            seen.told = false;
        }
        let lost = |task| ExecutorReport::Lost { task, reason: "its-redis-went-away".to_owned() };
        shared.tell(given_up.into_iter().map(lost).collect()).await;
    }
}

async fn look(shared: &Shared, nodes: &mut Nodes) -> Result<(), BusError> {
    notice_another_redis(shared, nodes).await?;
    let now = Instant::now();
    for (name, shown) in show(shared).await? {
        if let Some(found) = nodes.see(name, shown, now) {
            shared.report([ExecutorReport::Node(found)]).await;
        }
    }
    resume(shared).await?;
    for (name, beat) in nodes.lapsed(now) {
        if give_up(shared, &name, &beat).await? {
            nodes.all.remove(&name);
        }
    }
    Ok(())
}

/// Nodes whose queue is empty again take what they are sent.
async fn resume(shared: &Shared) -> Result<(), BusError> {
    let members = redis::cmd("SMEMBERS").arg(names::UNTAKEN).clone();
    let silent: Vec<String> = shared.bus.run("show nodes that take nothing", &members).await?;
    shared.untaken().extend(silent.iter().cloned());
    for name in silent {
        let mut length = redis::cmd("LLEN");
        length.arg(queue::of_node(&name));
        if shared.bus.run::<u64>("count messages", &length).await? > 0 {
            continue;
        }
        shared.report([ExecutorReport::NodeResumed { name: name.clone() }]).await;
        let mut forget = redis::pipe();
        forget.cmd("SREM").arg(names::UNTAKEN).arg(&name);
        shared.fence.write("forget a node that took nothing", &forget).await?;
        shared.untaken().remove(&name);
    }
    Ok(())
}

/// After a restart of Redis a renewal may be lost with what it had not written down; and where its
/// memory is gone or older, it is told again what is out.
async fn notice_another_redis(shared: &Shared, nodes: &mut Nodes) -> Result<(), BusError> {
    let info: String = shared.bus.run("say who it is", redis::cmd("INFO").arg("server")).await?;
    let id = info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap_or_default();
    if id == nodes.redis {
        return Ok(());
    }
    if !nodes.redis.is_empty() {
        nodes.begin_anew(Instant::now());
        // Tried again at the next look if it goes away meanwhile.
        shared.restore_memory().await?;
    }
    nodes.redis = id.trim().to_owned();
    Ok(())
}

/// The nodes as Redis shows them. Where each is reached is known from then on.
pub(super) async fn show(shared: &Shared) -> Result<Vec<(String, Shown)>, BusError> {
    let members = redis::cmd("SMEMBERS").arg(names::NODES).clone();
    let mut all: Vec<String> = shared.bus.run("show the nodes", &members).await?;
    all.truncate(NODES_MAX);
    let mut ask = redis::pipe();
    for name in &all {
        ask.cmd("HMGET").arg(names::node(name)).arg("found").arg("beat").arg("lease");
    }
    if all.is_empty() {
        return Ok(Vec::new());
    }
    type Fields = (Option<Vec<u8>>, Option<String>, Option<u64>);
    let fields: Vec<Fields> = shared.bus.run_all("show the nodes", &ask).await?;
    let mut addresses = shared.addresses();
    let shown = all.into_iter().zip(fields).filter_map(|(name, (found, beat, lease))| {
        let found: FoundNode = serde_json::from_slice(&found?).ok()?;
        // Whoever calls itself something else than its key is not believed.
        if found.name != name {
            return None;
        }
        match &found.address {
            Some(address) => addresses.insert(name.clone(), address.clone()),
            None => addresses.remove(&name),
        };
        Some((name, Shown { found, beat: beat?, lease: Duration::from_millis(lease?) }))
    });
    Ok(shown.collect())
}

/// Gives a node up, unless it was heard of in the last moment. Says whether it did.
async fn give_up(shared: &Shared, name: &str, beat: &str) -> Result<bool, BusError> {
    let tasks = shared.known().on_node(name);
    let ids: Vec<String> = tasks.iter().map(|task| shared.id(*task)).collect();
    let done: u8 = shared
        .fence
        .script("give a node up", &bus::LOSE, |call| {
            call.key(names::node(name)).key(names::NODES);
            call.key(names::LAUNCHES).key(names::CLAIMS);
            call.arg(name).arg(beat);
            for id in &ids {
                call.arg(id);
            }
        })
        .await?;
    if done == 0 {
        return Ok(false);
    }
    tracing::warn!(node = name, tasks = tasks.len(), "a node's lease has lapsed");
    shared.report([ExecutorReport::NodeLost { name: name.to_owned() }]).await;
    let waiting = shared.known().waiting(Instant::now());
    let silent = Some("its worker was not heard of for longer than its lease");
    let here = waiting.iter().filter(|waits| waits.launch.node_name == name);
    // Its worker may have claimed it, and wait for the job's folder.
    join_all(here.map(|waits| shared.never_starts(&waits.launch, silent))).await;
    let lost = |task| ExecutorReport::Lost { task, reason: "lease-lapsed".to_owned() };
    shared.tell(tasks.into_iter().map(lost).collect()).await;
    Ok(true)
}

impl Shared {
    /// Tells a Redis that has lost its memory, or has an older one, whose it is and what is out.
    async fn restore_memory(&self) -> Result<(), BusError> {
        let mut ask = redis::pipe();
        ask.cmd("GET").arg(names::SITE);
        ask.cmd("HKEYS").arg(names::LAUNCHES);
        let (whose, ids): (Option<String>, Vec<String>) =
            self.bus.run_all("say what is out", &ask).await?;
        match whose {
            Some(whose) if whose != self.site => {
                tracing::error!(whose, "Redis serves another site now: nothing is told it");
                return Ok(());
            }
            Some(_) => {}
            None => tracing::warn!("Redis has lost its memory: it is told what is out"),
        }
        let mut all = redis::pipe();
        all.cmd("SET").arg(names::SITE).arg(&self.site).arg("NX");
        for node in self.untaken().iter() {
            // Else it would stay drained for ever.
            all.cmd("SADD").arg(names::UNTAKEN).arg(node).ignore();
        }
        // Asked for after Redis was: what is sent meanwhile is known.
        let launches = self.known().unended_launches();
        let tasks = self.known().tasks();
        for launches in launches.chunks(BATCH_MAX) {
            for launch in launches {
                let Ok(text) = serde_json::to_string(launch) else { continue };
                all.cmd("HSET").arg(names::LAUNCHES).arg(self.id(launch.task)).arg(text);
            }
            self.fence.write("take launches", &std::mem::take(&mut all)).await?;
        }
        for id in forgotten(&self.site, &ids, &tasks) {
            tracing::warn!(id, "Redis remembers a launch that is over: it is called off");
            all.cmd("HDEL").arg(names::LAUNCHES).arg(id).ignore();
            all.cmd("HDEL").arg(names::CLAIMS).arg(id).ignore();
        }
        self.fence.write("take launches", &all).await
    }
}

/// Launches of this site that are not among those that are known, which are in order.
fn forgotten<'a>(site: &str, ids: &'a [String], known: &[TaskId]) -> Vec<&'a str> {
    let unknown = |id: &&String| {
        CeleryId::read(id)
            .is_some_and(|id| id.site == site && known.binary_search(&id.task).is_err())
    };
    ids.iter().filter(unknown).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_core::resources::Capacity;
    use era_core::units::JobId;

    fn shown(beat: &str, lease_s: u64) -> Shown {
        let found = FoundNode {
            name: "n".into(),
            capacity: Capacity::default(),
            labels: BTreeMap::new(),
            address: None,
            simulated: false,
        };
        Shown { found, beat: beat.into(), lease: Duration::from_secs(lease_s) }
    }

    fn after(begun: Instant, seconds: u64) -> Instant {
        begun + Duration::from_secs(seconds)
    }

    #[test]
    fn a_node_that_renews_is_never_given_up() {
        let (mut nodes, begun) = (Nodes::default(), Instant::now());
        assert!(nodes.see("n".into(), shown("1", 10), begun).is_some());
        for turn in 1..20 {
            let now = after(begun, turn * 5);
            assert!(nodes.see("n".into(), shown(&turn.to_string(), 10), now).is_none());
            assert!(nodes.lapsed(now).is_empty());
        }
    }

    #[test]
    fn a_silent_node_is_given_up_only_after_its_whole_lease() {
        let (mut nodes, begun) = (Nodes::default(), Instant::now());
        nodes.see("n".into(), shown("1", 10), begun);
        nodes.see("n".into(), shown("1", 10), after(begun, 9));
        assert!(nodes.lapsed(after(begun, 12)).is_empty());
        assert_eq!(nodes.lapsed(after(begun, 13)).len(), 1);
    }

    #[test]
    fn a_lease_that_was_shortened_holds_once_more_at_its_old_length() {
        let (mut nodes, begun) = (Nodes::default(), Instant::now());
        nodes.see("n".into(), shown("1", 60), begun);
        nodes.see("n".into(), shown("2", 5), after(begun, 1));
        assert!(nodes.lapsed(after(begun, 40)).is_empty());
        nodes.see("n".into(), shown("3", 5), after(begun, 41));
        assert_eq!(nodes.lapsed(after(begun, 49)).len(), 1);
    }

    #[test]
    fn an_older_memory_brings_back_no_launch_that_is_over_and_none_of_others_is_touched() {
        let task = |job| TaskId { job: JobId(job), part: 0, attempt: 1, rank: 0 };
        let id = |site: &str, job| CeleryId { site: site.to_owned(), task: task(job) }.to_string();
        let ids = [id("0123abcd", 1), id("0123abcd", 2), id("99999999", 3), "other".to_owned()];
        assert_eq!(forgotten("0123abcd", &ids, &[task(2), task(7)]), [ids[0].as_str()]);
    }

    #[test]
    fn when_redis_was_away_counting_begins_anew() {
        let (mut nodes, begun) = (Nodes::default(), Instant::now());
        nodes.see("n".into(), shown("1", 10), begun);
        nodes.begin_anew(after(begun, 60));
        assert!(nodes.lapsed(after(begun, 65)).is_empty());
    }
}
