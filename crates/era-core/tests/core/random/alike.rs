//! An array is served as its jobs would be if each had been handed in alone: whatever is passed
//! over as alike would not have started either.

use proptest::prelude::*;

use era_core::bid::{Constraints, Request, Shape, Window};
use era_core::input::{Array, NewJob, Terms};
use era_core::job::{QueueTerms, TaskId};
use era_core::queue::PolicyRule;
use era_core::queue::formula::Formula;
use era_core::resources::Resources;
use era_core::settings::{Backfill, Settings};
use era_core::units::{JobId, Milli, NodeId, Span, Time};
use era_core::{Command, Effect, Output};

use super::dice::{Dice, story};
use super::rig::{show, to_json};
use crate::bed::{ALICE, BOB, Bed, T0, by, name, new_job};

/// Twice the same house: one is given arrays, the other their jobs one by one.
struct Twins {
    whole: Bed,
    single: Bed,
    live: Vec<TaskId>,
    jobs: u64,
}

impl Twins {
    fn new(dice: &mut Dice) -> Twins {
        let settings = Settings {
            backfill: dice.one_of(&[Backfill::Easy, Backfill::None, Backfill::Conservative]),
            patience: dice.one_of(&[Span::from_days(1), Span::from_s(60)]),
            ..Settings::default()
        };
        let bed = || {
            let mut bed = Bed::with(2, settings.clone(), Default::default());
            bed.checks = false;
            bed
        };
        let mut twins = Twins { whole: bed(), single: bed(), live: Vec::new(), jobs: 0 };
        let formula = Formula::parse("priority + wait / 60 - 3 * gpus").unwrap();
        let rule = PolicyRule::Priority { formula };
        twins.both(Command::PublishPolicy { name: name("priority"), rule });
        for queue in ["default", "other"] {
            let policy = dice.one_of(&["fifo", "priority", "sjf", "fair-share", "las"]);
            let share = dice.one_of(&[Milli(1000), Milli(500), Milli(250)]);
            let (borrows, preempts) = (dice.once_in(2), dice.once_in(3));
            for bed in [&mut twins.whole, &mut twins.single] {
                bed.queue(queue, policy, |q| {
                    (q.share, q.borrows, q.preempts) = (share, borrows, preempts);
                });
            }
        }
        twins
    }

    /// Says the same to both, which must do the same.
    fn both(&mut self, command: Command) {
        let (one, other) = (self.whole.step(command.clone()), self.single.step(command));
        if one.effects != other.effects || one.events != other.events {
            self.differ(&one, &other);
        }
        for effect in one.effects {
            if let Effect::Launch { task, .. } = effect {
                self.live.push(task);
            }
        }
    }

    fn differ(&self, one: &Output, other: &Output) -> ! {
        let said = |bed: &Bed| {
            let lines =
                bed.inputs.iter().map(|i| format!("{} {}", i.at.0 - T0.0, to_json(&i.command)));
            lines.collect::<Vec<_>>().join("\n")
        };
        panic!("{}\n{}\n{}", said(&self.whole), show(one), show(other));
    }

    fn hand_in(&mut self, job: &NewJob, count: u32) {
        let array = Some(Array { count, running_max: None });
        self.whole.hand_in(NewJob { array, ..job.clone() });
        for _ in 0..count {
            self.single.hand_in(job.clone());
        }
        self.jobs += u64::from(count);
    }

    fn play(&mut self, dice: &mut Dice) {
        let later = Span(dice.one_of(&[0, 1, 1000, 60_000, 600_000]));
        let at: Time = self.whole.at + later;
        self.whole.until(at);
        self.single.until(at);
        self.whole.effects.clear();
        self.single.effects.clear();
        match dice.below(12) {
            0..=2 => {
                let job = job(dice);
                self.hand_in(&job, dice.one_of(&[1, 2, 5, 12]));
            }
            3..=6 => {
                if !self.live.is_empty() {
                    let task = self.live.swap_remove(dice.below(self.live.len()));
                    let code = dice.one_of(&[0, 0, 1]);
                    self.both(Command::Exited { task, code });
                }
            }
            7 => {
                let job = JobId(1 + dice.below(self.jobs.max(1) as usize) as u64);
                let priority = Some(dice.below(5) as i32);
                let limit = dice.once_in(2).then(|| Span::from_min(7));
                let queue = dice.once_in(3).then(|| name("other"));
                self.both(Command::Edit { job, by: by(ALICE), priority, limit, queue });
            }
            8 => {
                let node = NodeId(dice.below(2) as u32);
                self.both(Command::Lost { node });
                self.both(Command::Resume { node });
            }
            9 => {
                let job = JobId(1 + dice.below(self.jobs.max(1) as usize) as u64);
                self.both(Command::Cancel { job, by: by(ALICE) });
            }
            _ => self.both(Command::Pass),
        }
    }
}

/// Without constraints: of like jobs that are bound to a part of the cluster, each may keep a
/// place in another pool, and those of an array keep one.
fn job(dice: &mut Dice) -> NewJob {
    let request = Request {
        shape: Shape::gang(dice.one_of(&[1, 1, 2])),
        each: Resources {
            gpu: dice.one_of(&[1000, 2000, 4000, 8000, 500]),
            cpu: 1000,
            ..Resources::default()
        },
        duration: Span::from_min(dice.one_of(&[60, 5, 600])),
        window: Window { earliest: Time(0), deadline: Time::LATEST },
        constraints: Constraints::default(),
        after: Vec::new(),
    };
    let queue = QueueTerms {
        queue: name(dice.one_of(&["default", "default", "other"])),
        preemptible: dice.once_in(2),
        release_when_idle: false,
    };
    let user = dice.one_of(&[ALICE, BOB]);
    new_job(user, Terms::Queue { request, queue })
}

proptest! {
    #[test]
    fn an_array_is_served_as_its_jobs_would_be_one_by_one((world, acts) in story(1..80)) {
        let mut twins = Twins::new(&mut Dice::new(&world));
        for faces in &acts {
            twins.play(&mut Dice::new(faces));
            twins.both(Command::Pass);
        }
        prop_assert_eq!(era_core::check(&twins.whole.state), Ok(()));
    }
}
