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
fn one_intent_is_one_job_through_every_door() {
    let platform = Platform::start();
    let deadline = (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(9)).to_string();
    let asked = json!({"work": {"command": ["true"]}, "ask": {"deadline": deadline}});
    let made = |made: &Value| made["job"].as_u64().unwrap_or_else(|| panic!("{made}"));
    // One after the other: while one runs, another hour is cheaper than this one.
    let first = platform.ended(platform.submit(&asked));
    assert_eq!(first["spec"]["ask"]["resources"], json!({"cpu": "1", "memory": "1Gi"}), "{first}");
    assert!(first["promised_start"].is_string(), "it took the price: {first}");
    let is_the_same = |job: u64| {
        let other = platform.ended(job);
        assert_eq!(other["spec"], first["spec"]);
        assert!(other["promised_start"].is_string(), "{other}");
    };
    let mut lines = Lines::known(&platform);
    let line = lines.ask(&json!({"id": 1, "op": "submit", "job": asked}));
    is_the_same(made(&line["ok"]));
    let told = |told: String| made(&serde_json::from_str(&told).unwrap());
    let by = ["submit", "--no-code", "--by", deadline.as_str(), "-o", "json", "--", "true"];
    is_the_same(told(platform.ok(&by)));
    let file = platform.home().join("job.yaml");
    std::fs::write(&file, format!("command: [\"true\"]\ncode: none\nby: {deadline}\n")).unwrap();
    is_the_same(told(platform.ok(&["submit", "-o", "json", file.to_str().unwrap()])));
}

#[test]
fn a_second_server_on_the_same_folder_is_refused_and_the_first_goes_on() {
    let mut platform = Platform::start();
    let data = platform.data();
    let mut second = platform.era();
    second.args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
    let second = second.output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("a server is at work there already, process "), "{said}");
    assert!(said.contains("stop it, or give another folder"), "{said}");
    let job = platform.submit(&job("true"));
    assert_eq!(platform.ended(job)["state"], "succeeded");
    // However it ends, the next one may start.
    platform.kill();
    platform.restart();
    assert_eq!(platform.get(&format!("/jobs/{job}"))["state"], "succeeded");
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
    let near = lines.ask(&json!({"id": 6, "op": "statu", "job": 1}));
    assert_eq!(near["error"]["field"], "op", "{near}");
    assert_eq!(near["error"]["parameters"]["meant"], "status", "{near}");
    lines.write.write_all(b"this is no line\n").unwrap();
    assert!(lines.read()["error"].is_object(), "nonsense is refused, and the door stays open");
    assert!(lines.ask(&json!({"id": 7, "op": "quote", "ask": ask}))["ok"].is_object());
}

#[test]
fn lines_are_pipelined_and_a_job_is_cancelled_by_one() {
    let platform = Platform::start();
    let mut lines = Lines::known(&platform);
    let ask = json!({"ask": {"resources": {"cpu": "1"}, "duration_s": 60}});
    let mut batch = String::new();
    for id in 10..210 {
        let line = match id % 4 {
            0 => json!({"id": id, "op": "submit", "job": job("true")}),
            _ => json!({"id": id, "op": "quote", "ask": ask}),
        };
        batch += &format!("{line}\n");
    }
    lines.write.write_all(batch.as_bytes()).unwrap();
    let mut answered = std::collections::BTreeSet::new();
    for _ in 10..210 {
        let answer = lines.read();
        assert!(answer["ok"].is_object(), "{answer}");
        assert!(answered.insert(answer["id"].as_u64().unwrap()), "{answer} came twice");
    }
    assert_eq!(answered, (10..210).collect(), "each line has one answer");

    let mut long = job("sleep");
    long["work"]["command"] = json!(["sleep", "600"]);
    let made = lines.ask(&json!({"id": 1, "op": "submit", "job": long}));
    let id = made["ok"]["job"].as_u64().unwrap();
    let gone = lines.ask(&json!({"id": 2, "op": "cancel", "job": id}));
    assert!(gone["ok"].is_object(), "{gone}");
    assert_eq!(platform.ended(id)["state"], "cancelled");
    let nobody = lines.ask(&json!({"id": 3, "op": "cancel", "job": 999_999}));
    assert_eq!(nobody["error"]["status"], 404, "{nobody}");
}

