//! Digests and pages of small runs, whose right answers are plain.

use era_core::placement::Scorer;
use era_core::settings::Backfill;

use super::{Digest, Gantt, POINTS, digest, headline, page, write_starts};
use crate::run::{
    Like, Machines, Options, Setup, StatedDurations, TraceRun, UtilisationWeights, policy_named,
    run_with,
};
use crate::trace::{Trace, TraceJob};

fn setup(machines: Machines, policy: &str) -> Setup {
    Setup {
        machines,
        policy: policy_named(policy).expect("a policy"),
        backfill: Backfill::None,
        estimates: StatedDurations::Exact,
        scorer: Scorer::Consolidate,
        preempt: false,
        ageing: false,
        like: Like::Era,
        ratios: UtilisationWeights::default(),
    }
}

/// A long job, then a short one that has to wait for it under first come first served, then one
/// that fits nowhere; all of the same size but the last.
fn trace() -> Trace {
    let mut trace = Trace::default();
    let group = Some(trace.groups.number("</script><b>vision"));
    let job = |id: &str, submit_s, duration_s, gpus: u32| TraceJob {
        id: id.into(),
        submit_s,
        duration_s,
        gpu_milli: gpus * 1000,
        group,
        ..TraceJob::default()
    };
    trace.jobs = vec![
        job("first", 0, 1_000, 4),
        job("long", 10, 2_000, 4),
        job("short", 20, 100, 4),
        job("wide", 30, 10, 400),
    ];
    trace
}

fn ran(trace: &Trace, setup: &Setup) -> TraceRun {
    let options = Options { intervals: true, ..Options::default() };
    run_with(trace, setup, &options, &mut |_, _| ()).expect("it runs")
}

fn digested(trace: &Trace, policy: &str) -> Digest {
    let setup = setup(Machines::nodes(4, 4).expect("a node"), policy);
    digest(policy.to_owned(), trace, &setup, &ran(trace, &setup), &["n0".into()])
}

#[test]
fn curves_are_exact_means() {
    let digest = digested(&trace(), "fifo");
    assert_eq!(digest.measures.makespan_s, 3_100);
    assert_eq!(digest.utilisation.len(), POINTS);
    // The node is full from the first second to the last.
    assert!(digest.utilisation.iter().all(|part| *part == 1.0), "{:?}", digest.utilisation);
    // 990 seconds of the second job's wait, and 2,980 of the third's.
    let waited: f64 = digest.waiting.iter().map(|count| count * digest.step_s).sum();
    assert!((waited - 3_970.0).abs() < 10.0, "{waited}");
    assert_eq!(digest.waits.last(), Some(&(2_980.0, 1.0)));
    assert_eq!((digest.measures.never_fit, digest.measures.unfinished), (1, 0));
    assert_eq!(digest.waits.first().map(|(_, share)| *share), Some(0.3333));
}

#[test]
fn a_trace_without_values_has_no_curve_of_them() {
    let without = digested(&trace(), "fifo");
    assert!(without.value.is_none() && without.revenue.is_none());
    let mut trace = trace();
    trace.jobs[0].value = Some(5_000_000);
    trace.jobs[2].value = Some(7_000_000);
    trace.jobs[2].deadline_s = Some(1_200);
    let last = |digest: &Digest| digest.value.as_ref().and_then(|v| v.last().copied());
    // First come first served brings the short job too late; shortest first does not.
    assert_eq!(last(&digested(&trace, "fifo")), Some(5.0));
    assert_eq!(last(&digested(&trace, "sjf")), Some(12.0));
    assert_eq!(digested(&trace, "sjf").measures.value, Some(12.0));
    // 3,100 seconds of four GPUs at half of eight credits an hour.
    let paid = digested(&trace, "fifo").revenue.and_then(|r| r.last().copied());
    assert!(paid.is_some_and(|paid| (paid - 3_100.0 / 3_600.0 * 16.0).abs() < 0.1), "{paid:?}");
}

