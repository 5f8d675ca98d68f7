//! Against a real listener that answers by a script and keeps what it was sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use crate::client::{Client, ClientError};

/// Answers one connection for each line of the script; an empty one is cut without an answer.
fn serve(script: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let worker = std::thread::spawn(move || {
        script
            .into_iter()
            .map(|answer| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut request = String::new();
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    request.push_str(&line);
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                request.push_str(&String::from_utf8_lossy(&body));
                stream.write_all(answer.as_bytes()).unwrap();
                request
            })
            .collect()
    });
    (url, worker)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn key_of(request: &str) -> &str {
    let line = request.lines().find(|l| l.to_lowercase().starts_with("idempotency-key:"));
    line.unwrap_or_default()
}

#[test]
fn a_creation_that_was_cut_is_repeated_with_the_same_key() {
    let good = answer("200 OK", "", "7");
    let (url, worker) = serve(vec![String::new(), good.clone(), good]);
    let client = Client::new(&url, Some("secret")).unwrap();
    assert_eq!(client.post::<_, u32>("/jobs", &"same").unwrap(), 7);
    assert_eq!(client.post::<_, u32>("/jobs", &"other").unwrap(), 7);
    let requests = worker.join().unwrap();
    assert!(requests[0].starts_with("POST /api/v1/jobs HTTP/1.1"), "{}", requests[0]);
    assert!(requests[0].contains("Bearer secret"));
    assert!(key_of(&requests[0]).len() > 40);
    assert_eq!(requests[0], requests[1], "a repeat is the same request");
    assert_ne!(key_of(&requests[1]), key_of(&requests[2]), "another creation has another key");
}

#[test]
fn a_report_beside_another_asks_for_both_once() {
    let period = crate::client::TimeRange {
        to: Some("2026-11-16T00:00:00Z".parse().unwrap()),
        ..Default::default()
    };
    let (url, worker) = serve(vec![String::new()]);
    let cut = Client::new(&url, None).unwrap().report_beside(&period).unwrap_err();
    assert!(matches!(cut, ClientError::Broken { .. }), "it is not repeated: {cut}");
    let request = worker.join().unwrap().remove(0);
    let line = "GET /api/v1/report?to=2026-11-16T00%3A00%3A00Z&without=true HTTP/1.1";
    assert!(request.starts_with(line), "{request}");
}

#[test]
fn a_refusal_comes_as_the_servers_own_problem() {
    let problem = crate::Problem::new(404, "unknown_job", "There is no job 7.").about("job");
    let body = serde_json::to_string(&problem).unwrap();
    let (url, worker) = serve(vec![answer("404 Not Found", "", &body)]);
    let error = Client::new(&url, None).unwrap().get::<u32>("/jobs/7").unwrap_err();
    assert_eq!(error.problem(), Some(&problem));
    assert_eq!(error.to_string(), "job: There is no job 7.");
    worker.join().unwrap();
}

#[test]
fn a_path_that_the_server_does_not_know_is_told_from_a_thing_that_is_not_there() {
    let old = answer("404 Not Found", "x-era-version: 0.0.1\r\n", "not found");
    let (url, worker) = serve(vec![old]);
    let error = Client::new(&url, None).unwrap().get::<u32>("/market").unwrap_err();
    assert!(matches!(error, ClientError::NotKnown { .. }), "{error}");
    assert!(error.to_string().contains("it is era 0.0.1"), "{error}");
    worker.join().unwrap();
}

#[test]
fn a_busy_server_is_asked_again_when_it_says() {
    let busy = answer("503 Service Unavailable", "retry-after: 0\r\n", "{}");
    let (url, worker) = serve(vec![busy, answer("200 OK", "", "1")]);
    assert_eq!(Client::new(&url, None).unwrap().get::<u32>("/market").unwrap(), 1);
    assert_eq!(worker.join().unwrap().len(), 2);
}

#[expect(clippy::disallowed_methods, reason = "how long it waits is what is tested")]
#[test]
fn a_proxy_that_reaches_nobody_is_asked_again_and_told_from_a_server() {
    let nobody = || answer("502 Bad Gateway", "server: nginx\r\n", "<html>Bad Gateway</html>");
    let (url, worker) = serve(vec![nobody(), nobody(), answer("200 OK", "", "7")]);
    let begun = std::time::Instant::now();
    assert_eq!(Client::new(&url, None).unwrap().post::<_, u32>("/jobs", &"x").unwrap(), 7);
    // Longer than the two seconds after which nginx asks a server again that was away.
    assert!(begun.elapsed().as_millis() > 2500);
    let asked = worker.join().unwrap();
    assert!(asked.iter().all(|request| key_of(request) == key_of(&asked[0])));
    let away = answer("503 Service Temporarily Unavailable", "", "<html>");
    let (url, worker) = serve(vec![away]);
    let error = Client::new(&url, None).unwrap().get::<u32>("/market").unwrap_err();
    assert!(matches!(error, ClientError::NobodyBehind { status: 503, .. }), "{error}");
    assert!(error.to_string().contains("try again in a few seconds"), "{error}");
    worker.join().unwrap();
}

#[test]
fn nobody_at_the_address_is_said_with_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = Client::new(&url, None).unwrap().get::<u32>("/market").unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("era up"), "{error}");
}

#[test]
fn an_answer_that_is_no_json_is_not_understood() {
    let (url, worker) = serve(vec![answer("200 OK", "", "<html>")]);
    let error = Client::new(&url, None).unwrap().get::<u32>("/market").unwrap_err();
    assert!(matches!(error, ClientError::NotUnderstood { .. }), "{error}");
    worker.join().unwrap();
}

#[test]
fn done_without_an_answer_reads_as_nothing() {
    let (url, worker) = serve(vec!["HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".into()]);
    Client::new(&url, None).unwrap().delete("/holds/3").unwrap();
    assert!(worker.join().unwrap()[0].starts_with("DELETE /api/v1/holds/3 "));
}
