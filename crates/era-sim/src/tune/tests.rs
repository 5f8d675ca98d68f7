use super::{
    Bench, DEFAULT_TEMPLATE, JournalBench, Measured, NAMES, Objective, SearchSpec, Template,
    TraceBench, Tuned, WorkSplit, factors, tune,
};
use crate::journal::Reader;
use crate::replay::{SampleSpec, learn, sample};
use crate::run::{Like, Machines, Setup, StatedDurations, UtilisationWeights, policy_named};
use crate::seeded::Seeded;
use crate::trace::{Trace, TraceJob};

fn setup(gpus: u32) -> Setup {
    Setup {
        machines: Machines::nodes(gpus, gpus).expect("a node"),
        policy: policy_named("fifo").expect("a policy"),
        backfill: era_core::settings::Backfill::None,
        estimates: StatedDurations::Exact,
        scorer: era_core::placement::Scorer::Consolidate,
        preempt: false,
        ageing: false,
        like: Like::Era,
        ratios: UtilisationWeights::default(),
    }
}

/// Jobs of one GPU on one GPU, a few long ones among many short ones, more than it can take:
/// whoever lets the short ones go first has by far the least mean completion time.
fn short_and_long(seed: u64, jobs: usize) -> Trace {
    let mut seeded = Seeded::new(seed);
    let mut trace = Trace::default();
    let mut submit_s = 0;
    for number in 0..jobs {
        submit_s += seeded.range(0, 60);
        let long = seeded.range(0, 5) == 0;
        let duration_s = if long { seeded.range(500, 900) } else { seeded.range(5, 30) };
        let user = trace.users.number(if long { "long" } else { "short" });
        let id = number.to_string().into();
        let job = TraceJob {
            id,
            submit_s,
            duration_s,
            gpu_milli: 1000,
            user: Some(user),
            ..TraceJob::default()
        };
        trace.jobs.push(job);
    }
    trace
}

fn spec(threads: usize) -> SearchSpec {
    SearchSpec { seed: 1, budget: 40, threads }
}

fn tuned_on_trace(threads: usize) -> Tuned {
    let bench = TraceBench::new(&short_and_long(1, 400), setup(1), 0.6).expect("a bench");
    let objective = Objective::parse("mean_jct_s").expect("an objective");
    let template = Template::parse(DEFAULT_TEMPLATE).expect("a template");
    tune(&bench, &objective, &template, spec(threads), &|_| ()).expect("tuned")
}

#[test]
fn where_the_shortest_first_is_right_it_is_found_and_holds_on_later_work() {
    let tuned = tuned_on_trace(2);
    let rule = |name: &str| tuned.rules.iter().find(|rule| rule.rule == name).expect("listed");
    // Far better than the order of arrival, and as good as the planted best within a hundredth.
    assert!(rule("fifo").gain_train > 0.5 && rule("fifo").gain_test > 0.5, "{:?}", tuned.rules);
    assert!(rule("sjf").gain_train > -0.01 && rule("sjf").gain_test > -0.01, "{:?}", tuned.rules);
    assert!(rule("in force").gain_test > 0.5);
    let by_length = ["length", "area", "ratio"];
    assert!(by_length.contains(&tuned.weights[0].name.as_str()), "{:?}", tuned.weights);
    assert!(tuned.weights[0].loss_without > 0.5, "{:?}", tuned.weights);
    assert_eq!(tuned.jobs, (240, 160));
}

#[test]
fn the_same_seed_finds_the_same_on_any_number_of_threads() {
    let text = |tuned: &Tuned| serde_json::to_string(tuned).expect("written");
    let one = text(&tuned_on_trace(1));
    assert_eq!(one, text(&tuned_on_trace(1)));
    assert_eq!(one, text(&tuned_on_trace(3)));
}

#[test]
fn a_weight_without_effect_is_left_out_of_the_formula() {
    let tuned = tuned_on_trace(2);
    // Nobody in this trace has a level or a priority of his own.
    for inert in ["user", "group", "own"] {
        assert!(tuned.weights.iter().all(|weight| weight.name != inert), "{:?}", tuned.weights);
    }
}

#[test]
fn a_rule_that_only_fits_the_past_is_not_recommended() {
    // In the first part short jobs first is right; in the second all jobs are alike, where it
    // gains nothing.
    let mut trace = short_and_long(1, 200);
    let last = trace.jobs.last().expect("jobs").submit_s + 100_000;
    for number in 0..200 {
        let user = trace.users.number("alike");
        trace.jobs.push(TraceJob {
            id: format!("b{number}").into(),
            submit_s: last + number * 50,
            duration_s: 60,
            gpu_milli: 1000,
            user: Some(user),
            ..TraceJob::default()
        });
    }
    let bench = TraceBench::new(&trace, setup(1), 0.5).expect("a bench");
    let objective = Objective::parse("mean_jct_s").expect("an objective");
    let template = Template::parse(DEFAULT_TEMPLATE).expect("a template");
    let tuned = tune(&bench, &objective, &template, spec(2), &|_| ()).expect("tuned");
    let force = tuned.rules.iter().find(|rule| rule.rule == "in force").expect("listed");
    assert!(force.gain_train > 0.4 && force.gain_test < 0.05, "{force:?}");
    let warns = tuned.verdict.starts_with("do not") || tuned.verdict.starts_with("with care");
    assert!(warns, "{}", tuned.verdict);
}

