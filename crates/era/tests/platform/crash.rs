//! `kill -9` at a random moment under load, and a restart: nothing that was acknowledged is lost,
//! nothing runs twice, what runs is found again, the money balances, and the journal replays.
//!
//! Ten times here; `ERA_CRASHES` sets another number, and `make soak-crashes` asks for a thousand.
//! The moments follow from `PROPTEST_RNG_SEED`, which is printed.

use std::collections::BTreeMap;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Platform, exchange};

/// Clients that hand in jobs at the same time.
const CLIENTS: usize = 4;
/// How long all jobs may take to end after the last restart.
const SETTLED_MAX: Duration = Duration::from_secs(120);

/// Keys that were sent, each with its job once that was acknowledged.
type Book = Arc<Mutex<BTreeMap<String, Option<u64>>>>;

#[test]
fn what_was_acknowledged_survives_the_death_of_the_server() {
    let crashes = std::env::var("ERA_CRASHES").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    eprintln!("PROPTEST_RNG_SEED={seed}");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ seed;
    let mut platform = Platform::start();
    let (book, mut outlived) = (Book::default(), Vec::new());
    for round in 0..crashes {
        let long = platform.submit(&across_a_crash());
        let runs = |job: &Value| (job["state"] == "running").then_some(());
        platform.wait_for("a job that runs", &format!("/jobs/{long}"), runs);
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (book, stop) = (book.clone(), stop.clone());
                let (address, token) = (platform.address().to_owned(), platform.token());
                let name = format!("{round}-{client}");
                std::thread::spawn(move || hand_in(&address, &token, &name, &book, &stop))
            })
            .collect();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis(50 + (random >> 33) % 500));
        platform.kill();
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().unwrap();
        }
        platform.restart();
        repeat_what_was_not_answered(&platform, &book);
        std::fs::write(platform.outputs(long).join("go"), "").unwrap();
        outlived.push(long);
    }
    let book = book.lock().unwrap().clone();
    assert!(book.len() > crashes, "hardly anything was handed in: {}", book.len());
    let jobs = settled(&platform);
    for (key, job) in &book {
        let job = job.unwrap_or_else(|| panic!("{key} was never acknowledged"));
        let found = jobs.get(&job).unwrap_or_else(|| panic!("job {job} is lost"));
        assert_eq!(found["state"], "succeeded", "{found}");
        let ran = std::fs::read_to_string(platform.outputs(job).join("ran")).unwrap_or_default();
        assert_eq!(ran, "once\n", "job {job} did not run exactly once");
    }
    for long in &outlived {
        let found = jobs.get(long).unwrap_or_else(|| panic!("job {long} is lost"));
        assert_eq!(found["state"], "succeeded", "{found}");
        let attempts = &platform.get(&format!("/jobs/{long}"))["attempts"];
        assert_eq!(attempts, 1, "it was to be found again, and not started again");
        let ran = std::fs::read_to_string(platform.outputs(*long).join("ran")).unwrap();
        assert_eq!(ran, "once\n", "job {long} did not run exactly once");
    }
    let all = book.len() + outlived.len();
    assert_eq!(jobs.len(), all, "a repeated submission made another job");
    money_balances(&platform, &jobs);
    let journal = platform.home().join("journal.ndjson");
    platform.ok(&["admin", "journal", journal.to_str().unwrap()]);
    platform.ok(&["replay", journal.to_str().unwrap()]);
}

/// Runs until the server was killed and is there again.
fn across_a_crash() -> Value {
    let script = "echo once >> outputs/ran; until [ -e outputs/go ]; do sleep 0.1; done";
    json!({
        "work": {"command": ["sh", "-c", script]},
        "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 600},
    })
}

/// Some end at once, some run across the crash.
fn body(nth: u64) -> String {
    let script = format!("echo once >> outputs/ran; sleep 0.{}", nth % 10);
    json!({
        "work": {"command": ["sh", "-c", script]},
        "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 60},
    })
    .to_string()
}

fn hand_in(address: &str, token: &str, name: &str, book: &Book, stop: &AtomicBool) {
    for nth in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let key = format!("{name}-{nth}");
        book.lock().unwrap().insert(key.clone(), None);
        match submit(address, token, &key, nth) {
            Some(job) => book.lock().unwrap().insert(key, Some(job)),
            None => return,
        };
        std::thread::sleep(Duration::from_millis(15));
    }
}

