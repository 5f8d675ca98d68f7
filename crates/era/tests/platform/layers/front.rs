//! The one address of a site in layers: nginx with the configuration of `deploy/`, over TLS.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use era_store::Dialect;
use serde_json::json;

use super::MINUTE;
use super::bed::{Bed, Layer, wait};
use crate::encrypted::{certificate, trusted};
use crate::harness::free_address;
use crate::skipped::skipped;

/// Where `deploy/` is.
pub(crate) fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// A file of `deploy/nginx`, with the certificate of a folder.
pub(crate) fn configured(name: &str, folder: &Path) -> String {
    let text = std::fs::read_to_string(deploy().join("nginx").join(name)).unwrap();
    text.replace("/etc/era/tls", &folder.display().to_string())
}

/// Writes the whole that a part for `conf.d` stands in.
pub(crate) fn write_whole(folder: &Path, part: &str) {
    let kept = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};\n", folder.display()));
    let whole = format!(
        "pid {0}/pid;\nerror_log {0}/log;\nevents {{}}\nhttp {{\naccess_log off;\n{1}{part}\n}}\n",
        folder.display(),
        kept.concat(),
    );
    std::fs::write(folder.join("nginx.conf"), whole).unwrap();
}

/// nginx on what was written in a folder; `None` where it is not installed and need not be.
pub(crate) fn nginx(folder: &Path) -> Option<Command> {
    // It is not on every user's PATH.
    let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
    if Command::new(program).arg("-v").output().is_err() {
        skipped("nginx is not installed: run scripts/setup test");
        return None;
    }
    let mut command = Command::new(program);
    let file = |name: &str| folder.join(name);
    command.arg("-e").arg(file("log")).arg("-c").arg(file("nginx.conf")).arg("-p").arg(folder);
    Some(command)
}

/// nginx in front of an application and of those that keep files. It ends with the value.
pub(crate) struct Front {
    folder: tempfile::TempDir,
    address: String,
    process: Child,
}

impl Front {
    /// `None` where something that it needs is not installed.
    pub(crate) fn start(app: &Layer, files: &[&Layer]) -> Option<Front> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        if certificate(path).is_none() {
            skipped("there is no openssl here to make a certificate");
            return None;
        }
        let (listen, plain) = (free_address(), free_address());
        let mut upstreams =
            configured("upstreams.conf", path).replace("127.0.0.1:7632", &app.address);
        for (written, layer) in ["127.0.0.1:7636", "127.0.0.1:7646"].iter().zip(files) {
            upstreams = upstreams.replace(written, &layer.address);
        }
        let server = configured("era.conf", path)
            .replace("listen 443 ssl", &format!("listen {listen} ssl"))
            .replace("listen 80", &format!("listen {plain}"));
        let lines = server.lines().filter(|line| !line.trim().starts_with("listen [::]"));
        write_whole(path, &(upstreams + &lines.collect::<Vec<_>>().join("\n")));
        let mut command = nginx(path)?;
        command.args(["-g", "daemon off;"]).stdin(Stdio::null());
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait("nginx", Duration::from_secs(30), || std::net::TcpStream::connect(&listen).ok());
        Some(Front { folder, address: listen, process })
    }

    /// Asks by a token: status and answer.
    fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = trusted(&self.address, &self.folder.path().join("cert.pem"));
        let request = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
             authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // It may close without taking leave.
        let _ = stream.read_to_string(&mut answer);
        let status = answer.get(9..12).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("{method} {path}: {answer:?}")), answer)
    }

    /// The command line, set up to talk to this address.
    pub(crate) fn era(&self, token: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_era"));
        command
            .args(arguments)
            .args(["--url", &format!("https://{}", self.address), "--ca"])
            .arg(self.folder.path().join("cert.pem"))
            .env("ERA_TOKEN", token)
            .env("ERA_CONFIG", self.folder.path().join("config"))
            .env("NO_COLOR", "1");
        command
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let id = self.process.id().to_string();
        // Asked, it ends its workers first.
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.process.wait();
    }
}

#[test]
fn whoever_keeps_files_is_reached_whichever_of_two_it_is_and_whatever_is_sent() {
    let Some(bed) = Bed::start(Dialect::Postgres) else { return };
    let _core = bed.core(1);
    let (mut app, mut second) = (bed.app(), bed.files());
    app.wait_until_ready();
    second.wait_until_ready();
    // nginx asks this one first, and it stands by.
    let mut first = bed.files();
    wait("a standby", MINUTE, || first.said().contains("standing by").then_some(()));
    assert_eq!(first.readiness(), None, "whoever stands by takes no connection");
    let Some(front) = Front::start(&app, &[&first, &second]) else { return };
    let token = bed.token();
    let content = "two hundred thousand bytes, or so\n".repeat(6_000);
    let sent = |set: &str| {
        let (made, answer) = front.ask(&token, "POST", "/data", &json!({"name": set}).to_string());
        assert_eq!(made, 201, "{answer}");
        let path = format!("/data/admin/{set}/files/part.txt");
        let (put, answer) = front.ask(&token, "PUT", &path, &content);
        assert!(put < 300, "{put}: {answer}");
        let (got, answer) = front.ask(&token, "GET", &path, "");
        assert!(got == 200 && answer.contains(&content), "{got}");
    };
    sent("while-the-first-stands-by");
    second.kill();
    first.wait_until_ready();
    // nginx asks whoever refused it again after two seconds, and answers itself till then. Whoever
    // uses our own command does not notice.
    let listed = front.era(&token, &["data", "ls"]).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    sent("after-it-took-over");
    second.start();
    wait("the other one to stand by", MINUTE, || {
        (second.said().matches("standing by").count() == 1).then_some(())
    });
    sent("while-the-second-stands-by");
}
