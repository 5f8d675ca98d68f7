//! Tasks that go through Redis, where two processes could send them.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use era_store::Dialect;

use super::bed::{Bed, wait};
use super::redis::Redis;
use super::{MINUTE, Stop, ended, hand_in, job, leader, submit};

/// A node behind Redis. It ends with the value, and its supervisor with it.
struct Worker(Child);

impl Worker {
    fn start(bed: &Bed, redis: &Redis) -> Worker {
        let log = std::fs::File::create(bed.folder.path().join("worker.log")).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_era"))
            .args(["worker", "--node", "one", "--broker", &redis.url(), "--data"])
            .arg(bed.folder.path().join("worker"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Worker(process)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

#[test]
fn whoever_takes_over_from_a_cloud_that_sends_through_redis_runs_nothing_twice() {
    let Some(bed) = Bed::start(Dialect::Postgres) else { return };
    let redis = Redis::start();
    let _worker = Worker::start(&bed, &redis);
    let engine = redis.url().replace("redis://", "celery://");
    let cloud = || bed.sharing("cloud", &["--executor", &engine]);
    let (_core, mut app, mut clouds) = (bed.core(1), bed.app(), [cloud(), cloud()]);
    app.wait_until_ready();
    let token = bed.token();
    wait("a node", MINUTE, || app.get(&token, "/nodes")["items"].as_array()?.first().cloned());

    // One that runs all the time, and is not begun again by whoever finds it.
    let long = submit(&app, &token, &job("echo once >> outputs/ran; sleep 12"));
    wait("its start", MINUTE, || bed.outputs(long).join("ran").exists().then_some(()));
    let stop = AtomicBool::new(false);
    let mut jobs = std::thread::scope(|scope| {
        let stops = Stop(&stop);
        let client = scope.spawn(|| hand_in(&app, &token, "client", &stop));
        for signal in ["-KILL", "-STOP"] {
            let (leads, stands_by) = leader(&clouds);
            clouds[leads].signal(signal);
            wait("the next one", MINUTE, || clouds[stands_by].is_ready().then_some(()));
            std::thread::sleep(Duration::from_secs(1));
            clouds[leads].signal("-CONT");
            wait("the end of the old one", MINUTE, || clouds[leads].ended());
            clouds[leads].start();
            std::thread::sleep(Duration::from_secs(1));
        }
        drop(stops);
        client.join().unwrap()
    });
    assert!(jobs.len() > 20, "hardly anything was handed in: {}", jobs.len());
    jobs.insert("long".to_owned(), long);
    for (key, number) in &jobs {
        let job = ended(&app, &token, *number);
        assert_eq!(job["state"], "succeeded", "{key}: {job}");
        let ran = std::fs::read_to_string(bed.outputs(*number).join("ran")).unwrap_or_default();
        assert_eq!(ran, "once\n", "job {number} did not run exactly once");
        assert_eq!(job["attempts"], 1, "{key}: {job}");
    }
    bed.journal_replays(&app, &token);
}
