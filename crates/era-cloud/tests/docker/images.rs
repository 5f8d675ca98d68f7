//! Images through an engine: built, pushed to a private registry, pulled from it.

use std::sync::Arc;

use era_cloud::docker::{Address, Build, Engine, Site};
use era_cloud::{Ending, Executor, Order, Report, Staged};
use era_core::units::Span;
use tokio::sync::mpsc;

use crate::bed::{Bed, Daemon, IMAGE, PATIENCE, can, data};
use crate::registry::{LOGIN, Registry, write_private};

fn context(files: &[(&str, &str)]) -> era_cloud::docker::Context {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, name, text.as_bytes()).expect("packed");
    }
    let whole = tar.into_inner().expect("packed");
    Box::pin(futures_util::stream::iter([Ok(bytes::Bytes::from(whole))]))
}

async fn built(engine: &Engine, reference: &str, dockerfile: &str) -> (Result<(), String>, String) {
    let (lines, mut read) = mpsc::channel(16);
    let build = Build {
        reference: reference.into(),
        dockerfile: "Dockerfile".into(),
        arguments: Default::default(),
    };
    let shown = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Some(line) = read.recv().await {
            all.push(line);
        }
        all.join("\n")
    });
    let done = engine.build(&build, context(&[("Dockerfile", dockerfile)]), &lines).await;
    drop(lines);
    (done.map_err(|error| error.to_string()), shown.await.expect("read"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_is_built_pushed_with_a_password_and_pulled_and_a_job_may_bring_a_dockerfile() {
    let Some(daemon) = Daemon::alone() else { return };
    let Some(registry) = can(Registry::start(&daemon)) else { return };
    let data = data();
    let auth = data.path().join("auth");
    let write = |text: &str| write_private(&auth, text);
    let place = registry.place();
    let address = registry.address(&daemon, &auth);
    let site = || Site::named("00000000").expect("a site");
    let parsed = Address::parse(&address).expect("an address");
    write(LOGIN);
    let engine = Engine::connect(&parsed, site()).await.expect("an engine");

    let reference = engine.registry().reference("hello:1").expect("a registry");
    let (done, shown) =
        built(&engine, &reference, &format!("FROM {IMAGE}\nENV HELLO=there\n")).await;
    assert_eq!(done, Ok(()), "{shown}");
    assert!(shown.contains("Step 1/2"), "its output is passed on: {shown}");

    let (lines, mut read) = mpsc::channel(64);
    tokio::spawn(async move { while read.recv().await.is_some() {} });
    let facts = tokio::time::timeout(PATIENCE, engine.push(&reference, &lines)).await;
    let facts = facts.expect("in time").expect("pushed");
    let digest = facts.digest.expect("a digest");
    assert!(digest.starts_with("sha256:") && facts.bytes.is_some_and(|bytes| bytes > 0));

    // A wrong password is refused, and nobody reads it.
    write("ada:wrong-word");
    let stranger = Engine::connect(&parsed, site()).await.expect("an engine");
    let refused = stranger.push(&reference, &lines).await.expect_err("refused").to_string();
    assert!(!refused.contains("wrong-word"), "{refused}");
    assert!(refused.contains(&parsed.endpoint.to_string()), "{refused}");
    write(LOGIN);

    // It comes back from the registry alone.
    daemon.docker(&["rmi", &reference]).expect("removed");
    let mut bed = Bed::start(&address, data.path(), Span::from_s(30)).await;
    bed.joined(1).await;
    let mut launch = bed.launch(1, "echo hello $HELLO");
    Arc::make_mut(&mut launch.spec).image = Some(format!("{place}/hello@{digest}"));
    bed.executor.carry_out(Order::Launch(launch.clone()));
    let over = bed.over(launch.task).await;
    assert!(matches!(over, Report::Exited { code: 0, .. }), "{over:?}: {}", bed.log(1));
    assert_eq!(bed.log(1), "hello there\n");

    // A Dockerfile in a job's code.
    let dockerfile = data.path().join("dockerfile");
    std::fs::write(&dockerfile, format!("FROM {IMAGE}\nENV FROM_CODE=yes\n")).expect("write");
    let mut launch = bed.launch(2, "echo built: $FROM_CODE");
    let spec = Arc::make_mut(&mut launch.spec);
    let staged = |to: &str| Staged { from: dockerfile.clone(), to: to.into(), executable: false };
    spec.code = vec![staged("env/Dockerfile")];
    spec.image = Some("./env/Dockerfile".into());
    bed.executor.carry_out(Order::Launch(launch.clone()));
    bed.over(launch.task).await;
    assert_eq!(bed.log(2), "built: yes\n");

    // One that fails shows its last lines, and one that is not there says so.
    std::fs::write(&dockerfile, format!("FROM {IMAGE}\nRUN echo almost && exit 3\n"))
        .expect("write");
    let mut launch = bed.launch(3, "true");
    let spec = Arc::make_mut(&mut launch.spec);
    let other = data.path().join("dockerfile-2");
    std::fs::rename(&dockerfile, &other).expect("renamed");
    spec.code = vec![Staged { from: other, to: "Dockerfile".into(), executable: false }];
    spec.image = Some("./Dockerfile".into());
    bed.executor.carry_out(Order::Launch(launch.clone()));
    let over = bed.over(launch.task).await;
    assert!(matches!(over, Report::Exited { ending: Ending::NotStarted, .. }), "{over:?}");
    let log = bed.log(3);
    assert!(log.contains("The command") && log.contains("almost"), "{log}");
    let mut launch = bed.launch(4, "true");
    Arc::make_mut(&mut launch.spec).image = Some("./nowhere".into());
    bed.executor.carry_out(Order::Launch(launch.clone()));
    bed.over(launch.task).await;
    assert!(bed.log(4).contains("not among the job's files"), "{}", bed.log(4));
    drop(registry);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_was_built_and_is_not_in_the_registry_is_pushed_before_the_next_start() {
    let Some(daemon) = Daemon::alone() else { return };
    let Some(registry) = can(Registry::start(&daemon)) else { return };
    let data = data();
    let auth = data.path().join("auth");
    let address = registry.address(&daemon, &auth);
    let dockerfile = data.path().join("dockerfile");
    std::fs::write(&dockerfile, format!("FROM {IMAGE}\nENV FROM_CODE=yes\n")).expect("write");
    let kept = daemon.folder.join("registry");
    let pushed = kept.join("docker/registry/v2/repositories/era/code/_manifests/tags");
    // Refused the first time, whose image stays on the engine; then lost by the registry.
    for (job, login, ending) in [
        (1, "ada:wrong-word", Ending::NotStarted),
        (2, LOGIN, Ending::Itself),
        (3, LOGIN, Ending::Itself),
    ] {
        if job == 3 {
            std::fs::remove_dir_all(&kept).expect("removed");
        }
        write_private(&auth, login);
        let mut bed = Bed::start(&address, data.path(), Span::from_s(30)).await;
        bed.joined(1).await;
        let mut launch = bed.launch(job, "echo built: $FROM_CODE");
        let spec = Arc::make_mut(&mut launch.spec);
        let (from, to) = (dockerfile.clone(), "Dockerfile".into());
        spec.code = vec![Staged { from, to, executable: false }];
        spec.image = Some("./Dockerfile".into());
        bed.executor.carry_out(Order::Launch(launch.clone()));
        let over = bed.over(launch.task).await;
        let log = bed.log(job);
        assert!(matches!(over, Report::Exited { ending: e, .. } if e == ending), "{over:?}: {log}");
        assert_eq!(pushed.is_dir(), ending == Ending::Itself, "job {job}: {log}");
        if ending == Ending::NotStarted {
            let images = daemon.docker(&["images", "--format", "{{.Repository}}"]);
            assert!(images.expect("listed").contains("era/code"), "it was built");
            assert!(log.contains("refused to push") && log.contains("registry-auth"), "{log}");
            assert!(!log.contains("wrong-word"), "{log}");
        }
    }
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_named_with_what_to_do() {
    let folder = data();
    let missing = format!("docker://{}/none", folder.path().display());
    for address in [missing.as_str(), "docker://127.0.0.1:1"] {
        let parsed = Address::parse(address).expect("an address");
        let site = Site::named("00000000").expect("a site");
        let error = Engine::connect(&parsed, site).await.err().expect("refused").to_string();
        assert!(error.contains(address) && error.contains("is it running"), "{error}");
    }
}
