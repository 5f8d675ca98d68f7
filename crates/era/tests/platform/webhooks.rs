//! Webhooks: what happens to a job is told to an address, signed, until it is taken.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::harness::Platform;

/// A request as it came in, by header.
struct Told {
    timestamp: String,
    signature: String,
    delivery: String,
    body: String,
}

/// Takes one request and answers it with this status.
fn take(listener: &TcpListener, status: &str) -> Told {
    let (stream, _) = listener.accept().unwrap();
    let mut read = BufReader::new(stream.try_clone().unwrap());
    let (mut headers, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        read.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim().split_once(": ") else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap();
        }
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let mut body = vec![0; length];
    read.read_exact(&mut body).unwrap();
    answer(stream, status);
    let header = |name: &str| {
        let found = headers.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    Told {
        timestamp: header("x-era-timestamp"),
        signature: header("x-era-signature"),
        delivery: header("x-era-delivery"),
        body: String::from_utf8(body).unwrap(),
    }
}

fn answer(mut stream: TcpStream, status: &str) {
    let text = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_happens_to_a_job_is_told_signed_until_it_is_taken() {
    let platform = Platform::start_with(&["--insecure-webhooks"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let hook = json!({"url": url, "events": ["job_failed"]});
    let (status, made) = platform.send("POST", "/webhooks", &hook);
    assert_eq!(status, 201, "{made}");
    let (code, _) =
        platform.fails(&["run", "-y", "--no-code", "--time", "1m", "--", "sh", "-c", "exit 3"]);
    assert_eq!(code, 3);

    let first = take(&listener, "503 Service Unavailable");
    let again = take(&listener, "204 No Content");
    assert_eq!((&first.delivery, &first.body), (&again.delivery, &again.body), "told again");
    let mut mac =
        Hmac::<Sha256>::new_from_slice(made["secret"].as_str().unwrap().as_bytes()).unwrap();
    mac.update(format!("{}.{}", again.timestamp, again.body).as_bytes());
    let expected: String = mac.finalize().into_bytes().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(again.signature, format!("v1={expected}"));
    let body: Value = serde_json::from_str(&again.body).unwrap();
    assert_eq!((&body["event"], &body["job"]), (&json!("job_failed"), &json!(1)), "{body}");
}

#[test]
fn no_webhook_leads_into_the_house_unless_that_was_accepted() {
    let platform = Platform::start();
    let hook = json!({"url": "http://127.0.0.1:9/", "events": ["job_failed"]});
    let (status, refused) = platform.send("POST", "/webhooks", &hook);
    assert_eq!(status, 422, "{refused}");
}
