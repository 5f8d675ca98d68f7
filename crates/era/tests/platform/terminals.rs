//! A job's terminal at a user's: the real command line at a terminal that the test opens, typed
//! into as a person does.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::json;

use crate::harness::Platform;

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command at a terminal of its own.
struct Session {
    keys: File,
    /// The command's end: its settings are those that a shell would find afterwards.
    end: File,
    child: Child,
    shown: Receiver<Vec<u8>>,
    seen: String,
}

impl Session {
    fn start(platform: &Platform, arguments: &[&str]) -> Session {
        let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let end = File::from(rustix::fs::open(&name, flags, Mode::empty()).unwrap());
        let era = platform.era();
        // Its own session, so that it is this terminal's and not the one of whoever runs tests.
        let mut command = Command::new("setsid");
        command.args(["--wait", "--ctty"]).arg(era.get_program()).args(arguments);
        command.current_dir(era.get_current_dir().unwrap());
        for (name, value) in era.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let stdio = || Stdio::from(end.try_clone().unwrap());
        command.env("TERM", "vt100").stdin(stdio()).stdout(stdio()).stderr(stdio());
        let child = command.spawn().unwrap();
        let keys = File::from(master);
        let (tell, shown) = channel();
        let mut screen = keys.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read) = screen.read(&mut piece) {
                if read == 0 || tell.send(piece[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let session = Session { keys, end, child, shown, seen: String::new() };
        session.resize(24, 80);
        session
    }

    fn resize(&self, rows: u16, cols: u16) {
        let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keys, size).unwrap();
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown behind what was waited for before.
    fn sees(&mut self, wanted: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.find(wanted) {
                let rest = self.seen.split_off(at + wanted.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(piece) => self.seen += &String::from_utf8_lossy(&piece),
                Err(_) => panic!("no {wanted:?} in {:?}", self.seen),
            }
        }
    }

    /// Its exit code; the terminal is as it was.
    fn ends(mut self) -> i32 {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let modes = tcgetattr(&self.end).unwrap().local_modes;
                assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "{modes:?}");
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < until, "it goes on: {:?}", self.seen);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_shell_on_the_cluster_is_a_shell_here_and_its_code_is_the_commands() {
    let platform = Platform::start();
    let run = [
        "run",
        "-y",
        "--most",
        "50",
        "--time",
        "10m",
        "--no-code",
        "--cpu",
        "100m",
        "--memory",
        "64Mi",
        "--pty",
        "--",
        "sh",
    ];
    let mut here = Session::start(&platform, &run);
    here.sees("Attached to job");
    here.press("echo $((6*7)); echo $TERM\r");
    here.sees("42\r\n");
    here.sees("vt100");
    here.resize(33, 101);
    here.press("while :; do stty size; sleep 0.1; done\r");
    here.sees("33 101");
    here.press("\x03");
    // A key for the job, which is not the end of anything else.
    here.press("echo to fi$((1))e > $ERA_OUTPUTS/x\r");
    here.press("exit 3\r");
    let told = here.sees("credits");
    assert!(told.contains("failed"), "{told}");
    assert_eq!(here.ends(), 3);
    let brought = std::fs::read_to_string(platform.home().join("outputs/1/x")).unwrap();
    assert_eq!(brought, "to fi1e\n");
    let log = platform.ok(&["logs", "1"]);
    assert!(log.contains("\n42\n") && log.contains("33 101\n"), "{log:?}");
}

#[test]
fn who_leaves_comes_back_and_two_at_once_see_the_same() {
    let platform = Platform::start();
    let mut here = Session::start(
        &platform,
        &["run", "--no-code", "--cpu", "100m", "--memory", "64Mi", "--pty", "--", "sh"],
    );
    here.sees("Attached to job 1");
    here.press("word=kept; echo be$((1))ore\r");
    here.sees("be1ore");
    here.press("~.");
    here.sees("era attach 1");
    assert_eq!(here.ends(), 130);
    let mut first = Session::start(&platform, &["attach", "1"]);
    first.sees("be1ore");
    let mut second = Session::start(&platform, &["attach", "1"]);
    second.sees("be1ore");
    second.press("echo $word-on\r");
    first.sees("kept-on");
    second.sees("kept-on");
    second.press("~.");
    second.sees("goes on");
    assert_eq!(second.ends(), 0);
    first.press("exit 7\r");
    assert_eq!(first.ends(), 7);
    assert_eq!(platform.ended(1)["exit_code"], 7);
    let trail = platform.get("/audit?what=job.attach");
    assert_eq!(trail["items"].as_array().unwrap().len(), 3, "{trail}");
}

#[test]
fn a_terminal_outlives_a_restart_of_the_server_and_a_stop_leaves_no_orphan() {
    let mut platform = Platform::start();
    let job = platform.submit(&json!({
        "work": {"command": ["sh"], "terminal": true},
        "ask": {"resources": {"cpu": "100m", "memory": "64Mi"}, "duration_s": 600},
    }));
    let running = |job: &serde_json::Value| (job["state"] == "running").then_some(());
    platform.wait_for("a start", &format!("/jobs/{job}"), running);
    let mut here = Session::start(&platform, &["attach", &job.to_string()]);
    here.press("word=kept; echo be$((1))ore\r");
    here.sees("be1ore");
    platform.kill();
    here.sees("trying again");
    platform.restart();
    here.sees("be1ore");
    here.press("echo $word-on\r");
    here.sees("kept-on");
    here.press("sleep 7401.5\r");
    here.sees("sleep 7401.5");
    platform.ok(&["cancel", &job.to_string()]);
    assert_ne!(here.ends(), 0);
    assert_eq!(platform.ended(job)["state"], "cancelled");
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = lines.map(|of| std::fs::read(of.path().join("cmdline")).unwrap_or_default());
    assert!(!lines.any(|line| line == b"sleep\x007401.5\0"), "an orphan is left");
}

#[test]
fn what_has_no_terminal_and_who_may_not_type_is_told_so() {
    let platform = Platform::start();
    // Nobody sits here.
    let (code, said) = platform.fails(&["run", "--pty", "--", "sh"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("no terminal") && said.contains("era attach"), "{said}");
    platform.ok(&[
        "run",
        "-d",
        "--no-code",
        "--cpu",
        "100m",
        "--memory",
        "64Mi",
        "--",
        "sleep",
        "600",
    ]);
    platform.ok(&[
        "run",
        "-d",
        "--no-code",
        "--cpu",
        "100m",
        "--memory",
        "64Mi",
        "--pty",
        "--",
        "sh",
    ]);
    let running = |job: &serde_json::Value| (job["state"] == "running").then_some(());
    platform.wait_for("a start", "/jobs/1", running);
    platform.wait_for("a start", "/jobs/2", running);
    let mut plain = Session::start(&platform, &["attach", "1"]);
    plain.sees("it has no terminal: submit such a job with --pty");
    assert_eq!(plain.ends(), 3);
    let mut unknown = Session::start(&platform, &["attach", "99"]);
    let nowhere = unknown.sees("list them first").replace("99", "JOB");
    assert_eq!(unknown.ends(), 5);
    let new = json!({"name": "bob", "password": "correct horse battery"});
    if platform.send("POST", "/users", &new).0 == 201 {
        let login = json!({"user": "bob", "password": "correct horse battery"});
        let (_, session) = platform.send("POST", "/sessions", &login);
        let token = session["token"].as_str().unwrap();
        let mut other = Session::start(&platform, &["attach", "2", "--token", token]);
        let foreign = other.sees("list them first").replace('2', "JOB");
        assert_eq!((other.ends(), foreign), (5, nowhere));
    }
    // One that is over before anybody can attach still shows what it printed.
    let mut quick = Session::start(
        &platform,
        &["run", "--no-code", "--cpu", "100m", "--memory", "64Mi", "--pty", "--", "tty"],
    );
    quick.sees("/dev/pts/");
    assert_eq!(quick.ends(), 0);
    for job in ["1", "2"] {
        platform.ok(&["cancel", job]);
        platform.ended(job.parse().unwrap());
    }
}
