//! `era bench server`: the whole platform under load, server and load on the same cores.

mod history;
pub(super) mod load;
pub(super) mod site;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use era_api::Timestamp;
use serde_json::{Value, json};

use self::load::{Connection, request};
use self::site::BenchServer;
use super::{cores, print};
use crate::clock::{instant, timestamp};

/// How long a rate is measured.
const SPAN: Duration = Duration::from_secs(4);
/// How long what was handed in may take.
const DONE_MAX: Duration = Duration::from_secs(300);
/// Jobs of the array.
const ARRAY: u32 = 10_000;
/// Jobs that are handed in one by one.
const JOBS: u32 = 1_000;
/// How often a single job, and in each turn a single command, is timed.
const SINGLES: usize = 200;
/// How often the command and the array are measured, each time beside the bare program: what a
/// process costs on a machine that is shared changes by half within minutes.
const TURNS: usize = 3;
/// How long the server is left alone before that, so that nothing of the load before is measured.
const REST: Duration = Duration::from_secs(2);
/// How often it is looked whether all jobs are over. To look costs as much as some jobs do.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a job that only ends asks for.
const SMALL: &str = r#"{"resources":{"cpu":"50m","memory":"16Mi"},"duration_s":600}"#;

pub(super) fn run(json: bool, quick: bool) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut report = runtime.block_on(measure())?;
    if !quick {
        merge(&mut report, runtime.block_on(with_a_past())?);
    }
    print(&report, json);
    Ok(())
}

fn merge(report: &mut Value, more: Value) {
    if let (Value::Object(report), Value::Object(more)) = (report, more) {
        report.extend(more);
    }
}

async fn measure() -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let site = BenchServer::start(folder.path(), None)?;
    let idle = site.at_rest()?;
    let quotes = quotes(&site).await?;
    tokio::time::sleep(REST).await;
    let (job_p50_ms, start_p50_ms) = singles(&site).await?;
    let jobs_per_second = separate(&site).await?;
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        turns.push(turn(&site).await?);
    }
    let all = |of: fn(&Turn) -> f64| turns.iter().map(of).collect::<Vec<f64>>();
    let (commands, arrays) = (all(|turn| turn.command_ms), all(|turn| turn.array_per_second));
    let forks = all(|turn| turn.forks_per_second);
    let ratios = all(|turn| turn.array_per_second / turn.forks_per_second);
    drop(site);
    let fresh = tempfile::tempdir()?;
    let site = BenchServer::start(fresh.path(), None)?;
    let (submits_per_second, submit_p99_ms) = submissions(&site).await?;
    drop(site);
    let large = tempfile::tempdir()?;
    let site = BenchServer::start(large.path(), Some(THOUSAND))?;
    let on_thousand = self::quotes(&site).await?;
    drop(site);
    Ok(json!({
        "quotes_per_second": quotes.per_second,
        "quote_p99_ms": quotes.p99_ms,
        "tcp_quotes_per_second": quotes.lines_per_second,
        "open_quotes_per_second": quotes.open_per_second,
        "quotes_per_second_1000_nodes": on_thousand.per_second,
        "quote_p99_ms_1000_nodes": on_thousand.p99_ms,
        "tcp_quotes_per_second_1000_nodes": on_thousand.lines_per_second,
        "submits_per_second": submits_per_second,
        "submit_p99_ms": submit_p99_ms,
        "cli_submit_p50_ms": median(commands.clone()),
        "cli_submit_p50_ms_each": commands,
        "array_tasks_per_second": median(arrays.clone()),
        "array_tasks_per_second_each": arrays,
        "jobs_per_second": jobs_per_second,
        "job_p50_ms": job_p50_ms,
        "start_p50_ms": start_p50_ms,
        "idle_mb": idle.own_mb,
        "idle_with_helpers_mb": idle.all_mb,
        "idle_cpu": idle.cores,
        "fork_per_second": median(forks.clone()),
        "fork_per_second_each": forks,
        "array_to_fork": median(ratios),
        "cores": cores(),
    }))
}

/// A thousand nodes of eight GPUs.
const THOUSAND: &str = "nodes:
  - name: sim
    count: 1000
    pool: large
    capacity: { cpu: 64, memory: 512Gi, gpu: 8, gpu.model: h100, gpu.memory: 80Gi }
";

struct Quotes {
    per_second: f64,
    p99_ms: f64,
    lines_per_second: f64,
    open_per_second: f64,
}

