//! Images that are built and pushed, with their output line by line.

use axum::body::{Body as Answer, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use era_api::image::{BuildImage, ImageNews, PushImage};
use era_app::image_builds;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Call, Failure};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(build)).routes(routes!(push))
}

/// Build an image out of files that were sent before, and push it if that is wanted.
///
/// The answer is one JSON object a line, as the engine goes on; the last one says how it ended.
#[utoipa::path(post, path = "/images/build", tag = "images", request_body = BuildImage,
    responses((status = 200, body = ImageNews, content_type = "application/x-ndjson")))]
async fn build(call: Call, Body(new): Body<BuildImage>) -> Result<Response, Failure> {
    Ok(streamed(image_builds::build(&call.app, &call.caller, call.from, new).await?))
}

/// Send an image that was built to the registry. Answered as a build is.
#[utoipa::path(post, path = "/images/push", tag = "images", request_body = PushImage,
    responses((status = 200, body = ImageNews, content_type = "application/x-ndjson")))]
async fn push(call: Call, Body(new): Body<PushImage>) -> Result<Response, Failure> {
    Ok(streamed(image_builds::push(&call.app, &call.caller, call.from, new).await?))
}

/// One JSON object a line, as it comes.
fn streamed(told: mpsc::Receiver<ImageNews>) -> Response {
    let news = futures_util::stream::unfold(told, |mut told| async move {
        let news = told.recv().await?;
        let mut line = serde_json::to_vec(&news).unwrap_or_default();
        line.push(b'\n');
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(line)), told))
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (kind, Answer::from_stream(news.boxed())).into_response()
}
