//! Images where the application is a process of its own: from a folder to the registry, into the
//! catalogue, to Redis, and into a job.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use era_store::Dialect;
use serde_json::{Value, json};

use super::bed::{Bed, Layer, wait};
use super::front::Front;
use super::redis::Redis;
use super::{MINUTE, ended, submit};
use crate::engines::bed::{Daemon, IMAGE, can};
use crate::engines::registry::{LOGIN, Registry, write_private};

/// A command that goes on until it is ended with the value.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn write_dockerfile(folder: &Path, word: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let text = format!("FROM {IMAGE}\nENV HELLO={word}\n");
    std::fs::write(folder.join("Dockerfile"), text).unwrap();
}

/// What a job in this image of the catalogue says.
fn said_in(app: &Layer, token: &str, bed: &Bed, image: &str) -> String {
    let command = ["/bin/sh", "-c", "echo hello $HELLO > $ERA_OUTPUTS/said"];
    let number = submit(
        app,
        token,
        &json!({
            "work": {"command": command, "image": image},
            "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 60},
        }),
    );
    let job = ended(app, token, number);
    assert_eq!(job["state"], "succeeded", "{job}");
    std::fs::read_to_string(bed.outputs(number).join("said")).unwrap()
}

#[test]
fn a_folder_becomes_an_image_of_the_registry_the_catalogue_and_redis_again_and_again() {
    let Some(daemon) = Daemon::alone() else { return };
    let Some(registry) = can(Registry::start(&daemon)) else { return };
    let Some(bed) = Bed::start(Dialect::Postgres) else { return };
    let redis = Redis::start();
    let auth = bed.folder.path().join("auth");
    write_private(&auth, LOGIN);
    let engine = registry.address(&daemon, &auth);
    let _core = bed.core_with(1, &bed.database, &["--redis", &redis.url()]);
    let mut app = bed.sharing("app", &["--images", &engine]);
    let mut files = bed.files();
    let mut cloud = bed.sharing("cloud", &["--executor", &engine]);
    for layer in [&mut app, &mut files, &mut cloud] {
        layer.wait_until_ready();
    }
    let token = bed.token();
    let Some(front) = Front::start(&app, &[&files]) else { return };
    let folder = bed.folder.path().join("hello");
    write_dockerfile(&folder, "first");
    let ok = |arguments: &[&str]| {
        let done = front.era(&token, arguments).current_dir(bed.folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{arguments:?}: {said}");
        (String::from_utf8_lossy(&done.stdout).into_owned(), said)
    };

    // Step by step: its output is seen, and its digest is the registry's.
    let (_, steps) = ok(&["images", "build", "hello", "--name", "by-hand:1"]);
    assert!(steps.contains("Step 1/2"), "{steps}");
    let (pushed, _) = ok(&["images", "push", "by-hand:1", "-o", "json"]);
    let pushed: Value = serde_json::from_str(&pushed).unwrap();
    let (reference, digest) = (&pushed["reference"], pushed["digest"].as_str().unwrap());
    assert_eq!(reference, &format!("{}/admin/by-hand:1", registry.place()));
    assert!(digest.starts_with("sha256:"), "{pushed}");
    let reference = reference.as_str().unwrap();
    ok(&["images", "publish", "by-hand", reference, "--digest", digest, "--python", "3.13"]);
    let mirrored = |name: &str| -> Option<Value> {
        serde_json::from_str(&redis.field("era:images", name)?).ok()
    };
    let told = wait("the catalogue in Redis", MINUTE, || mirrored("by-hand"));
    assert_eq!(told, app.get(&token, "/images/by-hand"));
    assert_eq!((&told["python"], &told["digest"]), (&json!("3.13"), &json!(digest)));
    // What the engine forgot comes back from the registry.
    daemon.docker(&["rmi", reference]).unwrap();
    assert_eq!(said_in(&app, &token, &bed, "by-hand"), "hello first\n");
    ok(&["images", "rm", "by-hand"]);
    wait("its end in Redis", MINUTE, || mirrored("by-hand").is_none().then_some(()));

    // By itself: now, and whenever the folder changes.
    let mut command = front.era(&token, &["images", "watch", "hello", "--framework", "none"]);
    let command = command.current_dir(bed.folder.path()).stdout(Stdio::piped());
    let mut watching = Watching(command.stderr(Stdio::null()).spawn().unwrap());
    let mut published = BufReader::new(watching.0.stdout.take().unwrap()).lines();
    let mut digests = Vec::new();
    for word in ["first", "second"] {
        if word == "second" {
            write_dockerfile(&folder, word);
        }
        let line = published.next().unwrap().unwrap();
        let digest = line.strip_prefix("Published ").and_then(|l| l.strip_suffix(" as hello."));
        digests.push(digest.unwrap_or_else(|| panic!("{line}")).to_owned());
        assert_eq!(app.get(&token, "/images/hello")["digest"], digests[digests.len() - 1]);
        assert_eq!(said_in(&app, &token, &bed, "hello"), format!("hello {word}\n"));
    }
    assert_ne!(digests[0], digests[1]);
    wait("the newest in Redis", MINUTE, || {
        (mirrored("hello")?["digest"] == digests[1]).then_some(())
    });
    drop(watching);

    // Nobody reads the password.
    let secret = LOGIN.split_once(':').unwrap().1;
    for layer in [&app, &files, &cloud] {
        assert!(!layer.said().contains(secret), "{}", layer.said());
    }
}

#[test]
fn images_without_an_engine_or_a_registry_are_refused_with_what_to_do() {
    let Some(daemon) = Daemon::alone() else { return };
    let Some(bed) = Bed::start(Dialect::Postgres) else { return };
    let _core = bed.core(1);
    let away = "docker:///nowhere/at/all";
    let mut apps = [&[][..], &["--images", away], &["--images", &daemon.address()]]
        .map(|more| bed.sharing("app", more));
    for (app, (status, says)) in apps.iter_mut().zip([
        (409, "`era app` with `--images docker://…`"),
        (503, "is it running"),
        // Else it would go to a registry of the whole world.
        (409, "registry"),
    ]) {
        app.wait_until_ready();
        let answer = app.ask(&bed.token(), "POST", "/images/push", &json!({"name": "hello"}));
        let (answered, why) = answer.unwrap();
        assert!(answered == status && why["detail"].as_str().unwrap().contains(says), "{why}");
    }
}
