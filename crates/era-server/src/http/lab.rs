//! The laboratory, for administrators: it reads what everybody did.

use axum::Json;
use axum::body::Body as Content;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use era_api::Page;
use era_api::lab::{LabAsk, LabRun};
use era_api::page::PageAsk;
use era_api::queue::Proposal;
use era_app::lab_runs;
use sha2::{Digest as _, Sha256};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Call, Failure, Path, Query};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(runs, start))
        .routes(routes!(run, remove))
        .routes(routes!(report))
        .routes(routes!(proposals))
}

/// Runs of the laboratory, the newest first, without their results.
#[utoipa::path(get, path = "/lab/runs", tag = "laboratory", params(PageAsk), responses(
    (status = 200, body = Page<LabRun>)))]
async fn runs(call: Call, Query(ask): Query<PageAsk>) -> Result<Json<Page<LabRun>>, Failure> {
    Ok(Json(lab_runs::list(&call.app, &call.caller, ask)?))
}

/// Starts a simulation, a replay of this site's history under another rule, or a tuning run.
#[utoipa::path(post, path = "/lab/runs", tag = "laboratory", request_body = LabAsk, responses(
    (status = 201, body = LabRun)))]
async fn start(
    call: Call,
    Body(asked): Body<LabAsk>,
) -> Result<(StatusCode, Json<LabRun>), Failure> {
    let run = lab_runs::start(&call.app, &call.caller, call.from, asked).await?;
    Ok((StatusCode::CREATED, Json(run)))
}

/// A run: how far it is, and what it found.
#[utoipa::path(get, path = "/lab/runs/{id}", tag = "laboratory",
    params(("id" = u64, Path, description = "The run's number")), responses(
    (status = 200, body = LabRun)))]
async fn run(call: Call, Path(id): Path<u64>) -> Result<Json<LabRun>, Failure> {
    Ok(Json(lab_runs::get(&call.app, &call.caller, id)?))
}

/// Gives a run up; removes one that has ended.
#[utoipa::path(delete, path = "/lab/runs/{id}", tag = "laboratory",
    params(("id" = u64, Path, description = "The run's number")), responses(
    (status = 204)))]
async fn remove(call: Call, Path(id): Path<u64>) -> Result<StatusCode, Failure> {
    lab_runs::remove(&call.app, &call.caller, call.from, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The page of charts of a simulation. It has its script within, so it is shown apart from
/// everything else, also in a frame of our page: it can neither read nor call anything of this
/// origin, and no other script runs in it.
#[utoipa::path(get, path = "/lab/runs/{id}/report", tag = "laboratory",
    params(("id" = u64, Path, description = "The run's number")), responses(
    (status = 200, body = String, content_type = "text/html")))]
async fn report(call: Call, Path(id): Path<u64>) -> Result<Response, Failure> {
    let page = lab_runs::report(&call.app, &call.caller, id).await?;
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy(&page)),
        (header::X_FRAME_OPTIONS, "SAMEORIGIN".to_owned()),
    ];
    Ok((headers, Content::from(page)).into_response())
}

/// What a report may do: run its own script, which is the last thing in it, and nothing else.
fn policy(page: &str) -> String {
    let own = page.rsplit_once("<script>").and_then(|(_, rest)| rest.split_once("</script>"));
    let hash = |script: &str| BASE64_STANDARD.encode(Sha256::digest(script));
    let scripts = own.map_or("'none'".to_owned(), |(own, _)| format!("'sha256-{}'", hash(own)));
    format!(
        "sandbox allow-scripts; default-src 'none'; script-src {scripts}; \
         style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
    )
}

/// Versions of policies that tuning proposes, the newest first.
#[utoipa::path(get, path = "/policies/proposals", tag = "queues", params(PageAsk), responses(
    (status = 200, body = Page<Proposal>)))]
async fn proposals(
    call: Call,
    Query(ask): Query<PageAsk>,
) -> Result<Json<Page<Proposal>>, Failure> {
    Ok(Json(lab_runs::proposals(&call.app, &call.caller, ask)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_runs_its_own_script_and_no_other() {
        let page = "<script>worse()</script><script type=x>{}</script><script>1</script></html>";
        let told = policy(page);
        // `printf 1 | openssl dgst -sha256 -binary | base64`
        let own = "script-src 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s=';";
        assert!(told.contains(own), "{told}");
        assert!(policy("<p>no script</p>").contains("script-src 'none';"));
    }
}