/// The job's number, if the server acknowledged it.
fn submit(address: &str, token: &str, key: &str, nth: u64) -> Option<u64> {
    let headers = format!("authorization: Bearer {token}\r\nidempotency-key: {key}\r\n");
    let (status, answer) = exchange(address, "POST", "/api/v1/jobs", &headers, &body(nth)).ok()?;
    assert_eq!(status, 201, "{answer}");
    serde_json::from_str::<Value>(&answer).ok()?["job"].as_u64()
}

/// A client that got no answer asks again with the same key: one job comes of it, not two.
fn repeat_what_was_not_answered(platform: &Platform, book: &Book) {
    let mut book = book.lock().unwrap();
    for (key, job) in book.iter_mut().filter(|(_, job)| job.is_none()) {
        let nth = key.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        *job = submit(platform.address(), &platform.token(), key, nth);
        assert!(job.is_some(), "{key} is refused after the restart");
    }
}

/// All jobs, once none is under way.
fn settled(platform: &Platform) -> BTreeMap<u64, Value> {
    let until = Instant::now() + SETTLED_MAX;
    loop {
        let active = platform.get("/jobs?state=active&limit=1");
        if active["items"].as_array().is_some_and(Vec::is_empty) {
            break;
        }
        assert!(Instant::now() < until, "jobs do not end: {active}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let (mut jobs, mut cursor) = (BTreeMap::new(), String::new());
    loop {
        let page = platform.get(&format!("/jobs?limit=1000{cursor}"));
        for job in page["items"].as_array().unwrap() {
            jobs.insert(job["id"].as_u64().unwrap(), job.clone());
        }
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return jobs,
        }
    }
}

#[test]
fn what_runs_when_its_supervisor_is_killed_runs_again_and_never_beside_itself() {
    const KILLS: usize = 3;
    let platform = Platform::start();
    // Whoever finds the lock taken is not alone.
    let script = |then: &str| {
        format!(
            "exec 9> outputs/lock; flock -n 9 || echo both > outputs/both; \
             echo once >> outputs/ran; {then}"
        )
    };
    let job = |then: &str| {
        platform.submit(&json!({
            "work": {"command": ["sh", "-c", script(then)]},
            "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 600},
        }))
    };
    let long = job("until [ -e outputs/go ]; do sleep 0.05; done");
    let mut all = vec![long];
    for kill in 0..KILLS {
        platform.wait_for("an attempt that runs", &format!("/jobs/{long}"), |found| {
            let runs = found["state"] == "running" && found["attempts"] == json!(kill + 1);
            runs.then_some(())
        });
        all.extend((0..6).map(|nth| job(&format!("sleep 0.{nth}"))));
        std::thread::sleep(Duration::from_millis(100 * kill as u64));
        platform.kill_supervisor();
        // Some are ordered while there is none.
        all.extend((0..6).map(|nth| job(&format!("sleep 0.{nth}"))));
    }
    platform.wait_for("the last attempt", &format!("/jobs/{long}"), |found| {
        let runs = found["state"] == "running" && found["attempts"] == json!(KILLS + 1);
        runs.then_some(())
    });
    std::fs::write(platform.outputs(long).join("go"), "").unwrap();
    for job in all {
        let ended = platform.ended(job);
        let printed = platform.ok(&["logs", &job.to_string()]);
        assert_eq!(ended["state"], "succeeded", "{ended}; it printed {printed}");
        assert!(!platform.outputs(job).join("both").exists(), "two attempts at once: {ended}");
        let ran = std::fs::read_to_string(platform.outputs(job).join("ran")).unwrap();
        let (ran, attempts) = (ran.lines().count() as u64, ended["attempts"].as_u64().unwrap());
        assert!((1..=attempts).contains(&ran), "it ran {ran} times: {ended}");
    }
}

#[test]
fn what_ends_while_the_server_is_away_is_dated_and_billed_as_it_ended() {
    let mut platform = Platform::start();
    let job = |value: Option<&str>, limit_s: i64| {
        let script =
            "until test -e $ERA_OUTPUTS/go; do sleep 0.05; done; date +%s%3N > $ERA_OUTPUTS/end";
        let mut job = json!({
            "work": {"command": ["/bin/sh", "-c", script]},
            "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": limit_s},
        });
        if let Some(value) = value {
            job["value"] = json!(value);
            // Which is cheaper nowhere later than now.
            let deadline = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(limit_s + 20);
            job["ask"]["deadline"] = json!(deadline.to_string());
        }
        platform.submit(&job)
    };
    // Of two the limit passes while nobody is there, long after they ended.
    let jobs = [(None, 100), (Some("1000"), 100), (None, 20), (Some("1000"), 20)];
    let jobs = jobs.map(|(value, limit_s)| (job(value, limit_s), value.is_some(), limit_s * 1000));
    for (job, ..) in jobs {
        let runs = |job: &Value| (job["state"] == "running").then_some(());
        platform.wait_for("a job that runs", &format!("/jobs/{job}"), runs);
    }
    platform.kill();
    for (job, ..) in jobs {
        std::fs::write(platform.outputs(job).join("go"), "").unwrap();
    }
    std::thread::sleep(Duration::from_secs(22));
    let back = jiff::Timestamp::now().as_millisecond();
    platform.restart();
    for (job, promised, limit_ms) in jobs {
        let ended = platform.ended(job);
        assert_eq!(ended["state"], "succeeded", "{ended}");
        let said = std::fs::read_to_string(platform.outputs(job).join("end")).unwrap();
        let said: i64 = said.trim().parse().unwrap();
        let at = |what: &str| {
            let at: jiff::Timestamp = ended[what].as_str().unwrap().parse().unwrap();
            at.as_millisecond()
        };
        assert!((said..back).contains(&at("ended")), "it ended at {said}: {ended}");
        // What it paid is for what it ran, a fifth of the rest of a promise's time included.
        let micro = |what: &str| {
            ended["cost"][what].as_str().unwrap().parse::<era_api::Credits>().unwrap().0
        };
        let ran_ms = at("ended") - at("submitted");
        let most = match promised {
            false => micro("charged") * (ran_ms + 500) / limit_ms,
            true => micro("charged") * (ran_ms + 500 + (limit_ms - ran_ms) / 5) / limit_ms,
        };
        assert!((1..=most).contains(&micro("net")), "at most {most}: {ended}");
        // So say the rows of its tasks, and whatever is added up from them.
        let tasks = platform.get(&format!("/jobs/{job}"))["tasks"].clone();
        assert_eq!(tasks.as_array().map(Vec::len), Some(1), "{tasks}");
        let task: jiff::Timestamp = tasks[0]["ended"].as_str().unwrap().parse().unwrap();
        assert!((said..back).contains(&task.as_millisecond()), "{tasks} of {ended}");
    }
}

