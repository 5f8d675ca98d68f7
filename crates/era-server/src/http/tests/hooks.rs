//! What webhooks are told: a promise that was kept, a price that fell.

use std::io::{BufRead, BufReader};

use era_app::webhook::deliver::{Deliveries, TRIES_MAX, pause_ms};
use era_app::webhook::watch::look_at_prices;
use era_store::accounts::{DeliveryRow, WebhookRow};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;

/// Somebody who takes what is sent, for as long as a test asks.
struct Taker(TcpListener);

impl Taker {
    fn new() -> Taker {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Taker(listener)
    }

    /// What arrives next.
    async fn next(&self) -> Value {
        for _ in 0..12_000 {
            match self.0.accept() {
                Ok((stream, _)) => return take(stream),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        panic!("nothing arrives");
    }

    /// Sends what is due; all that arrived.
    async fn told(&self, server: &TestServer) -> Vec<Value> {
        let sent = tokio::spawn({
            let app = server.app.clone();
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

/// Watches and delivers, until it is stopped.
fn run(server: &TestServer) -> (JoinHandle<()>, CancellationToken) {
    let stop = CancellationToken::new();
    let (app, journal) = (server.app.0.clone(), server.app.store.journal());
    let running = era_app::webhook::run(app, journal, EgressPolicy::Anywhere, stop.clone());
    (tokio::spawn(running), stop)
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

async fn hook(server: &TestServer, taker: &Taker, events: &str, below: Option<i64>) -> u64 {
    let url = format!("http://{}/", taker.0.local_addr().unwrap());
    hook_at(server, url, events, below).await
}

async fn hook_at(server: &TestServer, url: String, events: &str, below: Option<i64>) -> u64 {
    let row = WebhookRow {
        id: 0,
        user: server.app.auth.directory().user_named("admin").unwrap().id.0,
        url,
        events: events.to_owned(),
        pool: below.map(|_| "main".to_owned()),
        below,
        was_below: false,
        secret: "secret".to_owned(),
        last: None,
        created: server.app.clock.machine().0 - 1000,
    };
    server.app.auth.rows().add_webhook(&row).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promise_that_starts_when_it_was_told_is_told_once() {
    let (server, admin) = with_a_node().await;
    let taker = Taker::new();
    hook(&server, &taker, "reservation_kept,job_started", None).await;
    // From here on.
    server.app.auth.rows().webhook_cursor(server.app.driver.snapshot().seq()).await.unwrap();
    let (_, stop) = run(&server);
    let deadline = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
    let job = json!({ "work": { "command": ["true"] }, "value": "1000",
        "ask": { "resources": { "cpu": "1" }, "duration_s": 60, "deadline": deadline.to_string() } });
    let made = server.ask(&admin, "POST", "/jobs", Some(job)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let job = era_core::units::JobId(made.body["job"].as_u64().unwrap());
    // All starts cost the same, so it is the first.
    assert_eq!(server.app.driver.snapshot().job(job).unwrap().state(), "running");
    let told = taker.next().await;
    assert_eq!((&told["event"], &told["job"]), (&json!("reservation_kept"), &made.body["job"]));
    let started = json!({ "type": "started",
        "task": { "job": made.body["job"], "part": 0, "attempt": 1, "rank": 0 } });
    server.app.driver.ask(serde_json::from_value(started).unwrap(), None).await.unwrap();
    // One follows the other: the first was told once.
    assert_eq!(taker.next().await["event"], "job_started");
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_price_that_falls_below_a_limit_is_told_once_each_time() {
    let (server, admin) = with_a_node().await;
    let taker = Taker::new();
    let rate = async |rate: &str| {
        let pool = json!({ "name": "main", "cpu_rate": rate, "memory_rate": "0", "gpu_rate": "0",
            "closed_share": 0 });
        assert_eq!(server.ask(&admin, "PUT", "/pools/main", Some(pool)).await.status, 204);
    };
    let market = server.ask(&admin, "GET", "/market", None).await.body;
    let now = &market["pools"][0]["now"]["cpu"];
    let now: era_api::Credits =
        serde_json::from_value(now.clone()).unwrap_or_else(|_| panic!("{market}"));
    hook(&server, &taker, "price_below", Some(now.0 + 1)).await;
    look_at_prices(&server.app).await.unwrap();
    let told = taker.told(&server).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["event"], &told[0]["pool"]), (&json!("price_below"), &json!("main")));
    look_at_prices(&server.app).await.unwrap();
    assert_eq!(taker.told(&server).await, [] as [Value; 0], "it is still below");
    rate("50").await;
    look_at_prices(&server.app).await.unwrap();
    rate("1").await;
    look_at_prices(&server.app).await.unwrap();
    assert_eq!(taker.told(&server).await.len(), 1, "it fell again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_never_answers_holds_up_no_other_and_no_stop() {
    let (server, _) = with_a_node().await;
    // Connections are made, and nobody takes them.
    let (silent, taker) = (Taker::new(), Taker::new());
    let rows = server.app.auth.rows();
    let due = |webhook, origin: usize| DeliveryRow {
        id: 0,
        webhook,
        origin: origin.to_string(),
        body: json!({ "origin": origin }).to_string(),
        tries: 0,
        due: server.app.clock.machine().0 - 1000,
        created: server.app.clock.machine().0 - 1000,
    };
    let (dead, live) =
        (hook(&server, &silent, "job_started", None).await, hook(&server, &taker, "x", None).await);
    let waiting: Vec<_> = (0..200).map(|origin| due(dead, origin)).collect();
    rows.post(&waiting, None).await.unwrap();
    rows.post(&[due(live, 1), due(live, 2)], None).await.unwrap();
    let (running, stop) = run(&server);
    // All that waits for the silent one would take two minutes, sixteen at a time.
    let told = [taker.next().await, taker.next().await].map(|told| told["origin"].as_u64());
    assert_eq!(told, [Some(1), Some(2)]);
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(60), running).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_takes_is_tried_again_later_each_time_and_given_up_in_the_end() {
    let server = server_with(Wishes { clock_stands: true, ..Wishes::default() }).await;
    let rows = server.app.auth.rows();
    // Nobody listens there.
    let webhook = hook_at(&server, "http://127.0.0.1:1/".to_owned(), "job_started", None).await;
    let now = server.app.clock.machine().0;
    let (origin, body) = ("1.0.job_started".to_owned(), "{}".to_owned());
    let row = DeliveryRow { id: 0, webhook, origin, body, tries: 0, due: now, created: now };
    rows.post(&[row], None).await.unwrap();
    let mut deliveries = Deliveries::new(EgressPolicy::Anywhere, server.app.clock.clone());
    let mut tries = 0;
    while !rows.webhooks_due().await.unwrap().is_empty() {
        let wait = deliveries.send_due(&server.app).await.unwrap();
        if deliveries.is_idle() {
            assert!(!wait.is_zero(), "it is due, and nothing is sent");
            server.pass(Span(i64::try_from(wait.as_millis()).unwrap()));
            continue;
        }
        deliveries.next_settled().await.unwrap();
        tries += 1;
        assert!(tries <= TRIES_MAX);
    }
    assert_eq!(tries, TRIES_MAX);
    let passed = server.app.clock.machine().0 - now;
    assert_eq!(passed, (0..TRIES_MAX - 1).map(pause_ms).sum::<i64>());
    let last = rows.webhook(webhook).await.unwrap().unwrap().last.unwrap();
    assert!(last.contains("given up"), "{last}");
}
