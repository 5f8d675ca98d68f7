//! Invariant 8: a queued job that fits the closed part of its pool starts in bounded time.

use proptest::prelude::*;

use era_core::input::NewJob;
use era_core::job::{Overrun, QueueTerms};
use era_core::market::MarketRules;
use era_core::queue::Queue;
use era_core::settings::{Backfill, Settings};
use era_core::units::{JobId, Milli, Span};
use era_core::{Command, Effect};

use super::world::POLICIES;
use crate::bed::{ALICE, BOB, Bed, bid, gang, min, name, pool};
use crate::verbs::{for_queue, queue_terms, with_bid};

/// Nothing in these worlds runs longer.
const LIMIT_MIN: i64 = 20;
/// Passes come so often.
const PASS_MIN: i64 = 1;

/// A stranger's job that is ranked ahead of the victim by every policy, as far as one can be.
fn rival(bed: &mut Bed, gpus: u32, minutes: i64, preemptible: bool) {
    let now = bed.at.since(min(0)).0 / 60_000;
    let request = gang(1, &format!("gpu={gpus},cpu=1"), minutes, (now, now + 1));
    let queue = QueueTerms { preemptible, ..queue_terms("busy") };
    bed.accept(NewJob { priority: 1000, ..for_queue(BOB, request, queue) });
}

fn has_started(bed: &Bed, job: JobId) -> bool {
    !bed.state.job(job).unwrap().first_part().is_waiting()
}

proptest! {
    /// The bound: patience, then what was started before may run to its limit, then one pass.
    #[test]
    fn a_job_that_fits_the_closed_part_starts_within_patience_and_a_few_limits(
        policy in 0..POLICIES.len(),
        backfill in 0usize..3,
        victim_gpus in 1u32..=2,
        victim_min in 1i64..=LIMIT_MIN,
        preempts in any::<bool>(),
        patience_min in 1i64..=30,
        rivals in prop::collection::vec((1u32..=2, 1i64..=LIMIT_MIN, any::<bool>(), 0u8..4), 80),
    ) {
        let settings = Settings {
            patience: Span::from_min(patience_min),
            backfill: [Backfill::Easy, Backfill::None, Backfill::Conservative][backfill],
            ..Settings::default()
        };
        let mut bed = Bed::with(0, settings, MarketRules::default());
        bed.checks = false;
        bed.done(Command::PutPool {
            pool: era_core::cluster::Pool { closed_share: Milli(500), ..pool("main") },
        });
        let mut nodes = [crate::bed::node(0), crate::bed::node(1)];
        nodes.iter_mut().for_each(|n| n.capacity.gpus.truncate(2));
        bed.send(Command::Join { nodes: nodes.to_vec() });
        let busy = Queue { preempts, ..Queue::new(name("busy"), name(POLICIES[policy])) };
        bed.done(Command::PutQueue { queue: busy });
        // The rivals were there first: nothing is free when the victim comes.
        for _ in 0..3 {
            rival(&mut bed, 2, LIMIT_MIN, false);
        }
        bed.pass();
        let request = gang(1, &format!("gpu={victim_gpus},cpu=1"), victim_min, (0, 1));
        let job = for_queue(ALICE, request, queue_terms("busy"));
        let victim = bed.accept(NewJob { priority: -1000, ..job });
        let ahead = 3; // the rivals that age before it
        let bound = patience_min + (ahead + 1) * LIMIT_MIN + 2 * PASS_MIN;
        let mut started = None;
        for minute in 0..bound {
            let (gpus, minutes, preemptible, kind) = rivals[minute as usize % rivals.len()];
            bed.until(min(minute));
            bed.effects.retain(|e| matches!(e, Effect::Launch { .. }));
            while let Some(Effect::Launch { task, .. }) = bed.effects.pop_front() {
                bed.send(Command::Started { task });
            }
            bed.effects.clear();
            rival(&mut bed, gpus, minutes, preemptible);
            if kind == 0 {
                // And promises keep coming for the open part.
                let promise = bid(gang(1, "gpu=2", minutes, (minute, minute + 600)));
                let job = with_bid(promise, None, Overrun::Extend, false);
                bed.send(Command::Submit { key: None, job });
            }
            bed.pass();
            if has_started(&bed, victim) {
                started = Some(minute);
                break;
            }
        }
        prop_assert!(started.is_some(), "it still waits after {} minutes", bound);
    }
}
