//! Whole stories through the core, the journal and the tables.

use std::collections::{BTreeMap, BTreeSet};

use era_core::accounts::Actor;
use era_core::bid::Shape;
use era_core::job::TaskId;
use era_core::units::{GroupId, JobId, Name, NodeId, Span, Time};
use era_core::{Command, Reply};
use era_spec::JobState;

use super::world::{ADA, BOB, START, World, gang};
use super::{
    BadCursor, EventQuery, HOUR_MS, JobCursor, JobQuery, Projector, StatementQuery, Tables,
    VisibleJobs, hour_of,
};
use crate::copy::{StorePart, TABLES, read_all};
use crate::{Note, Store};

fn soon(world: &World, hours: i64) -> (Time, Time) {
    (world.now, world.now + Span::from_h(hours))
}

/// Every row of every table, as text.
async fn dump(store: &Store) -> Vec<String> {
    let mut all = Vec::new();
    for (part, table, keys) in TABLES {
        if part == StorePart::Tables {
            let rows = read_all(store.tables().readers(), table, keys).await.unwrap();
            all.extend(rows.into_iter().map(|row| format!("{table}: {row:?}")));
        }
    }
    all
}

/// A store with such a day behind it.
pub(crate) async fn a_day(folder: &std::path::Path) -> Store {
    let mut world = World::new(folder).await;
    world.begin().await;
    mixed_day(&mut world);
    world.project().await;
    world.store
}

/// A promise that is kept, queue work that fails, a gang whose node is lost, and a refusal.
fn mixed_day(world: &mut World) -> [JobId; 3] {
    let request = gang(2, 60, soon(world, 6));
    let kept = match world.bid(ADA, request, 900) {
        Reply::Accepted { job, .. } => job,
        other => panic!("{other:?}"),
    };
    let failed = world.enqueue(BOB, gang(1, 30, soon(world, 2)));
    let lost = world.enqueue(BOB, gang(1, 30, soon(world, 2)));
    world.pass();
    world.wait(Span::from_s(2));
    let tasks = world.start_all();
    world.wait(Span::from_min(20));
    let of = |job: JobId| tasks.iter().filter(move |task| task.job == job).copied();
    of(failed).for_each(|task| world.exit(task, 9, Some("out_of_memory")));
    world.done(Command::Lost { node: NodeId(1) }, Note::default());
    world.wait(Span::from_h(1));
    world.send(Command::Resume { node: NodeId(1) }, Note::default());
    world.pass();
    let tasks = world.start_all();
    world.wait(Span::from_min(5));
    tasks.into_iter().for_each(|task: TaskId| world.exit(task, 0, None));
    let refused = world.bid(BOB, gang(2, 600, soon(world, 1)), 1);
    assert!(matches!(refused, Reply::Refused { .. }), "{refused:?}");
    [kept, failed, lost]
}

#[tokio::test]
async fn an_event_in_the_tables_is_the_text_of_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let store = a_day(folder.path()).await;
    let sql = "SELECT seq, place, kind, body FROM events ORDER BY seq, place";
    let rows: Vec<(i64, i64, String, String)> =
        sqlx::query_as(sql).fetch_all(store.tables().readers()).await.unwrap();
    assert!(rows.len() > 20, "{}", rows.len());
    for (seq, place, kind, body) in rows {
        let entry = store.journal().entry(seq.cast_unsigned()).await.unwrap().unwrap();
        let (event, text) =
            entry.written_events().unwrap().swap_remove(usize::try_from(place).unwrap());
        assert_eq!((event.kind(), text.get()), (kind.as_str(), body.as_str()));
        assert!(entry.events.contains(&body), "{body}");
        assert_ne!(event.audience(), era_core::event::Audience::Nobody, "{body}");
    }
}