#[test]
fn few_runs_are_drawn_bar_by_bar_and_many_as_a_map() {
    let Gantt::Bars { bars, jobs, .. } = digested(&trace(), "fifo").gantt else {
        panic!("three bars can be told apart")
    };
    assert_eq!(bars[0], (0, 4, 0, 1_000, 0, 0));
    assert_eq!(jobs, ["first", "long", "short"]);
    let one = |n: i64| TraceJob {
        id: n.to_string().into(),
        submit_s: n * 10,
        duration_s: 10,
        gpu_milli: 4_000,
        ..TraceJob::default()
    };
    let many = Trace { jobs: (0..5_000).map(one).collect(), ..Trace::default() };
    let Gantt::Map { rows, cells, .. } = digested(&many, "fifo").gantt else {
        panic!("5,000 bars cannot be told apart")
    };
    assert_eq!(rows, ["n0"]);
    assert!(cells[0].bytes().all(|cell| cell == b'/'), "always full: {}", cells[0]);
}

#[test]
fn a_pool_is_drawn_by_who_held_it() {
    let trace = trace();
    let setup = setup(Machines::Pool { gpus: 8 }, "fifo");
    let digest = digest("fifo".into(), &trace, &setup, &ran(&trace, &setup), &["pool".into()]);
    let Gantt::Map { of, full_gpus, .. } = digest.gantt else { panic!("a pool has no nodes") };
    assert_eq!((of, full_gpus), ("party", vec![8.0]));
}

#[test]
fn the_headline_says_what_won_and_by_how_much() {
    let runs = [digested(&trace(), "fifo"), digested(&trace(), "sjf")];
    let said = headline(&runs).expect("two runs");
    assert_eq!(said.winner, 1);
    // Mean completions: (1000 + 2990 + 3080) / 3 and (1000 + 3090 + 1080) / 3.
    assert_eq!(said.title, "sjf finishes jobs 27 % sooner than fifo");
    assert!(said.subtitle.ends_with("Last comes fifo with 39 min 17 s: 37 % more."), "{said:?}");
    assert_eq!(headline(&[]), None);
    let twice = [runs[0].clone(), runs[0].clone()];
    assert_eq!(headline(&twice).expect("two runs").title, "All of them are alike");
}

#[test]
fn a_run_that_leaves_jobs_undone_does_not_win() {
    let mut runs = [digested(&trace(), "fifo"), digested(&trace(), "sjf")];
    runs[1].measures.unfinished = 1;
    let said = headline(&runs).expect("two runs");
    assert_eq!((said.winner, said.title), (0, "fifo finishes jobs more reliably than sjf".into()));
}

#[test]
fn a_page_is_whole_and_text_of_a_trace_stays_text() {
    let runs = [digested(&trace(), "fifo"), digested(&trace(), "sjf")];
    let facts = [("trace".to_owned(), "</script><script>alert(1)</script> {{data}}".to_owned())];
    let page = page("<b>fifo & sjf", &facts, &runs);
    assert!(page.contains("<title>&lt;b&gt;fifo &amp; sjf</title>"));
    assert_eq!(page.matches("</script>").count(), 2, "the page's own two");
    let namespace = page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(page.matches("http").count(), namespace, "no network");
    assert!(!page.contains("src=") && !page.contains("@import"), "no network");
    let data = page.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next());
    let data: serde_json::Value = serde_json::from_str(data.expect("data")).expect("JSON");
    assert_eq!(data["runs"][1]["name"], "sjf");
    assert_eq!(data["facts"][0][1], facts[0].1.as_str());
}

#[test]
fn every_job_has_a_row_of_starts_and_those_that_never_fit_say_why() {
    let trace = trace();
    let setup = setup(Machines::nodes(4, 4).expect("a node"), "fifo");
    let mut out = Vec::new();
    write_starts(&mut out, &trace, &ran(&trace, &setup), &["n0".into()]).expect("memory");
    let text = String::from_utf8(out).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[3], "short,20,3000,3100,2980,4,n0,0,0,");
    assert!(lines[4].starts_with("wide,30,,,,400,,0,0,"), "{}", lines[4]);
    assert!(lines[4].contains("never fits: "), "{}", lines[4]);
}
