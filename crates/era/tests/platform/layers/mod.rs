//! Each layer in a process of its own, and two of each: what one server does, several do.

pub(crate) mod bed;
mod celery;
mod chaos;
mod compose;
mod deploy;
mod front;
mod images;
mod net;
pub(crate) mod redis;
mod uploads;
mod wire;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use era_store::trial::cut_connections;
use era_store::{Dialect, LeaseRole, Store};
use serde_json::{Value, json};

use bed::{Bed, Layer, wait};

const MINUTE: Duration = Duration::from_secs(60);

fn job(script: &str) -> Value {
    json!({
        "work": {"command": ["sh", "-c", script]},
        "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 60},
    })
}

fn submit(app: &Layer, token: &str, job: &Value) -> u64 {
    let (status, answer) = app.ask(token, "POST", "/jobs", job).unwrap();
    assert_eq!(status, 201, "{answer}");
    answer["job"].as_u64().unwrap()
}

fn ended(app: &Layer, token: &str, job: u64) -> Value {
    wait("the end of a job", MINUTE, || {
        // Another application may know of it a moment later.
        let (_, job) = app.ask(token, "GET", &format!("/jobs/{job}"), &Value::Null).ok()?;
        job["ended"].is_string().then_some(job)
    })
}

/// The one that leads, and the one that stands by.
fn leader(cores: &[Layer]) -> (usize, usize) {
    wait("a leader", MINUTE, || {
        let leads = cores.iter().position(Layer::is_ready)?;
        Some((leads, 1 - leads))
    })
}

#[test]
fn what_one_application_was_told_the_other_knows_and_a_job_runs() {
    let Some(bed) = Bed::start(Dialect::Postgres) else { return };
    // Whatever is started first waits for what it needs.
    let mut first = bed.app();
    let mut cloud = bed.cloud();
    let mut cores = [bed.core(1), bed.core(2)];
    first.wait_until_ready();
    let token = bed.token();
    let mut second = bed.app();
    second.wait_until_ready();
    // The folder is both applications', and so is the token in it.
    assert_eq!(bed.token(), token, "the second application took the first one's token away");
    cloud.wait_until_ready();
    let (leads, stands_by) = leader(&cores);
    let (status, said) = wait("a standby", MINUTE, || cores[stands_by].readiness());
    assert_eq!(status, 503, "{said}");
    assert!(said.contains("standby") && said.contains("is at work"), "{said}");
    let password = "one-time password:";
    let told = cores.iter().filter(|core| core.said().contains(password)).count();
    assert_eq!(told, 1, "the first account is made once");

    // Whoever writes reads, and so does whoever asks elsewhere.
    wait("a node", MINUTE, || first.get(&token, "/nodes")["items"].as_array()?.first().cloned());
    let number = submit(&first, &token, &job("echo once >> outputs/ran"));
    assert_eq!(first.get(&token, &format!("/jobs/{number}"))["id"], number);
    assert_eq!(ended(&second, &token, number)["state"], "succeeded");
    assert_eq!(std::fs::read_to_string(bed.outputs(number).join("ran")).unwrap(), "once\n");
    let log = second.ask(&token, "GET", &format!("/jobs/{number}/logs"), &Value::Null).unwrap();
    assert_eq!(log.0, 200);

    // A secret that one application took reaches a task by what runs tasks.
    let secret = json!({"value": "open sesame"});
    assert_eq!(first.ask(&token, "PUT", "/secrets/PROBE", &secret).unwrap().0, 200);
    assert_eq!(second.get(&token, "/secrets")["items"][0]["name"], "PROBE");
    let mut named = job("test \"$PROBE\" = 'open sesame'");
    named["work"]["secrets"] = json!(["PROBE"]);
    let number = submit(&second, &token, &named);
    assert_eq!(ended(&first, &token, number)["state"], "succeeded");

    // Accounts and tokens.
    let new = json!({"name": "ada", "password": "correct horse battery"});
    assert_eq!(first.ask(&token, "POST", "/users", &new).unwrap().0, 201);
    let login = json!({"user": "ada", "password": "correct horse battery"});
    let (status, session) = second.ask("", "POST", "/sessions", &login).unwrap();
    assert_eq!(status, 201, "{session}");
    let ada = session["token"].as_str().unwrap().to_owned();
    assert_eq!(first.ask(&ada, "GET", "/jobs", &Value::Null).unwrap().0, 200);
    let off = json!({"enabled": false});
    assert_eq!(second.ask(&token, "PATCH", "/users/ada", &off).unwrap().0, 200);
    wait("the end of a token", MINUTE, || {
        (first.ask(&ada, "GET", "/jobs", &Value::Null).unwrap().0 == 401).then_some(())
    });

    // Files are another layer's.
    let mut files = bed.files();
    files.wait_until_ready();
    let sets = "/data?limit=1";
    assert_eq!(files.ask(&token, "GET", sets, &Value::Null).unwrap().0, 200);
    assert_eq!(first.ask(&token, "GET", sets, &Value::Null).unwrap().0, 404);
    assert_eq!(files.ask(&token, "GET", "/jobs", &Value::Null).unwrap().0, 404);

    // Whoever is told to stop lets the next one lead.
    cores[leads].stop();
    let next = submit(&second, &token, &job("true"));
    assert_eq!(ended(&first, &token, next)["state"], "succeeded");
    for layer in [&mut files, &mut first, &mut second, &mut cloud, &mut cores[stands_by]] {
        layer.stop();
    }
}