#[tokio::test]
async fn an_event_that_this_version_does_not_know_is_read_without_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let store = a_day(folder.path()).await;
    let newer = "UPDATE events SET kind = 'teleported', body = '{\"type\":\"teleported\"}' \
                 WHERE kind = 'ended'";
    sqlx::query(newer).execute(store.tables().writer()).await.unwrap();
    let all =
        Tables::new(&store).events(&EventQuery::all(VisibleJobs::All, (0, 0), 1000)).await.unwrap();
    for row in &all {
        let known = row.event.as_ref().map(era_core::Event::kind);
        assert_eq!(known, (row.kind != "teleported").then_some(row.kind.as_str()));
    }
    assert!(all.iter().any(|row| row.event.is_none() && row.job.is_some()));
}

/// The server was away, and hears of the end before time goes on: what ran is counted all the same.
#[tokio::test]
async fn a_task_that_ended_after_the_last_known_instant_is_dated_and_counted_as_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    let job = world.enqueue(BOB, gang(1, 300, soon(&world, 12)));
    let lost = world.enqueue(BOB, gang(1, 300, soon(&world, 12)));
    world.pass();
    let tasks = world.start_all();
    let of = |job: JobId| *tasks.iter().find(|task| task.job == job).unwrap();
    world.wait(Span::from_s(5));
    let ended = world.now + Span::from_h(3);
    let seen = crate::note::Observation { at_ms: ended.0, ..Default::default() };
    let exited = Command::Exited { task: of(job), code: 0, at: Some(ended) };
    world.send(exited, Note { task: Some(seen), ..Note::default() });
    let tables = world.project().await;
    let row = tables.job(job).await.unwrap().unwrap();
    assert_eq!((row.state, row.ended), (JobState::Succeeded, Some(ended)));
    let task = tables.tasks(job, 9).await.unwrap().pop().unwrap();
    assert_eq!(task.ended, Some(ended));
    let (from, to) = (START, ended + Span::from_h(1));
    let gpu_ms = async |tables: &Tables| -> i64 {
        tables.node_hours(from, to).await.unwrap().iter().map(|used| used.unit_ms[2]).sum()
    };
    let ran_ms = ended.since(task.launched).0;
    assert_eq!(gpu_ms(&tables).await, 2000 * ran_ms);
    assert_eq!(tables.tallies(from, to).await.unwrap()["gpu_ms/h100"], 2000 * ran_ms);

    // Nobody knows when one that is lost ended: it had its place until that is told.
    world.wait(Span::from_min(5));
    let seen = crate::note::Observation { cause: Some("lost".to_owned()), ..Default::default() };
    let command = Command::TaskLost { task: of(lost), reason: Name::new("gone").unwrap() };
    world.send(command, Note { task: Some(seen), ..Note::default() });
    let task = world.project().await.tasks(lost, 9).await.unwrap().swap_remove(0);
    assert_eq!((task.ended, task.cause.as_deref()), (Some(world.now), Some("lost")));
}

