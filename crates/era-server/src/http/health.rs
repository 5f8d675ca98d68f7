//! Whether the server lives, whether it can work, and its measures for Prometheus.
//!
//! Measures are written where things happen, through the `metrics` facade; those of the state are
//! read from the newest snapshot when somebody asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, OnceLock, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Caller, ClientAddr, Failure};
use crate::App;

/// Upper bounds of latencies, in seconds.
const SECONDS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// Upper bounds of batches.
const BATCHES: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Where measures are gathered. The first call of a process begins to gather them; a recorder
/// that somebody else has installed is left alone, and then there is nothing to show.
pub fn recorder() -> Option<&'static PrometheusHandle> {
    static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    let install = || {
        PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)
            .and_then(|b| b.set_buckets_for_metric(Matcher::Suffix("_batch_size".into()), &BATCHES))
            .and_then(PrometheusBuilder::install_recorder)
            .inspect_err(|error| tracing::warn!(%error, "measures are not gathered"))
            .ok()
    };
    RECORDER.get_or_init(install).as_ref()
}

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(alive)).routes(routes!(ready)).routes(routes!(measures))
}

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", tag = "health",
    responses((status = 200, body = serde_json::Value)))]
pub(crate) async fn alive() -> Json<serde_json::Value> {
    Json(serde_json::json!({ "status": "ok" }))
}

/// Ready: the scheduler runs, and the database answers.
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses((status = 200, body = serde_json::Value)))]
async fn ready(State(app): State<App>) -> Result<Json<serde_json::Value>, Failure> {
    if !app.driver.is_running() {
        return Err(era_app::driver::Unanswered::Stopped.into());
    }
    if let Err(error) = app.auth.rows().images_after("", 1).await {
        tracing::error!(%error, "not ready: the database does not answer");
        let detail = "the database does not answer: see the server's log";
        return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail).after(5));
    }
    Ok(Json(serde_json::json!({ "status": "ok", "seq": app.driver.snapshot().seq() })))
}

/// Measures, for this machine and for administrators, by token or session: how much runs here is
/// nobody else's.
#[utoipa::path(get, path = "/metrics", tag = "health",
    responses((status = 200, body = String, content_type = "text/plain")))]
async fn measures(
    State(app): State<App>,
    from: ClientAddr,
    caller: Result<Caller, Failure>,
) -> Result<Response, Failure> {
    if !from.0.is_loopback() {
        caller?.administers()?;
    }
    let Some(recorder) = recorder() else {
        let detail = "measures are not gathered: see the server's log";
        return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "no_measures", detail));
    };
    let gathered = tokio::task::spawn_blocking(move || {
        of_state(&app);
        recorder.run_upkeep();
        recorder.render()
    });
    let text = gathered.await.map_err(|error| Failure::internal(&error))?;
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    Ok((kind, text).into_response())
}

fn of_state(app: &App) {
    let state = app.driver.snapshot();
    // A state that no job is in any more is told as well, or its last count would stand for ever.
    let mut by_state: BTreeMap<&'static str, u32> =
        era_core::job::STATES.iter().map(|state| (*state, 0)).collect();
    for job in state.jobs() {
        *by_state.entry(job.state()).or_default() += 1;
    }
    for (name, count) in by_state {
        metrics::gauge!("era_jobs", "state" => name).set(f64::from(count));
    }
    let waiting = state
        .queues()
        .iter()
        .map(|queue| (queue.name.to_string(), state.waiting_in_line(&queue.name) as f64));
    for (queue, count) in with_removed(waiting.collect()) {
        metrics::gauge!("era_queue_waiting", "queue" => queue).set(count);
    }
    metrics::gauge!("era_holds").set(state.holds().count() as f64);
    metrics::counter!("era_database_statements_total").absolute(app.store.statements());
    metrics::gauge!("era_journal_seq").set(state.seq() as f64);
    metrics::gauge!("era_feed_behind").set(state.seq().saturating_sub(app.feed.applied()) as f64);
}

/// The same with nobody in those queues that were told of before and are gone: what is gathered
/// cannot be taken back, and its last count would stand for ever.
fn with_removed(mut waiting: BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    for gone in told.iter().filter(|name| !waiting.contains_key(*name)).cloned().collect::<Vec<_>>()
    {
        waiting.insert(gone, 0.0);
    }
    told.extend(waiting.keys().cloned());
    waiting
}
