//! A Redis that is spoken to in secret, and vouched for by an authority of the site's own.

use std::process::{Command, Stdio};
use std::time::Duration;

use era_cloud::celery::bus::Bus;
use era_cloud::celery::names::RedisAddress;
use era_cloud::clock::MachineClock;
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_redis_is_trusted_by_the_authority_that_was_named_and_by_none_other() {
    // The program does so first of all.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().expect("a folder");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("its number").port();
    drop(free);
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=redis", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .status();
    let redis = Command::new("redis-server")
        .args(["--port", "0", "--tls-port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--tls-cert-file", "cert.pem", "--tls-key-file", "key.pem"])
        .args(["--tls-auth-clients", "no", "--save", ""])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let (Ok(true), Ok(mut redis)) = (made.map(|made| made.success()), redis) else {
        return crate::skipped::skipped("there is no openssl or no redis-server");
    };
    let url = format!("celery://rediss://127.0.0.1:{port}/0");
    let vouched = RedisAddress::read(&format!("{url}?ca={}/cert.pem", folder.path().display()));
    let vouched = vouched.expect("an address");
    let until = Instant::now() + Duration::from_secs(60);
    let trusted = loop {
        match Bus::connect(&vouched, MachineClock::system()).await {
            Err(_) if Instant::now() < until => tokio::time::sleep(Duration::from_millis(50)).await,
            connected => break connected,
        }
    };
    let refused =
        Bus::connect(&RedisAddress::read(&url).expect("an address"), MachineClock::system()).await;
    let missing = RedisAddress::read(&format!("{url}?ca=/nowhere/ca.pem")).expect("an address");
    let missing = Bus::connect(&missing, MachineClock::system()).await;
    let _ = redis.kill();
    let _ = redis.wait();
    trusted.expect("connected");
    let refused = refused.expect_err("an unknown authority").to_string();
    assert!(refused.contains("?ca=FILE"), "{refused}");
    let missing = missing.expect_err("no such file").to_string();
    assert!(missing.contains("authority cannot be read") && missing.contains("PEM"), "{missing}");
}