#[tokio::test]
async fn a_job_that_ran_tells_its_times_its_tasks_and_its_money() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    let request = gang(2, 60, soon(&world, 6));
    let Reply::Accepted { job, quote: Some(quote), .. } = world.bid(ADA, request, 900) else {
        panic!("refused");
    };
    world.wait(Span::from_s(1));
    let tasks = world.start_all();
    assert_eq!(tasks.len(), 2);
    let row = world.project().await.job(job).await.unwrap().unwrap();
    assert_eq!((row.state, row.attempts), (JobState::Running, 1));
    assert_eq!((row.account_name.as_str(), row.team_name.as_str()), ("ada", "vision"));
    assert_eq!((row.price, row.charged, row.refunded), (quote.price.0, quote.price.0, 0));
    assert_eq!(row.resources, r#"{"cpu":"4","gpu":"2","memory":"16Gi"}"#);
    world.wait(Span::from_min(30));
    tasks.into_iter().for_each(|task| world.exit(task, 0, None));
    let tables = world.project().await;
    let row = tables.job(job).await.unwrap().unwrap();
    assert_eq!((row.state, row.exit_code), (JobState::Succeeded, Some(0)));
    assert_eq!(row.ended, Some(world.now));
    assert!(row.refunded > 0 && row.refunded < row.charged, "half of the time was given back");
    let tasks = tables.tasks(job, 100).await.unwrap();
    assert_eq!(tasks.iter().map(|task| task.rank).collect::<Vec<_>>(), [0, 1]);
    assert!(tasks.iter().all(|task| task.exit_code == Some(0) && task.prepared_ms == Some(40)));
    assert_eq!(tables.spec(&row).await.unwrap().unwrap().work.command, ["true"]);
    let kinds = tables.timeline(&row, (0, 0), &[], 100).await.unwrap();
    let kinds: Vec<&str> = kinds.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["promised", "launched", "running", "task_ended", "task_ended", "ended"]);
    let statement = tables.statement(&StatementQuery::all(ADA, 10)).await.unwrap();
    let lines: Vec<(&str, i64)> =
        statement.rows.iter().map(|line| (line.reason.as_str(), line.amount)).collect();
    assert_eq!(lines[0], ("refund_unused", row.refunded));
    assert_eq!(lines[1], ("charge", -row.charged));
    assert_eq!(lines[2], ("grant", 1_000_000_000));
    assert_eq!(statement.rows[0].balance, 1_000_000_000 - row.charged + row.refunded);
    let some = [String::from("running"), String::from("ended")];
    let some = tables.timeline(&row, (0, 0), &some, 100).await.unwrap();
    assert_eq!(
        some.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(),
        ["running", "ended"]
    );
    let reasons = async |query: StatementQuery| {
        let rows = tables.statement(&query).await.unwrap().rows;
        rows.into_iter().map(|line| line.reason).collect::<Vec<_>>()
    };
    let all = StatementQuery::all(ADA, 10);
    let of_job = StatementQuery { job: Some(job), ..all.clone() };
    assert_eq!(reasons(of_job.clone()).await, ["refund_unused", "charge"]);
    let charge = StatementQuery { reasons: vec!["charge".to_owned()], ..of_job };
    assert_eq!(reasons(charge).await, ["charge"]);
    let late = StatementQuery { since: Some(world.now), ..all.clone() };
    assert_eq!(reasons(late).await, ["refund_unused"]);
    let early = StatementQuery { until: Some(world.now), ..all };
    assert_eq!(reasons(early).await, ["charge", "grant"]);
    let of_job = tables.statement_of_job(ADA, job, 10).await.unwrap();
    let of_job: Vec<&str> = of_job.iter().map(|line| line.reason.as_str()).collect();
    assert_eq!(of_job, ["charge", "refund_unused"], "its own lines, oldest first");

    // Had its nodes been simulated, all that came of them would say so.
    let (from, to) = (START, world.now + Span::from_h(1));
    assert_eq!(tables.simulated_since(job).await.unwrap(), None);
    assert_eq!(tables.simulated_jobs(from, to).await.unwrap(), 0);
    for sql in ["UPDATE nodes SET simulated = 1", "UPDATE jobs SET simulated = 1"] {
        sqlx::query(sql).execute(world.store.tables().writer()).await.unwrap();
    }
    let launched = tables.timeline(&row, (0, 0), &["launched".to_owned()], 1).await.unwrap();
    let launched = Some((launched[0].seq, launched[0].place));
    assert_eq!(tables.simulated_since(job).await.unwrap(), launched);
    assert_eq!(tables.simulated_jobs(from, to).await.unwrap(), 1);
    let seats: BTreeSet<_> = tasks.iter().filter_map(|task| task.node).collect();
    assert!(tables.simulated_nodes().await.unwrap().is_superset(&seats));
    let marked = tables.statement(&StatementQuery::all(ADA, 10)).await.unwrap().rows;
    let marked: Vec<bool> = marked.iter().map(|line| line.simulated).collect();
    assert_eq!(marked, [true, true, false], "a grant is about no job");
}

