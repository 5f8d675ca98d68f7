//! What every command says that is not shown elsewhere: the real command line at a real server,
//! in tables for people and in JSON for programs. Numbers, times and names that differ from run to
//! run are left out.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::Platform;

/// A text without its numbers, times and secrets; `hidden` are words that differ, with what stands
/// for them.
pub(crate) fn redacted(text: &str, hidden: &[(String, &str)]) -> String {
    let mut text = text.to_owned();
    for (word, stands_for) in hidden {
        text = without(&text, word, stands_for);
    }
    let text: String = text.split_inclusive([' ', '\n', '"']).map(secretless).collect();
    let mut plain = String::new();
    for letter in text.chars() {
        match letter {
            digit if digit.is_ascii_digit() && plain.ends_with('0') => {}
            digit if digit.is_ascii_digit() => plain.push('0'),
            // How wide a column is depends on the numbers in it.
            ' ' if plain.ends_with("  ") && !plain.ends_with("\n  ") => {}
            letter => plain.push(letter),
        }
    }
    for time in ["today 0:0", "tomorrow 0:0", "0-0-0 0:0", "0-0-0T0:0:0.0Z", "0-0-0T0:0:0Z"] {
        plain = plain.replace(time, "TIME");
    }
    plain.replace("0.0", "0").replace("KiB", "MiB")
}

/// A text with something else for a word, where it stands by itself.
fn without(text: &str, word: &str, stands_for: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, found) = rest.split_at(at);
        let after = &found[word.len()..];
        let inside =
            before.ends_with(char::is_alphanumeric) || after.starts_with(char::is_alphanumeric);
        plain += before;
        plain += if inside { word } else { stands_for };
        rest = after;
    }
    plain + rest
}

/// A word, or what stands for a token or a hash.
fn secretless(word: &str) -> String {
    let bare = word.trim_end_matches([' ', '\n', '"', ',', '.']);
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let secret = bare.len() >= 12
        && bare.chars().all(letters)
        && bare.contains(|c: char| c.is_ascii_digit())
        && bare.contains(|c: char| c.is_ascii_lowercase());
    if secret { format!("SECRET{}", &word[bare.len()..]) } else { word.to_owned() }
}

/// Commands, one after the other, and what they said.
struct Told<'a> {
    platform: &'a Platform,
    text: String,
    hidden: Vec<(String, &'a str)>,
}

impl<'a> Told<'a> {
    fn new(platform: &'a Platform) -> Told<'a> {
        let folder = platform.home().parent().unwrap().display().to_string();
        let node = platform.wait_for("a node", "/nodes", |nodes| {
            Some(nodes["items"][0]["name"].as_str()?.to_owned())
        });
        let hidden =
            vec![(folder, "FOLDER"), (platform.address().to_owned(), "ADDRESS"), (node, "NODE")];
        Told { platform, text: String::new(), hidden }
    }

    fn node(&self) -> String {
        self.hidden[2].0.clone()
    }

    /// Runs a command that goes well, and keeps what it said.
    fn run(&mut self, arguments: &[&str]) -> String {
        self.run_as(arguments, None, "")
    }

    /// The same with a login of its own, and with something on standard input.
    fn run_as(&mut self, arguments: &[&str], config: Option<&Path>, typed: &str) -> String {
        let mut command = self.platform.era();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(config.map(|config| ("ERA_CONFIG", config)));
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "era {arguments:?}\n{out}{err}");
        let mut told = format!("$ era {}\n{out}", arguments.join(" "));
        for line in err.lines() {
            told += &format!("(stderr) {line}\n");
        }
        self.text += &redacted(&told, &self.hidden);
        self.text.push('\n');
        out
    }

    /// Runs a command twice: for people as it is given, and its answer for programs, which must be
    /// JSON, by another line.
    fn both(&mut self, people: &[&str], programs: &[&str]) {
        self.run(people);
        let out = self.run(&[programs, &["-o", "json"]].concat());
        serde_json::from_str::<Value>(&out).unwrap_or_else(|e| panic!("{programs:?}: {e}: {out}"));
    }

