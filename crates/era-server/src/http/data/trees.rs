//! Trees of files.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::data::{NewTree, TreeMade};
use era_app::files::{Service, contents};

use super::take::Large;
use crate::http::{Caller, Failure, Path};

/// Puts a tree, such as a job's code. Its contents must be there. The same tree again is the same.
#[utoipa::path(post, path = "/trees", tag = "data", request_body = NewTree,
    responses((status = 201, body = TreeMade)))]
pub(super) async fn put(
    State(service): State<Service>,
    caller: Caller,
    Large(tree): Large<NewTree>,
) -> Result<(StatusCode, Json<TreeMade>), Failure> {
    let made = contents::put_tree(&service, &caller, tree).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// A tree that the caller put, or that a data set or job has that the caller may see.
#[utoipa::path(get, path = "/trees/{hash}", tag = "data", params(("hash" = String, Path)),
    responses((status = 200, body = NewTree)))]
pub(super) async fn get(
    State(service): State<Service>,
    caller: Caller,
    Path(hash): Path<String>,
) -> Result<Json<NewTree>, Failure> {
    Ok(Json(contents::tree(&service, &caller, &hash).await?))
}
