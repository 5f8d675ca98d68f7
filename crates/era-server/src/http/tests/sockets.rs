//! What stays open ends with the token by which it was opened, and costs nobody anything meanwhile.

use era_api::job::LogLine;
use era_cloud::log::{LogWriter, Stream};
use era_core::job::TaskId;
use era_core::units::{JobId, Time};
use tungstenite::Message;
use tungstenite::client::IntoClientRequest;

use super::*;

/// How long an end may take; the machine may be busy.
const SOON: Duration = Duration::from_secs(20);

async fn served(server: &TestServer) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = server.routes.clone();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    address
}

/// A server with one node and a queue.
async fn with_a_queue() -> (TestServer, String) {
    let (server, admin) = with_a_node().await;
    let rule = json!({ "order": "fifo" });
    assert_eq!(server.ask(&admin, "PUT", "/policies/fifo", Some(rule)).await.status, 200);
    let queue = json!({ "name": "default", "policy": "fifo" });
    assert_eq!(server.ask(&admin, "PUT", "/queues/default", Some(queue)).await.status, 204);
    (server, admin)
}

/// Opens a WebSocket.
fn connected(address: SocketAddr, path: &str, token: &str) -> impl FnMut() -> Message + use<> {
    let mut request = format!("ws://{address}/api/v1{path}").into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    let (mut socket, _) = tungstenite::connect(request).unwrap();
    if let tungstenite::stream::MaybeTlsStream::Plain(stream) = socket.get_ref() {
        stream.set_read_timeout(Some(SOON)).unwrap();
    }
    move || socket.read().unwrap()
}

/// Opens a WebSocket, says that it is open, and waits for the goodbye; its code.
fn open(
    address: SocketAddr,
    path: String,
    token: String,
    opened: std::sync::mpsc::Sender<()>,
) -> u16 {
    let mut next = connected(address, &path, &token);
    opened.send(()).unwrap();
    loop {
        if let Message::Close(frame) = next() {
            return frame.unwrap().code.into();
        }
    }
}

