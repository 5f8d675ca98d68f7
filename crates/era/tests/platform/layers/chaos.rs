//! Schedulers, applications, what runs tasks, what keeps files, Redis and the database are killed,
//! paused, cut off and healed at random moments under load, as a service manager would start them
//! again: no job and no file that was acknowledged is lost, nothing runs twice, no promise is broken
//! that the hardware could keep, the money balances, the journal replays, and Redis has been told of
//! every job once.
//!
//! Every line between two of them is a wire of its own. One scheduler and one application are in
//! network namespaces of their own besides, where that is possible, and their links are set down:
//! then nobody is told that a connection has ended.
//!
//! A minute here; `ERA_CHAOS_S` sets another time, and `ERA_CHAOS_SEED` another seed, which is
//! printed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use era_store::Dialect;
use serde_json::{Value, json};

use super::bed::{Bed, Layer, wait};
use super::net::Net;
use super::redis::Redis;
use super::uploads::Uploads;
use super::wire::Wire;
use crate::engines::bed::can;
use crate::harness::free_address;

/// How long everything may take to be settled once it is left alone.
const SETTLED_MAX: Duration = Duration::from_secs(180);
/// How long after its promised start a job may start: two blows in a row, and whoever takes over.
const LATE_MAX: jiff::SignedDuration = jiff::SignedDuration::from_secs(30);
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

/// What is done to the site.
#[derive(Clone, Copy, Debug)]
enum Blow {
    KillCore,
    KillAny,
    PauseCore,
    PauseAny,
    /// Some wires end every connection and take none.
    Cut,
    /// Some wires carry nothing, and say nothing.
    Hold,
    /// A namespace loses its link.
    Unplug,
    KillRedis,
    PauseRedis,
    KillDatabase,
    PauseDatabase,
}

/// Each of these once, in another order every time: about a minute.
const BLOWS: [Blow; 13] = [
    Blow::KillCore,
    Blow::KillAny,
    Blow::KillAny,
    Blow::PauseCore,
    Blow::PauseAny,
    Blow::Cut,
    Blow::Cut,
    Blow::Hold,
    Blow::Unplug,
    Blow::KillRedis,
    Blow::PauseRedis,
    Blow::KillDatabase,
    Blow::PauseDatabase,
];

/// The first of the layers are schedulers.
const CORES: u64 = 2;

/// Who strikes the site, and tells what was done when.
struct Disaster<'a> {
    bed: &'a mut Bed,
    redis: &'a mut Redis,
    wires: &'a [Wire],
    net: Option<&'a Net>,
    layers: &'a mut [Layer],
    dice: Dice,
    begun: Instant,
    next: Vec<Blow>,
}