#[test]
fn whatever_waits_waits_for_its_database_too() {
    let Some(mut bed) = Bed::start_durable(Dialect::Postgres) else { return };
    bed.server.crash().unwrap();
    let mut layers = [bed.core(1), bed.app(), bed.cloud(), bed.files()];
    let says = |layer: &Layer, what: &str| {
        wait(what, MINUTE, || layer.said().contains(what).then_some(()));
    };
    layers.iter().for_each(|layer| says(layer, "the database cannot be used yet"));
    bed.server.start_again().unwrap();
    layers.iter_mut().for_each(Layer::wait_until_ready);
    let mut standbys = [bed.cloud(), bed.files()];
    standbys.iter().for_each(|standby| says(standby, "standing by"));
    bed.server.crash().unwrap();
    standbys.iter().for_each(|standby| says(standby, "the database does not answer"));
    bed.server.start_again().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    for standby in &mut standbys {
        assert_eq!(standby.ended(), None, "{}", standby.said());
    }
}

#[test]
fn tasks_of_another_machine_are_not_taken_for_lost() {
    let Some(bed) = Bed::start(Dialect::Postgres) else { return };
    let (_core, mut app, mut cloud) = (bed.core(1), bed.app(), bed.cloud());
    app.wait_until_ready();
    cloud.wait_until_ready();
    let token = bed.token();
    wait("a node", MINUTE, || app.get(&token, "/nodes")["items"].as_array()?.first().cloned());
    let number = submit(&app, &token, &job("echo once >> outputs/ran; sleep 10"));
    wait("its start", MINUTE, || bed.outputs(number).join("ran").exists().then_some(()));
    cloud.kill();
    // As if it had been the cloud of another machine.
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (folder, place) = (bed.folder.path().join("other"), bed.database.parse().unwrap());
        let store = Store::open_at(&folder, &place, None).await.unwrap();
        let seat = store.lease_of(LeaseRole::Cloud);
        while seat.acquire_with("another", None, MINUTE).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        seat.tell("machine:elsewhere the machine node-9").await.unwrap();
        seat.release().await.unwrap();
        store.close().await;
    });
    cloud.start();
    let refused = wait("a refusal", MINUTE, || cloud.ended());
    let said = cloud.said();
    assert!(!refused.success() && said.contains("the machine node-9"), "{said}");
    assert!(said.contains("--abandon machine:elsewhere"), "{said}");
    let abandon = ["--insecure-shared-user", "--abandon", "machine:elsewhere"];
    let mut knowing = bed.sharing("cloud", &abandon);
    knowing.wait_until_ready();
    assert_eq!(ended(&app, &token, number)["state"], "succeeded");
    assert_eq!(std::fs::read_to_string(bed.outputs(number).join("ran")).unwrap(), "once\n");
    // It is here from now on, which nobody needs to be told.
    submit(&app, &token, &job("sleep 10"));
    knowing.stop();
    cloud.start();
    cloud.wait_until_ready();
}

