//! What `deploy/` has is what the programs that read it understand.

use std::process::Command;

use super::front::{configured, deploy, nginx, write_whole};
use crate::encrypted::certificate;
use crate::skipped::skipped;

fn missing(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        skipped(&format!("{program} is not installed: run scripts/setup test"));
    }
    !found
}

#[test]
fn nginx_understands_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    if certificate(folder.path()).is_none() {
        skipped("there is no openssl here to make a certificate");
        return;
    }
    for (upstreams, names) in [("upstreams.conf", false), ("upstreams-compose.conf", true)] {
        let read = |name: &str| configured(name, folder.path());
        let mut text = read(upstreams) + &read("era.conf");
        // Ports that anybody may listen on, and names that no resolver here knows.
        text = text.replace(":80;", ":18080;").replace(" 80;", " 18080;");
        text = text.replace(":443 ", ":18443 ").replace(" 443 ", " 18443 ");
        if names {
            for host in ["app-1:", "app-2:", "files:"] {
                assert!(text.contains(host), "{host} is in none of its lines");
                text = text.replace(&format!("server {host}"), "server 127.0.0.1:");
            }
        }
        write_whole(folder.path(), &text);
        let Some(mut nginx) = nginx(folder.path()) else { return };
        let done = nginx.arg("-t").output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && !said.contains("[warn]"), "{upstreams}: {said}");
    }
}

#[test]
fn nginx_leads_every_address_of_a_file_to_those_who_keep_files() {
    let conf = std::fs::read_to_string(deploy().join("nginx/era.conf")).unwrap();
    let (mut location, mut of_files) = ("", Vec::new());
    for line in conf.lines().map(str::trim) {
        if let Some(pattern) = line.strip_prefix("location ~ ^/api/v1/") {
            location = pattern.trim_end_matches("(/|$) {");
        } else if line.contains("http://era_files") {
            of_files.push(location);
        }
    }
    let [first, "jobs/[0-9]+/(outputs|checkpoints)"] = of_files[..] else { panic!("{of_files:?}") };
    let first: Vec<&str> = first.trim_matches(['(', ')']).split('|').collect();
    let api = std::fs::read_to_string(deploy().join("../docs/openapi.json")).unwrap();
    let api: serde_json::Value = serde_json::from_str(&api).unwrap();
    let is_of_files = |methods: &serde_json::Value| {
        let mut methods = methods.as_object().unwrap().values();
        methods.any(|method| method["tags"][0] == "data")
    };
    let paths = api["paths"].as_object().unwrap();
    let mut count = 0;
    for (path, methods) in paths {
        let path = path.trim_start_matches("/api/v1/");
        let led = first.contains(&path.split('/').next().unwrap())
            || ["jobs/{id}/outputs", "jobs/{id}/checkpoints"].iter().any(|of| path.starts_with(of));
        assert_eq!(led, is_of_files(methods), "{path}");
        count += usize::from(led);
    }
    assert!(count > 8, "{count}");
}

#[test]
fn systemd_understands_its_units_and_era_their_commands() {
    if missing("systemd-analyze") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut units = Vec::new();
    for unit in std::fs::read_dir(deploy().join("systemd")).unwrap() {
        let unit = unit.unwrap();
        let text = std::fs::read_to_string(unit.path()).unwrap();
        let command = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let arguments: Vec<String> =
            command.split(' ').skip(1).map(|word| word.replace("%i", "7632")).collect();
        // What is asked for help is read and not done; a flag that is none is refused before.
        let done = Command::new(env!("CARGO_BIN_EXE_era")).args(&arguments).arg("--help").output();
        assert!(done.unwrap().status.success(), "{command}");
        let known =
            Command::new(env!("CARGO_BIN_EXE_era")).arg(&arguments[0]).arg("--help").output();
        let known = String::from_utf8_lossy(&known.unwrap().stdout).into_owned();
        for flag in arguments.iter().filter(|word| word.starts_with("--")) {
            assert!(known.contains(flag.as_str()), "{command}: {flag}");
        }
        // Else a database that is away for ten seconds is the end of it for good.
        let (unit_part, service) = text.split_once("[Service]").unwrap();
        assert!(unit_part.contains("\nStartLimitIntervalSec=0\n"), "{command}");
        assert!(service.contains("\nRestart=always\n"), "{command}");
        let text = text.replace("/usr/bin/era", env!("CARGO_BIN_EXE_era"));
        let name = unit.file_name().into_string().unwrap();
        std::fs::write(folder.path().join(&name), text).unwrap();
        units.push(name.replace("@.", "@7632."));
    }
    assert_eq!(units.len(), 5, "{units:?}");
    let done = Command::new("systemd-analyze")
        .arg("verify")
        .arg("--man=no")
        .args(&units)
        .env("SYSTEMD_UNIT_PATH", format!("{}:", folder.path().display()))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("era")).collect();
    assert!(done.status.success() && ours.is_empty(), "{said}");
}