#[test]
fn a_line_tells_how_a_job_ended_even_when_the_scheduler_has_forgotten_it() {
    let platform = Platform::start();
    let mut lines = Lines::known(&platform);
    let job = platform.submit(&job("false"));
    let ended = platform.ended(job);
    assert_eq!((&ended["outcome"]["code"], &ended["exit_code"]), (&json!("failed"), &json!(1)));
    let ask = |lines: &mut Lines, op: &str| lines.ask(&json!({"id": 1, "op": op, "job": job}));
    let told = ask(&mut lines, "status")["ok"].clone();
    assert_eq!(told["state"], "ended", "{told}");
    for field in ["outcome", "exit_code"] {
        assert_eq!(told[field], ended[field], "as REST has it: {told}");
    }
    let (status, refused) = platform.send("PATCH", "/settings", &json!({"remember": 1}));
    assert!(status < 300, "{refused}");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while ask(&mut lines, "cancel")["error"]["code"] != "unknown_job" {
        assert!(std::time::Instant::now() < until, "it is not forgotten");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let told = ask(&mut lines, "status")["ok"].clone();
    assert_eq!(told["state"], "ended", "{told}");
    for field in ["outcome", "exit_code"] {
        assert_eq!(told[field], ended[field], "as REST has it: {told}");
    }
}

#[test]
fn whoever_finds_no_place_is_told_so() {
    let platform = Platform::start();
    let open = |_| TcpStream::connect(platform.tcp()).unwrap();
    let inside: Vec<TcpStream> = (0..era_server::tcp::CONNECTIONS_MAX).map(open).collect();
    let mut late = Lines::to(platform.tcp());
    // Whatever it says meanwhile must not keep it from hearing that.
    let refused = late.ask(&json!({"id": 1, "op": "auth", "token": platform.token()}));
    let told = (&refused["id"], &refused["error"]["status"], &refused["error"]["code"]);
    assert_eq!(told, (&json!(0), &json!(503), &json!("too_many_connections")), "{refused}");
    let mut rest = String::new();
    assert_eq!(late.read.read_line(&mut rest).unwrap(), 0, "and it hangs up: {rest}");
    drop(inside);
}

#[test]
fn a_line_without_an_end_is_refused_and_others_are_served() {
    let platform = Platform::start();
    let (mut other, mut lines) = (Lines::known(&platform), Lines::known(&platform));
    // No more than is needed: what the server had not read would end the connection harshly.
    let long = vec![b'x'; era_server::tcp::LINE_MAX + 1];
    lines.write.write_all(&long).unwrap();
    let refused = lines.read();
    let told = (&refused["error"]["status"], &refused["error"]["code"]);
    assert_eq!(told, (&json!(413), &json!("line_too_long")), "{refused}");
    let mut rest = String::new();
    assert_eq!(lines.read.read_line(&mut rest).unwrap(), 0, "and it hangs up: {rest}");
    let status = other.ask(&json!({"id": 4, "op": "status", "job": 1}));
    assert_eq!(status["error"]["status"], 404, "{status}");
}

#[test]
fn a_log_for_programs_has_every_line_as_an_object_with_the_requests_id() {
    let folder = tempfile::tempdir().unwrap();
    let address = crate::harness::free_address();
    let log = folder.path().join("log");
    let mut server = std::process::Command::new(env!("CARGO_BIN_EXE_era"))
        .args(["up", "--listen", &address, "--log-format", "json", "--data"])
        .arg(folder.path().join("data"))
        .env("ERA_CONFIG", folder.path().join("config"))
        .env("ERA_LOG", "info")
        .stdout(std::process::Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let header = "x-request-id: of-this-test\r\n";
    while exchange(&address, "GET", "/healthz", header, "").is_err() {
        assert!(std::time::Instant::now() < until, "it does not answer");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let _ = std::process::Command::new("kill").args(["-TERM", &server.id().to_string()]).status();
    server.wait().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let ours = |line: &&Value| line["span"]["id"] == "of-this-test";
    let answered = lines.iter().find(ours).unwrap_or_else(|| panic!("{text}"));
    assert_eq!((&answered["message"], &answered["status"]), (&json!("answered"), &json!(200)));
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

    /// The same, and it is known who asks.
    fn known(platform: &Platform) -> Lines {
        let mut lines = Lines::to(platform.tcp());
        let known = lines.ask(&json!({"id": 0, "op": "auth", "token": platform.token()}));
        assert_eq!(known["ok"]["user"], "admin", "{known}");
        lines
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
