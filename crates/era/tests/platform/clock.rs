//! A clock that was ahead and was set back: nobody waits until it has caught up, and what is told of
//! time never runs backwards.

use std::path::Path;
use std::sync::Arc;

use era_core::units::{Span, Time};
use era_core::{Command, State};
use era_server::clock::{Clock, SystemClock};
use era_server::driver::{Driver, Rules};
use era_store::Store;
use serde_json::{Value, json};

use crate::harness::Platform;

/// A clock that is an hour ahead of this machine's.
struct Ahead;

impl Clock for Ahead {
    fn now(&self) -> Time {
        SystemClock.now() + Span::from_h(1)
    }
}

/// Lets the scheduler of a stopped server see that clock.
fn was_ahead(data: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(data).await.unwrap();
        let (journal, rules) = (store.journal(), Rules::default());
        let (driver, _releases) =
            Driver::start(journal, Arc::new(Ahead), rules, State::default()).await.unwrap();
        driver.handle().ask(Command::Tick, None).await.unwrap();
        driver.stop().await.unwrap();
        store.close().await;
    });
}

fn job(deadline: Option<jiff::Timestamp>) -> Value {
    let mut job = json!({
        "work": {"command": ["true"]},
        "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 60},
    });
    if let Some(deadline) = deadline {
        job["ask"]["deadline"] = json!(deadline.to_string());
        job["value"] = json!("50");
    }
    job
}

#[test]
fn a_clock_that_was_set_back_by_an_hour_holds_up_nobody() {
    let mut platform = Platform::start();
    let first = platform.ended(platform.submit(&job(None)));
    assert!(platform.stop());
    was_ahead(&platform.data());
    platform.restart();
    // Work for a queue, and a promise that is due at once.
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(3);
    for job in [job(None), job(Some(soon))] {
        let ended = platform.ended(platform.submit(&job));
        assert_eq!(ended["state"], "succeeded", "{ended}");
        let at = |job: &Value, what: &str| job[what].as_str().unwrap().to_owned();
        assert!(at(&ended, "submitted") > at(&first, "ended"), "{ended}");
        assert!(at(&ended, "ended") >= at(&ended, "started"), "{ended}");
    }
    // Accounts go by the machine's own clock.
    let login = json!({"label": "new", "scopes": ["read"], "valid_s": 60});
    let (status, made) = platform.send("POST", "/tokens", &login);
    assert_eq!(status, 201, "{made}");
    let market = platform.get("/market");
    assert_eq!(market["promises_kept"], market["promises_due"], "{market}");
    assert!(platform.stop());
    platform.restart();
    assert_eq!(platform.get("/jobs")["items"].as_array().map(Vec::len), Some(3));
}
