//! TLS: the command line, and lines of JSON, over a certificate that they were told to trust, and
//! over none other.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::skipped::skipped;

/// A certificate for this machine, made by the system's own tool; `None` where there is none.
pub(crate) fn certificate(folder: &std::path::Path) -> Option<()> {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=era", "-keyout", "key.pem", "-out"])
        .args(["cert.pem", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    made.ok().filter(|status| status.success()).map(drop)
}

/// A connection to somebody on this machine, over a certificate that is trusted.
pub(crate) fn trusted(address: &str, cert: &Path) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(cert).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let sealed = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(sealed, TcpStream::connect(address).unwrap())
}

/// What the door for lines says to whoever has this token, over a certificate that is trusted.
fn ask_by_line(address: &str, cert: &Path, token: &str) -> String {
    let mut stream = trusted(address, cert);
    writeln!(stream, "{}", serde_json::json!({"id": 1, "op": "auth", "token": token})).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn what_is_encrypted_is_trusted_only_when_it_was_said_whom_to_trust() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    if certificate(path).is_none() {
        skipped("there is no openssl here to make a certificate");
        return;
    }
    let (address, lines) = (crate::harness::free_address(), crate::harness::free_address());
    let said = std::fs::File::create(path.join("said")).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_era"))
        .args(["up", "--listen", &address, "--tls-cert", "cert.pem", "--tls-key", "key.pem"])
        .args(["--data", "data", "--tcp", &lines])
        .current_dir(path)
        .env("ERA_CONFIG", path.join("config"))
        .stdout(said)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !path.join("config/local.json").exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let token = std::fs::read_to_string(path.join("data/local-token")).unwrap();
    let era = |trusted: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_era"));
        command.args(["whoami", "-o", "json", "--url", &format!("https://{address}")]);
        command.args(trusted.iter().flat_map(|file| ["--ca", file])).current_dir(path);
        command.env("ERA_TOKEN", token.trim()).env("ERA_CONFIG", path.join("other"));
        command.output().unwrap()
    };
    let (known, unknown) = (era(Some("cert.pem")), era(None));
    let greeting = std::fs::read_to_string(path.join("said")).unwrap();
    let one_time = greeting.lines().find_map(|line| line.strip_prefix("one-time password: "));
    let log_in = |typed: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_era"));
        command.args([
            "login",
            "admin",
            "--ca",
            "cert.pem",
            "--url",
            &format!("https://{address}"),
        ]);
        command.env_remove("ERA_TOKEN").env("ERA_CONFIG", path.join("third")).current_dir(path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let by_lines = ask_by_line(&lines, &path.join("cert.pem"), token.trim());
    let in_the_clear = TcpStream::connect(&lines).and_then(|mut plain| {
        plain.set_read_timeout(Some(Duration::from_secs(10)))?;
        plain.write_all(b"{\"id\":1,\"op\":\"status\",\"job\":1}\n")?;
        let mut heard = Vec::new();
        plain.read_to_end(&mut heard).map(|_| heard)
    });
    let changed = log_in(&format!("{}\nof my own choosing\n", one_time.unwrap()));
    let after = log_in("of my own choosing\n");
    let _ = Command::new("kill").args(["-TERM", &server.id().to_string()]).status();
    server.wait().unwrap();
    assert!(changed.status.success(), "the one-time password is changed: {changed:?}");
    assert!(after.status.success(), "and the new one is good: {after:?}");
    assert!(by_lines.contains("\"user\":\"admin\""), "{by_lines}");
    let heard = in_the_clear.unwrap_or_default();
    assert!(!heard.contains(&b'{'), "nothing is said in the clear: {heard:?}");
    let said = String::from_utf8_lossy(&known.stdout);
    assert!(known.status.success() && said.contains("\"admin\""), "{known:?}");
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(!unknown.status.success() && said.contains("--ca"), "{said}");
}
