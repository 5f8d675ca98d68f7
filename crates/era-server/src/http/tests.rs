//! The whole service on a real store and a real driver: who may do what, and what strangers and
//! slow clients get.

mod again;
mod holds;
mod hooks;
mod inputs;
mod intents;
mod lists;
mod oversight;
mod queries;
mod reports;
mod sessions;
mod sockets;
mod words;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use era_app::asks::Asking;
use era_app::auth::Auth;
use era_app::clock::{SystemClock, millis};
use era_app::driver::{Driver, Releases, SegmentRules};
use era_app::egress::EgressPolicy;
use era_app::feed::{Feed, UNSEEN_MAX};
use era_app::lab::Lab;
use era_app::report::Laboratory;
use era_cloud::clock::{ClockReading, MachineClock};
use era_core::State;
use era_core::units::Span;
use era_store::Store;
use era_store::accounts::AuditAsk;
use era_store::files::{Files, KeepFor};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::serve::serve_routes;
use super::{Serving, idempotency, service};
use crate::App;
use era_app::{Parts, Services};

/// A server that just started for the first time.
struct TestServer {
    app: App,
    routes: axum::Router,
    password: String,
    /// How much time has passed for its machine beside what really did.
    ahead_ms: Arc<AtomicI64>,
    _driver: Driver,
    _releases: Releases,
    _folder: tempfile::TempDir,
}

/// A clock of this machine.
pub(super) fn clock() -> Arc<SystemClock> {
    Arc::new(SystemClock::new(MachineClock::system()))
}

async fn server() -> TestServer {
    server_with(Wishes::default()).await
}

/// What a test may want of its server.
#[derive(Default)]
struct Wishes {
    laboratory: Option<Arc<dyn Laboratory>>,
    one_account: bool,
    /// Its machine's clock only goes on where the test lets time pass.
    clock_stands: bool,
}

async fn server_with(wishes: Wishes) -> TestServer {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    let fresh = State::default();
    let (machine, ahead_ms) = (MachineClock::system(), Arc::<AtomicI64>::default());
    let (begun, ahead) = (machine.now(), ahead_ms.clone());
    let clock = Arc::new(SystemClock::new(MachineClock::new(move || {
        let wall = if wishes.clock_stands { begun } else { machine.now() };
        let wall = wall + Span(ahead.load(Ordering::SeqCst));
        ClockReading { wall, steady: machine.steady() }
    })));
    let rules = SegmentRules::default();
    let (driver, releases) =
        Driver::start(store.journal(), clock.clone(), rules, fresh).await.unwrap();
    let committed = driver.handle().committed();
    let (feed, _) = Feed::start(&store, committed, UNSEEN_MAX, clock.clone()).await.unwrap();
    let auth = Auth::open(&store, clock.clone()).await.unwrap();
    let auth = if wishes.one_account { auth.for_one().unwrap() } else { auth };
    let first = auth.first_start(&driver.handle()).await.unwrap().unwrap();
    let app = App(Services::new(Parts {
        clock: clock.clone(),
        driver: driver.handle(),
        files: Files::open(&store, KeepFor::default(), millis(clock.clone())).unwrap(),
        store,
        auth,
        egress: EgressPolicy::Public,
        feed,
        asks: Asking::default(),
        laboratory: wishes.laboratory,
        images: Default::default(),
        runs_images: false,
        terminals: None,
        lab: Lab::open(folder.path().join("lab"), "/bin/false".into(), clock).unwrap(),
    }));
    let routes = service(app.clone(), super::RouteSet::All);
    let password = first.password;
    TestServer {
        app,
        routes,
        password,
        ahead_ms,
        _driver: driver,
        _releases: releases,
        _folder: folder,
    }
}

/// A server with one node of four cores, and its administrator's token.
async fn with_a_node() -> (TestServer, String) {
    let server = server().await;
    let admin = server.administrator().await;
    let pool = json!({ "name": "main", "cpu_rate": "1", "memory_rate": "0", "gpu_rate": "0",
        "closed_share": 0 });
    assert_eq!(server.ask(&admin, "PUT", "/pools/main", Some(pool)).await.status, 204);
    let node = json!({ "type": "join", "nodes": [{ "name": "n", "pool": "main",
        "capacity": { "cpu": 4000, "memory": 65_536, "gpus": [] } }] });
    server.app.driver.ask(serde_json::from_value(node).unwrap(), None).await.unwrap();
    (server, admin)
}

/// An answer, with its body read.
struct Answer {
    status: StatusCode,
    headers: axum::http::HeaderMap,
    body: Value,
}