/// Hands in jobs until it is told to stop, asking again with the same key until there is an
/// answer; those that were acknowledged.
fn hand_in(app: &Layer, token: &str, name: &str, stop: &AtomicBool) -> BTreeMap<String, u64> {
    let mut acknowledged = BTreeMap::new();
    for nth in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("{name}-{nth}");
        let job = job("echo once >> outputs/ran");
        let number = wait("an answer", MINUTE, || {
            let (status, answer) = app.ask_by_key(token, &key, "POST", "/jobs", &job).ok()?;
            // A connection to the database that is lost is the server's fault.
            assert!(matches!(status, 201 | 500 | 503), "{status}: {answer}");
            answer["job"].as_u64().filter(|_| status == 201)
        });
        acknowledged.insert(key, number);
        std::thread::sleep(Duration::from_millis(20));
    }
    acknowledged
}

/// Clients stop with it, whatever happens to whoever waits for them.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn takes_over(dialect: Dialect) {
    let Some(bed) = Bed::start(dialect) else { return };
    let mut cores = [bed.core(1), bed.core(2)];
    let mut app = bed.app();
    let mut cloud = bed.cloud();
    app.wait_until_ready();
    cloud.wait_until_ready();
    let token = bed.token();
    wait("a node", MINUTE, || app.get(&token, "/nodes")["items"].as_array()?.first().cloned());
    let stop = AtomicBool::new(false);
    let jobs = std::thread::scope(|scope| {
        let (app, token, stop) = (&app, &token, &stop);
        let stops = Stop(stop);
        let clients: Vec<_> = (0..2)
            .map(|n| scope.spawn(move || hand_in(app, token, &format!("client-{n}"), stop)))
            .collect();
        std::thread::sleep(Duration::from_secs(1));

        // Connections that are lost, all of them again and again, and those in the middle of an
        // append: nobody ends, and the leader leads on.
        let (leads, _) = leader(&cores);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let cut = |doing| runtime.block_on(cut_connections(&bed.database, doing)).unwrap();
        let many = (0..10).map(|_| {
            std::thread::sleep(Duration::from_millis(150));
            cut(None)
        });
        assert!(many.sum::<usize>() > 50, "hardly any connection was cut");
        wait("an append that loses its connection", MINUTE, || {
            cut(Some("INSERT INTO journal"));
            cores[leads].said().contains("an append lost its connection").then_some(())
        });
        for layer in cores.iter_mut().chain([&mut cloud]) {
            assert_eq!(layer.ended(), None, "{}", layer.said());
        }
        assert_eq!(leader(&cores).0, leads);

        // A leader that dies.
        let (leads, stands_by) = leader(&cores);
        cores[leads].kill();
        wait("the next leader", MINUTE, || cores[stands_by].is_ready().then_some(()));
        cores[leads].start();
        std::thread::sleep(Duration::from_secs(1));

        // A leader that is paused, and comes back.
        let (leads, stands_by) = leader(&cores);
        cores[leads].signal("-STOP");
        wait("the next leader", MINUTE, || cores[stands_by].is_ready().then_some(()));
        std::thread::sleep(Duration::from_millis(500));
        cores[leads].signal("-CONT");
        let ended = wait("the end of the old leader", MINUTE, || cores[leads].ended());
        assert_eq!(ended.code(), Some(75), "{}", cores[leads].said());
        assert!(cores[leads].said().contains("taken the lead"), "{}", cores[leads].said());
        cores[leads].start();
        std::thread::sleep(Duration::from_secs(1));
        drop(stops);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect::<BTreeMap<_, _>>()
    });
    assert!(jobs.len() > 20, "hardly anything was handed in: {}", jobs.len());
    for (key, number) in &jobs {
        let job = ended(&app, &token, *number);
        assert_eq!(job["state"], "succeeded", "{key}: {job}");
        let ran = std::fs::read_to_string(bed.outputs(*number).join("ran")).unwrap_or_default();
        assert_eq!(ran, "once\n", "job {number} did not run exactly once");
    }
    let distinct: std::collections::BTreeSet<u64> = jobs.values().copied().collect();
    assert_eq!(distinct.len(), jobs.len(), "two keys made one job");
    assert_eq!(app.count_jobs(&token), jobs.len(), "a key made two jobs");
    bed.journal_replays(&app, &token);
}

#[test]
fn a_standby_takes_over_from_a_leader_that_dies_or_is_paused_on_mariadb() {
    takes_over(Dialect::MySql);
}

#[test]
fn a_standby_takes_over_from_a_leader_that_dies_or_is_paused_on_postgres() {
    takes_over(Dialect::Postgres);
}
