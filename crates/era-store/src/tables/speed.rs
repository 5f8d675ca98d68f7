//! How fast it is: run with `cargo test --release -p era-store speed -- --ignored --nocapture`.
//! Nothing is asserted about time.

use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::{JobId, Span, Time};
use era_spec::JobState;
use sqlx::Executor;
use tokio::time::Instant;

use super::world::{ADA, START, World, gang};
use super::{JobQuery, Projector, Tables, VisibleJobs};
use crate::Store;

fn tell(what: &str, figure: impl std::fmt::Display) {
    use std::io::Write;
    // Not through the test's own output, which is shown for failures only.
    let _ = writeln!(std::io::stderr(), "{{\"{what}\": {figure}}}");
}

/// A million jobs of a thousand accounts in fifty groups: few are not over, few failed.
async fn a_million(store: &Store) {
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) \
        INSERT INTO jobs (id, name, account, account_name, team, team_name, state, queue, \
        submitted, price, resources, replicas, duration_ms, simulated, attempts, charged, \
        refunded, changed, ended) \
        SELECT i, 'train-' || (i * 7919 % 100000), i * 31 % 1000, 'user' || (i * 31 % 1000), \
        i * 31 % 50, 'group' || (i * 31 % 50), \
        CASE WHEN i > 999000 THEN i % 4 WHEN i % 1000 = 0 THEN 6 ELSE 5 END, \
        CASE WHEN i % 3 = 0 THEN NULL ELSE 'queue' || (i % 5) END, \
        1800000000000 + i * 1000, 1000000, '{\"cpu\":\"4\",\"gpu\":\"1\"}', 1, 3600000, 0, 1, \
        1000000, 0, i, CASE WHEN i > 999000 THEN NULL ELSE i END FROM n";
    store.tables().writer().execute(rows).await.unwrap();
    let accounts = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) \
        INSERT INTO accounts (id, name, team, balance) SELECT i, 'user' || i, i % 50, 0 FROM n";
    store.tables().writer().execute(accounts).await.unwrap();
}

fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100].as_secs_f64() * 1000.0
}

#[tokio::test]
#[ignore = "measures: a million rows"]
async fn listing_fifty_of_a_million_with_a_filter() {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::testing::open(folder.path()).await;
    a_million(&store).await;
    let tables = Tables::new(&store);
    let all = || JobQuery::all(VisibleJobs::All, 50);
    let text = |text: &str| Some(text.to_owned());
    let active = JobState::ALL.into_iter().filter(|state| !state.is_over()).collect();
    let questions = [
        ("all", all()),
        ("active", JobQuery { states: active, ..all() }),
        ("failed", JobQuery { states: vec![JobState::Failed], ..all() }),
        ("account", JobQuery { account: text("user17"), ..all() }),
        (
            "account and state",
            JobQuery { account: text("user0"), states: vec![JobState::Failed], ..all() },
        ),
        ("own", JobQuery::all(VisibleJobs::Own(era_core::units::UserId(5)), 50)),
        (
            "group",
            JobQuery::all(
                VisibleJobs::Team(era_core::units::GroupId(3), era_core::units::UserId(3)),
                50,
            ),
        ),
        ("queue", JobQuery { queue: text("queue2"), ..all() }),
        ("rare name", JobQuery { name: text("train-4242"), ..all() }),
        ("common name", JobQuery { name: text("train"), ..all() }),
        (
            "period",
            JobQuery {
                since: Some(Time(1_800_000_100_000)),
                until: Some(Time(1_800_000_900_000)),
                ..all()
            },
        ),
    ];
    for (what, query) in questions {
        let mut times = Vec::new();
        let mut cursor = None;
        for _ in 0..200 {
            let began = Instant::now();
            let page = tables.jobs(&query, cursor).await.unwrap();
            times.push(began.elapsed());
            cursor = page.next;
        }
        let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
        tell(&format!("list_ms {what}"), format!("[{p50:.2}, {p99:.2}]"));
    }
}

#[tokio::test]
#[ignore = "measures: twenty thousand entries"]
async fn entries_projected_in_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    let mut entries = 0;
    for _ in 0..500 {
        let window = (world.now, world.now + Span::from_h(2));
        let jobs: Vec<JobId> = (0..10).map(|_| world.enqueue(ADA, gang(1, 1, window))).collect();
        entries += jobs.len();
        for _ in 0..3 {
            world.pass();
            let tasks: Vec<TaskId> = world.start_all();
            entries += 2 + 2 * tasks.len();
            world.wait(Span::from_s(1));
            tasks.into_iter().for_each(|task| world.exit(task, 0, None));
        }
    }
    world.flush().await;
    let mut projector = Projector::open(&world.store).await.unwrap();
    let began = Instant::now();
    let last = projector.catch_up().await.unwrap();
    let seconds = began.elapsed().as_secs_f64();
    assert!(last > entries as u64 && world.now > START);
    tell("entries", last);
    tell("entries_per_second", format!("{:.0}", last as f64 / seconds));
}
