//! Only so many ended jobs and used keys are remembered: the oldest go before their time.

use era_core::input::{NewJob, Terms};
use era_core::job::{After, QueueTerms, When};
use era_core::settings::Settings;
use era_core::units::{JobId, Span};
use era_core::{Command, Event, Reply};

use crate::arrays::array;
use crate::bed::{ALICE, Bed, by, gang, min, name, new_job};

fn bed_that_remembers(most: u32) -> Bed {
    let settings = Settings { remember_max: most, ..Settings::default() };
    Bed::with(1, settings, Default::default())
}

fn small() -> NewJob {
    let queue = QueueTerms::new(name("default"));
    new_job(ALICE, Terms::Queue { request: gang(1, "gpu=1", 60, (0, 1)), queue })
}

/// Runs a job to its end, a second after the last.
fn run_one(bed: &mut Bed) -> JobId {
    bed.at = bed.at + Span::from_s(1);
    let job = bed.hand_in(small());
    bed.pass();
    let tasks = bed.launched();
    bed.exit(&tasks, 0);
    bed.effects.clear();
    job
}

fn forgotten(bed: &Bed) -> Vec<u64> {
    let events = bed.events.iter();
    let lists = events.filter_map(|event| match event {
        Event::Forgotten { jobs } => Some(jobs),
        _ => None,
    });
    lists.flatten().map(|job| job.0).collect()
}

#[test]
fn the_jobs_that_ended_first_are_forgotten_first_where_more_end_than_are_remembered() {
    let mut bed = bed_that_remembers(2);
    let waits = bed.hand_in(array(1, None, "gpu=8"));
    bed.done(Command::Cancel { job: waits, by: by(ALICE) });
    for _ in 0..4 {
        run_one(&mut bed);
    }
    assert_eq!(forgotten(&bed), [1, 2, 3]);
    let left: Vec<u64> = bed.state.jobs().map(|job| job.id.0).collect();
    assert_eq!(left, [4, 5]);
    assert!((1..=5).all(|job| bed.state.had_job(JobId(job))));
    assert!(!bed.state.had_job(JobId(0)) && !bed.state.had_job(JobId(6)));
}

#[test]
fn what_has_not_ended_is_never_forgotten() {
    let mut bed = bed_that_remembers(1);
    let long = bed.hand_in(array(3, None, "gpu=1"));
    bed.pass();
    bed.effects.clear();
    for _ in 0..5 {
        run_one(&mut bed);
    }
    assert!((0..3).all(|n| bed.state.job(JobId(long.0 + n)).is_ok()));
    assert_eq!(bed.state.jobs().count(), 4);
}

#[test]
fn those_that_are_remembered_are_forgotten_when_their_time_is_over() {
    let mut bed = bed_that_remembers(2);
    for _ in 0..3 {
        run_one(&mut bed);
    }
    assert_eq!(forgotten(&bed), [1]);
    bed.until(min(24 * 60 + 1));
    assert_eq!(forgotten(&bed), [1, 2, 3]);
    assert_eq!(era_core::next_wakeup(&bed.state), None);
}

#[test]
fn whoever_waits_for_more_jobs_than_are_remembered_is_told_of_their_end() {
    let mut bed = bed_that_remembers(2);
    let first = bed.hand_in(array(10, None, "gpu=8"));
    let after = vec![After { job: first, when: When::Any }];
    let follower = bed.hand_in(NewJob { after, ..small() });
    bed.done(Command::CancelArray { job: first, by: by(ALICE) });
    assert!(bed.events.contains(&Event::Ready { jobs: vec![follower] }));
    assert_eq!(forgotten(&bed), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn the_keys_that_were_used_first_are_forgotten_first() {
    let mut bed = bed_that_remembers(2);
    let submit = |key: &str| Command::Submit { key: Some(name(key)), job: small() };
    let number = |reply: Reply| match reply {
        Reply::Accepted { job, .. } => job.0,
        reply => panic!("should have been accepted: {reply:?}"),
    };
    for (index, key) in ["a", "b", "c"].into_iter().enumerate() {
        bed.at = bed.at + Span::from_s(1);
        assert_eq!(number(bed.send(submit(key))), 1 + index as u64);
    }
    assert_eq!(number(bed.send(submit("c"))), 3, "a key that is remembered");
    assert_eq!(number(bed.send(submit("a"))), 4, "a key that was forgotten");
    assert_eq!(number(bed.send(submit("b"))), 5, "the new use of a made it the oldest");
}

#[test]
fn a_smaller_number_takes_effect_at_once() {
    let mut bed = Bed::new(1);
    for _ in 0..5 {
        run_one(&mut bed);
    }
    let settings = Settings { remember_max: 2, ..Settings::default() };
    bed.done(Command::SetSettings { settings });
    assert_eq!(forgotten(&bed), [1, 2, 3]);
}
