//! Accounts beside the first: where there may be any, and what those who lead a group may do.

use serde_json::json;

use crate::harness::Platform;

#[test]
fn without_root_a_second_account_needs_a_word_that_names_the_risk() {
    let Some(mut platform) = Platform::start_without_root(&[]) else { return };
    let new = json!({"name": "ada", "password": "correct horse battery"});
    let (status, refused) = platform.send("POST", "/users", &new);
    assert_eq!((status, &refused["code"]), (403, &json!("shared_user")), "{refused}");
    // Whoever started it uses it as before.
    let job = platform.submit(&json!({
        "work": {"command": ["true"]},
        "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 60},
    }));
    assert_eq!(platform.ended(job)["state"], "succeeded");
    assert!(platform.stop());
    platform.restart_with(&["--insecure-shared-user"]);
    let (status, made) = platform.send("POST", "/users", &new);
    assert_eq!(status, 201, "{made}");
    assert!(platform.stop());
    let (code, said) = platform.fails_to_start_with(&[]);
    assert_ne!(code, Some(0), "{said}");
    assert!(said.contains("--insecure-shared-user"), "{said}");
}
