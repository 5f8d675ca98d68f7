//! What is to be told: found in the journal, and in prices, and put into the outbox.

use std::sync::Arc;
use std::time::Duration;

use era_api::account::WebhookEvent;
use era_core::Event;
use era_core::job::{Outcome, Plan};
use era_core::units::{JobId, Name, Title, UserId};
use era_drive::FollowRules;
use era_store::StoreError;
use era_store::accounts::{DeliveryRow, WebhookRow};
use era_store::journal::{Journal, Stored};
use tokio::sync::Notify;

use crate::Services;
use crate::follow::Following;
use crate::wire;

/// Entries that are looked through at a time.
const AT_A_TIME: u32 = 500;
/// News are gathered before they are written down together.
pub(super) const RULES: FollowRules = FollowRules {
    linger: Duration::from_millis(200),
    full: AT_A_TIME as u64,
    ..FollowRules::at_once(&[Duration::from_secs(5)])
};

/// What an event means to webhooks, with what its job was promised, if anything.
fn meaning(event: &Event, promised: &[Plan]) -> Option<WebhookEvent> {
    match event {
        Event::Launched { part, attempt: 1, plan, .. } if keeps(*part, plan, promised) => {
            Some(WebhookEvent::ReservationKept)
        }
        Event::Running { .. } => Some(WebhookEvent::JobStarted),
        Event::Broken { .. } => Some(WebhookEvent::ReservationBroken),
        Event::Ended { outcome, .. } => match outcome {
            Outcome::Succeeded | Outcome::Released => Some(WebhookEvent::JobFinished),
            Outcome::Cancelled => None,
            _ => Some(WebhookEvent::JobFailed),
        },
        _ => None,
    }
}

/// Whether a part that is sent out keeps what was promised, as the measures judge it: for the start
/// that was told, be it a moment late. Of several parts the earliest speaks for the job, so that it
/// is told once.
fn keeps(part: u16, plan: &Plan, promised: &[Plan]) -> bool {
    let first = promised.iter().enumerate().min_by_key(|(_, promised)| promised.from);
    first.is_some_and(|(at, told)| at == usize::from(part) && told.from == plan.from)
}

/// What a job was promised when it was accepted, part by part.
async fn promised(journal: &Journal, job: JobId) -> Result<Vec<Plan>, StoreError> {
    let Some((_, entry)) = journal.submission(job).await? else { return Ok(Vec::new()) };
    let told = entry.events()?.into_iter().find_map(|event| match event {
        Event::Promised { job: id, parts, .. } if id == job => Some(parts),
        _ => None,
    });
    Ok(told.unwrap_or_default())
}

/// How an event is called on the wire.
pub fn name(event: WebhookEvent) -> &'static str {
    match event {
        WebhookEvent::JobStarted => "job_started",
        WebhookEvent::JobFinished => "job_finished",
        WebhookEvent::JobFailed => "job_failed",
        WebhookEvent::ReservationKept => "reservation_kept",
        WebhookEvent::ReservationBroken => "reservation_broken",
        WebhookEvent::PriceBelow => "price_below",
    }
}

fn wants(hook: &WebhookRow, event: WebhookEvent) -> bool {
    hook.events.split(',').any(|wanted| wanted == name(event))
}

/// Looks through the journal, and puts into the outbox what is to be told.
pub(super) struct Watcher {
    app: Services,
    journal: Journal,
    /// Told when something was put there.
    posted: Arc<Notify>,
    /// Whether the outbox says up to where the journal was looked through: only while anybody is to
    /// be told.
    is_noted: bool,
}

impl Watcher {
    pub(super) fn new(app: Services, journal: Journal, posted: Arc<Notify>) -> Watcher {
        Watcher { app, journal, posted, is_noted: false }
    }
}

impl Following for Watcher {
    type Error = StoreError;

    async fn locate(&mut self) -> Result<u64, StoreError> {
        self.is_noted = false;
        // What failed before may have put something there.
        self.posted.notify_one();
        let rows = self.app.auth.rows();
        let last = self.app.driver.snapshot().seq();
        if rows.webhooks().await?.is_empty() { Ok(last) } else { rows.webhook_cursor(last).await }
    }

    /// Without any webhook nothing is read or written.
    async fn take(&mut self, after: u64) -> Result<Option<u64>, StoreError> {
        let rows = self.app.auth.rows();
        let last = self.app.driver.snapshot().seq();
        let hooks = rows.webhooks().await?;
        if hooks.is_empty() {
            self.is_noted = false;
            return Ok(Some(last.max(after)));
        }
        if !self.is_noted {
            rows.webhook_cursor(after).await?;
            rows.post(&[], Some(after)).await?;
            self.is_noted = true;
        }
        let entries = self.journal.read(after, AT_A_TIME).await?;
        let Some(newest) = entries.last() else { return Ok(Some(after)) };
        let mut told = Vec::new();
        for entry in &entries {
            told.extend(tell(&self.app, &self.journal, entry, &hooks).await?);
        }
        rows.post(&told, Some(newest.seq)).await?;
        if !told.is_empty() {
            self.posted.notify_one();
        }
        Ok(Some(newest.seq))
    }

    fn failed(&mut self, error: StoreError) -> Result<(), StoreError> {
        tracing::error!(%error, "webhooks: trying again");
        Ok(())
    }

    fn is_attended(&self) -> bool {
        false
    }
}

