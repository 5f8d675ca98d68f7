//! Sends what is in the outbox, and tries again what did not arrive.

use std::time::Duration;

use era_store::StoreError;
use era_store::accounts::{DeliveryRow, WebhookRow};
use ureq::Agent;
use ureq::unversioned::transport::DefaultConnector;

use super::address::{Guarded, Reach};
use super::sign;
use crate::App;
use crate::auth::now_ms;

/// How long a receiver may take.
const TIME: Duration = Duration::from_secs(10);
/// How many are sent at a time.
const AT_A_TIME: u32 = 16;
/// How often it is tried before it is given up: about a day.
pub const TRIES_MAX: u32 = 12;
/// The longest that nothing is looked at.
const LONGEST: Duration = Duration::from_secs(3600);

/// What sends: no redirects, no proxies, checked addresses, bounded times.
pub fn agent(reach: Reach) -> Agent {
    let config = Agent::config_builder()
        .timeout_global(Some(TIME))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .max_idle_connections(0)
        .proxy(None)
        .user_agent("era-webhook/1")
        .build();
    Agent::with_parts(config, DefaultConnector::new(), Guarded::new(reach))
}

/// How long it is until the next try: from ten seconds to four hours, twice as long each time.
pub fn pause_ms(tries: u32) -> i64 {
    (10_000_i64 << tries.min(20)).min(4 * 3_600_000)
}

/// Sends what is due, and says for how long nothing is.
pub async fn due(app: &App, agent: &Agent) -> Result<Duration, StoreError> {
    let rows = app.auth.rows();
    loop {
        let now = now_ms();
        let deliveries = rows.due(now, AT_A_TIME).await?;
        if deliveries.is_empty() {
            let next = rows.next_due().await?.map_or(i64::MAX, |due| due.saturating_sub(now));
            return Ok(Duration::from_millis(next.max(0) as u64).min(LONGEST));
        }
        let mut sending = Vec::new();
        for delivery in deliveries {
            let Some(hook) = rows.webhook(delivery.webhook).await? else { continue };
            let agent = agent.clone();
            let sent = tokio::task::spawn_blocking(move || {
                let came_to = send(&agent, &hook, &delivery);
                (delivery, came_to)
            });
            sending.push(sent);
        }
        for sent in sending {
            let Ok((delivery, came_to)) = sent.await else { continue };
            settle(app, &delivery, came_to).await?;
        }
    }
}

/// What became of a try: the receiver's status, or why there is none.
type CameTo = Result<u16, String>;

fn send(agent: &Agent, hook: &WebhookRow, delivery: &DeliveryRow) -> CameTo {
    let at = now_ms().div_euclid(1000);
    let response = agent
        .post(&hook.url)
        .header("content-type", "application/json")
        .header(sign::TIMESTAMP, at.to_string())
        .header(sign::SIGNATURE, sign::signature(&hook.secret, at, &delivery.body))
        .header("x-era-delivery", format!("{}.{}", hook.id, delivery.origin))
        .send(&delivery.body);
    response.map(|response| response.status().as_u16()).map_err(|error| error.to_string())
}

async fn settle(app: &App, delivery: &DeliveryRow, came_to: CameTo) -> Result<(), StoreError> {
    let rows = app.auth.rows();
    let (arrived, words) = match came_to {
        Ok(status) => ((200..300).contains(&status), format!("answered {status}")),
        Err(problem) => (false, problem.chars().take(200).collect()),
    };
    let outcome = if arrived { "arrived" } else { "failed" };
    metrics::counter!("era_webhook_deliveries_total", "outcome" => outcome).increment(1);
    if arrived {
        return rows.delivered(delivery, &words).await;
    }
    if delivery.tries + 1 >= TRIES_MAX {
        return rows.delivered(delivery, &format!("given up: {words}")).await;
    }
    rows.try_again(delivery, now_ms() + pause_ms(delivery.tries), &words).await
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
