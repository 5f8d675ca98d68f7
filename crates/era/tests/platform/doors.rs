//! The two doors for programs: HTTP and lines over TCP take the same job once, whatever is repeated.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::harness::{Platform, exchange};

fn job(command: &str) -> Value {
    json!({
        "work": {"command": [command]},
        "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 60},
    })
}

#[test]
fn a_key_stands_for_one_job_and_no_other() {
    let platform = Platform::start();
    let headers =
        format!("authorization: Bearer {}\r\nidempotency-key: once\r\n", platform.token());
    let submit = |job: &Value| {
        exchange(platform.address(), "POST", "/api/v1/jobs", &headers, &job.to_string()).unwrap()
    };
    let (status, first) = submit(&job("true"));
    assert_eq!(status, 201, "{first}");
    assert_eq!(submit(&job("true")), (201, first), "a repetition has the same answer");
    let (status, refused) = submit(&job("false"));
    assert_eq!(status, 422, "another command is another job: {refused}");
    assert!(refused.contains("key_reused"), "{refused}");
    assert_eq!(platform.get("/jobs")["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn lines_are_answered_by_their_number_and_only_to_those_who_are_known() {
    let platform = Platform::start();
    let mut lines = Lines::to(platform.tcp());
    let ask = json!({"ask": {"resources": {"cpu": "1"}, "duration_s": 60}});
    let refused = lines.ask(&json!({"id": 1, "op": "quote", "ask": ask}));
    assert_eq!((&refused["id"], &refused["error"]["status"]), (&json!(1), &json!(401)));
    let known = lines.ask(&json!({"id": 2, "op": "auth", "token": platform.token()}));
    assert_eq!(known["ok"]["user"], "admin", "{known}");
    let quoted = lines.ask(&json!({"id": 3, "op": "quote", "ask": ask}));
    assert!(quoted["ok"]["quote"]["price"].is_string(), "{quoted}");
    let submit = json!({"id": 4, "op": "submit", "key": "k", "job": job("true")});
    let (first, again) = (lines.ask(&submit), lines.ask(&submit));
    assert!(first["ok"]["job"].is_u64(), "{first}");
    assert_eq!(first, again, "a repetition has the same answer");
    let status = lines.ask(&json!({"id": 5, "op": "status", "job": first["ok"]["job"]}));
    assert!(status["ok"].is_object(), "{status}");
    let wrong = lines.ask(&json!({"id": 6, "op": "dance"}));
    assert_eq!(wrong["id"], 6);
    assert!(wrong["error"]["detail"].is_string(), "{wrong}");
    lines.write.write_all(b"this is no line\n").unwrap();
    assert!(lines.read()["error"].is_object(), "nonsense is refused, and the door stays open");
    assert!(lines.ask(&json!({"id": 7, "op": "quote", "ask": ask}))["ok"].is_object());
}

struct Lines {
    write: TcpStream,
    read: BufReader<TcpStream>,
}

impl Lines {
    fn to(address: &str) -> Lines {
        let write = TcpStream::connect(address).unwrap();
        write.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
        let read = BufReader::new(write.try_clone().unwrap());
        Lines { write, read }
    }

    fn ask(&mut self, line: &Value) -> Value {
        writeln!(self.write, "{line}").unwrap();
        self.read()
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.read.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}
