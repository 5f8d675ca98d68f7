//! What stands behind the `?`: what is known is read, and the rest refused by its name.

use super::*;

#[tokio::test]
async fn no_operation_passes_over_a_parameter_that_it_does_not_know() {
    let server = server().await;
    let admin = server.administrator().await;
    let document = serde_json::to_value(crate::http::openapi::document()).unwrap();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(path) = path.strip_prefix(era_api::PREFIX) else { continue };
        // A number is a name, too.
        let steps = path.split('/').map(|step| if step.starts_with('{') { "7" } else { step });
        let path = format!("{}?nonesuch=1", steps.collect::<Vec<_>>().join("/"));
        for method in item.as_object().unwrap().keys() {
            let refused = server.ask(&admin, &method.to_uppercase(), &path, None).await;
            assert_eq!(refused.status, 400, "{method} {path}: {}", refused.body);
            // Whoever asks for the head alone is told no more.
            if method != "head" {
                assert_eq!(refused.body["code"], "bad_query", "{method} {path}");
                assert_eq!(refused.body["field"], "nonesuch", "{method} {path}");
            }
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

#[tokio::test]
async fn a_misspelt_parameter_is_told_with_the_nearest_known_one() {
    let server = server().await;
    let admin = server.administrator().await;
    for (method, path, given, meant) in [
        ("GET", "/jobs?stat=running", "stat", "state"),
        ("POST", "/jobs/4/cancel?arry=true", "arry", "array"),
        ("GET", "/data?serch=mnist", "serch", "search"),
        ("GET", "/data/ada/mnist/files?prefx=a", "prefx", "prefix"),
        ("GET", "/users?limt=5", "limt", "limit"),
        ("GET", "/nodes?pol=main", "pol", "pool"),
        ("GET", "/queues?polcy=fifo", "polcy", "policy"),
        ("GET", "/events?evnt=ended", "evnt", "event"),
        ("GET", "/audit?wo=ada", "wo", "who"),
        ("GET", "/wallets/admin/spending?step=3600", "step", "step_s"),
        ("GET", "/market/main/calendar?form=2026-01-01T00:00:00Z", "form", "from"),
        ("GET", "/market/main/history?point=9", "point", "points"),
        ("GET", "/nodes/n/bookings?form=2026-01-01T00:00:00Z", "form", "from"),
        ("GET", "/jobs/4/outputs?archiv=tar", "archiv", "archive"),
        ("PUT", "/blobs/7?ofset=1", "ofset", "offset"),
    ] {
        let refused = server.ask(&admin, method, path, None).await;
        assert_eq!((refused.status.as_u16(), &refused.body["field"]), (400, &json!(given)));
        let told = format!("in the query: unknown field `{given}`: did you mean `{meant}`?");
        assert_eq!(refused.body["detail"], told, "{path}");
    }
    let refused = server.ask(&admin, "GET", "/nodes/n?pool=main", None).await;
    assert_eq!((refused.status.as_u16(), &refused.body["field"]), (400, &json!("pool")));
    let told = "in the query: unknown field `pool`: none is known here";
    assert_eq!(refused.body["detail"], told);
    assert_eq!(server.ask(&admin, "GET", "/nodes?", None).await.status, 200, "nothing is asked");
    let state = server.ask(&admin, "GET", "/jobs?state=runing", None).await;
    assert_eq!((state.status.as_u16(), &state.body["field"]), (422, &json!("state")));
    assert_eq!(state.body["parameters"]["meant"], "running", "{}", state.body);
}