#[tokio::test]
async fn what_was_given_out_is_summed_by_node_and_hour() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    world.enqueue(ADA, gang(1, 180, soon(&world, 6)));
    world.pass();
    let [task] = world.start_all()[..] else { panic!("one task") };
    world.wait(Span::from_min(90));
    let open = world.project().await.open_tasks().await.unwrap();
    assert_eq!(open.len(), 1, "what still runs is in no sum yet");
    world.exit(task, 0, None);
    let tables = world.project().await;
    let used = tables.node_hours(START, world.now).await.unwrap();
    let gpu: Vec<(i64, i64)> = used.iter().map(|used| (used.hour, used.unit_ms[2])).collect();
    let first = hour_of(START);
    assert_eq!(gpu, [(first, 2000 * HOUR_MS), (first + 1, 2000 * HOUR_MS / 2)]);
    assert!(tables.open_tasks().await.unwrap().is_empty());
    let spans = tables.node_spans(START, world.now).await.unwrap();
    assert_eq!(spans.len(), 2);
    assert_eq!(spans[0].units, [8000, 65_536, 4000]);
}

#[tokio::test]
async fn growth_beyond_a_promise_is_given_out_by_the_node_that_it_sits_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    let mut request = gang(1, 120, soon(&world, 6));
    request.shape = Shape::Replicas { min: 1, max: 3 };
    let Reply::Accepted { .. } = world.bid(ADA, request, 900) else { panic!("refused") };
    world.wait(Span::from_s(1));
    let promised = world.start_all();
    world.pass();
    let grown = world.start_all();
    assert_eq!((promised.len(), grown.len()), (1, 2));
    let open = world.project().await.open_tasks().await.unwrap();
    assert_eq!(open.len(), 3, "each sits somewhere");
    let mut gpus = BTreeMap::<Option<NodeId>, u64>::new();
    for task in &open {
        let taken = gpus.entry(task.node).or_default();
        assert_eq!(*taken & task.gpus, 0, "no GPU is given out twice: {open:?}");
        *taken |= task.gpus;
    }
    assert_eq!(gpus.values().map(|taken| taken.count_ones()).sum::<u32>(), 6);
    world.wait(Span::from_min(30));
    [grown, promised].concat().into_iter().for_each(|task| world.exit(task, 0, None));
    let used = world.project().await.node_hours(START, world.now).await.unwrap();
    let gpu_ms: i64 = used.iter().map(|used| used.unit_ms[2]).sum();
    // Six GPUs for half an hour, two of them a second longer.
    assert_eq!(gpu_ms, 6000 * 30 * 60_000 + 2000 * 1000);
}

#[tokio::test]
async fn stages_starts_runs_promises_and_refusals_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    mixed_day(&mut world);
    let tables = world.project().await;
    let sums = tables.tallies(START, world.now + Span(1)).await.unwrap();
    let sum = |what: &str| sums.get(what).copied().unwrap_or(0);
    assert_eq!((sum("jobs"), sum("refusals")), (3, 1));
    assert_eq!(sum("promises_due"), 1);
    assert_eq!(sum("promises_kept"), 1, "it started when it was told, whatever came later");
    assert_eq!((sum("starts"), sum("starts_first")), (sum("stage/n"), sum("stage/n")));
    assert_eq!(sum("stage/prepare_ms"), 40 * sum("stage/n"));
    assert_eq!(sum("stage/accept_ms"), 3 * sum("stage/accept_n"));
    assert!(sum("runs") > sum("runs_ok"), "one ran out of memory");
    assert!(sum("gpu_ms/h100") > 0 && sum("paid/h100") > 0);
    let refusals = tables.refusals(START, world.now + Span(1), 10).await.unwrap();
    assert_eq!((refusals.len(), refusals[0].account), (1, BOB));
}

#[tokio::test]
async fn a_job_that_ran_out_of_memory_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    let [_, failed, lost] = mixed_day(&mut world);
    let tables = world.project().await;
    let row = tables.job(failed).await.unwrap().unwrap();
    assert_eq!((row.state, row.exit_code), (JobState::Failed, Some(9)));
    assert!(row.reason.unwrap().contains("more memory"));
    let tasks = tables.tasks(failed, 9).await.unwrap();
    assert_eq!(tasks[0].cause.as_deref(), Some("out_of_memory"));
    let row = tables.job(lost).await.unwrap().unwrap();
    let tasks = tables.tasks(lost, 9).await.unwrap();
    assert_eq!(tasks.len(), row.attempts as usize);
    assert!(tasks.iter().all(|task| task.ended.is_some()));
}

