//! Sends what is in the outbox, and tries again what did not arrive.
//!
//! To one receiver one message is under way at a time, so that whoever is slow is slow for nobody
//! else; a receiver that does not answer at all is left alone for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use era_store::StoreError;
use era_store::accounts::{AccountTables, DeliveryRow, WebhookRow};
use tokio::task::JoinSet;
use ureq::Agent;
use ureq::unversioned::transport::DefaultConnector;

use super::sign;
use crate::Services;
use crate::clock::Clock;
use crate::egress::{EgressPolicy, GuardedResolver};

/// How long a receiver may take.
const TIME: Duration = Duration::from_secs(10);
/// How many are sent at a time.
const AT_A_TIME: usize = 32;
/// How often it is tried before it is given up: about a day.
pub const TRIES_MAX: u32 = 12;
/// How long something waits at most for a receiver that does not answer.
const WAITS_MAX_MS: i64 = 48 * 3_600_000;
/// The longest that a receiver is left alone.
const REST_MAX_MS: i64 = 600_000;
/// The longest that nothing is looked at.
const LONGEST: Duration = Duration::from_secs(3600);

/// What sends: no redirects, no proxies, checked addresses, bounded times.
fn agent(egress: EgressPolicy) -> Agent {
    let config = Agent::config_builder()
        .timeout_global(Some(TIME))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .max_idle_connections(0)
        .proxy(None)
        .user_agent("era-webhook/1")
        .build();
    Agent::with_parts(config, DefaultConnector::new(), GuardedResolver::new(egress))
}

/// How long it is until the next try: from ten seconds to four hours, twice as long each time.
pub fn pause_ms(tries: u32) -> i64 {
    (10_000_i64 << tries.min(20)).min(4 * 3_600_000)
}

/// Whatever is on its way.
pub struct Deliveries {
    clock: Arc<dyn Clock>,
    agent: Agent,
    sending: JoinSet<Settled>,
    /// Webhooks to which something is on its way.
    busy: BTreeSet<u64>,
    /// Webhooks that did not answer: how often in a row, and until when they are left alone.
    resting: BTreeMap<u64, (u32, i64)>,
}

/// A webhook to which something was sent, whether it answered, and whether that was noted.
type Settled = (u64, bool, Result<(), StoreError>);

/// What became of a try: the receiver's status, or why there is none.
type CameTo = Result<u16, String>;

impl Deliveries {
    /// Nothing yet.
    pub fn new(egress: EgressPolicy, clock: Arc<dyn Clock>) -> Deliveries {
        let (sending, busy, resting) = Default::default();
        Deliveries { clock, agent: agent(egress), sending, busy, resting }
    }

    /// Sends what is due and can be sent, and says for how long nothing more can. Does not wait
    /// for receivers.
    pub async fn send_due(&mut self, app: &Services) -> Result<Duration, StoreError> {
        let rows = app.auth.rows();
        let now = self.clock.machine().0;
        let rests = |id: &u64| self.resting.get(id).is_some_and(|(_, until)| *until > now);
        let mut next = self.resting.values().map(|(_, until)| *until).filter(|u| *u > now).min();
        for (webhook, due) in rows.webhooks_due().await? {
            if rests(&webhook) || self.busy.contains(&webhook) {
                continue;
            }
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
                break;
            }
            if self.sending.len() >= AT_A_TIME {
                // It goes on when one of these is back.
                break;
            }
            let Some(delivery) = rows.first_due(webhook).await? else { continue };
            let Some(hook) = rows.webhook(webhook).await? else { continue };
            let agent = self.agent.clone();
            self.busy.insert(webhook);
            self.sending.spawn(carry(rows.clone(), agent, self.clock.clone(), hook, delivery));
        }
        let wait = next.map_or(i64::MAX, |next| next.saturating_sub(now));
        Ok(Duration::from_millis(wait.max(0).unsigned_abs()).min(LONGEST))
    }

    /// Waits for something to be back, and noted; for ever while nothing is on its way. Nothing is
    /// lost if it is waited for only a while.
    pub async fn next_settled(&mut self) -> Result<(), StoreError> {
        match self.sending.join_next().await {
            Some(Ok((webhook, answered, noted))) => {
                self.busy.remove(&webhook);
                self.rest(webhook, answered);
                noted
            }
            // A fault of its own, which the log has.
            Some(Err(_)) => {
                if self.sending.is_empty() {
                    self.busy.clear();
                }
                Ok(())
            }
            None => std::future::pending().await,
        }
    }

    /// Whether nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.sending.is_empty()
    }

    /// A receiver that does not answer is left alone, longer each time.
    fn rest(&mut self, webhook: u64, answered: bool) {
        if answered {
            self.resting.remove(&webhook);
            return;
        }
        let (times, until) = self.resting.entry(webhook).or_default();
        *until = self.clock.machine().0 + pause_ms(*times).min(REST_MAX_MS);
        *times += 1;
    }
}

/// Sends something, and notes what it came to.
async fn carry(
    rows: AccountTables,
    agent: Agent,
    clock: Arc<dyn Clock>,
    hook: WebhookRow,
    delivery: DeliveryRow,
) -> Settled {
    let id = hook.id;
    let told = clock.clone();
    let sent = tokio::task::spawn_blocking(move || {
        let came_to = send(&agent, &*told, &hook, &delivery);
        (delivery, came_to)
    });
    let Ok((delivery, came_to)) = sent.await else { return (id, false, Ok(())) };
    let answered = came_to.is_ok();
    (id, answered, settle(&rows, &*clock, &delivery, came_to).await)
}

fn send(agent: &Agent, clock: &dyn Clock, hook: &WebhookRow, delivery: &DeliveryRow) -> CameTo {
    let at = clock.machine().0.div_euclid(1000);
    let response = agent
        .post(&hook.url)
        .header("content-type", "application/json")
        .header(sign::TIMESTAMP, at.to_string())
        .header(sign::SIGNATURE, sign::signature(&hook.secret, at, &delivery.body))
        .header("x-era-delivery", format!("{}.{}", hook.id, delivery.origin))
        .send(&delivery.body);
    response.map(|response| response.status().as_u16()).map_err(|error| error.to_string())
}

async fn settle(
    rows: &AccountTables,
    clock: &dyn Clock,
    delivery: &DeliveryRow,
    came_to: CameTo,
) -> Result<(), StoreError> {
    let answered = came_to.is_ok();
    let (arrived, words) = match came_to {
        Ok(status) => ((200..300).contains(&status), format!("answered {status}")),
        Err(problem) => (false, problem.chars().take(200).collect()),
    };
    let outcome = if arrived { "arrived" } else { "failed" };
    metrics::counter!("era_webhook_deliveries_total", "outcome" => outcome).increment(1);
    if arrived {
        return rows.delivered(delivery, &words).await;
    }
    if !answered {
        // Each that waits behind it would wait for its own try: too old is too old.
        rows.give_up(delivery.webhook, clock.machine().0 - WAITS_MAX_MS).await?;
    }
    if delivery.tries + 1 >= TRIES_MAX {
        return rows.delivered(delivery, &format!("given up: {words}")).await;
    }
    rows.try_again(delivery, clock.machine().0 + pause_ms(delivery.tries), &words).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_four_hours_and_end_after_a_day_or_so() {
        assert_eq!(pause_ms(0), 10_000);
        assert_eq!(pause_ms(1), 20_000);
        assert_eq!(pause_ms(99), 4 * 3_600_000);
        let all: i64 = (0..TRIES_MAX - 1).map(pause_ms).sum();
        assert!((4 * 3_600_000..48 * 3_600_000).contains(&all), "{all}");
    }
}