/// Quotes over HTTP as fast as they go, at half that rate, and as lines over TCP: finished within a
/// day. Beside them quotes without a deadline, whose window is the whole horizon.
async fn quotes(site: &BenchServer) -> Result<Quotes> {
    let by = timestamp() + jiff::SignedDuration::from_hours(24);
    let body = |deadline: &str| {
        format!(
            r#"{{"ask":{{"resources":{{"cpu":"1","memory":"1Gi"}},"duration_s":3600{deadline}}},"value":"30"}}"#
        )
    };
    let within_a_day = body(&format!(r#","deadline":"{by}""#));
    let ask = request("POST", "/quotes", &site.token, &within_a_day);
    let open = request("POST", "/quotes", &site.token, &body(""));
    load::closed(site.http, 8, Duration::from_secs(1), &ask, 200).await?;
    let most = load::closed(site.http, 16, SPAN, &ask, 200).await?;
    let half = load::paced(site.http, 16, SPAN, most.per_second / 2.0, &ask).await?;
    let open = load::closed(site.http, 16, Duration::from_secs(2), &open, 200).await?;
    let line = format!("{{\"id\":1,\"op\":\"quote\",\"ask\":{within_a_day}}}\n");
    let lines_per_second = load::lines(site.tcp, &site.token, SPAN, &line).await?;
    Ok(Quotes {
        per_second: most.per_second,
        p99_ms: half.percentile_ms(0.99),
        lines_per_second,
        open_per_second: open.per_second,
    })
}

/// Durable submissions of 64 clients in a second, to a server with its rows in this database.
pub(super) async fn submissions_on(database: &str) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let site = BenchServer::start_on(folder.path(), None, Some(database))?;
    // The first ones also make the database and us warm.
    submissions(&site).await?;
    Ok(submissions(&site).await?.0)
}

/// Durable submissions of 64 clients: work that may start in half a day.
async fn submissions(site: &BenchServer) -> Result<(f64, f64)> {
    let later = timestamp() + jiff::SignedDuration::from_hours(12);
    let body = format!(
        r#"{{"work":{{"command":["true"]}},"ask":{{"resources":{{"cpu":"1"}},"duration_s":60,"earliest":"{later}"}}}}"#
    );
    let submit = request("POST", "/jobs", &site.token, &body);
    let outcome = load::closed(site.http, 64, SPAN, &submit, 201).await?;
    Ok((outcome.per_second, outcome.percentile_ms(0.99)))
}

/// What is measured in one turn.
struct Turn {
    command_ms: f64,
    array_per_second: f64,
    forks_per_second: f64,
}

/// The command and the array, with the bare program before and after.
async fn turn(site: &BenchServer) -> Result<Turn> {
    tokio::time::sleep(REST).await;
    let command_ms = commands(site)?;
    let before = forks()?;
    let array_per_second = array(site).await?;
    let forks_per_second = f64::midpoint(before, forks()?);
    Ok(Turn { command_ms, array_per_second, forks_per_second })
}

/// Milliseconds of `era submit` as a process, start to exit: the median.
fn commands(site: &BenchServer) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..SINGLES {
        let begun = instant();
        let status = site
            .era()?
            .args(["submit", "--no-code", "--cpu", "50m", "--memory", "16Mi", "--time", "10m"])
            .args(["--", "true"])
            .status()?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(status.success(), "era submit failed: {status}");
    }
    Ok(median(times))
}