impl TestServer {
    /// Lets time pass for it.
    fn pass(&self, span: Span) {
        self.ahead_ms.fetch_add(span.ms(), Ordering::SeqCst);
    }

    async fn send(&self, request: Request<Body>) -> Answer {
        read(self.routes.clone().oneshot(request).await.unwrap()).await
    }

    async fn ask(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.send(request(token, method, path, body).body_or_empty()).await
    }

    /// Logs in, changes the one-time password, and gives a token of the administrator.
    async fn administrator(&self) -> String {
        let login = json!({ "user": "admin", "password": self.password });
        let limited = self.ask("", "POST", "/sessions", Some(login)).await;
        assert_eq!(limited.status, 201, "{}", limited.body);
        let token = limited.body["token"].as_str().unwrap().to_owned();
        let change = json!({ "old": self.password, "new": "a better password" });
        let changed = self.ask(&token, "PUT", "/password", Some(change)).await;
        assert_eq!(changed.status, 204, "{}", changed.body);
        token
    }

    /// Makes an account and gives a token of it.
    async fn user(&self, admin: &str, name: &str, role: &str) -> String {
        let password = "a good password";
        let new = json!({ "name": name, "role": role, "password": password, "credits": "10" });
        let made = self.ask(admin, "POST", "/users", Some(new)).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let login = json!({ "user": name, "password": password });
        let logged = self.ask("", "POST", "/sessions", Some(login)).await;
        logged.body["token"].as_str().unwrap().to_owned()
    }
}

struct Wanted(axum::http::request::Builder, Option<Value>);

impl Wanted {
    fn header(self, name: &str, value: &str) -> Wanted {
        Wanted(self.0.header(name, value), self.1)
    }

    fn body_or_empty(self) -> Request<Body> {
        let Wanted(builder, body) = self;
        match body {
            Some(body) => builder
                .header("content-type", "application/json")
                .body(Body::from(body.to_string()))
                .unwrap(),
            None => builder.body(Body::empty()).unwrap(),
        }
    }
}

fn request(token: &str, method: &str, path: &str, body: Option<Value>) -> Wanted {
    let mut builder = Request::builder().method(method).uri(format!("/api/v1{path}"));
    if !token.is_empty() {
        builder = builder.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    Wanted(builder, body)
}

async fn read(response: Response) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 22).await.unwrap();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes).into_owned()));
    Answer { status: parts.status, headers: parts.headers, body }
}

#[tokio::test]
async fn a_one_time_password_is_good_for_changing_it_and_nothing_else() {
    let server = server().await;
    let login = json!({ "user": "admin", "password": server.password });
    let logged = server.ask("", "POST", "/sessions", Some(login)).await;
    assert_eq!(logged.body["me"]["must_change_password"], true);
    assert_eq!(logged.body["me"]["balance"], "1000000.00");
    let token = logged.body["token"].as_str().unwrap();
    let refused = server.ask(token, "GET", "/users", None).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.body["code"]),
        (403, &json!("password_must_change"))
    );
    assert_eq!(server.ask(token, "GET", "/sessions", None).await.status, 200);
    let same = json!({ "old": server.password, "new": server.password });
    assert_eq!(server.ask(token, "PUT", "/password", Some(same)).await.status, 422);
    let change = json!({ "old": server.password, "new": "a better password" });
    assert_eq!(server.ask(token, "PUT", "/password", Some(change)).await.status, 204);
    assert_eq!(server.ask(token, "GET", "/users", None).await.status, 200);
    assert!(server.app.auth.caller(token).is_some());
}

#[tokio::test]
async fn who_is_not_known_or_logged_out_gets_nothing_but_a_problem() {
    let server = server().await;
    let admin = server.administrator().await;
    let unknown = format!("era_{}", "0".repeat(64));
    for token in ["", "nonsense", unknown.as_str()] {
        let refused = server.ask(token, "GET", "/users", None).await;
        assert_eq!(refused.status, 401, "{token}");
        assert_eq!(refused.headers["content-type"], "application/problem+json");
        assert_eq!(refused.body["request_id"], refused.headers["x-request-id"].to_str().unwrap());
    }
    assert_eq!(server.ask(&admin, "DELETE", "/sessions", None).await.status, 204);
    assert_eq!(server.ask(&admin, "GET", "/users", None).await.status, 401);
}

