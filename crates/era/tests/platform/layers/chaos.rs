//! Schedulers, applications, what runs tasks, what keeps files, Redis and the database are killed,
//! paused, cut off and healed at random moments under load, as a service manager would start them
//! again: no job and no file that was acknowledged is lost, nothing runs twice, no promise is broken that the hardware could
//! keep, the money balances, and the journal replays.
//!
//! A minute here; `ERA_CHAOS_S` sets another time, and `ERA_CHAOS_SEED` another seed, which is
//! printed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use era_store::Dialect;
use serde_json::{Value, json};

use super::bed::{Bed, Layer, wait};
use super::redis::Redis;
use super::uploads::Uploads;
use super::wire::Wire;

/// How long everything may take to be settled once it is left alone.
const SETTLED_MAX: Duration = Duration::from_secs(180);
/// What the first account is given.
const GRANTED: i64 = 1_000_000_000_000;

/// The same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn ms(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// What is done to the site, and told when it is done.
struct Disaster<'a> {
    bed: &'a mut Bed,
    redis: &'a mut Redis,
    wires: &'a [Wire],
    layers: &'a mut [Layer],
    dice: Dice,
    begun: Instant,
}

impl Disaster<'_> {
    fn strike(&mut self) {
        let wires = self.wires.len() as u64;
        match self.dice.below(12) {
            // Those that lead or stand by, answer, run tasks, or keep files.
            0..=3 => {
                let victim = self.victim();
                self.say(&format!("kill {victim}"));
                self.layers[victim].kill();
                self.pass(200, 1_500);
            }
            4..=6 => {
                let victim = self.victim();
                self.say(&format!("pause {victim}"));
                self.layers[victim].signal("-STOP");
                self.pass(500, 6_000);
                self.layers[victim].signal("-CONT");
            }
            7 | 8 => {
                let wire = self.dice.below(wires) as usize;
                self.say(&format!("cut {wire}"));
                self.wires[wire].cut();
                self.pass(500, 5_000);
                self.wires[wire].heal();
            }
            9 => {
                let wire = self.dice.below(wires) as usize;
                self.say(&format!("hold {wire}"));
                self.wires[wire].hold();
                self.pass(500, 6_000);
                self.wires[wire].heal();
            }
            10 => {
                self.say("kill redis");
                self.redis.kill();
                self.pass(200, 2_000);
                self.redis.start_again();
            }
            _ => {
                self.say("kill the database");
                self.bed.server.crash().unwrap();
                self.pass(100, 1_500);
                self.bed.server.start_again().unwrap();
            }
        }
        self.pass(500, 3_000);
    }

    /// Schedulers are struck most often.
    fn victim(&mut self) -> usize {
        let count = self.layers.len() as u64;
        if self.dice.below(2) == 0 {
            self.dice.below(2) as usize
        } else {
            self.dice.below(count) as usize
        }
    }

    fn say(&self, what: &str) {
        eprintln!("{:6.1} s  {what}", self.begun.elapsed().as_secs_f64());
    }

    /// Lets time pass, in which whatever has ended is started again.
    fn pass(&mut self, from: u64, to: u64) {
        let until = Instant::now() + self.dice.ms(from, to);
        while Instant::now() < until {
            for layer in self.layers.iter_mut() {
                layer.start_if_ended();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A job of the load: one in twenty asks for a promise.
fn job(nth: u64) -> Value {
    let script = format!("echo ran >> outputs/ran-$ERA_ATTEMPT; sleep 0.{}", nth % 10);
    let mut job = json!({
        "work": {"command": ["sh", "-c", script]},
        "ask": {"resources": {"cpu": "50m", "memory": "16Mi"}, "duration_s": 60},
    });
    if nth.is_multiple_of(20) {
        let deadline = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(120);
        // Longer than two blows in a row keep an end from being told.
        job["ask"]["duration_s"] = json!(40);
        job["ask"]["deadline"] = json!(deadline.to_string());
        job["value"] = json!("1000");
    }
    job
}

/// Hands in jobs, each by its key until some application answers; those that were acknowledged.
fn hand_in(
    apps: &[String],
    token: &str,
    client: u64,
    stop: &AtomicBool,
    asked: &AtomicUsize,
) -> BTreeMap<u64, Value> {
    let mut acknowledged = BTreeMap::new();
    for nth in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (key, job) = (format!("{client}-{nth}"), job(nth));
        let headers = format!("authorization: Bearer {token}\r\nidempotency-key: {key}\r\n");
        let mut tries = client + nth;
        let answer = wait("an answer", SETTLED_MAX, || {
            tries += 1;
            asked.fetch_add(1, Ordering::Relaxed);
            let app = &apps[(tries % apps.len() as u64) as usize];
            let (status, answer) =
                crate::harness::exchange(app, "POST", "/api/v1/jobs", &headers, &job.to_string())
                    .ok()?;
            // While the database is away, it is the server's fault.
            assert!(matches!(status, 201 | 401 | 409 | 500 | 503), "{status}: {answer}");
            let answer: Value = serde_json::from_str(&answer).ok()?;
            Some(answer).filter(|_| matches!(status, 201 | 409))
        });
        match answer["job"].as_u64() {
            Some(number) => drop(acknowledged.insert(number, job)),
            // A promise may find the machine full: that is an answer too.
            None => assert_eq!(answer["code"], "no_room", "{answer}"),
        }
        std::thread::sleep(Duration::from_millis(150));
    }
    acknowledged
}

#[test]
fn a_site_of_two_of_each_survives_what_happens_to_it() {
    let lasts = Duration::from_secs(setting("ERA_CHAOS_S", 60));
    let seed = setting("ERA_CHAOS_SEED", setting("PROPTEST_RNG_SEED", 1));
    eprintln!("ERA_CHAOS_SEED={seed}");
    let dialect = if seed.is_multiple_of(2) { Dialect::Postgres } else { Dialect::MySql };
    let Some(mut bed) = Bed::start_durable(dialect) else { return };
    let mut redis = Redis::start();
    let wires = [Wire::to(bed.server.port()), Wire::to(bed.server.port())];
    let by = |wire: &Wire| {
        bed.database.replace(&format!(":{}/", bed.server.port()), &format!(":{}/", wire.port))
    };
    let at = redis.url();
    let cores: Vec<Layer> = (1..)
        .zip(&wires)
        .map(|(number, wire)| bed.core_with(number, &by(wire), &["--redis", &at]))
        .collect();
    let mut layers = cores;
    layers.extend([bed.app(), bed.app(), bed.cloud(), bed.files()]);
    for layer in &mut layers[2..] {
        layer.wait_until_ready();
    }
    let (token, apps) = (bed.token(), [layers[2].address.clone(), layers[3].address.clone()]);
    let made = json!({"label": "chaos", "scopes": ["read", "write", "admin"], "valid_s": 864_000});
    let (status, made) = layers[2].ask(&token, "POST", "/tokens", &made).unwrap();
    assert_eq!(status, 201, "{made}");
    let token = made["token"].as_str().unwrap().to_owned();
    wait("a node", SETTLED_MAX, || layers[2].get(&token, "/nodes").as_array()?.first().cloned());

    let uploads = Uploads::to(&layers[5], &token, SETTLED_MAX);
    let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (jobs, files): (BTreeMap<u64, Value>, _) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| uploads.send(&stop));
        let clients: Vec<_> = (0..3)
            .map(|client| {
                let (apps, token, stop, asked) = (&apps, &token, &stop, &asked);
                scope.spawn(move || hand_in(apps, token, client, stop, asked))
            })
            .collect();
        let begun = Instant::now();
        let mut disaster = Disaster {
            bed: &mut bed,
            redis: &mut redis,
            wires: &wires,
            layers: &mut layers,
            dice: Dice(seed),
            begun,
        };
        while begun.elapsed() < lasts {
            disaster.strike();
        }
        disaster.say("all is left alone");
        stop.store(true, Ordering::Relaxed);
        let mut clients = clients;
        // Clients that still wait for an answer need whatever has ended meanwhile.
        while !sending.is_finished() || clients.iter().any(|client| !client.is_finished()) {
            disaster.pass(50, 60);
        }
        let told = clients.drain(..).map(|client| client.join().unwrap());
        (told.flatten().collect(), sending.join().unwrap())
    });
    let tried = asked.load(Ordering::Relaxed);
    eprintln!("{} jobs were acknowledged in {tried} tries, {} files", jobs.len(), files.len());
    assert!(jobs.len() as u64 > lasts.as_secs(), "hardly anything was handed in");
    assert!(files.len() as u64 > lasts.as_secs() / 2, "hardly anything was sent");
    assert!(jobs.values().any(|job| job["value"].is_string()), "nothing was promised");
    settled(&bed, &mut layers, &token, &jobs);
    for (path, hash) in files {
        uploads.check(&path, hash);
    }
}

