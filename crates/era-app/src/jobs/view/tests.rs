use era_api::account::{Role, Scope};
use era_core::units::{GroupId, UserId};
use era_store::Note;

use super::*;
use crate::error::Kind;
use crate::feed::tests::Site;

fn caller(user: u32, role: Role) -> Caller {
    Caller {
        user: UserId(user),
        name: if user == 1 { "ada" } else { "bob" }.to_owned(),
        group: GroupId(user),
        role,
        scopes: vec![Scope::Read],
    }
}

async fn listed(
    site: &Site,
    caller: Caller,
    filter: JobFilter,
) -> Result<Page<JobSummary>, AppError> {
    list(&site.app, &caller, &filter).await
}

#[tokio::test]
async fn a_user_sees_own_jobs_and_an_administrator_all_and_foreign_ones_do_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let (adas, _) = site.submit(1).await;
    let (bobs, _) = site.submit(2).await;
    let ids = async |caller: Caller| {
        let page = listed(&site, caller, JobFilter::default()).await.unwrap();
        page.items.iter().map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(caller(1, Role::User)).await, [adas]);
    assert_eq!(ids(caller(2, Role::GroupAdministrator)).await, [bobs]);
    assert_eq!(ids(caller(1, Role::Administrator)).await, [bobs, adas]);
    let ada = caller(1, Role::User);
    for refused in [
        get(&site.app, &ada, bobs).await.err(),
        get(&site.app, &ada, 999).await.err(),
        timeline(&site.app, &ada, bobs, &TimelineFilter::default()).await.err(),
        explain(&site.app, &ada, bobs).await.err(),
    ] {
        assert_eq!(refused.unwrap().0.kind, Kind::NotFound);
    }
    site.stop().await;
}

#[tokio::test]
async fn jobs_are_asked_for_by_number_and_those_that_left_the_filter_or_are_others_do_not_come() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let (first, _) = site.submit(1).await;
    let (second, _) = site.submit(1).await;
    let (bobs, _) = site.submit(2).await;
    let ids = async |caller: Caller, state: Option<&str>| {
        let ids = Some(format!("{first},{second},{bobs},99999"));
        let filter = JobFilter { ids, state: state.map(str::to_owned), ..JobFilter::default() };
        let page = listed(&site, caller, filter).await.unwrap();
        page.items.iter().map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(caller(1, Role::User), Some("waiting")).await, [second, first]);
    assert_eq!(ids(caller(1, Role::Administrator), None).await, [bobs, second, first]);
    let cancel = serde_json::json!({"type": "cancel", "job": first, "by": {"user": 1}});
    site.done(cancel, Note::default()).await;
    assert_eq!(ids(caller(1, Role::User), Some("waiting")).await, [second]);
    let many = Some(vec!["1"; 101].join(","));
    let refused =
        listed(&site, caller(1, Role::User), JobFilter { ids: many, ..JobFilter::default() });
    assert_eq!(refused.await.unwrap_err().0.field.as_deref(), Some("ids"));
    site.stop().await;
}

/// What a job asks of its queue that takes the whole node.
fn of_the_queue() -> serde_json::Value {
    let request = serde_json::json!({
        "shape": {"replicas": {"min": 1, "max": 1}},
        "each": {"cpu": "8", "memory": "1Gi"},
        "duration": 60_000,
        "window": {"earliest": 0, "deadline": 253_402_300_799_000_i64},
    });
    serde_json::json!({"queue": {"request": request, "queue": {"queue": "default"}}})
}

#[tokio::test]
async fn a_waiting_job_says_why_and_who_is_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let (first, _) = site.submit(1).await;
    let (second, _) = site.submit(1).await;
    let ada = caller(1, Role::User);
    let told = explain(&site.app, &ada, second).await.unwrap();
    assert_eq!((told.state.as_str(), told.position), ("waiting", Some(2)));
    assert_eq!(told.ahead, [first]);
    // Whoever waits for another job is not in the line yet.
    let after = serde_json::json!([{"job": second, "when": "ok"}]);
    let job = serde_json::json!({"user": 1, "terms": of_the_queue(), "after": after});
    site.done(serde_json::json!({"type": "submit", "job": job}), Note::default()).await;
    assert!(site.app.wait_for(site.app.driver.snapshot().seq()).await);
    let told = explain(&site.app, &ada, second + 1).await.unwrap();
    assert_eq!((told.why.as_deref(), told.ahead), (Some("after"), vec![]));
    let all = TimelineFilter::default();
    let lines = timeline(&site.app, &ada, second, &all).await.unwrap().items;
    assert_eq!(lines[0].sentence, "waits in queue default");
    site.stop().await;
}

#[tokio::test]
async fn a_list_says_when_those_that_wait_are_likely_to_start_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    // Each takes the whole node, and is never told to run: the second one waits for the first.
    for name in ["first", "second"] {
        let job = serde_json::json!({"user": 1, "name": name, "terms": of_the_queue()});
        site.done(serde_json::json!({"type": "submit", "job": job}), Note::default()).await;
    }
    site.done(serde_json::json!({"type": "pass"}), Note::default()).await;
    let ask = |likely| JobFilter { likely, ..JobFilter::default() };
    let page = listed(&site, caller(1, Role::User), ask(Some(true))).await.unwrap();
    let [second, first] = &page.items[..] else { panic!("{page:?}") };
    assert_eq!((first.state, first.likely_start), (JobState::Starting, None));
    assert_eq!(second.state, JobState::Waiting);
    assert!(second.likely_start.is_some_and(|start| start > first.submitted), "{second:?}");
    let plain = listed(&site, caller(1, Role::User), ask(None)).await.unwrap();
    assert_eq!(plain.items[0].likely_start, None, "it is not worked out unasked");
    site.stop().await;
}

#[tokio::test]
async fn a_page_goes_on_where_the_one_before_ended_and_bad_cursors_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    for _ in 0..3 {
        site.submit(1).await;
    }
    let ask = |cursor: Option<String>| JobFilter { cursor, limit: Some(2), ..JobFilter::default() };
    let ada = || caller(1, Role::User);
    let page = listed(&site, ada(), ask(None)).await.unwrap();
    assert_eq!(page.items.len(), 2);
    let rest = listed(&site, ada(), ask(page.next.clone())).await.unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));
    let others = listed(&site, caller(2, Role::User), ask(page.next)).await.unwrap_err();
    assert_eq!(others.0.field.as_deref(), Some("cursor"));
    let bad = JobFilter { state: Some("done".into()), ..JobFilter::default() };
    assert_eq!(listed(&site, ada(), bad).await.unwrap_err().0.field.as_deref(), Some("state"));
    site.stop().await;
}