#[test]
fn a_journal_is_tuned_with_its_market() {
    let mut bytes = Vec::new();
    let sampled = SampleSpec { seed: 3, inputs: 1_500, segments: 1 };
    sample(sampled, &mut bytes, &|_| ()).expect("memory");
    let cursor = std::io::Cursor::new(bytes);
    let reader = Reader::new(std::path::Path::new("j.jsonl"), Box::new(cursor));
    let (history, _) = learn(reader, &|_| ()).unwrap_or_else(|error| panic!("{error}"));
    let bench = JournalBench::new(history, 0.6).expect("a bench");
    assert!(bench.market().is_some() && bench.jobs(WorkSplit::Test) > 20);
    let objective = Objective::parse("mean_wait_s - value").expect("an objective");
    let template = Template::parse("{age} * wait - {length} * predicted").expect("a template");
    let small = SearchSpec { seed: 1, budget: 12, threads: 2 };
    let tuned = tune(&bench, &objective, &template, small, &|_| ()).expect("tuned");
    assert!(tuned.market.is_some());
    let force = tuned.rules.iter().find(|rule| rule.rule == "in force").expect("listed");
    assert!(force.test_figures["jobs"] > 20.0 && force.test_figures["value"] > 0.0, "{force:?}");
    let again = tune(&bench, &objective, &template, small, &|_| ()).expect("tuned");
    assert_eq!(again.candidate, tuned.candidate);
}

#[test]
fn an_objective_is_arithmetic_over_the_figures() {
    let mut figures = [0.0; NAMES.len()];
    for (index, figure) in figures.iter_mut().enumerate() {
        *figure = index as f64;
    }
    let measured = Measured(figures);
    let wait = measured.get("mean_wait_s").expect("known");
    let tail = measured.get("p99_wait_s").expect("known");
    let of = |text: &str| Objective::parse(text).expect("an objective").of(&measured);
    assert_eq!(of("mean_wait_s + 0.1 * p99_wait_s"), wait + 0.1 * tail);
    assert_eq!(of("-(mean_wait_s - 2) / 4 * 2"), -(wait - 2.0) / 4.0 * 2.0);
    assert_eq!(of("1 - 2 - mean_wait_s"), 1.0 - 2.0 - wait);
    assert_eq!(of("mean_wait_s / (1 - 1)"), f64::MAX);
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    let refused = |text: &str| Objective::parse(text).expect_err("refused").to_string();
    let said = refused("mean_jct_s + wiat");
    assert!(said.starts_with("`--objective`: `wiat` is not known: known are jobs, mean_wait_s,"));
    assert!(said.ends_with("at character 14"), "{said}");
    for (name, _) in NAMES {
        assert!(said.contains(name), "{said}");
    }
    assert!(refused("3").contains("the same for every run"));
    assert!(refused("(mean_wait_s").contains("not closed"));
    assert!(refused("mean_wait_s mean_wait_s").contains("where the end should"));
    assert!(refused("mean_wait_s *").contains("missing"));
    assert!(refused("1.2.3 * jobs").contains("no number"));
    assert!(refused(&"(".repeat(500)).contains("deep"));
    assert!(refused(&"-".repeat(2000)).contains("at most 1024"));
    assert!(refused("jobs é").contains("where the end should"));
}

#[test]
fn a_template_is_a_formula_with_names_in_braces() {
    let template = Template::parse("{a} * wait - {b} * gpus + {a}").expect("a template");
    assert_eq!(template.names(), ["a", "b"]);
    let rule = template.rule(&[0.5, -1.0]).expect("a rule");
    let text = serde_json::to_value(rule).expect("written");
    assert_eq!(text["formula"], "0.5 * wait + 1 * gpus + 0.5");
    let written = |template: &str, weights: &[f64]| {
        let rule = Template::parse(template).expect("a template").rule(weights).expect("a rule");
        serde_json::to_value(rule).expect("written")["formula"].clone()
    };
    // What weighs nothing is left out, but only where that changes nothing.
    assert_eq!(written("{a} * wait - {b} * (gpus + 1)", &[0.0, 0.25]), "-0.25 * (gpus + 1)");
    assert_eq!(written("-{a} * wait - {b} * gpus", &[-1.0, 0.0]), "1 * wait");
    assert_eq!(written("{a} * wait", &[0.0]), "0");
    assert_eq!(written("max({a}, wait) + 2 * -{b}", &[0.0, -0.5]), "max(0, wait) + 2 * -(-0.5)");
    assert_eq!(written("{a} * wait > {b} * gpus", &[0.0, 1.0]), "0 * wait > 1 * gpus");
    let refused = |text: &str| Template::parse(text).expect_err("refused").to_string();
    assert!(refused("wait").contains("1 to 16 weights"));
    assert!(refused("{a * wait").contains("not closed"));
    assert!(refused("{a b} * wait").contains("is no weight"));
    assert!(refused("{a} * wiat").contains("did you mean `wait`?"));
}

#[test]
fn a_factor_explains_what_differs_between_its_classes_only() {
    let row = |user: u32, wait_s: f64| super::FactorRow {
        wait_s,
        run_s: 60.0,
        gpu_milli: 1000,
        user,
        hour: (wait_s as u8) % 2,
        limit_s: 60.0,
    };
    // All of user 1 wait 10 s, all of user 2 wait 1000 s.
    let rows: Vec<_> =
        (0..40).map(|n| row(1 + n % 2, if n % 2 == 0 { 10.0 } else { 1000.0 })).collect();
    let found = factors(&rows);
    assert_eq!((found[0].name, found[0].explains_waiting), ("user", 1.0));
    assert_eq!(found[0].explains_run_time, 0.0);
    let size = found.iter().find(|factor| factor.name == "size").expect("listed");
    assert_eq!(size.explains_waiting, 0.0);
    let worst = &found[0].classes[0];
    assert_eq!((worst.name.as_str(), worst.jobs, worst.mean_wait_s), ("user 2", 20, 1000.0));
}
