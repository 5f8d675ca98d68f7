//! A clock that is set back: nobody waits until it has caught up, limits and bills go by time that
//! passes, and what is told of time never runs backwards.

use std::path::Path;
use std::sync::Arc;

use era_app::clock::SystemClock;
use era_app::driver::{Driver, SegmentRules};
use era_cloud::clock::{ClockReading, MachineClock};
use era_core::units::Span;
use era_core::{Command, State};
use era_store::Store;
use serde_json::{Value, json};

use crate::harness::Platform;

/// A clock that is an hour ahead of this machine's.
fn ahead() -> SystemClock {
    let machine = MachineClock::system();
    SystemClock::new(MachineClock::new(move || ClockReading {
        wall: machine.now() + Span::from_h(1),
        steady: machine.steady(),
    }))
}

/// Lets the scheduler of a stopped server see that clock.
fn was_ahead(data: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(data).await.unwrap();
        let (journal, rules) = (store.journal(), SegmentRules::default());
        let (driver, _releases) =
            Driver::start(journal, Arc::new(ahead()), rules, State::default()).await.unwrap();
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
        // As instants: their texts leave out zeros at the end.
        let at = |job: &Value, what: &str| -> jiff::Timestamp {
            job[what].as_str().unwrap().parse().unwrap()
        };
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

/// A clock that is as far off as a file says. The supervisor, whose environment is its own, goes on
/// by the machine's.
const OFF: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, at);
    if (id == CLOCK_REALTIME && !failed) {
        long off = 0;
        FILE *file = fopen(getenv("CLOCK_OFF"), "r");
        if (file) { if (fscanf(file, "%ld", &off) != 1) off = 0; fclose(file); }
        at->tv_sec += off;
    }
    return failed;
}
"#;

#[test]
fn a_clock_that_is_set_back_while_jobs_run_lengthens_no_limit_and_pays_no_bill() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("off.c"), OFF).unwrap();
    std::fs::write(path("off"), "0").unwrap();
    let made = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o", &path("off.so"), &path("off.c"), "-ldl"])
        .status();
    assert!(made.unwrap().success());
    let (shared, off) = (path("off.so"), path("off"));
    let platform =
        Platform::start_with_env(&[("LD_PRELOAD", shared.as_str()), ("CLOCK_OFF", off.as_str())]);
    let busy = json!({
        "work": {"command": ["sleep", "60"]},
        "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 6},
    });
    let job = platform.submit(&busy);
    let runs = |job: &Value| (job["state"] == "running").then_some(());
    platform.wait_for("its start", &format!("/jobs/{job}"), runs);
    std::fs::write(path("off"), "-3600").unwrap();
    let begun = std::time::Instant::now();
    let ended = platform.ended(job);
    assert_eq!(ended["state"], "limit_reached", "{ended}");
    let cost = ended["cost"]["net"].as_str().unwrap().parse::<f64>().unwrap();
    assert!(cost > 0.0, "{ended}");
    let at = |what: &str| ended[what].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let ran = at("ended").duration_since(at("started")).as_secs();
    // It is told to stop a while before its limit.
    // Far less than the hour by which it was set back, however busy the machine is.
    assert!((2..1800).contains(&ran), "{ended}");
    assert!(begun.elapsed().as_secs() < 1800);
}
