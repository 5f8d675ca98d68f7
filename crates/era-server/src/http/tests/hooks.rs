//! What webhooks are told: a promise that was kept, a price that fell.

use std::io::{BufRead, BufReader};

use era_app::webhook::deliver::{Deliveries, TRIES_MAX, pause_ms};
use era_app::webhook::news::Watcher;
use era_store::accounts::{DeliveryRow, WebhookRow};

use super::*;

/// Somebody who takes what is sent, for as long as a test asks.
struct Taker(TcpListener);

impl Taker {
    fn new() -> Taker {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Taker(listener)
    }

    /// Sends what is due; all that arrived.
    async fn told(&self, house: &House) -> Vec<Value> {
        let sent = tokio::spawn({
            let app = house.app.clone();
            async move {
                let mut deliveries = Deliveries::new(EgressPolicy::Anywhere, app.clock.clone());
                loop {
                    deliveries.send_due(&app).await.unwrap();
                    if deliveries.is_idle() {
                        break;
                    }
                    deliveries.next_settled().await.unwrap();
                }
            }
        });
        let mut told = Vec::new();
        loop {
            let done = sent.is_finished();
            match self.0.accept() {
                Ok((stream, _)) => told.push(take(stream)),
                Err(_) if done => return told,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }
}

fn take(mut stream: TcpStream) -> Value {
    stream.set_nonblocking(false).unwrap();
    let mut read = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        read.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = bytes.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    read.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
    serde_json::from_slice(&body).unwrap()
}

async fn hook(house: &House, taker: &Taker, events: &str, below: Option<i64>) -> u64 {
    let url = format!("http://{}/", taker.0.local_addr().unwrap());
    hook_at(house, url, events, below).await
}

async fn hook_at(house: &House, url: String, events: &str, below: Option<i64>) -> u64 {
    let row = WebhookRow {
        id: 0,
        user: house.app.auth.directory().user_named("admin").unwrap().id.0,
        url,
        events: events.to_owned(),
        pool: below.map(|_| "main".to_owned()),
        below,
        was_below: false,
        secret: "secret".to_owned(),
        last: None,
        created: house.app.clock.machine().0 - 1000,
    };
    house.app.auth.rows().add_webhook(&row).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promise_that_starts_when_it_was_told_is_told_once() {
    let (house, admin) = with_a_node().await;
    let (taker, mut watcher) = (Taker::new(), Watcher::default());
    hook(&house, &taker, "reservation_kept,job_started", None).await;
    let journal = house.app.store.journal();
    watcher.look_at_journal(&house.app, &journal).await.unwrap();
    let deadline = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
    let job = json!({ "work": { "command": ["true"] }, "value": "1000",
        "ask": { "resources": { "cpu": "1" }, "duration_s": 60, "deadline": deadline.to_string() } });
    let made = house.ask(&admin, "POST", "/jobs", Some(job)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let job = era_core::units::JobId(made.body["job"].as_u64().unwrap());
    // All starts cost the same, so it is the first.
    assert_eq!(house.app.driver.snapshot().job(job).unwrap().state(), "running");
    watcher.look_at_journal(&house.app, &journal).await.unwrap();
    let told = taker.told(&house).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        (&told[0]["event"], &told[0]["job"]),
        (&json!("reservation_kept"), &made.body["job"])
    );
    let started = json!({ "type": "started",
        "task": { "job": made.body["job"], "part": 0, "attempt": 1, "rank": 0 } });
    house.app.driver.ask(serde_json::from_value(started).unwrap(), None).await.unwrap();
    watcher.look_at_journal(&house.app, &journal).await.unwrap();
    let told = taker.told(&house).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["event"], "job_started");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_price_that_falls_below_a_limit_is_told_once_each_time() {
    let (house, admin) = with_a_node().await;
    let (taker, mut watcher) = (Taker::new(), Watcher::default());
    let rate = async |rate: &str| {
        let pool = json!({ "name": "main", "cpu_rate": rate, "memory_rate": "0", "gpu_rate": "0",
            "closed_share": 0 });
        assert_eq!(house.ask(&admin, "PUT", "/pools/main", Some(pool)).await.status, 204);
    };
    let market = house.ask(&admin, "GET", "/market", None).await.body;
    let now = &market["pools"][0]["now"]["cpu"];
    let now: era_api::Credits =
        serde_json::from_value(now.clone()).unwrap_or_else(|_| panic!("{market}"));
    hook(&house, &taker, "price_below", Some(now.0 + 1)).await;
    watcher.look_at_prices(&house.app).await.unwrap();
    let told = taker.told(&house).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["event"], &told[0]["pool"]), (&json!("price_below"), &json!("main")));
    watcher.look_at_prices(&house.app).await.unwrap();
    assert_eq!(taker.told(&house).await, [] as [Value; 0], "it is still below");
    rate("50").await;
    watcher.look_at_prices(&house.app).await.unwrap();
    rate("1").await;
    watcher.look_at_prices(&house.app).await.unwrap();
    assert_eq!(taker.told(&house).await.len(), 1, "it fell again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_never_answers_holds_up_no_other_and_no_stop() {
    let (house, _) = with_a_node().await;
    // Connections are made, and nobody takes them.
    let (silent, taker) = (Taker::new(), Taker::new());
    let rows = house.app.auth.rows();
    let due = |webhook, origin: usize| DeliveryRow {
        id: 0,
        webhook,
        origin: origin.to_string(),
        body: json!({ "origin": origin }).to_string(),
        tries: 0,
        due: house.app.clock.machine().0 - 1000,
        created: house.app.clock.machine().0 - 1000,
    };
    let (dead, live) =
        (hook(&house, &silent, "job_started", None).await, hook(&house, &taker, "x", None).await);
    let waiting: Vec<_> = (0..200).map(|origin| due(dead, origin)).collect();
    rows.post(&waiting, None).await.unwrap();
    rows.post(&[due(live, 1), due(live, 2)], None).await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let journal = house.app.store.journal();
    let running =
        era_app::webhook::run(house.app.0.clone(), journal, EgressPolicy::Anywhere, stop.clone());
    let running = tokio::spawn(running);
    let told = async {
        let mut told = Vec::new();
        while told.len() < 2 {
            match taker.0.accept() {
                Ok((stream, _)) => told.push(take(stream)["origin"].as_u64().unwrap()),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        told
    };
    // All that waits for the silent one would take two minutes, sixteen at a time.
    let told = tokio::time::timeout(Duration::from_secs(60), told).await.unwrap();
    assert_eq!(told, [1, 2]);
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(60), running).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_takes_is_tried_again_later_each_time_and_given_up_in_the_end() {
    let house = house_with(Wishes { clock_stands: true, ..Wishes::default() }).await;
    let rows = house.app.auth.rows();
    // Nobody listens there.
    let webhook = hook_at(&house, "http://127.0.0.1:1/".to_owned(), "job_started", None).await;
    let now = house.app.clock.machine().0;
    let (origin, body) = ("1.0.job_started".to_owned(), "{}".to_owned());
    let row = DeliveryRow { id: 0, webhook, origin, body, tries: 0, due: now, created: now };
    rows.post(&[row], None).await.unwrap();
    let mut deliveries = Deliveries::new(EgressPolicy::Anywhere, house.app.clock.clone());
    let mut tries = 0;
    while !rows.webhooks_due().await.unwrap().is_empty() {
        let wait = deliveries.send_due(&house.app).await.unwrap();
        if deliveries.is_idle() {
            assert!(!wait.is_zero(), "it is due, and nothing is sent");
            house.pass(Span(i64::try_from(wait.as_millis()).unwrap()));
            continue;
        }
        deliveries.next_settled().await.unwrap();
        tries += 1;
        assert!(tries <= TRIES_MAX);
    }
    assert_eq!(tries, TRIES_MAX);
    let passed = house.app.clock.machine().0 - now;
    assert_eq!(passed, (0..TRIES_MAX - 1).map(pause_ms).sum::<i64>());
    let last = rows.webhook(webhook).await.unwrap().unwrap().last.unwrap();
    assert!(last.contains("given up"), "{last}");
}