/// The same with a stream of events, which has an end and no goodbye.
fn listen(address: SocketAddr, token: &str, opened: std::sync::mpsc::Sender<()>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let request = format!(
        "GET /api/v1/events/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    opened.send(()).unwrap();
    std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_ends_what_was_opened_with_it_and_nothing_else() {
    let (server, admin) = with_a_queue().await;
    let ada = server.user(&admin, "ada", "user").await;
    // Nobody launches it here, so it is never over.
    let job = json!({ "work": { "command": ["true"] },
        "ask": { "resources": { "cpu": "1" }, "duration_s": 600 } });
    let made = server.ask(&ada, "POST", "/jobs", Some(job)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let address = served(&server).await;
    let (opened, is_open) = std::sync::mpsc::channel();
    let of_job = |what: &str| format!("/jobs/{}/{what}/ws", made.body["job"]);
    let socket = |path: String, token: &str| {
        let (token, opened) = (token.to_owned(), opened.clone());
        tokio::task::spawn_blocking(move || open(address, path, token, opened))
    };
    let ending =
        [of_job("logs"), of_job("metrics"), "/files/ws".to_owned()].map(|path| socket(path, &ada));
    let staying = socket(of_job("logs"), &admin);
    let events = tokio::task::spawn_blocking({
        let (ada, opened) = (ada.clone(), opened.clone());
        move || listen(address, &ada, opened)
    });
    tokio::task::spawn_blocking(move || {
        for _ in 0..5 {
            is_open.recv_timeout(SOON).unwrap();
        }
    })
    .await
    .unwrap();
    let listed = server.ask(&admin, "GET", "/users/ada/tokens", None).await;
    let id = listed.body["items"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/users/ada/tokens/{id}");
    assert_eq!(server.ask(&admin, "DELETE", &path, None).await.status, 204);
    for socket in ending {
        assert_eq!(socket.await.unwrap(), axum::extract::ws::close_code::POLICY);
    }
    events.await.unwrap();
    assert!(!staying.is_finished(), "others go on");
    // The server goes on as well: it is the test that ends here.
    server.app.auth.end(&server.app.auth.session(&admin).unwrap().1).await.unwrap();
    assert_eq!(staying.await.unwrap(), axum::extract::ws::close_code::POLICY);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_follows_a_log_asks_no_database_until_the_job_is_over() {
    let (server, admin) = with_a_queue().await;
    // So that the job waits, and ends at once when it is cancelled.
    let cordon = json!({ "action": "cordon" });
    assert_eq!(server.ask(&admin, "PATCH", "/nodes/n", Some(cordon)).await.status, 204);
    let job = json!({ "work": { "command": ["true"] },
        "ask": { "resources": { "cpu": "1" }, "duration_s": 600 } });
    let made = server.ask(&admin, "POST", "/jobs", Some(job)).await;
    let job = JobId(made.body["job"].as_u64().unwrap());
    let task = TaskId { job, part: 0, attempt: 1, rank: 0 };
    let logs = job.folder(server.app.store.folder()).join("logs");
    let mut log = LogWriter::open(&logs, task, 1 << 20);

    let (address, token) = (served(&server).await, admin.clone());
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let follower = tokio::task::spawn_blocking(move || {
        let mut next = connected(address, &format!("/jobs/{}/logs/ws", job.0), &token);
        loop {
            match next() {
                Message::Text(text) => {
                    let lines: Vec<LogLine> = serde_json::from_str(&text).unwrap();
                    lines.into_iter().for_each(|line| told.send(line.text).unwrap());
                }
                Message::Close(frame) => return u16::from(frame.unwrap().code),
                _ => {}
            }
        }
    });
    // A line that is heard was found by a look. Others may ask something meanwhile, but not always.
    let mut asked = Vec::new();
    while asked.last() != Some(&0) {
        assert!(asked.len() < 20, "every look asks the database: {asked:?}");
        let mut before = 0;
        for line in 0..4 {
            let text = format!("{}.{line}", asked.len());
            log.write(Stream::Out, format!("{text}\n").as_bytes(), Time(1));
            assert_eq!(heard.recv().await.unwrap(), text);
            if line == 0 {
                before = server.app.store.statements();
            }
        }
        assert!(before > 0, "nothing is counted");
        asked.push(server.app.store.statements() - before);
    }
    let cancelled = server.ask(&admin, "POST", &format!("/jobs/{}/cancel", job.0), None).await;
    assert_eq!(cancelled.status, 204, "{}", cancelled.body);
    assert_eq!(follower.await.unwrap(), axum::extract::ws::close_code::NORMAL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stays_open_ends_when_the_server_stops() {
    let (server, admin) = with_a_node().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    // Far longer than the test waits.
    let serving = Serving { stop_time: 30 * SOON, ..Serving::default() };
    let serving = {
        let (routes, stopped) = (server.routes.clone(), stop.clone().cancelled_owned());
        tokio::spawn(async move { serve_routes(listener, routes, &serving, stopped).await })
    };
    let (opened, is_open) = std::sync::mpsc::channel();
    let events = tokio::task::spawn_blocking({
        let (admin, opened) = (admin.clone(), opened.clone());
        move || listen(address, &admin, opened)
    });
    let socket =
        tokio::task::spawn_blocking(move || open(address, "/files/ws".to_owned(), admin, opened));
    for _ in 0..2 {
        is_open.recv_timeout(SOON).unwrap();
    }
    stop.cancel();
    assert_eq!(socket.await.unwrap(), axum::extract::ws::close_code::AWAY);
    events.await.unwrap();
    tokio::time::timeout(SOON, serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn only_the_owner_and_administrators_reach_a_terminal_and_only_with_the_right_to_write() {
    let (server, admin) = with_a_queue().await;
    let ada = server.user(&admin, "ada", "user").await;
    let bob = server.user(&admin, "bob", "user").await;
    let chief = server.user(&admin, "chief", "group_administrator").await;
    let ask = json!({ "resources": { "cpu": "1" }, "duration_s": 600 });
    // Nothing here runs tasks, so nothing has terminals.
    let wanted = json!({ "work": { "command": ["sh"], "terminal": true }, "ask": ask });
    let refused = server.ask(&ada, "POST", "/jobs", Some(wanted)).await;
    assert_eq!((refused.status.as_u16(), &refused.body["field"]), (422, &json!("work.terminal")));
    let job = json!({ "work": { "command": ["true"] }, "ask": ask });
    let made = server.ask(&ada, "POST", "/jobs", Some(job)).await;
    let path = format!("/jobs/{}/terminal", made.body["job"]);
    let reads = json!({ "label": "reads", "scopes": ["read"], "valid_s": 600 });
    let reads = server.ask(&ada, "POST", "/tokens", Some(reads)).await;
    let reads = reads.body["token"].as_str().unwrap().to_owned();
    // The owner and the administrator get as far as being told that it is no plain request.
    for (token, status) in [(&bob, 404), (&chief, 403), (&reads, 403), (&ada, 426), (&admin, 426)] {
        assert_eq!(server.ask(token, "GET", &path, None).await.status.as_u16(), status);
    }
    let address = served(&server).await;
    let attached = tokio::task::spawn_blocking(move || {
        let mut request = format!("ws://{address}/api/v1{path}").into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {ada}").parse().unwrap());
        tungstenite::connect(request).map(|_| ())
    });
    let Err(tungstenite::Error::Http(refused)) = attached.await.unwrap() else { panic!() };
    assert_eq!(refused.status().as_u16(), 409);
    let body = String::from_utf8(refused.into_body().unwrap()).unwrap();
    assert!(body.contains("no_terminal"), "{body}");
    let ask = AuditAsk { what: Some("job.attach".into()), before: u64::MAX, ..AuditAsk::default() };
    let lines = server.app.auth.rows().audit_lines(&ask, 9).await.unwrap();
    let told: Vec<(&str, bool)> = lines.iter().map(|line| (line.who.as_str(), line.done)).collect();
    assert_eq!(told, [("ada", false)]);
}
