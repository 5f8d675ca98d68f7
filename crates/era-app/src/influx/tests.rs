use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use era_core::units::{JobId, Time};
use tokio::time::Instant;

use super::*;

fn sample(name: &str, step: u64, value: f64) -> NewSample {
    let at = Time(1_800_000_000_000 + step.cast_signed());
    NewSample { job: JobId(7), part: 0, rank: 1, name: name.to_owned(), step, at, value }
}

#[test]
fn values_are_written_as_lines_that_no_name_can_break() {
    let batch = [
        sample("loss", 3, 0.25),
        sample("nan", 3, f64::NAN),
        sample("a b,c=d\\\nera,job=8 x=1", 4, -1e300),
        sample("step", 5, 2.0),
    ];
    assert_eq!(
        lines(&batch),
        "era,job=7,part=0,rank=1 loss=0.25,step=3i 1800000000003\n\
         era,job=7,part=0,rank=1 a\\ b\\,c\\=d\\\\_era\\,job\\=8\\ x\\=1=-1e300,step=4i 1800000000004\n\
         era,job=7,part=0,rank=1 _step=2.0,step=5i 1800000000005\n"
    );
}

#[test]
fn an_address_is_of_either_version_and_shown_without_secrets() {
    let old: InfluxAddress = "http://ada:s3cret@db:8086/era".parse().unwrap();
    assert_eq!(old.write, "http://db:8086/write?db=era&precision=ms");
    assert_eq!(old.authorization.as_deref(), Some("Basic YWRhOnMzY3JldA=="));
    let new: InfluxAddress = "https://db?org=lab&bucket=jobs&token=s3cret".parse().unwrap();
    assert_eq!(new.write, "https://db/api/v2/write?org=lab&bucket=jobs&precision=ms");
    assert_eq!(new.authorization.as_deref(), Some("Token s3cret"));
    let signs: InfluxAddress = "http://ada%40lab:p%3A%2f%25w%@db:8086/era".parse().unwrap();
    let basic = format!("Basic {}", STANDARD.encode("ada@lab:p:/%w%"));
    assert_eq!(signs.authorization, Some(basic));
    let signs: InfluxAddress = "http://db?org=my%20lab&bucket=jobs&token=a%3D%3D".parse().unwrap();
    assert_eq!(signs.authorization.as_deref(), Some("Token a=="));
    assert_eq!(signs.write, "http://db/api/v2/write?org=my%20lab&bucket=jobs&precision=ms");
    for address in [&old, &new] {
        assert!(!format!("{address} {address:?}").contains("s3cret"), "{address:?}");
    }
    for (text, why) in [
        ("db", "http://"),
        ("ftp://db/era", "does not begin with http://"),
        ("http://ada:s3cret@db:8086", "neither a database nor a bucket"),
        ("http://db/a/b", "neither a database nor a bucket"),
    ] {
        let error = text.parse::<InfluxAddress>().unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("s3cret"), "{error}");
    }
}

/// An InfluxDB of its own, which lets nobody in without a password; it ends with the value.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(folder: &Path) -> Result<Server, std::io::Error> {
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (port, own) = (free(), free());
        let at = |name: &str| folder.join(name).display().to_string();
        let config = format!(
            "reporting-disabled = true\nbind-address = \"127.0.0.1:{own}\"\n\
             [meta]\ndir = \"{}\"\n[data]\ndir = \"{}\"\nwal-dir = \"{}\"\n\
             [http]\nbind-address = \"127.0.0.1:{port}\"\nauth-enabled = true\n",
            at("meta"),
            at("data"),
            at("wal"),
        );
        std::fs::write(folder.join("config"), config)?;
        let log = std::fs::File::create(folder.join("log"))?;
        let child = Command::new("influxd")
            .arg("-config")
            .arg(folder.join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let server = Server { child, port };
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(30), "influxd is not up: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        server.ask("CREATE USER era WITH PASSWORD 's3cret' WITH ALL PRIVILEGES");
        server.ask("CREATE DATABASE era");
        Ok(server)
    }

    fn ask(&self, question: &str) -> String {
        let question: String = question.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let url = format!("http://127.0.0.1:{}/query?db=era&q={question}", self.port);
        let request = ureq::post(&url).header("authorization", "Basic ZXJhOnMzY3JldA==");
        request.send_empty().unwrap().body_mut().read_to_string().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_arrive_at_a_real_server_even_if_it_comes_up_late() {
    let folder = tempfile::tempdir().unwrap();
    let server = match Server::start(folder.path()) {
        Ok(server) => server,
        Err(why) => return crate::skipped::skipped(&format!("influxd: {why}")),
    };
    // Behind an address where nobody listens for a moment.
    let late = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("http://era:s3cret@{late}/era").parse().unwrap();
    let (influx, sending) = start(address);
    influx.tell(&[sample("loss", 1, 0.5), sample("loss", 2, 0.25)]);
    influx.tell(&[sample("a b,c", 3, 4.0)]);
    drop(influx);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let door = tokio::net::TcpListener::bind(late).await.unwrap();
    let port = server.port;
    let passing = tokio::spawn(async move {
        while let Ok((mut here, _)) = door.accept().await {
            let mut there = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut here, &mut there).await;
        }
    });
    tokio::time::timeout(Duration::from_secs(30), sending).await.unwrap().unwrap();
    passing.abort();
    let found = server.ask("SELECT loss, step, job FROM era WHERE job = '7' AND rank = '1'");
    assert!(found.contains("0.5,1,\"7\"") && found.contains("0.25,2,\"7\""), "{found}");
    assert!(server.ask("SELECT \"a b,c\" FROM era").contains("4"), "{found}");
}

/// Takes one request, answers it, and gives it back: its first line and headers, and its body.
fn take_request(listener: &TcpListener, answer: &str) -> (String, String) {
    use std::io::{BufRead, BufReader, Read, Write};
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "it ends early: {head}");
    }
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    reader.into_inner().write_all(answer.as_bytes()).unwrap();
    (head, String::from_utf8(body).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_version_is_asked_at_its_own_path_with_a_token_until_it_takes_the_lines() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    let server = tokio::task::spawn_blocking(move || {
        ["503 Service Unavailable", "204 No Content"].map(|answer| take_request(&listener, answer))
    });
    let address = format!("http://{place}?org=lab&bucket=jobs&token=T0ken%3D%3D");
    let (influx, sending) = start(address.parse().unwrap());
    influx.tell(&[sample("loss", 3, 0.25)]);
    drop(influx);
    tokio::time::timeout(Duration::from_secs(30), sending).await.unwrap().unwrap();
    for (head, body) in server.await.unwrap() {
        let path = "post /api/v2/write?org=lab&bucket=jobs&precision=ms http/1.1\r\n";
        assert!(head.starts_with(path), "{head}");
        assert!(head.contains("authorization: token t0ken==\r\n"), "{head}");
        assert!(head.contains("content-type: text/plain; charset=utf-8\r\n"), "{head}");
        assert_eq!(body, "era,job=7,part=0,rank=1 loss=0.25,step=3i 1800000000003\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_makes_nobody_wait() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (influx, sending) = start(format!("http://{nobody}/era").parse().unwrap());
    let begun = Instant::now();
    for step in 0..10_000 {
        influx.tell(&[sample("loss", step, 1.0)]);
    }
    // Far more than it takes on a busy machine, and far less than waiting for it 10,000 times.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    sending.abort();
}