fn job(array: Option<u32>) -> String {
    let array = array.map_or(String::new(), |n| format!(r#","array":{{"from":0,"to":{}}}"#, n - 1));
    format!(r#"{{"work":{{"command":["true"]}},"ask":{SMALL}{array}}}"#)
}

/// One job at a time: from its submission to its end, and to its first instruction.
async fn singles(site: &BenchServer) -> Result<(f64, f64)> {
    let mut connection = Connection::open(site.http).await?;
    let submit = request("POST", "/jobs", &site.token, &job(None));
    let (mut done, mut started) = (Vec::new(), Vec::new());
    for _ in 0..SINGLES {
        let begun = instant();
        let at = timestamp();
        let id = submitted(&mut connection, &submit).await?;
        let look = request("GET", &format!("/jobs/{id}"), &site.token, "");
        loop {
            let (_, body) = connection.ask(&look).await?;
            let job: Value = serde_json::from_slice(body)?;
            if job["state"] == "succeeded" {
                done.push(begun.elapsed().as_secs_f64() * 1e3);
                let first = job["tasks"][0]["started"].as_str().context("it never started")?;
                let first: Timestamp = first.parse()?;
                started.push(first.duration_since(at).as_secs_f64().max(0.0) * 1e3);
                break;
            }
            ensure!(job["state"] != "failed", "{job}");
            ensure!(begun.elapsed() < DONE_MAX, "a job does not end");
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
    }
    Ok((median(done), median(started)))
}

async fn submitted(connection: &mut Connection, submit: &[u8]) -> Result<u64> {
    let (status, body) = connection.ask(submit).await?;
    ensure!(status == 201, "{status}: {}", String::from_utf8_lossy(body));
    let answer: Value = serde_json::from_slice(body)?;
    answer["job"].as_u64().context("no number of a job")
}

/// A thousand separate jobs, from the first submission to the last end.
async fn separate(site: &BenchServer) -> Result<f64> {
    let submit = request("POST", "/jobs", &site.token, &job(None));
    let begun = instant();
    let hand_in = async || -> Result<()> {
        let mut connection = Connection::open(site.http).await?;
        for _ in 0..JOBS / 20 {
            submitted(&mut connection, &submit).await?;
        }
        Ok(())
    };
    for each in futures_util::future::join_all((0..20).map(|_| hand_in())).await {
        each?;
    }
    wait_until_idle(site, "").await?;
    Ok(f64::from(JOBS) / begun.elapsed().as_secs_f64())
}

/// An array of ten thousand, from its submission to the last end.
async fn array(site: &BenchServer) -> Result<f64> {
    let mut connection = Connection::open(site.http).await?;
    let submit = request("POST", "/jobs", &site.token, &job(Some(ARRAY)));
    let begun = instant();
    let id = submitted(&mut connection, &submit).await?;
    wait_until_idle(site, &format!("&array={id}")).await?;
    Ok(f64::from(ARRAY) / begun.elapsed().as_secs_f64())
}

async fn wait_until_idle(site: &BenchServer, narrowed: &str) -> Result<()> {
    let mut connection = Connection::open(site.http).await?;
    let path = format!("/jobs?state=active&limit=1{narrowed}");
    let look = request("GET", &path, &site.token, "");
    let begun = instant();
    loop {
        let (status, body) = connection.ask(&look).await?;
        ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(body));
        let page: Value = serde_json::from_slice(body)?;
        if page["items"].as_array().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        ensure!(begun.elapsed() < DONE_MAX, "jobs do not end");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A site with a million jobs behind it: how long it takes to start, and to list fifty of them.
async fn with_a_past() -> Result<Value> {
    let folder = tempfile::tempdir()?;
    // A runtime of its own, as a server has: the load's has one thread.
    let data = folder.path().join("data");
    let written = tokio::task::spawn_blocking(move || -> Result<history::BenchHistory> {
        tokio::runtime::Runtime::new()?.block_on(history::write(&data))
    });
    let history = written.await??;
    let site = BenchServer::start(folder.path(), None)?;
    let startup_s = site.started_in.as_secs_f64();
    let list_p99_ms = lists(&site).await?;
    Ok(json!({
        "startup_s": startup_s,
        "list_p99_ms": list_p99_ms,
        "history_jobs": history.jobs,
        "history_events": history.events,
        "history_inputs": history.inputs,
    }))
}

/// Milliseconds within which 99 of 100 lists of fifty jobs were answered, for the filter that
/// takes longest.
async fn lists(site: &BenchServer) -> Result<f64> {
    let user = history::user_name(7);
    let mut slowest: f64 = 0.0;
    for filter in [
        "state=failed".to_owned(),
        "state=succeeded&queue=default".to_owned(),
        format!("user={user}"),
        format!("user={user}&state=failed"),
        "name=train-4".to_owned(),
    ] {
        let look = request("GET", &format!("/jobs?limit=50&{filter}"), &site.token, "");
        let mut connection = Connection::open(site.http).await?;
        let (status, body) = connection.ask(&look).await?;
        let page: Value = serde_json::from_slice(body)?;
        let count = page["items"].as_array().map_or(0, Vec::len);
        ensure!(status == 200 && count == 50, "{filter}: {status}, {count} jobs");
        let outcome = load::closed(site.http, 1, Duration::from_secs(1), &look, 200).await?;
        slowest = slowest.max(outcome.percentile_ms(0.99));
    }
    Ok(slowest)
}

/// The same program, started and waited for without any of us: what a task costs at least.
fn forks() -> Result<f64> {
    const FORKS: u32 = 1_000;
    let begun = instant();
    for _ in 0..FORKS {
        Command::new("true").status()?;
    }
    Ok(f64::from(FORKS) / begun.elapsed().as_secs_f64())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