#[test]
fn whoever_waits_for_jobs_is_told_their_end_though_the_server_was_away() {
    let mut platform = Platform::start();
    let script =
        "echo began; while [ ! -f $ERA_OUTPUTS/go ]; do sleep 0.05; done; echo over; exit 7";
    let run = |more: &[&str]| {
        let asked = ["run", "-y", "--cpu", "0.1", "--memory", "64Mi", "--time", "5m"];
        let mut command = platform.era();
        command.args(asked).args(more).args(["--no-outputs", "--", "sh", "-c", script]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let one = run(&[]);
    let running = |wanted: usize| {
        move |jobs: &Value| (jobs["items"].as_array()?.len() == wanted).then(|| jobs.clone())
    };
    platform.wait_for("a job that runs", "/jobs?state=running", running(1));
    let several = run(&["--array", "0-1"]);
    let jobs = platform.wait_for("an array that runs", "/jobs?state=running", running(3));
    platform.kill();
    // Whoever asks meanwhile finds nobody.
    std::thread::sleep(Duration::from_secs(5));
    platform.restart();
    for job in jobs["items"].as_array().unwrap() {
        std::fs::write(platform.outputs(job["id"].as_u64().unwrap()).join("go"), "").unwrap();
    }
    for (waiting, printed) in [(one, "began\nover\n"), (several, "")] {
        let Output { status, stdout, stderr } = waiting.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&stderr);
        assert_eq!(told.matches("trying again").count(), 1, "{told}");
        assert_eq!(status.code(), Some(7), "{told}");
        assert_eq!(String::from_utf8_lossy(&stdout), printed, "{told}");
    }
}

/// What the wallet holds and what the jobs have cost is what was granted.
fn money_balances(platform: &Platform, jobs: &BTreeMap<u64, Value>) {
    let micro = |amount: &Value| {
        let text = amount.as_str().unwrap().to_owned();
        text.parse::<era_api::Credits>().unwrap().0
    };
    let mut spent = 0;
    for id in jobs.keys() {
        spent += micro(&platform.get(&format!("/jobs/{id}"))["cost"]["net"]);
    }
    let wallet = platform.get("/users/admin/wallet");
    assert_eq!(micro(&wallet["escrow"]), 0, "{wallet}");
    assert_eq!(micro(&wallet["balance"]) + spent, 1_000_000_000_000, "{wallet}");
}