    /// Hands in a job without a word; its number.
    fn job(&self, arguments: &[&str]) -> String {
        let small = ["submit", "-o", "json", "-c", "100m", "-m", "32Mi", "-t", "20m", "--no-code"];
        let made = self.platform.ok(&[&small[..], arguments].concat());
        let made: Value = serde_json::from_str(&made).unwrap();
        made["job"].to_string()
    }

    fn running(&self, job: &str) {
        let running = |job: &Value| (job["state"] == "running").then_some(());
        self.platform.wait_for("a job that runs", &format!("/jobs/{job}"), running);
    }
}

#[test]
fn what_commands_say_about_logins_and_jobs() {
    let platform = Platform::start();
    let mut told = Told::new(&platform);
    let made = platform.ok(&["admin", "user", "add", "ada", "--credits", "50", "-o", "json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    let config = platform.home().join("of-ada");
    let passwords = format!("{}\nhers and hers alone\n", made["password"].as_str().unwrap());
    told.run_as(&["login", "ada"], Some(&config), &passwords);
    told.run_as(&["logout"], Some(&config), "");
    let me = told.run_as(&["login", "ada", "-o", "json"], Some(&config), "hers and hers alone\n");
    assert_eq!(serde_json::from_str::<Value>(&me).unwrap()["name"], "ada");
    let out = told.run_as(&["logout", "-o", "json"], Some(&config), "");
    assert!(serde_json::from_str::<Value>(&out).is_ok(), "{out}");

    let quote = ["quote", "--hold", "--brief", "-c", "100m", "-m", "32Mi", "-t", "20m"];
    let quoted =
        platform.ok(&[&quote[..], &["--by", "now+21m", "--value", "30", "-o", "json"]].concat());
    let quoted: Value = serde_json::from_str(&quoted).unwrap();
    let hold = quoted["hold"]["id"].to_string();
    let line = told.run(&["accept", &hold, "--", "sh", "-c", "sleep 600"]);
    let job = line.lines().next().unwrap().trim_start_matches("job ").to_owned();
    told.running(&job);
    told.both(&["extend", &job, "2m", "--most", "9"], &["extend", &job, "2m", "--most", "9"]);
    told.run(&["release", &job]);
    let other = told.job(&["--by", "now+21m", "--value", "30", "--", "sleep", "600"]);
    told.running(&other);
    let out = told.run(&["release", &other, "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["released"].to_string(), other);

    let printing = told.job(&["--", "sh", "-c", "echo one; sleep 1; echo two >&2"]);
    platform.ended(printing.parse().unwrap());
    told.run(&["logs", &printing]);
    let out = told.run(&["logs", &printing, "-o", "json"]);
    assert!(out.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{out}");
    told.both(&["retry", &printing], &["retry", &printing]);

    // What runs has something set aside, which comes back.
    let begun = |told: &Told, line: &[&str]| {
        let job = told.job(line);
        told.running(&job);
        job
    };
    let sleeper = || begun(&told, &["--", "sleep", "600"]);
    let (one, two, three) = (sleeper(), sleeper(), sleeper());
    told.both(&["cancel", &one], &["cancel", &two, &three]);
    let array = || begun(&told, &["--array", "0-4", "--", "sleep", "600"]);
    let (one, two) = (array(), array());
    told.both(&["cancel", "--array", &one], &["cancel", "--array", &two]);
    let none = |jobs: &Value| jobs["items"].as_array()?.is_empty().then_some(());
    platform.wait_for("the end of all jobs", "/jobs?state=active", none);
    for form in ["table", "json"] {
        begun(&told, &["--array", "0-4", "--", "sleep", "600"]);
        begun(&told, &["--", "sleep", "600"]);
        let (code, said) = platform.fails(&["cancel", "--mine"]);
        assert_eq!((code, said.contains("-y")), (2, true), "nobody was asked: {said}");
        told.run(&["cancel", "--mine", "-y", "-o", form]);
        platform.wait_for("the end of all jobs", "/jobs?state=active", none);
    }
    told.run(&["cancel", "--mine"]);
    insta::assert_snapshot!(told.text);
}

#[test]
fn a_promise_is_bought_again_only_by_whoever_says_so() {
    let platform = Platform::start();
    let told = Told::new(&platform);
    // No worth is said: the price is taken.
    let job = told.job(&["--from", "now+2h", "--by", "now+3h", "--", "true"]);
    let refund = platform.ok(&["cancel", &job]);
    assert!(refund.contains(" credits come back."), "{refund}");
    let (code, said) = platform.fails(&["retry", &job]);
    assert_eq!((code, said.contains("-y takes it")), (2, true), "nobody was asked: {said}");
    let again = platform.ok(&["retry", &job, "-y", "-o", "json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert!(again["quote"]["price"].is_string(), "{again}");
    platform.ok(&["cancel", &again["job"].to_string()]);
}

#[test]
fn what_commands_say_about_secrets() {
    let platform = Platform::start();
    let mut told = Told::new(&platform);
    told.run(&["secret", "ls"]);
    told.run_as(&["secret", "set", "WANDB_API_KEY"], None, "sesame\n");
    let set = told.run_as(&["secret", "set", "WANDB_API_KEY", "-o", "json"], None, "sesame\n");
    assert!(serde_json::from_str::<Value>(&set).unwrap()["set"].is_string(), "{set}");
    told.both(&["secret", "ls"], &["secret", "ls"]);
    told.run(&["secret", "rm", "WANDB_API_KEY"]);
    assert!(!told.text.contains("sesame"));
    insta::assert_snapshot!(told.text);
}

#[test]
fn what_a_server_says_is_wrong_with_a_job_is_bad_input() {
    let platform = Platform::start();
    let file = "command: [true]\nresources: {memry: 1Gi}\n";
    platform.ok(&["whoami"]);
    std::fs::write(platform.home().join("job.yaml"), file).unwrap();
    for line in
        [&["-n", "a\x1bb", "--", "true"][..], &["--by", "2020-01-01", "--", "true"], &["job.yaml"]]
    {
        let (code, said) = platform.fails(&[&["submit", "--no-code"], line].concat());
        assert_eq!(code, 2, "{line:?}: {said}");
    }
}

#[test]
fn a_zone_that_nobody_knows_is_refused_and_not_taken_for_another() {
    let platform = Platform::start();
    let refused = platform.era().env("TZ", "Mars/Base").arg("jobs").output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: TZ: there is no time zone `Mars/Base`: "), "{said}");
}

#[test]
fn what_a_server_says_is_told_in_the_readers_zone() {
    let platform = Platform::start();
    let told = Told::new(&platform);
    let job = told.job(&["--", "true"]);
    let ended = platform.ended(job.parse().unwrap());
    let ended: jiff::Timestamp = ended["ended"].as_str().unwrap().parse().unwrap();
    let there = ended.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(8)));
    let explained = platform.era().env("TZ", "CST-8").args(["explain", &job]).output().unwrap();
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    let clock = there.strftime(" %H:%M").to_string();
    assert!(explained.starts_with("It ended at ") && explained.contains(&clock), "{explained}");
}

#[test]
fn what_commands_say_about_data() {
    let platform = Platform::start();
    let mut told = Told::new(&platform);
    let folder = platform.home().join("corpus");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "a").unwrap();
    std::fs::write(folder.join("b.txt"), "bb").unwrap();
    told.both(&["data", "push", "corpus", "corpus"], &["data", "push", "corpus", "spare"]);
    told.both(
        &["data", "share", "corpus", "--group", "--with", "admin"],
        &["data", "share", "corpus", "--public"],
    );
    told.run(&["data", "pull", "corpus", "brought"]);
    assert_eq!(std::fs::read(platform.home().join("brought/b.txt")).unwrap(), b"bb");
    told.both(&["data", "rm", "corpus", "a.txt"], &["data", "rm", "corpus", "b.txt"]);
    told.both(&["data", "rm", "corpus"], &["data", "rm", "spare"]);
    insta::assert_snapshot!(told.text);
}

#[test]
fn what_commands_say_to_administrators() {
    let platform = Platform::start_with(&["--insecure-webhooks"]);
    let mut told = Told::new(&platform);
    let node = told.node();
    platform.ok(&["admin", "user", "add", "ada"]);
    told.both(&["admin", "credit", "ada", "50"], &["admin", "credit", "ada", "-20"]);
    told.both(&["admin", "quota", "ada", "--gpu", "2"], &["admin", "quota", "ada"]);
    told.both(&["admin", "mechanism", "surge", "--high", "4"], &["admin", "mechanism"]);
    // What a node is like differs from machine to machine.
    for line in [&["cordon", &*node][..], &["resume", &node], &["drain", &node], &["resume", &node]]
    {
        told.run(&[&["admin", "node"], line].concat());
    }
    let away = ["admin", "node", "away", &node];
    told.run(&[&away[..], &["--from", "now+20h", "--to", "now+21h"]].concat());
    told.run(&away);
    let rates = ["--cpu-rate", "1", "--memory-rate", "0.1", "--gpu-rate", "9"];
    let put = |name| [&["admin", "pool", "put", name][..], &rates].concat();
    told.both(&put("fast"), &put("slow"));
    told.run(&["admin", "pool", "list"]);
    told.both(&["admin", "domain", "put", "east"], &["admin", "domain", "put", "west"]);
    told.run(&["admin", "node", "move", &node, "east"]);
    told.run(&["admin", "node", "move", &node]);
    told.run(&["admin", "domain", "list"]);
    told.both(&["admin", "domain", "remove", "east"], &["admin", "domain", "remove", "west"]);
    let put = |name| ["admin", "queue", "put", name, "--policy", "fifo"];
    let publish = ["admin", "policy", "publish", "fifo", "--order", "fifo"];
    platform.ok(&publish);
    told.both(&put("night"), &put("day"));
    told.both(&["admin", "queue", "remove", "night"], &["admin", "queue", "remove", "day"]);
    told.run(&["admin", "config", "ls"]);
    told.both(&["admin", "config", "get", "lease"], &["admin", "config", "get", "lease"]);
    told.both(&["admin", "config", "set", "lease=40s"], &["admin", "config", "set", "lease=30s"]);
    told.run(&["admin", "token", "make", "for a script"]);
    told.run(&["admin", "token", "list"]);
    let made = platform.ok(&["admin", "token", "make", "another", "-o", "json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    let another = made["info"]["id"].as_str().unwrap().to_owned();
    told.hidden.push((another.clone(), "TOKEN"));
    let out = told.run(&["admin", "token", "revoke", &another, "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["revoked"], another);
    let hook = ["admin", "webhook", "add", "http://127.0.0.1:9/", "-e", "job_failed"];
    told.both(&hook, &hook);
    told.run(&["admin", "webhook", "list"]);
    told.both(&["admin", "webhook", "remove", "1"], &["admin", "webhook", "remove", "2"]);
    told.run(&["admin", "audit", "-l", "5"]);
    insta::assert_snapshot!(told.text);
}

#[test]
fn what_commands_say_about_what_a_server_keeps() {
    let mut platform = Platform::start();
    let text = {
        let mut told = Told::new(&platform);
        let job = told.job(&["--", "true"]);
        platform.ended(job.parse().unwrap());
        told.run(&["admin", "journal", "journal.jsonl"]);
        told.run(&["admin", "rebuild", "--data", "../data"]);
        told.run(&["admin", "backup", "--data", "../data", "../backup"]);
        told.run(&["admin", "restore", "../backup", "--data", "../restored"]);
        told.text
    };
    assert!(platform.stop(), "it stops when it is asked to");
    let mut told = Told { platform: &platform, text, hidden: Vec::new() };
    told.run(&["admin", "copy", "--from", "sqlite:../data", "--to", "sqlite:../copied"]);
    insta::assert_snapshot!(told.text);
}
