//! What a job told and used: curves for charts, and values as they come.

use axum::extract::State;
use axum::extract::ws::{WebSocketUpgrade, close_code};
use axum::response::Response;
use axum::{Extension, Json};
use era_api::Page;
use era_api::job::MetricPoint;
use era_app::wire::Wrong;
use era_core::units::JobId;
use era_store::StoreError;
use era_store::samples::{Follow, Line, Samples, SeriesAsk};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::lasting::Lasting;
use super::logs::not_a_socket;
use super::watched::{Follower, Gone, is_over, may_watch, room};
use super::{Caller, Failure, Path, Query};
use crate::App;

/// Points of each curve where nothing is said.
const POINTS_DEFAULT: u32 = 500;
/// Most points of each curve.
const POINTS_MAX: u32 = 10_000;
/// Most points of one answer.
const ANSWER_POINTS_MAX: usize = 200_000;
/// Most points of one message.
const MESSAGE_POINTS_MAX: usize = 10_000;
/// Most names that are asked for at a time.
const NAMES_MAX: usize = 64;

/// Metrics of jobs.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(metrics)).routes(routes!(follow))
}

/// Which values.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct MetricsAsk {
    /// Of these names, by comma; of all where nothing is said.
    #[serde(default)]
    names: Option<String>,
    /// At most so many of each name and replica, from 1 to 10000: the first, the last, and of
    /// equal stretches in between the lowest and the highest, so that no peak is lost.
    #[serde(default)]
    #[param(minimum = 1, maximum = 10000)]
    points: Option<u32>,
    /// Of this replica.
    #[serde(default)]
    rank: Option<u32>,
    /// From this step on.
    #[serde(default)]
    step_from: Option<u64>,
    /// Up to and with this step.
    #[serde(default)]
    step_to: Option<u64>,
}

impl MetricsAsk {
    fn series(&self) -> Result<SeriesAsk, Failure> {
        let names = self.names.as_deref().unwrap_or_default().split(',').map(str::trim);
        let names: Vec<String> = names.filter(|n| !n.is_empty()).map(str::to_owned).collect();
        if names.len() > NAMES_MAX {
            return Err(Failure::bad_field(
                "names",
                Wrong::TooMany { most: NAMES_MAX, what: "names" },
            ));
        }
        let (rank, step_from, step_to) = (self.rank, self.step_from, self.step_to);
        Ok(SeriesAsk { names, rank, step_from, step_to })
    }

    fn points(&self) -> Result<usize, Failure> {
        let points = self.points.unwrap_or(POINTS_DEFAULT);
        let wrong = || Wrong::Range { least: 1, most: POINTS_MAX.into() };
        let fits = (1..=POINTS_MAX).contains(&points);
        fits.then_some(points as usize).ok_or_else(|| Failure::bad_field("points", wrong()))
    }
}

/// What a job told and used, as curves: by name, then replica, then step.
#[utoipa::path(get, path = "/jobs/{id}/metrics", tag = "jobs",
    params(("id" = u64, Path), MetricsAsk), responses(
    (status = 200, body = Page<MetricPoint>),
))]
async fn metrics(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
    Query(ask): Query<MetricsAsk>,
) -> Result<Json<Page<MetricPoint>>, Failure> {
    let (series, points) = (ask.series()?, ask.points()?);
    let job = may_watch(&app, &caller, id).await?;
    let samples = app.store.samples();
    Ok(Json(Page { items: curves(&samples, job, &series, points).await?, next: None }))
}

async fn curves(
    samples: &Samples,
    job: JobId,
    ask: &SeriesAsk,
    points: usize,
) -> Result<Vec<MetricPoint>, StoreError> {
    // With very many series each gets fewer points, so that the answer stays bounded.
    let count = samples.series(job, ask).await?.len().max(1);
    let points = points.min((ANSWER_POINTS_MAX / count).max(1));
    Ok(samples.lines(job, ask, points).await?.into_iter().flat_map(as_points).collect())
}

fn as_points(line: Line) -> impl Iterator<Item = MetricPoint> {
    line.points.into_iter().map(move |point| MetricPoint {
        name: line.name.clone(),
        step: point.step,
        at: era_app::wire::stamp(point.at),
        value: point.value,
        rank: line.rank,
    })
}

/// What a job tells and uses: what there is, then values as they come, each message a JSON list.
/// Closed with the code 1000 once the job is over and all was sent.
#[utoipa::path(get, path = "/jobs/{id}/metrics/ws", tag = "jobs",
    params(("id" = u64, Path), MetricsAsk), responses(
    (status = 101, description = "A WebSocket, on which lists of values come",
        body = Vec<MetricPoint>),
))]
async fn follow(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
    Query(ask): Query<MetricsAsk>,
    lasting: Option<Extension<Lasting>>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Failure> {
    let (series, points) = (ask.series()?, ask.points()?);
    let job = may_watch(&app, &caller, id).await?;
    let upgrade = upgrade.map_err(not_a_socket)?;
    let room = room()?;
    let lasting = lasting.map(|Extension(lasting)| lasting);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let over = || is_over(&app, job);
        let samples = app.store.samples();
        stream(Follower::new(socket, room, lasting), samples, job, series, points, over).await;
    }))
}

/// Sends values as they come until the job is over.
async fn stream(
    mut follower: Follower,
    samples: Samples,
    job: JobId,
    ask: SeriesAsk,
    points: usize,
    over: impl Fn() -> bool,
) {
    match send_points(&mut follower, &samples, job, &ask, points, over).await {
        Ok(Ok(())) => follower.end(close_code::NORMAL, "the job is over").await,
        Ok(Err(failure)) => {
            tracing::error!(?failure, "metrics cannot be read");
            follower.end(close_code::ERROR, "the metrics cannot be read").await;
        }
        Err(Gone) => {}
    }
}

async fn send_points(
    follower: &mut Follower,
    samples: &Samples,
    job: JobId,
    ask: &SeriesAsk,
    points: usize,
    over: impl Fn() -> bool,
) -> Result<Result<(), Failure>, Gone> {
    let mut seen = Follow::default();
    let mut was_over = false;
    loop {
        let is_over = over();
        // The last values are recorded a moment after the task's end is known.
        if is_over && !was_over {
            tokio::time::sleep(era_app::recorder::GATHER_TIME_MAX * 2).await;
        }
        was_over = is_over;
        let lines = match samples.newer(job, ask, &mut seen, points).await {
            Ok(lines) => lines,
            Err(error) => return Ok(Err(error.into())),
        };
        let newer: Vec<MetricPoint> = lines.into_iter().flat_map(as_points).collect();
        for message in newer.chunks(MESSAGE_POINTS_MAX) {
            follower.send(message).await?;
        }
        if newer.is_empty() {
            if is_over {
                return Ok(Ok(()));
            }
            follower.pause().await?;
        }
    }
}

#[cfg(test)]
mod tests;