#[tokio::test]
async fn a_rebuild_gives_the_same_rows_and_so_do_small_batches_with_restarts_between() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    for _ in 0..3 {
        mixed_day(&mut world);
        // A new projector each time: nothing that it must know may be in its memory alone.
        world.project().await;
        world.enqueue(ADA, gang(2, 10, soon(&world, 2)));
        world.project().await;
        world.pass();
        world.project().await;
    }
    let before = dump(&world.store).await;
    let rebuilt = Projector::rebuild(&world.store).await.unwrap();
    assert!(rebuilt > 0);
    let after = dump(&world.store).await;
    assert!(before.len() > 100, "{}", before.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
    assert_eq!(before.len(), after.len());
}

#[tokio::test]
async fn what_could_neither_be_written_nor_read_again_is_counted_once_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    world.project().await;
    let mut projector = Projector::open(&world.store).await.unwrap();
    let at = projector.catch_up().await.unwrap();
    mixed_day(&mut world);
    world.flush().await;
    // Nothing can be written, and nothing that was before can be read, as while a server is away.
    let writer = world.store.tables().writer().clone();
    let renamed = async |from: &str, to: &str| {
        let sql = sqlx::AssertSqlSafe(format!("ALTER TABLE {from} RENAME TO {to}"));
        sqlx::query(sql).execute(&writer).await.unwrap();
    };
    renamed("cursors", "cursors_away").await;
    renamed("teams", "teams_away").await;
    assert!(projector.take(at).await.is_err());
    for _ in 0..2 {
        assert!(projector.take(at).await.unwrap().is_none(), "what it remembers is not asked for");
        assert!(projector.locate().await.is_err());
    }
    renamed("cursors_away", "cursors").await;
    renamed("teams_away", "teams").await;
    projector.catch_up().await.unwrap();
    let tables = Tables::new(&world.store);
    for user in [ADA, BOB] {
        let newest = tables.statement(&StatementQuery::all(user, 1)).await.unwrap().rows.remove(0);
        assert_eq!(newest.balance, world.balance(user).0, "{user}");
    }
    let after = dump(&world.store).await;
    Projector::rebuild(&world.store).await.unwrap();
    assert_eq!(after, dump(&world.store).await);
}

#[tokio::test]
async fn the_wallet_of_the_tables_is_the_wallet_of_the_core() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    mixed_day(&mut world);
    let tables = world.project().await;
    for user in [ADA, BOB] {
        let newest = tables.statement(&StatementQuery::all(user, 1)).await.unwrap().rows.remove(0);
        assert_eq!(newest.balance, world.balance(user).0, "{user}");
    }
}