#[tokio::test]
async fn everybody_sees_and_changes_only_what_is_theirs() {
    let server = server().await;
    let admin = server.administrator().await;
    let ada = server.user(&admin, "ada", "user").await;
    let chief = server.user(&admin, "chief", "group_administrator").await;
    let names = |answer: Answer| -> Vec<String> {
        let items = answer.body["items"].as_array().unwrap().clone();
        items.iter().map(|user| user["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(server.ask(&ada, "GET", "/users", None).await), ["ada"]);
    let all = ["ada", "admin", "chief"];
    assert_eq!(names(server.ask(&chief, "GET", "/users", None).await), all);
    assert_eq!(server.ask(&ada, "GET", "/users/chief", None).await.status, 404);
    let quota = Some(json!({ "gpu": "2" }));
    assert_eq!(server.ask(&ada, "PUT", "/users/ada/quota", quota.clone()).await.status, 403);
    let set = server.ask(&chief, "PUT", "/users/ada/quota", quota.clone()).await;
    assert_eq!((set.status.as_u16(), &set.body["quota"]["gpu"]), (200, &json!("2")));
    assert_eq!(server.ask(&chief, "PUT", "/groups/default/quota", quota).await.status, 403);
    let tight = Some(json!({ "gpu": "1" }));
    let refused = server.ask(&admin, "PUT", "/groups/default/quota", tight).await;
    assert_eq!((refused.status.as_u16(), &refused.body["code"]), (409, &json!("quota_sum")));
    let grant = Some(json!({ "amount": "5" }));
    assert_eq!(server.ask(&chief, "POST", "/users/ada/grants", grant.clone()).await.status, 403);
    let wallet = server.ask(&admin, "POST", "/users/ada/grants", grant).await;
    assert_eq!((wallet.status.as_u16(), &wallet.body["balance"]), (201, &json!("15.00")));
    for path in ["/audit", "/audit?limit=1"] {
        assert_eq!(server.ask(&chief, "GET", path, None).await.status, 403);
        assert_eq!(server.ask(&admin, "GET", path, None).await.status, 200);
    }
}

#[tokio::test]
async fn a_token_can_do_no_more_than_it_was_made_for_and_less_after_a_change() {
    let server = server().await;
    let admin = server.administrator().await;
    let wanted = json!({ "label": "look", "scopes": ["read"], "valid_s": 60 });
    let made = server.ask(&admin, "POST", "/tokens", Some(wanted.clone())).await;
    let read = made.body["token"].as_str().unwrap().to_owned();
    assert_eq!(server.ask(&read, "GET", "/users", None).await.status, 200);
    assert_eq!(server.ask(&read, "GET", "/audit", None).await.status, 403);
    assert_eq!(server.ask(&read, "POST", "/tokens", Some(wanted)).await.body["code"], "scope");
    let id = made.body["info"]["id"].as_str().unwrap();
    assert_eq!(server.ask(&admin, "DELETE", &format!("/tokens/{id}"), None).await.status, 204);
    assert_eq!(server.ask(&read, "GET", "/users", None).await.status, 401);
    let ada = server.user(&admin, "ada", "user").await;
    let off = Some(json!({ "enabled": false }));
    assert_eq!(server.ask(&admin, "PATCH", "/users/ada", off.clone()).await.status, 200);
    assert_eq!(server.ask(&ada, "GET", "/sessions", None).await.status, 401);
    let last = server.ask(&admin, "PATCH", "/users/admin", off).await;
    assert_eq!(last.body["code"], "last_administrator");
}

#[tokio::test]
async fn a_browser_must_show_that_its_changes_come_from_our_page() {
    let server = server().await;
    server.administrator().await;
    let login = json!({ "user": "admin", "password": "a better password", "cookie": true });
    let logged = server.ask("", "POST", "/sessions", Some(login)).await;
    assert_eq!(logged.body.get("token"), None);
    let set = logged.headers["set-cookie"].to_str().unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax"), "{set}");
    assert!(!set.contains("Secure"), "{set}");
    let cookie = set.split(';').next().unwrap();
    let csrf = logged.body["csrf"].as_str().unwrap();
    let group = || Some(json!({ "name": "lab" }));
    let change = |csrf: &str| {
        let asked = request("", "POST", "/groups", group()).header("cookie", cookie);
        if csrf.is_empty() { asked } else { asked.header("x-csrf-token", csrf) }
    };
    let look = request("", "GET", "/groups", None).header("cookie", cookie);
    assert_eq!(server.send(look.body_or_empty()).await.status, 200);
    for wrong in ["", "wrong"] {
        let refused = server.send(change(wrong).body_or_empty()).await;
        assert_eq!((refused.status.as_u16(), &refused.body["code"]), (403, &json!("csrf")));
    }
    assert_eq!(server.send(change(csrf).body_or_empty()).await.status, 201);
    let secret = cookie.split_once('=').unwrap().1;
    assert_eq!(server.ask(secret, "GET", "/groups", None).await.status, 401);
}

#[tokio::test]
async fn wrong_passwords_are_slowed_down_and_written_down() {
    let server = server().await;
    let wrong = || Some(json!({ "user": "admin", "password": "not the password" }));
    let mut last = StatusCode::OK;
    for _ in 0..7 {
        let refused = server.ask("", "POST", "/sessions", wrong()).await;
        last = refused.status;
        if last == 429 {
            assert!(refused.headers.contains_key("retry-after"));
        }
    }
    assert_eq!(last, 429);
    let lines = server.app.auth.rows().audit_lines(&AuditAsk::default(), 100).await.unwrap();
    assert!(lines.iter().filter(|line| line.what == "login.failed" && !line.done).count() >= 5);
}

#[tokio::test]
async fn a_key_makes_a_creation_happen_once() {
    let server = server().await;
    let admin = server.administrator().await;
    let give = |key: &str, amount: &str| {
        let body = Some(json!({ "amount": amount }));
        request(&admin, "POST", "/users/admin/grants", body)
            .header(idempotency::HEADER, key)
            .body_or_empty()
    };
    let first = server.send(give("k1", "5")).await;
    let again = server.send(give("k1", "5")).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201));
    assert_eq!(first.body, again.body);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    let other = server.send(give("k1", "6")).await;
    assert_eq!((other.status.as_u16(), &other.body["code"]), (422, &json!("key_reused")));
    let wallet = server.ask(&admin, "GET", "/users/admin/wallet", None).await;
    assert_eq!(wallet.body["balance"], "1000005.00");
    assert_eq!(server.send(give("k2", "0")).await.status, 422);
    assert_eq!(server.send(give("k2", "1")).await.status, 201);
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said() {
    let server = server().await;
    let admin = server.administrator().await;
    let typo = Some(json!({ "name": "lab", "levl": 1 }));
    let refused = server.ask(&admin, "POST", "/groups", typo).await;
    assert_eq!(refused.body["field"], "levl");
    assert!(refused.body["detail"].as_str().unwrap().contains("did you mean `level`?"));
    assert_eq!(server.ask(&admin, "GET", "/nowhere", None).await.body["code"], "no_such_path");
    let method = server.ask(&admin, "PUT", "/groups", None).await;
    assert_eq!((method.status.as_u16(), &method.body["code"]), (405, &json!("no_such_method")));
    assert!(method.headers.contains_key("allow"));
    assert_eq!(server.ask(&admin, "GET", "/users?limit=x", None).await.status, 400);
    assert_eq!(server.ask(&admin, "GET", "/users?limit=0", None).await.status, 400);
    assert_eq!(server.ask(&admin, "GET", "/webhooks/x", None).await.status, 400);
    let plain = request(&admin, "POST", "/groups", None).0;
    let plain = plain.header("content-type", "text/plain").body(Body::from("{}")).unwrap();
    assert_eq!(server.send(plain).await.status, 415);
    let large = Some(json!({ "name": "x".repeat(2 << 20) }));
    assert_eq!(server.ask(&admin, "POST", "/groups", large).await.status, 413);
    let control = Some(json!({ "name": "a\u{7}b" }));
    assert_eq!(server.ask(&admin, "POST", "/groups", control).await.status, 422);
    let hook = json!({ "url": "http://169.254.169.254/", "events": ["job_started"] });
    assert_eq!(server.ask(&admin, "POST", "/webhooks", Some(hook)).await.body["field"], "url");
}

#[tokio::test]
async fn accounts_are_there_after_a_restart_and_the_core_is_told_what_it_misses() {
    let server = server().await;
    let admin = server.administrator().await;
    server.user(&admin, "ada", "user").await;
    let reopened = Auth::open(&server.app.store, server.app.clock.clone()).await.unwrap();
    assert_eq!(reopened.directory().users().count(), 2);
    assert!(reopened.caller(&admin).is_some());
    assert!(reopened.first_start(&server.app.driver).await.unwrap().is_none());
    assert_eq!(reopened.mirror(&server.app.driver).await.unwrap(), 0);
    let other = tempfile::tempdir().unwrap();
    let store = Store::open(other.path()).await.unwrap();
    let (clock, rules) = (server.app.clock.clone(), SegmentRules::default());
    let (driver, _releases) =
        Driver::start(store.journal(), clock, rules, State::default()).await.unwrap();
    assert_eq!(reopened.mirror(&driver.handle()).await.unwrap(), 3);
    assert_eq!(driver.handle().snapshot().accounts().users().count(), 2);
}

#[tokio::test]
async fn health_readiness_and_measures_are_told() {
    let server = server().await;
    let get = |path: &str| Request::builder().uri(path).body(Body::empty()).unwrap();
    assert_eq!(server.send(get("/healthz")).await.status, 200);
    assert_eq!(server.send(get("/readyz")).await.status, 200);
    let measures = server.send(get("/metrics")).await;
    assert_eq!(measures.status, 200);
    let text = measures.body.as_str().unwrap();
    assert!(text.contains("era_http_requests_total"), "{text}");
    assert!(text.contains("route=\"/healthz\""), "{text}");
    for state in era_core::job::STATES {
        assert!(text.contains(&format!("era_jobs{{state=\"{state}\"}} 0")), "{text}");
    }
    let admin = server.administrator().await;
    let ada = server.user(&admin, "ada", "user").await;
    let bearer = |token: &str| format!("Bearer {token}");
    let login = json!({ "user": "admin", "password": "a better password", "cookie": true });
    let page = server.ask("", "POST", "/sessions", Some(login)).await.headers["set-cookie"].clone();
    let cookie = page.to_str().unwrap().split(';').next().unwrap().to_owned();
    for (header, value, status) in [
        ("x-nothing", String::new(), 401),
        ("authorization", bearer("no-token"), 401),
        ("authorization", bearer(&ada), 403),
        ("authorization", bearer(&admin), 200),
        ("cookie", cookie, 200),
    ] {
        let mut far = Request::builder().uri("/metrics").header(header, value);
        let address: SocketAddr = "192.0.2.1:5".parse().unwrap();
        far.extensions_mut().unwrap().insert(axum::extract::ConnectInfo(address));
        let answer = server.send(far.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, status, "{header}");
    }
    let document = server.send(get("/api/v1/openapi.json")).await;
    assert!(document.body["paths"]["/api/v1/users"].is_object());
}

/// A server on a real port.
async fn listening(serving: Serving) -> (SocketAddr, tokio::sync::oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let routes = axum::Router::new()
        .route("/", axum::routing::get(async || "here"))
        .route("/panic", axum::routing::get(async || -> &'static str { panic!("on purpose") }))
        .layer(tower_http::catch_panic::CatchPanicLayer::custom(super::middleware::panicked))
        .layer(axum::middleware::from_fn(super::middleware::surround));
    tokio::spawn(async move {
        let stop = async move {
            let _ = stopped.await;
        };
        serve_routes(listener, routes, &serving, stop).await.unwrap();
    });
    (address, stop)
}

/// Sends, and reads until the other side closes, which it does.
async fn exchange(address: SocketAddr, sent: &'static str) -> String {
    let talk = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut text = String::new();
        let read = stream.read_to_string(&mut text);
        // A connection that is cut off may also be reset.
        let kept = read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!kept, "it is still open: {text}");
        text
    };
    tokio::task::spawn_blocking(talk).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_are_cut_off_and_others_served() {
    let impatient = Serving {
        head_time: Duration::from_millis(300),
        idle_time: Duration::from_millis(900),
        ..Serving::default()
    };
    let (address, _stop) = listening(impatient).await;
    exchange(address, "GET / HTTP/1.1\r\nhost: x\r\n").await;
    let text = exchange(address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("x-request-id"), "{text}");
    let text =
        exchange(address, "GET /panic HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 500") && text.contains("urn:era:internal"), "{text}");
    assert!(!text.contains("on purpose"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_connections_are_turned_away_with_a_word() {
    let (address, _stop) = listening(Serving { connections_max: 1, ..Serving::default() }).await;
    const ASKED: &str = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    // Whoever was answered is in, and stays.
    let held = tokio::task::spawn_blocking(move || {
        let mut held = TcpStream::connect(address).unwrap();
        held.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        held.read_exact(&mut [0]).unwrap();
        held
    });
    let held = held.await.unwrap();
    let text = exchange(address, ASKED).await;
    drop(held);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    assert!(head.starts_with("HTTP/1.1 503"), "{text}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{text}");
    let problem: era_api::Problem = serde_json::from_str(body).unwrap();
    assert_eq!(problem.code, "too_many_connections");
    let begun = Instant::now();
    while !exchange(address, ASKED).await.starts_with("HTTP/1.1 200") {
        assert!(begun.elapsed() < Duration::from_secs(60), "its place is never free again");
    }
}