/// What each layer said last.
fn logs(layers: &[Layer]) -> String {
    let last = |layer: &Layer| {
        let said = layer.said();
        let mut lines: Vec<&str> = said.lines().rev().take(15).collect();
        lines.reverse();
        lines.join("\n")
    };
    layers.iter().map(last).collect::<Vec<_>>().join("\n====\n")
}

/// What must hold in the end.
fn settled(bed: &Bed, layers: &mut [Layer], token: &str, jobs: &BTreeMap<u64, Value>) {
    let begun = Instant::now();
    loop {
        for layer in layers.iter_mut() {
            layer.start_if_ended();
        }
        let active = layers[2].ask(token, "GET", "/jobs?state=active&limit=1", &Value::Null);
        let over = |(status, jobs): &(u16, Value)| {
            *status == 200 && jobs["items"].as_array().is_some_and(Vec::is_empty)
        };
        if active.as_ref().is_ok_and(over) {
            break;
        }
        assert!(begun.elapsed() < SETTLED_MAX, "jobs do not end: {active:?}; {}", logs(layers));
        std::thread::sleep(Duration::from_millis(100));
    }
    let app = &layers[2];
    let micro = |amount: &Value| amount.as_str().unwrap().parse::<era_api::Credits>().unwrap().0;
    let mut spent = 0;
    for number in jobs.keys() {
        let job = app.get(token, &format!("/jobs/{number}"));
        assert_eq!(job["state"], "succeeded", "{job}; {}", logs(layers));
        spent += micro(&job["cost"]["net"]);
        let mut ran = Vec::new();
        for file in std::fs::read_dir(bed.outputs(*number)).unwrap() {
            let file = file.unwrap().path();
            ran.push((file.clone(), std::fs::read_to_string(file).unwrap()));
        }
        assert!(ran.len() == 1 && ran[0].1 == "ran\n", "job {number} ran {ran:?}");
    }
    assert_eq!(app.count_jobs(token), jobs.len(), "a key made two jobs");
    let wallet = app.get(token, "/users/admin/wallet");
    assert_eq!(micro(&wallet["escrow"]), 0, "{wallet}");
    assert_eq!(micro(&wallet["balance"]) + spent, GRANTED, "{wallet}");
    bed.journal_replays(app, token);
}