#[tokio::test]
async fn a_list_is_newest_first_in_pages_that_meet_and_never_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    let jobs: Vec<JobId> = (0..25)
        .map(|n| world.enqueue(if n % 5 == 0 { ADA } else { BOB }, gang(1, 9, soon(&world, 2))))
        .collect();
    world.pass();
    world.start_all();
    let tables = world.project().await;
    let pages = async |query: JobQuery| {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = tables.jobs(&query, cursor).await.unwrap();
            assert!(page.rows.len() <= query.limit as usize);
            found.extend(page.rows.into_iter().map(|row| row.id));
            let Some(next) = page.next else { break found };
            cursor = Some(JobCursor::read(&next.write(&query), &query).unwrap());
        }
    };
    let mut newest_first = jobs.clone();
    newest_first.reverse();
    assert_eq!(pages(JobQuery::all(VisibleJobs::All, 7)).await, newest_first);
    let ada = newest_first
        .iter()
        .copied()
        .filter(|id| jobs.iter().position(|j| j == id).unwrap() % 5 == 0);
    let ada: Vec<JobId> = ada.collect();
    assert_eq!(pages(JobQuery::all(VisibleJobs::Own(ADA), 2)).await, ada);
    let named = JobQuery { account: Some("ada".into()), ..JobQuery::all(VisibleJobs::All, 2) };
    assert_eq!(pages(named).await, ada);
    let foreign =
        JobQuery { account: Some("ada".into()), ..JobQuery::all(VisibleJobs::Own(BOB), 2) };
    assert_eq!(pages(foreign).await, []);
    let running =
        JobQuery { states: vec![JobState::Running], ..JobQuery::all(VisibleJobs::All, 3) };
    let waiting =
        JobQuery { states: vec![JobState::Waiting], ..JobQuery::all(VisibleJobs::All, 3) };
    let (running, waiting) = (pages(running).await, pages(waiting).await);
    assert_eq!(running.len() + waiting.len(), jobs.len());
    assert!(!running.is_empty() && !waiting.is_empty());
    let unknown = JobQuery { queue: Some("none".into()), ..JobQuery::all(VisibleJobs::All, 3) };
    assert_eq!(pages(unknown).await, []);
    let begins = JobQuery { name: Some("que".into()), ..JobQuery::all(VisibleJobs::All, 9) };
    assert_eq!(pages(begins).await, newest_first);
    let [first, .., last] = jobs[..] else { panic!("{jobs:?}") };
    let some = JobQuery {
        ids: vec![first, last, first, JobId(9_999)],
        ..JobQuery::all(VisibleJobs::All, 9)
    };
    assert_eq!(pages(some.clone()).await, [last, first]);
    let started = JobQuery { states: vec![JobState::Waiting], ..some.clone() };
    let still: Vec<JobId> = [last, first].into_iter().filter(|id| waiting.contains(id)).collect();
    assert_eq!(pages(started).await, still);
    let other = JobQuery { name: Some("other".into()), ..some.clone() };
    assert_eq!(pages(other).await, []);
    let named = JobQuery { name: Some("que".into()), ..some.clone() };
    assert_eq!(pages(named).await, [last, first]);
    let hers = JobQuery { visible: VisibleJobs::Own(ADA), ..some };
    let seen: Vec<JobId> = [last, first].into_iter().filter(|id| ada.contains(id)).collect();
    assert_eq!(pages(hers).await, seen);
    let later = JobQuery { since: Some(world.now + Span(1)), ..JobQuery::all(VisibleJobs::All, 9) };
    assert_eq!(pages(later).await, []);
    let until = JobQuery { until: Some(world.now + Span(1)), ..JobQuery::all(VisibleJobs::All, 9) };
    assert_eq!(pages(until).await, newest_first);
}

#[tokio::test]
async fn counts_are_those_of_the_whole_list_for_whoever_asks() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    let jobs: Vec<JobId> = (0..25)
        .map(|n| world.enqueue(if n % 5 == 0 { ADA } else { BOB }, gang(1, 9, soon(&world, 2))))
        .collect();
    world.pass();
    world.start_all();
    world.send(Command::Cancel { job: jobs[24], by: Actor::User(BOB) }, Note::default());
    let tables = world.project().await;
    // What ada did before she changed to another group is hers, and not her new group's.
    let moved = "UPDATE jobs SET team = 9 WHERE id = ?";
    let moved = sqlx::query(moved).bind(jobs[0].0.cast_signed());
    moved.execute(world.store.tables().writer()).await.unwrap();
    let active: Vec<JobState> = JobState::ALL.into_iter().filter(|s| !s.is_over()).collect();
    let seen = [VisibleJobs::All, VisibleJobs::Own(ADA), VisibleJobs::Own(BOB)];
    let teams = [(7, ADA), (7, BOB), (9, ADA), (9, BOB)];
    let teams = teams.map(|(team, own)| VisibleJobs::Team(GroupId(team), own));
    for seen in seen.into_iter().chain(teams) {
        for account in [None, Some("ada"), Some("bob"), Some("nobody")] {
            for states in [Vec::new(), active.clone(), vec![JobState::Cancelled]] {
                let account = account.map(str::to_owned);
                let query = JobQuery { account, states, ..JobQuery::all(seen, 100) };
                let mut listed = BTreeMap::<JobState, u64>::new();
                for row in tables.jobs(&query, None).await.unwrap().rows {
                    *listed.entry(row.state).or_default() += 1;
                }
                let counts = tables.job_counts(&query, 100).await.unwrap();
                assert_eq!(
                    counts.len(),
                    if query.states.is_empty() { 11 } else { query.states.len() }
                );
                assert!(counts.values().all(|count| !count.more), "{query:?}");
                let counted = counts.into_iter().filter(|(_, count)| count.jobs > 0);
                let counted: BTreeMap<_, _> = counted.map(|(s, count)| (s, count.jobs)).collect();
                assert_eq!(counted, listed, "{query:?}");
            }
        }
    }
    let waiting = |seen| JobQuery { states: vec![JobState::Waiting], ..JobQuery::all(seen, 1) };
    for seen in [VisibleJobs::All, VisibleJobs::Own(BOB), VisibleJobs::Team(GroupId(7), ADA)] {
        let some = tables.job_counts(&waiting(seen), 5).await.unwrap()[&JobState::Waiting];
        assert!(some.more && some.jobs >= 5, "at most so many are looked at: {some:?}");
    }
}