impl Disaster<'_> {
    fn strike(&mut self) {
        if self.next.is_empty() {
            self.next = BLOWS.into();
            for place in (1..BLOWS.len()).rev() {
                let other = self.dice.below(place as u64 + 1) as usize;
                self.next.swap(place, other);
            }
        }
        let Some(blow) = self.next.pop() else { return };
        match blow {
            Blow::KillCore => self.kill(CORES),
            Blow::KillAny => self.kill(self.layers.len() as u64),
            Blow::PauseCore => self.pause(CORES),
            Blow::PauseAny => self.pause(self.layers.len() as u64),
            Blow::Cut => self.disturb("cut", Wire::cut, 5_000),
            Blow::Hold => self.disturb("hold", Wire::hold, 6_000),
            Blow::Unplug => self.unplug(),
            Blow::KillRedis => {
                self.say("kill redis");
                self.redis.kill();
                self.pass(200, 2_000);
                self.redis.start_again();
            }
            Blow::PauseRedis => {
                self.say("pause redis");
                self.redis.signal("-STOP");
                self.pass(500, 7_000);
                self.redis.signal("-CONT");
            }
            Blow::KillDatabase => {
                self.say("kill the database");
                self.bed.server.crash().unwrap();
                self.pass(100, 1_500);
                self.bed.server.start_again().unwrap();
            }
            Blow::PauseDatabase => {
                self.say("pause the database");
                self.bed.server.pause();
                self.pass(500, 6_000);
                self.bed.server.go_on();
            }
        }
        self.pass(500, 3_000);
    }

    fn kill(&mut self, of_the_first: u64) {
        let victim = self.dice.below(of_the_first) as usize;
        self.say(&format!("kill {}", NAMES[victim]));
        self.layers[victim].kill();
        self.pass(200, 1_500);
    }

    fn pause(&mut self, of_the_first: u64) {
        let victim = self.dice.below(of_the_first) as usize;
        self.say(&format!("pause {}", NAMES[victim]));
        self.layers[victim].signal("-STOP");
        self.pass(500, 6_000);
        self.layers[victim].signal("-CONT");
    }

    /// Does something to one to three wires.
    fn disturb(&mut self, how: &str, what: fn(&Wire), longest: u64) {
        let wires = self.wires;
        let count = 1 + self.dice.below(3);
        let struck: Vec<&Wire> =
            (0..count).map(|_| &wires[self.dice.below(wires.len() as u64) as usize]).collect();
        for wire in &struck {
            self.say(&format!("{how} {}", wire.name));
            what(wire);
        }
        self.pass(500, longest);
        struck.into_iter().for_each(Wire::heal);
    }

    fn unplug(&mut self) {
        let place = self.dice.below(PLACES as u64) as usize;
        let Some(net) = self.net else { return self.disturb("hold", Wire::hold, 6_000) };
        self.say(&format!("unplug {}", NAMES[IN_NAMESPACES[place]]));
        net.set(place, false);
        self.pass(500, 7_000);
        net.set(place, true);
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

/// What is in the file that jobs are given.
const DATA: &str = "these are the data";
/// What jobs with code run: it finds its data, or fails.
const CODE: &str = "test \"$(cat inputs/material/part.txt)\" = \"$1\" || exit 3\n\
                    echo ran >> $ERA_OUTPUTS/ran-$ERA_ATTEMPT\nsleep 0.$2\n";

/// Keeps code and data for jobs; the hash of the code.
fn furnish(files: &Layer, token: &str) -> String {
    let headers = format!("authorization: Bearer {token}\r\n");
    let sets = [("program", "job.sh", CODE), ("material", "part.txt", DATA)];
    for (set, file, content) in sets {
        let (status, answer) = files.ask(token, "POST", "/data", &json!({"name": set})).unwrap();
        assert_eq!(status, 201, "{answer}");
        let path = format!("/api/v1/data/admin/{set}/files/{file}");
        let put = crate::harness::exchange(&files.address, "PUT", &path, &headers, content);
        assert!(matches!(put, Ok((200..=204, _))), "{put:?}");
    }
    files.get(token, "/data/admin/program")["tree"].as_str().unwrap().to_owned()
}

/// A job of the load: one in twenty asks for a promise, and one in three has code and data.
fn job(nth: u64, code: &str) -> Value {
    let script = format!("echo ran >> outputs/ran-$ERA_ATTEMPT; sleep 0.{}", nth % 10);
    let mut job = json!({
        "work": {"command": ["sh", "-c", script]},
        "ask": {"resources": {"cpu": "50m", "memory": "16Mi"}, "duration_s": 60},
    });
    if nth.is_multiple_of(3) {
        let tenths = (nth % 10).to_string();
        let command = ["sh", "job.sh", DATA, &tenths];
        job["work"] = json!({"command": command, "code": code, "inputs": [{"data": "material"}]});
    }
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
    code: &str,
    client: u64,
    stop: &AtomicBool,
    asked: &AtomicUsize,
) -> BTreeMap<u64, Value> {
    let mut acknowledged = BTreeMap::new();
    for nth in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (key, job) = (format!("{client}-{nth}"), job(nth, code));
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

/// Layers by their places.
const NAMES: [&str; 6] = ["core 1", "core 2", "app 1", "app 2", "cloud", "files"];
/// Those that are in namespaces of their own, where there are any.
const IN_NAMESPACES: [usize; PLACES] = [0, 3];
const PLACES: usize = 2;

/// Every layer, and the wires between them.
struct Site {
    layers: Vec<Layer>,
    wires: Vec<Wire>,
}

impl Site {
    /// Starts them, each with wires of its own to whatever it asks.
    fn start(bed: &Bed, redis: &Redis, net: Option<&Net>) -> Site {
        let here = net.map_or_else(|| "127.0.0.1".to_owned(), Net::here);
        let database = format!("127.0.0.1:{}", bed.server.port());
        let (mut layers, mut wires) = (Vec::new(), Vec::new());
        for (index, name) in NAMES.into_iter().enumerate() {
            let place = IN_NAMESPACES.iter().position(|of| *of == index);
            let place = net.zip(place).map(|(net, place)| &net.places[place]);
            let at = place.map_or("127.0.0.1", |place| &place.address);
            let free = || {
                let free = free_address();
                format!("{at}:{}", free.rsplit(':').next().unwrap())
            };
            let to_database = Wire::new(&format!("{name} - database"), &here, &database);
            let rows = bed
                .database
                .replace(&format!("@{database}/"), &format!("@{}/", to_database.address));
            wires.push(to_database);
            let kind = name.split(' ').next().unwrap();
            let mut more: Vec<String> = Vec::new();
            if kind == "core" {
                let inbox = free();
                let asked = Wire::new(&format!("others - {name}"), &here, &inbox);
                let to_redis = Wire::new(&format!("{name} - redis"), &here, &redis.address());
                more.extend(["--inbox".to_owned(), inbox]);
                more.extend(["--advertise".to_owned(), asked.address.to_string()]);
                more.extend(["--redis".to_owned(), format!("redis://{}/0", to_redis.address)]);
                wires.extend([asked, to_redis]);
            }
            if place.is_some() {
                more.push("--insecure-plain".to_owned());
            }
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            let namespace = place.map(|place| place.namespace.0.as_str());
            layers.push(bed.placed(kind, &rows, &free(), namespace, &more));
        }
        Site { layers, wires }
    }
}

/// Namespaces for some of the layers. Where there are none wires alone are cut, and that part of the
/// test counts as skipped.
fn namespaces() -> Option<Net> {
    can(Net::new(PLACES).map_err(|why| format!("no network namespaces: {why}")))
}

#[test]
fn a_site_of_two_of_each_survives_what_happens_to_it() {
    let lasts = Duration::from_secs(setting("ERA_CHAOS_S", 60));
    let seed = setting("ERA_CHAOS_SEED", setting("PROPTEST_RNG_SEED", 1));
    eprintln!("ERA_CHAOS_SEED={seed}");
    let dialect = if seed.is_multiple_of(2) { Dialect::Postgres } else { Dialect::MySql };
    let Some(mut bed) = Bed::start_durable(dialect) else { return };
    let mut redis = Redis::start();
    let net = namespaces();
    let Site { mut layers, wires } = Site::start(&bed, &redis, net.as_ref());
    for layer in &mut layers[2..] {
        layer.wait_until_ready();
    }
    let (token, apps) = (bed.token(), [layers[2].address.clone(), layers[3].address.clone()]);
    let made = json!({"label": "chaos", "scopes": ["read", "write", "admin"], "valid_s": 864_000});
    let (status, made) = layers[2].ask(&token, "POST", "/tokens", &made).unwrap();
    assert_eq!(status, 201, "{made}");
    let token = made["token"].as_str().unwrap().to_owned();
    wait("a node", SETTLED_MAX, || {
        layers[2].get(&token, "/nodes")["items"].as_array()?.first().cloned()
    });

    let code = furnish(&layers[5], &token);
    let uploads = Uploads::to(&layers[5], &token, SETTLED_MAX);
    let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (jobs, files): (BTreeMap<u64, Value>, _) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| uploads.send(&stop));
        let clients: Vec<_> = (0..3)
            .map(|client| {
                let (apps, token, code, stop, asked) = (&apps, &token, &code, &stop, &asked);
                scope.spawn(move || hand_in(apps, token, code, client, stop, asked))
            })
            .collect();
        let begun = Instant::now();
        let mut disaster = Disaster {
            bed: &mut bed,
            redis: &mut redis,
            wires: &wires,
            net: net.as_ref(),
            layers: &mut layers,
            dice: Dice(seed),
            begun,
            next: Vec::new(),
        };
        // Whatever goes wrong here, clients stop.
        let stops = super::Stop(&stop);
        while begun.elapsed() < lasts {
            disaster.strike();
        }
        disaster.say("all is left alone");
        drop(stops);
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
    // Redis forgot all of it whenever it was killed, and was told again.
    let told = wait("all jobs in accepted_queue", SETTLED_MAX, || {
        let told = redis.accepted()?;
        jobs.keys().all(|job| told.contains_key(job)).then_some(told)
    });
    let twice: Vec<_> = told.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "told more than once: {twice:?}");
    assert_eq!(told.len(), jobs.len(), "a job was told of that nobody handed in");
    let lease = layers[2].get(&token, "/settings")["lease"].to_string();
    wait("the settings in force", SETTLED_MAX, || {
        (redis.field("era:settings", "lease")? == lease).then_some(())
    });
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
    let mut latest = jiff::SignedDuration::ZERO;
    let at = |time: &Value| time.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    for (number, asked) in jobs {
        let job = app.get(token, &format!("/jobs/{number}"));
        assert_eq!(job["state"], "succeeded", "{job}; {}", logs(layers));
        // However short it was, and whoever was not there to hear it.
        let Some(started) = at(&job["started"]) else { panic!("when did it start? {job}") };
        if asked["value"].is_string() {
            let late = started.duration_since(at(&job["promised_start"]).unwrap());
            assert!(late <= LATE_MAX, "it started {late:#} after its promise: {job}");
            latest = latest.max(late);
        }
        spent += micro(&job["cost"]["net"]);
        let mut ran = Vec::new();
        for file in std::fs::read_dir(bed.outputs(*number)).unwrap() {
            let file = file.unwrap().path();
            ran.push((file.clone(), std::fs::read_to_string(file).unwrap()));
        }
        assert!(ran.len() == 1 && ran[0].1 == "ran\n", "job {number} ran {ran:?}");
    }
    eprintln!("the latest start of a promise was {latest:#} after it");
    let broken = app.get(token, "/jobs?state=broken&limit=1");
    assert!(broken["items"].as_array().is_some_and(Vec::is_empty), "{broken}");
    assert_eq!(app.count_jobs(token), jobs.len(), "a key made two jobs");
    let wallet = app.get(token, "/users/admin/wallet");
    assert_eq!(micro(&wallet["escrow"]), 0, "{wallet}");
    assert_eq!(micro(&wallet["balance"]) + spent, GRANTED, "{wallet}");
    bed.journal_replays(app, token);
}
