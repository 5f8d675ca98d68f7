//! `deploy/compose.yaml`, started on an engine of the test's own: every layer, PostgreSQL, Redis
//! and nginx in their containers, and a job through all of them.
//!
//! No public registry is asked: the images are one skeleton whose programs are this machine's own,
//! and a file beside the Compose file says how those are started. All else is as it is deployed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use super::bed::wait;
use super::front::deploy;
use crate::encrypted::certificate;
use crate::engines::bed::{Daemon, IMAGE, can, sh};
use crate::skipped::skipped;

/// How long all of it may take to be up.
const UP_MAX: Duration = Duration::from_secs(120);
/// The volume that is the data folder.
const FILES: &str = "kept-for-a-test";

/// What stands in for the images: how each is started here.
const STARTED: &str = r#"
x-programs: &programs ["/usr:/usr:ro"]
x-era: &era
  entrypoint: ["/opt/era"]
  volumes: ["/usr:/usr:ro", "ERA:/opt/era:ro"]
services:
  database:
    entrypoint: ["/bin/sh", "/opt/postgres"]
    volumes: *programs
  redis:
    entrypoint: ["/usr/bin/redis-server", "--protected-mode", "no", "--save", ""]
    volumes: *programs
  nginx:
    entrypoint: ["/usr/sbin/nginx", "-g", "daemon off;"]
    volumes: *programs
  core-1: *era
  core-2: *era
  app-1: *era
  app-2: *era
  files: *era
  cloud: *era
"#;

/// What an image of PostgreSQL does first, with the variables that it reads.
const POSTGRES: &str = r#"
set -e
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
data=/var/lib/postgresql/data
run() { setpriv --reuid 999 --regid 999 --clear-groups "$@"; }
mkdir -p /run/postgresql && chown 999 $data /run/postgresql
if [ ! -s $data/PG_VERSION ]; then
    printf %s "$POSTGRES_PASSWORD" > /tmp/password
    run "$bin/initdb" -D $data -U "$POSTGRES_USER" --pwfile /tmp/password -A scram-sha-256
    echo 'host all all all scram-sha-256' >> $data/pg_hba.conf
    run "$bin/pg_ctl" -D $data -o "-c listen_addresses= -k /run/postgresql" -w start
    PGPASSWORD=$POSTGRES_PASSWORD "$bin/createdb" -h /run/postgresql -U "$POSTGRES_USER" "$POSTGRES_DB"
    run "$bin/pg_ctl" -D $data -w stop
fi
exec setpriv --reuid 999 --regid 999 --clear-groups \
    "$bin/postgres" -D $data -c listen_addresses='*' -k /run/postgresql
"#;

const NGINX: &str = "user root;\nevents {}\nhttp { include /etc/nginx/conf.d/*.conf; }\n";

/// The root file system that all images are, as a tar file.
fn skeleton(to: &Path) -> std::io::Result<()> {
    let mut tar = tar::Builder::new(std::fs::File::create(to)?);
    for folder in ["tmp", "run", "var/log/nginx", "var/lib/nginx", "etc/nginx/conf.d", "opt"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o1777);
        header.set_size(0);
        tar.append_data(&mut header, folder, std::io::empty())?;
    }
    let links = [("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"), ("var/run", "/run")];
    for (name, target) in links.into_iter().chain([("lib64", "usr/lib64")]) {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, name, target)?;
    }
    let users = "root:x:0:0::/:/bin/sh\npostgres:x:999:999::/:/bin/sh\n";
    for (name, text) in [
        ("etc/passwd", users),
        ("etc/group", "root:x:0:\npostgres:x:999:\n"),
        ("etc/nginx/nginx.conf", NGINX),
        ("opt/postgres", POSTGRES),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, name, text.as_bytes())?;
    }
    tar.into_inner()?.sync_all()
}

/// Compose, in either of the two forms that there are.
fn compose() -> Option<Vec<&'static str>> {
    let forms = [vec!["docker-compose"], vec!["docker", "compose"]];
    let found =
        forms.into_iter().find(|form| sh(form[0], &[&form[1..], &["version"]].concat()).is_ok());
    if found.is_none() {
        skipped("Compose is not installed: run scripts/setup test");
    }
    found
}

/// The site. It is taken down with the value.
struct Composed {
    daemon: Daemon,
    folder: tempfile::TempDir,
    compose: Vec<&'static str>,
}