#[tokio::test]
async fn many_jobs_of_a_few_names_are_merged_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    // More than are sorted, in runs of a name that lie apart.
    let arrays = [("train-a", 900), ("eval", 200), ("train-b", 900), ("train-a", 900)];
    let firsts = arrays.map(|(called, count)| (called, world.array(ADA, called, count), count));
    world.send(Command::Cancel { job: firsts[2].1, by: Actor::User(ADA) }, Note::default());
    world.pass();
    let tables = world.project().await;
    let everything = tables.jobs(&JobQuery::all(VisibleJobs::All, 4000), None).await.unwrap().rows;
    assert_eq!(everything.len(), 2900);
    for (states, beginning) in [
        (Vec::new(), "train"),
        (Vec::new(), "train-b"),
        (vec![JobState::Cancelled, JobState::Starting], "train"),
        (vec![JobState::Waiting], "tr"),
    ] {
        let query = JobQuery {
            states: states.clone(),
            name: Some(beginning.to_owned()),
            ..JobQuery::all(VisibleJobs::All, 700)
        };
        let wanted = everything.iter().filter(|row| {
            let named = row.name.as_deref().is_some_and(|name| name.starts_with(beginning));
            named && (states.is_empty() || states.contains(&row.state))
        });
        let wanted: Vec<JobId> = wanted.map(|row| row.id).collect();
        assert!(!wanted.is_empty(), "{states:?}");
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = tables.jobs(&query, cursor).await.unwrap();
            found.extend(page.rows.into_iter().map(|row| row.id));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert!(found == wanted, "{beginning} in {states:?}");
    }
}

#[test]
fn a_cursor_is_good_for_its_own_question_only() {
    let query = JobQuery::all(VisibleJobs::Own(ADA), 50);
    let cursor = JobCursor::read(&"0".repeat(32), &query);
    assert_eq!(cursor, Err(BadCursor));
    for bad in ["", "zz", "é".repeat(16).as_str(), &"f".repeat(400)] {
        assert_eq!(JobCursor::read(bad, &query), Err(BadCursor), "{bad}");
    }
}

#[tokio::test]
async fn a_cursor_of_another_filter_or_another_caller_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    for _ in 0..3 {
        world.enqueue(ADA, gang(1, 9, soon(&world, 2)));
    }
    let tables = world.project().await;
    let query = JobQuery::all(VisibleJobs::Own(ADA), 1);
    let next = tables.jobs(&query, None).await.unwrap().next.unwrap().write(&query);
    assert!(JobCursor::read(&next, &query).is_ok());
    assert!(JobCursor::read(&next, &JobQuery { limit: 2, ..query.clone() }).is_ok());
    let others = [
        JobQuery::all(VisibleJobs::Own(BOB), 1),
        JobQuery::all(VisibleJobs::All, 1),
        JobQuery { queue: Some("default".into()), ..query },
    ];
    for other in others {
        assert_eq!(JobCursor::read(&next, &other), Err(BadCursor));
    }
}

