//! A Redis that comes and goes, and keeps nothing.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::harness::free_address;

pub(crate) struct Redis {
    port: String,
    process: Child,
}

impl Redis {
    pub(crate) fn start() -> Redis {
        let port = free_address().rsplit(':').next().unwrap().to_owned();
        let process = spawn(&port);
        Redis { port, process }
    }

    pub(crate) fn start_again(&mut self) {
        self.process = spawn(&self.port);
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Lets it stand still, or go on.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let _ = Command::new("kill").args([signal, &id]).stderr(Stdio::null()).status();
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}/0", self.address())
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How often each job stands in the stream of accepted ones; `None` where there is no Redis.
    pub(crate) fn accepted(&self) -> Option<BTreeMap<u64, usize>> {
        let client = redis::Client::open(self.url()).ok()?;
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(5)).ok()?;
        connection.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
        let all: Vec<(String, Vec<String>)> = redis::cmd("XRANGE")
            .arg("accepted_queue")
            .arg("-")
            .arg("+")
            .query(&mut connection)
            .ok()?;
        let mut jobs = BTreeMap::new();
        for (_, fields) in all {
            let told: serde_json::Value = serde_json::from_str(fields.get(3)?).ok()?;
            *jobs.entry(told["job"].as_u64()?).or_default() += 1;
        }
        Some(jobs)
    }

    /// A field of a hash; `None` where there is none, or no Redis.
    pub(crate) fn field(&self, key: &str, field: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address()).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(stream, "HGET {key} {field}\r\n").ok()?;
        let (mut reader, mut length) = (BufReader::new(stream), String::new());
        reader.read_line(&mut length).ok()?;
        let mut value = vec![0; length.trim().strip_prefix('$')?.parse().ok()?];
        reader.read_exact(&mut value).ok()?;
        String::from_utf8(value).ok()
    }
}

fn spawn(port: &str) -> Child {
    Command::new("redis-server")
        .args(["--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
