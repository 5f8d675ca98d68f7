//! What a caller may see, and answers that are sent once: tags for what did not change.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use era_api::account::Role;
use era_api::page::{PAGE_DEFAULT, PAGE_MAX};
use era_core::units::JobId;
use era_store::tables::{JobRow, Seen};

use super::{Caller, Failure};
use crate::App;
use crate::wire::Wrong;

/// Whose jobs and events a caller sees: its own, its group's, or all.
pub fn seen_by(caller: &Caller) -> Seen {
    match caller.role {
        Role::User => Seen::Own(caller.user),
        Role::GroupAdministrator => Seen::Team(caller.group, caller.user),
        Role::Administrator => Seen::All,
    }
}

/// A job that the caller may see; others' do not exist for it.
pub async fn job(app: &App, caller: &Caller, id: u64) -> Result<JobRow, Failure> {
    // What has just happened to it is seen, though the tables may be a moment behind.
    app.wait_for(app.driver.snapshot().seq()).await;
    let row = app.feed.tables().job(JobId(id)).await?;
    let seen = seen_by(caller);
    row.filter(|row| seen.allows(Some(row.account), Some(row.team)))
        .ok_or_else(|| Failure::not_found("job", id))
}

/// A job to filter by, of those that there can be.
pub fn job_id(id: u64) -> Result<JobId, Failure> {
    let known = i64::try_from(id).is_ok();
    known.then_some(JobId(id)).ok_or_else(|| Failure::bad_field("job", Wrong::NoJob))
}

/// How many items a page has.
pub fn page_size(limit: Option<u32>) -> Result<u32, Failure> {
    let limit = limit.unwrap_or(PAGE_DEFAULT);
    if (1..=PAGE_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(Failure::bad_field("limit", Wrong::Range { least: 1, most: PAGE_MAX.into() }))
    }
}

/// A JSON answer with a tag of its contents; only the tag, where the caller has it already.
pub fn tagged<T: serde::Serialize>(headers: &HeaderMap, value: &T) -> Result<Response, Failure> {
    let body = serde_json::to_vec(value).map_err(|e| Failure::internal(&e))?;
    let tag = format!("\"{}\"", &blake3::hash(&body).to_hex()[..22]);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|v| v.to_str().ok());
    let mut known = known.flat_map(|list| list.split(',')).map(|tag| tag.trim());
    let same = known.any(|known| known.trim_start_matches("W/") == tag || known == "*");
    let mut response = match same {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(body).into_response(),
    };
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Where an event stands, as its id says: `12.3`.
pub fn event_place(id: &str) -> Option<(u64, u32)> {
    let (seq, place) = id.split_once('.')?;
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !plain(seq) || !plain(place) {
        return None;
    }
    let seq: u64 = seq.parse().ok()?;
    Some((seq, place.parse().ok()?)).filter(|_| i64::try_from(seq).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_change_is_not_sent_again() {
        let first = tagged(&HeaderMap::new(), &[1, 2, 3]).unwrap();
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[header::ETAG].clone();
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, tag);
        assert_eq!(tagged(&headers, &[1, 2, 3]).unwrap().status(), StatusCode::NOT_MODIFIED);
        assert_eq!(tagged(&headers, &[1, 2]).unwrap().status(), StatusCode::OK);
    }

    #[test]
    fn only_the_id_of_an_event_is_a_place() {
        assert_eq!(event_place("12.3"), Some((12, 3)));
        for bad in ["", "12", "12.", ".3", "-1.3", "+1.3", "1.2.3", "99999999999999999999.0"] {
            assert_eq!(event_place(bad), None, "{bad}");
        }
        assert_eq!(event_place("18446744073709551615.0"), None);
    }

    #[test]
    fn a_page_has_a_size_within_limits() {
        assert_eq!(page_size(None).unwrap(), PAGE_DEFAULT);
        assert!(page_size(Some(0)).is_err() && page_size(Some(PAGE_MAX + 1)).is_err());
    }
}