#[tokio::test]
async fn events_are_seen_by_their_owner_their_group_and_administrators() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    world.enqueue(ADA, gang(1, 9, soon(&world, 2)));
    world.enqueue(BOB, gang(1, 9, soon(&world, 2)));
    let tables: Tables = world.project().await;
    let seen = async |seen: VisibleJobs| {
        let query = EventQuery::all(seen, (0, 0), 100);
        let events = tables.events(&query).await.unwrap();
        events.iter().filter(|event| event.kind == "queued").count()
    };
    assert_eq!(seen(VisibleJobs::Own(ADA)).await, 1);
    assert_eq!(seen(VisibleJobs::Team(era_core::units::GroupId(7), ADA)).await, 2);
    assert_eq!(seen(VisibleJobs::Team(era_core::units::GroupId(8), ADA)).await, 1);
    assert_eq!(seen(VisibleJobs::All).await, 2);
    let kinds = vec!["queued".to_owned()];
    let all = EventQuery { kinds, ..EventQuery::all(VisibleJobs::All, (0, 0), 100) };
    let queued = tables.events(&all).await.unwrap();
    assert_eq!(
        queued.iter().map(|event| event.account).collect::<Vec<_>>(),
        [Some(ADA), Some(BOB)]
    );
    let of_one = EventQuery { job: queued[1].job, ..all };
    assert_eq!(tables.events(&of_one).await.unwrap(), queued[1..]);
}

#[tokio::test]
async fn two_that_write_the_tables_at_once_carry_nothing_out_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    let mut server = Projector::open(&world.store).await.unwrap();
    mixed_day(&mut world);
    world.flush().await;
    let at = server.catch_up().await.unwrap();
    let before = dump(&world.store).await;
    // Somebody makes the tables anew while the server goes on.
    Projector::rebuild(&world.store).await.unwrap();
    mixed_day(&mut world);
    world.flush().await;
    let mut other = Projector::open(&world.store).await.unwrap();
    other.catch_up().await.unwrap();
    assert!(server.take(at).await.unwrap().is_none(), "it is not there any more");
    assert!(server.catch_up().await.unwrap() > at);
    let after = dump(&world.store).await;
    assert!(after.len() > before.len());
    Projector::rebuild(&world.store).await.unwrap();
    assert_eq!(dump(&world.store).await, after);
}

#[tokio::test]
async fn spending_by_project_adds_up_to_the_statements_and_to_what_nodes_gave_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path()).await;
    mixed_day(&mut world);
    let tables = world.project().await;
    let (from, to) = (START, world.now + Span::from_h(1));
    let by = tables.chargeback(era_core::units::GroupId(7), from, to).await.unwrap();
    let named: Vec<_> = by.iter().map(|by| (by.account, by.project.as_deref())).collect();
    assert_eq!(named, [(ADA, Some("thesis")), (BOB, None)], "whoever spent most first");
    let mut given_out = [0; 3];
    for (account, by) in [ADA, BOB].iter().zip(&by) {
        let lines = tables.statement(&StatementQuery::all(*account, 1000)).await.unwrap().rows;
        let of_jobs = lines.iter().filter(|line| line.job.is_some());
        let paid: i64 = of_jobs.map(|line| -line.amount).sum();
        assert!(by.spent.charged > 0);
        assert_eq!(by.spent.charged - by.spent.refunded, paid);
        let hours = tables.spending(*account, from, to).await.unwrap();
        assert!(hours.iter().all(|hour| hour.project == by.project));
        assert_eq!(hours.iter().map(|hour| hour.spent.charged).sum::<i64>(), by.spent.charged);
        (0..3).for_each(|at| given_out[at] += by.spent.unit_ms[at]);
    }
    let nodes = tables.node_hours(from, to).await.unwrap();
    let by_nodes =
        [0, 1, 2].map(|at: usize| nodes.iter().map(|used| used.unit_ms[at]).sum::<i64>());
    assert_eq!(given_out, by_nodes);
    let before = tables.chargeback(era_core::units::GroupId(7), Time(0), START).await.unwrap();
    assert_eq!(before, []);
    let query = JobQuery { project: Some("thesis".into()), ..JobQuery::all(VisibleJobs::All, 10) };
    let found = tables.jobs(&query, None).await.unwrap().rows;
    assert!(!found.is_empty() && found.iter().all(|job| job.account == ADA), "{found:?}");
}