/// Tells of prices that fell below what somebody waits for.
pub async fn look_at_prices(app: &Services) -> Result<(), StoreError> {
    let rows = app.auth.rows();
    for hook in rows.webhooks().await? {
        let Some((pool, below)) = hook.pool.as_deref().zip(hook.below) else { continue };
        let Some(price) = price(app, pool) else { continue };
        let is_below = price.0 < below;
        if is_below == hook.was_below {
            continue;
        }
        if is_below {
            let now = app.clock.machine().0;
            let body = serde_json::json!({
                "event": name(WebhookEvent::PriceBelow),
                "at": wire::stamp(era_core::units::Time(now)),
                "pool": pool,
                "price": price,
                "below": era_api::Credits(below),
            });
            let delivery = delivery(&hook, format!("price.{now}"), body.to_string(), now);
            rows.post(&[delivery], None).await?;
        }
        rows.set_was_below(hook.id, is_below).await?;
    }
    Ok(())
}

/// What a GPU-hour costs in a pool now, or a core-hour where it has no GPUs.
fn price(app: &Services, pool: &str) -> Option<era_api::Credits> {
    let state = app.driver.snapshot();
    let pool = state.cluster().pool(&Name::new(pool).ok()?).ok()?.clone();
    let prices = wire::pool_price(&state, &pool).ok()??;
    let gpus = wire::ordering_resource(&state, &pool) == era_core::resources::Resource::Gpu;
    Some(if gpus { prices.now.gpu } else { prices.now.cpu })
}

fn delivery(hook: &WebhookRow, origin: String, body: String, now: i64) -> DeliveryRow {
    DeliveryRow { id: 0, webhook: hook.id, origin, body, tries: 0, due: now, created: now }
}

/// What one entry of the journal gives to the outbox.
async fn tell(
    app: &Services,
    journal: &Journal,
    entry: &Stored,
    hooks: &[WebhookRow],
) -> Result<Vec<DeliveryRow>, StoreError> {
    let state = app.driver.snapshot();
    let now = app.clock.machine().0;
    let mut told = Vec::new();
    for (place, event) in entry.events()?.iter().enumerate() {
        let Some(id) = event.job() else { continue };
        let job = state.job(id).ok();
        let Some(owner) = job.map(|job| job.user) else { continue };
        let hears_of = |what| hooks.iter().any(|hook| hears(hook, owner, entry, what));
        let is_promise = job.is_some_and(|job| job.promise().is_some());
        // Looked up only for those who want to know.
        let promised = match event {
            Event::Launched { attempt: 1, .. }
                if is_promise && hears_of(WebhookEvent::ReservationKept) =>
            {
                promised(journal, id).await?
            }
            _ => Vec::new(),
        };
        let Some(what) = meaning(event, &promised) else { continue };
        for hook in hooks.iter().filter(|hook| hears(hook, owner, entry, what)) {
            let body = serde_json::json!({
                "event": name(what),
                "at": wire::stamp(entry.at),
                "job": id.0,
                "name": job.and_then(|job| job.name.as_ref()).map(Title::as_str),
                "user": app.auth.directory().user_name(owner),
            });
            let origin = format!("{}.{place}.{}", entry.seq, name(what));
            told.push(delivery(hook, origin, body.to_string(), now));
        }
    }
    Ok(told)
}

/// A webhook hears of its owner's jobs, from the moment that it was made.
fn hears(hook: &WebhookRow, owner: UserId, entry: &Stored, what: WebhookEvent) -> bool {
    hook.user == owner.0 && entry.at.0 >= hook.created && wants(hook, what)
}

#[cfg(test)]
mod tests {
    use era_core::units::Time;

    use super::*;

    fn told(event: Event) -> Option<WebhookEvent> {
        meaning(&event, &[])
    }

    #[test]
    fn starts_ends_and_broken_promises_are_told() {
        let job = JobId(1);
        let ended = |outcome| told(Event::Ended { job, outcome, at: None });
        assert_eq!(ended(Outcome::Succeeded), Some(WebhookEvent::JobFinished));
        assert_eq!(ended(Outcome::Failed { code: 1 }), Some(WebhookEvent::JobFailed));
        assert_eq!(ended(Outcome::Cancelled), None);
        let running = Event::Running { job, part: 0, attempt: 1 };
        assert_eq!(told(running), Some(WebhookEvent::JobStarted));
        let broken = Event::Broken { job, reason: "lost".into() };
        assert_eq!(told(broken), Some(WebhookEvent::ReservationBroken));
        assert_eq!(told(Event::Edited { job }), None);
    }

    #[test]
    fn a_promise_is_kept_once_and_only_by_the_start_that_was_told() {
        let plan = |from: i64| Plan {
            pool: Name::new("main").unwrap(),
            from: Time::from_s(from),
            to: Time::from_s(from + 60),
            seats: Vec::new(),
            gpus_per_node: 0,
        };
        let promised = [plan(120), plan(60)];
        let launched = |part, attempt, from| {
            let event = Event::Launched { job: JobId(1), part, attempt, plan: plan(from) };
            meaning(&event, &promised)
        };
        assert_eq!(launched(1, 1, 60), Some(WebhookEvent::ReservationKept));
        assert_eq!(launched(0, 1, 120), None, "the earlier part has spoken");
        assert_eq!(launched(1, 1, 180), None, "planned anew is not kept");
        assert_eq!(launched(1, 2, 60), None, "a second attempt is another matter");
        assert_eq!(
            told(Event::Launched { job: JobId(1), part: 0, attempt: 1, plan: plan(60) }),
            None
        );
    }
}
