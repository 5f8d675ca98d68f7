//! An array is served as its jobs would be if each had been handed in alone, and jobs that are
//! alike as they would be if none was like another: whatever is passed over would not have started
//! either.

use proptest::prelude::*;

use era_core::bid::{Attributes, Constraints, Request, Shape, Window};
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

/// Three times the same house: one is given arrays, one their jobs one by one, and one the same
/// jobs with a fact about each that no rule asks for, so that no two are alike.
struct Triplets {
    whole: Bed,
    single: Bed,
    unlike: Bed,
    live: Vec<TaskId>,
    jobs: u64,
    last: Option<NewJob>,
}

/// What ranks by wait: never down, never up, neither, and by what others leave.
const FORMULAS: [&str; 4] = [
    "priority + wait / 60 - 3 * gpus",
    "priority - wait / 60",
    "abs(wait - 100) - 2 * gpus",
    "min(wait, 600) * free_gpus",
];

impl Triplets {
    fn new(dice: &mut Dice) -> Triplets {
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
        let (live, last) = (Vec::new(), None);
        let mut all = Triplets { whole: bed(), single: bed(), unlike: bed(), live, jobs: 0, last };
        let formula = Formula::parse(dice.one_of(&FORMULAS)).unwrap();
        let rule = PolicyRule::Priority { formula };
        all.each(Command::PublishPolicy { name: name("priority"), rule });
        for queue in ["default", "other"] {
            let policy = dice.one_of(&["fifo", "priority", "sjf", "fair-share", "las"]);
            let share = dice.one_of(&[Milli(1000), Milli(500), Milli(250)]);
            let (borrows, preempts) = (dice.once_in(2), dice.once_in(3));
            for bed in all.beds() {
                bed.queue(queue, policy, |q| {
                    (q.share, q.borrows, q.preempts) = (share, borrows, preempts);
                });
            }
        }
        all
    }

    fn beds(&mut self) -> [&mut Bed; 3] {
        [&mut self.whole, &mut self.single, &mut self.unlike]
    }

    /// Says the same to each, which must do the same.
    fn each(&mut self, command: Command) {
        let [one, two, three] = self.beds().map(|bed| bed.step(command.clone()));
        for (other, of) in [(&two, "one by one"), (&three, "unlike")] {
            if one.effects != other.effects || one.events != other.events {
                self.differ(of, &one, other);
            }
        }
        for effect in one.effects {
            if let Effect::Launch { task, .. } = effect {
                self.live.push(task);
            }
        }
    }

    fn differ(&self, of: &str, one: &Output, other: &Output) -> ! {
        let said = |bed: &Bed| {
            let lines =
                bed.inputs.iter().map(|i| format!("{} {}", i.at.0 - T0.0, to_json(&i.command)));
            lines.collect::<Vec<_>>().join("\n")
        };
        panic!("{}\n{}\n{of}:\n{}", said(&self.whole), show(one), show(other));
    }

    fn hand_in(&mut self, job: &NewJob, count: u32) {
        let array = Some(Array { count, running_max: None });
        self.whole.hand_in(NewJob { array, ..job.clone() });
        for index in 0..u64::from(count) {
            self.single.hand_in(job.clone());
            let attributes =
                Attributes { data_mib: Some(self.jobs + index), ..job.attributes.clone() };
            self.unlike.hand_in(NewJob { attributes, ..job.clone() });
        }
        self.jobs += u64::from(count);
        self.last = Some(job.clone());
    }

    fn play(&mut self, dice: &mut Dice) {
        let later = Span(dice.one_of(&[0, 1, 1000, 60_000, 600_000]));
        let at: Time = self.whole.at + later;
        for bed in self.beds() {
            bed.until(at);
            bed.effects.clear();
        }
        match dice.below(12) {
            0..=2 => {
                let again = dice.once_in(2);
                let job = self.last.clone().filter(|_| again).unwrap_or_else(|| job(dice));
                self.hand_in(&job, dice.one_of(&[1, 2, 5, 12]));
            }
            3..=6 => {
                if !self.live.is_empty() {
                    let task = self.live.swap_remove(dice.below(self.live.len()));
                    let code = dice.one_of(&[0, 0, 1]);
                    self.each(Command::Exited { task, code, at: None });
                }
            }
            7 => {
                let job = JobId(1 + dice.below(self.jobs.max(1) as usize) as u64);
                let priority = Some(dice.below(5) as i32);
                let limit = dice.once_in(2).then(|| Span::from_min(7));
                let queue = dice.once_in(3).then(|| name("other"));
                self.each(Command::Edit { job, by: by(ALICE), priority, limit, queue });
            }
            8 => {
                let node = NodeId(dice.below(2) as u32);
                self.each(Command::Lost { node });
                self.each(Command::Resume { node });
            }
            9 => {
                let job = JobId(1 + dice.below(self.jobs.max(1) as usize) as u64);
                self.each(Command::Cancel { job, by: by(ALICE) });
            }
            _ => self.each(Command::Pass),
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
        let mut all = Triplets::new(&mut Dice::new(&world));
        for faces in &acts {
            all.play(&mut Dice::new(faces));
            all.each(Command::Pass);
        }
        for bed in all.beds() {
            prop_assert_eq!(era_core::check(&bed.state), Ok(()));
        }
    }
}
