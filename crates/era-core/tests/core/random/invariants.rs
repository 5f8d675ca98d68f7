//! The invariants of the design, under random inputs of every kind.

use proptest::prelude::*;

use super::dice::{Dice, story};
use super::rig::{Rig, show, to_json};
use crate::events::agrees_with_its_text;
use era_core::{State, check, step};

proptest! {
    #[test]
    fn every_invariant_holds_after_every_step((world, commands) in story(1..120)) {
        let mut rig = Rig::new(&mut Dice::new(&world));
        for faces in &commands {
            rig.play(faces);
        }
    }

    #[test]
    fn every_event_agrees_with_its_text_in_any_story((world, commands) in story(1..80)) {
        let mut rig = Rig::new(&mut Dice::new(&world));
        for faces in &commands {
            rig.play(faces).events.iter().for_each(agrees_with_its_text);
        }
    }

    /// Invariant 9. A state that was stored and loaded is the same state, and goes on as if it
    /// had never been stored.
    #[test]
    fn a_segment_replays_to_the_same_bytes(
        (world, commands) in story(1..80),
        cut in 0usize..80,
    ) {
        let mut rig = Rig::new(&mut Dice::new(&world));
        let mut snapshot = (rig.journal.len(), to_json(&rig.bed.state));
        for (index, faces) in commands.iter().enumerate() {
            rig.play(faces);
            if index == cut {
                snapshot = (rig.journal.len(), to_json(&rig.bed.state));
            }
        }
        let (from, stored) = snapshot;
        let mut state: State = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(&to_json(&state), &stored);
        for (input, output) in &rig.journal[from..] {
            // Inputs are stored too.
            let input = serde_json::from_str(&to_json(input)).unwrap();
            prop_assert_eq!(&show(&step(&mut state, input)), output);
        }
        prop_assert_eq!(to_json(&state), to_json(&rig.bed.state));
        prop_assert_eq!(check(&state), Ok(()));
    }

    /// After the faults: the nodes come back, the executor reports all that it did, time passes.
    /// Every job ends or waits for a reason that is told; nothing is left over.
    #[test]
    fn after_the_faults_everything_settles((world, commands) in story(1..80)) {
        let mut rig = Rig::new(&mut Dice::new(&world));
        for faces in &commands {
            rig.play(faces);
        }
        rig.settle();
    }

    /// Invariant 10. Only time goes on, whether the executor answers or says nothing: work ends
    /// when its promise or its limit does.
    #[test]
    fn with_nothing_new_everything_comes_to_rest(
        (world, commands) in story(1..120),
        answers in any::<bool>(),
    ) {
        let mut rig = Rig::new(&mut Dice::new(&world));
        for faces in &commands {
            rig.play(faces);
        }
        rig.come_to_rest(answers);
    }
}