impl Composed {
    /// Where the engine keeps the volume that is the data folder.
    fn files(&self) -> Option<PathBuf> {
        let words = ["volume", "inspect", "-f", "{{.Mountpoint}}", FILES];
        self.daemon.docker(&words).ok().map(|said| said.trim().into())
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new(self.compose[0])
            .args(&self.compose[1..])
            .args(["-p", "site", "-f"])
            .arg(deploy().join("compose.yaml"))
            .arg("-f")
            .arg(self.folder.path().join("started.yaml"))
            .args(words)
            .env("DOCKER_HOST", format!("unix://{}/s", self.daemon.folder.display()))
            .env("ERA_DOCKER_SOCKET", self.daemon.folder.join("s"))
            .env("ERA_DATABASE_PASSWORD", "chosen-for-a-test")
            .env("ERA_TLS", self.folder.path().join("tls"))
            .env("ERA_FILES", FILES)
            .env("ERA_JOB_IMAGE", IMAGE)
            .output()
            .unwrap()
    }

    fn ok(&self, words: &[&str]) -> String {
        let done = self.run(words);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{words:?}: {said}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// The command line on the machine whose ports these are.
    fn era(&self, token: &str, words: &[&str]) -> Output {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.daemon.namespace.0))
            .arg(env!("CARGO_BIN_EXE_era"))
            .args(words)
            .current_dir(self.folder.path().join("home"))
            .env("ERA_URL", "https://127.0.0.1")
            .env("ERA_CA", self.folder.path().join("tls/cert.pem"))
            .env("ERA_TOKEN", token)
            .env("ERA_CONFIG", self.folder.path().join("config"))
            .output()
            .unwrap()
    }
}

impl Drop for Composed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", String::from_utf8_lossy(&self.run(&["logs", "--tail", "15"]).stdout));
        }
        self.run(&["down", "-v", "-t", "1"]);
    }
}

#[test]
fn all_of_it_comes_up_from_the_compose_file_and_a_job_goes_through_it() {
    let Some(compose) = compose() else { return };
    let Some(daemon) = Daemon::alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    for name in ["tls", "home"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let Some(()) = can(certificate(&folder.path().join("tls")).ok_or("no openssl".into())) else {
        return;
    };
    let started = STARTED.replace("ERA:", &format!("{}:", env!("CARGO_BIN_EXE_era")));
    std::fs::write(folder.path().join("started.yaml"), started).unwrap();
    let image = folder.path().join("skeleton.tar");
    skeleton(&image).unwrap();
    let image = image.display().to_string();
    daemon.docker(&["import", &image, "era:latest"]).unwrap();
    for name in ["postgres:16", "redis:7", "nginx:stable"] {
        daemon.docker(&["tag", "era:latest", name]).unwrap();
    }
    let site = Composed { daemon, folder, compose };
    let services = site.ok(&["config", "--services"]);
    assert_eq!(services.lines().count(), 9, "{services}");
    site.ok(&["up", "-d"]);
    let token =
        wait("a token", UP_MAX, || std::fs::read_to_string(site.files()?.join("local-token")).ok());
    wait("a node", UP_MAX, || {
        let nodes = site.era(&token, &["nodes", "-o", "json"]);
        String::from_utf8_lossy(&nodes.stdout).contains("\"up\"").then_some(())
    });
    // Code goes up, the log comes as it is printed, outputs come back.
    std::fs::write(site.folder.path().join("home/word"), "through all layers\n").unwrap();
    let script = "cat word; cp word $ERA_OUTPUTS/said";
    let job = ["run", "-y", "-c", "100m", "-m", "32Mi", "-t", "1m", "--outputs", "got", "--"];
    let (done, said) = wait("files", UP_MAX, || {
        let done = site.era(&token, &[&job[..], &["/bin/sh", "-c", script]].concat());
        let said =
            [&done.stdout[..], &done.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        // Tasks can run before what keeps files is at work, which takes no connection until then.
        (!said[1].contains("502")).then_some((done, said))
    });
    assert!(done.status.success() && said[0].contains("through all layers"), "{said:?}");
    let got = std::fs::read_to_string(site.folder.path().join("home/got/said")).unwrap();
    assert_eq!(got, "through all layers\n");
}
