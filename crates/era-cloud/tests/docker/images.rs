//! Images through an engine: built, pushed to a private registry, pulled from it.

use std::path::Path;
use std::sync::Arc;

use era_cloud::clock::MachineClock;
use era_cloud::docker::{Build, DockerEngine, EngineAddress, SiteId};
use era_cloud::{Ending, Executor, ExecutorReport, Launch, Order, Staged};
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

async fn built(
    engine: &DockerEngine,
    reference: &str,
    dockerfile: &str,
) -> (Result<(), String>, String) {
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
    let site = || SiteId::named("00000000").expect("a site");
    let parsed = EngineAddress::parse(&address).expect("an address");
    write(LOGIN);
    let engine =
        DockerEngine::connect(&parsed, site(), MachineClock::system()).await.expect("an engine");

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
    let stranger =
        DockerEngine::connect(&parsed, site(), MachineClock::system()).await.expect("an engine");
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
    assert!(matches!(over, ExecutorReport::Exited { code: 0, .. }), "{over:?}: {}", bed.log(1));
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
    let log = bed.log(2);
    assert!(log.contains("Step 1/2") && log.ends_with("built: yes\n"), "{log}");

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
    assert!(matches!(over, ExecutorReport::Exited { ending: Ending::NotStarted, .. }), "{over:?}");
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
        assert!(
            matches!(over, ExecutorReport::Exited { ending: e, .. } if e == ending),
            "{over:?}: {log}"
        );
        assert_eq!(pushed.is_dir(), ending == Ending::Itself, "job {job}: {log}");
        if ending == Ending::NotStarted {
            let images = daemon.docker(&["images", "--format", "{{.Repository}}"]);
            assert!(images.expect("listed").contains("era/code"), "it was built");
            assert!(log.contains("refused to push") && log.contains("registry-auth"), "{log}");
            assert!(!log.contains("wrong-word"), "{log}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_comes_to_a_node_of_a_swarm_before_the_start_and_nothing_in_it_is_run() {
    let Some(daemon) = Daemon::alone() else { return };
    let Some(registry) = can(Registry::start(&daemon)) else { return };
    daemon.docker(&["swarm", "init", "--advertise-addr", "127.0.0.1"]).expect("a Swarm");
    let data = data();
    let auth = data.path().join("auth");
    write_private(&auth, LOGIN);
    let address = registry.address(&daemon, &auth);
    let mut bed = Bed::start(&address, data.path(), Span::from_s(30)).await;
    bed.joined(1).await;
    // It is in the registry, and the engine has forgotten it.
    let engine = bed.executor.engine().clone();
    let image = engine.registry().reference("staged:1").expect("a registry");
    engine.tag(IMAGE, &image).await.expect("named");
    let (lines, mut read) = mpsc::channel(64);
    tokio::spawn(async move { while read.recv().await.is_some() {} });
    engine.push(&image, &lines).await.expect("pushed");
    daemon.docker(&["rmi", &image]).expect("removed");
    let began = crate::bed::now().0 / 1000;
    let mut launch = bed.launch(1, "true");
    Arc::make_mut(&mut launch.spec).image = Some(image.clone());
    bed.executor.carry_out(Order::Stage(launch));
    let brought = async {
        let there = || daemon.docker(&["image", "inspect", &image]).is_ok();
        let services = || daemon.docker(&["service", "ls", "-q"]).expect("listed");
        while !there() || !services().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, brought).await.expect("it comes, and its service goes");
    let events = |kind: &str| {
        let (since, until) = (began.to_string(), (crate::bed::now().0 / 1000 + 1).to_string());
        let kind = format!("event={kind}");
        let only = ["--filter", "type=container", "--filter", &kind];
        daemon.docker(&[&["events", "--since", &since, "--until", &until][..], &only].concat())
    };
    assert_ne!(events("create").expect("told"), "", "a container was made");
    assert_eq!(events("start").expect("told"), "", "and never ran");
}

fn with_dockerfile(bed: &Bed, job: u64, dockerfile: &Path, script: &str) -> Launch {
    let mut launch = bed.launch(job, script);
    let spec = Arc::make_mut(&mut launch.spec);
    let (from, to) = (dockerfile.to_owned(), "Dockerfile".into());
    spec.code = vec![Staged { from, to, executable: false }];
    spec.image = Some("./Dockerfile".into());
    launch
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_build_is_enough_for_all_it_is_limited_and_what_nobody_uses_any_more_goes() {
    let Some(daemon) = Daemon::alone() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), Span::from_s(30)).await;
    bed.joined(1).await;
    let dockerfile = data.path().join("dockerfile");
    // Where both kinds of control groups say how much of the cores there may be.
    let shown = "cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us";
    let text = format!("FROM {IMAGE}\nRUN {shown} 2>/dev/null; sleep 1\nENV FROM_CODE=yes\n");
    std::fs::write(&dockerfile, text).expect("write");
    let jobs = 1..=4;
    let launches: Vec<Launch> = jobs
        .clone()
        .map(|job| with_dockerfile(&bed, job, &dockerfile, "echo built: $FROM_CODE"))
        .collect();
    for launch in &launches {
        bed.executor.carry_out(Order::Launch(launch.clone()));
    }
    for _ in &launches {
        let over =
            bed.find(|r| matches!(r, ExecutorReport::Exited { .. }).then(|| r.clone())).await;
        assert!(matches!(over, ExecutorReport::Exited { code: 0, .. }), "{over:?}");
    }
    let logs: String = jobs.map(|job| bed.log(job)).collect();
    assert_eq!(logs.matches("Step 1/3").count(), 1, "{logs}");
    assert_eq!(logs.matches("built: yes\n").count(), 4, "{logs}");
    assert!(logs.contains("\n400000"), "{logs}");

    // Their containers keep it until the last one is gone, however old it is.
    let engine = bed.executor.engine().clone();
    let none = std::time::Duration::ZERO;
    assert_eq!(engine.remove_code(none).await.expect("looked"), 0, "it is used");
    launches.iter().for_each(|launch| bed.executor.acknowledge(launch.task));
    let gone = async {
        while !daemon.docker(&["ps", "-aq"]).is_ok_and(|listed| listed.is_empty()) {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("they go");
    let day = std::time::Duration::from_secs(24 * 3600);
    assert_eq!(engine.remove_code(day).await.expect("looked"), 0, "it is young");
    assert_eq!(engine.remove_code(none).await.expect("looked"), 1);
    let images = daemon.docker(&["images", "--format", "{{.Repository}}"]).expect("listed");
    assert!(!images.contains("era-code") && images.contains("era-test/busybox"), "{images}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_task_writes_beside_its_folders_counts_as_its_disk() {
    let Some(daemon) = Daemon::alone() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), Span::from_s(30)).await;
    bed.joined(1).await;
    let dockerfile = data.path().join("dockerfile");
    let text = format!("FROM {IMAGE}\nRUN mkdir -m 777 /open\n");
    std::fs::write(&dockerfile, text).expect("write");
    let script = "dd if=/dev/zero of=/open/big bs=1048576 count=48 && sleep 300";
    let mut launch = with_dockerfile(&bed, 1, &dockerfile, script);
    Arc::make_mut(&mut launch.spec).limits.disk_bytes = 32 << 20;
    bed.executor.carry_out(Order::Launch(launch.clone()));
    let over = bed.over(launch.task).await;
    assert!(matches!(over, ExecutorReport::Exited { ending: Ending::OutOfDisk, .. }), "{over:?}");
    assert!(bed.log(1).contains("it filled more disk than it may"), "{}", bed.log(1));
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_named_with_what_to_do() {
    let folder = data();
    let missing = format!("docker://{}/none", folder.path().display());
    for address in [missing.as_str(), "docker://127.0.0.1:1"] {
        let parsed = EngineAddress::parse(address).expect("an address");
        let site = SiteId::named("00000000").expect("a site");
        let error = DockerEngine::connect(&parsed, site, MachineClock::system())
            .await
            .err()
            .expect("refused")
            .to_string();
        assert!(error.contains(address) && error.contains("is it running"), "{error}");
    }
}
