//! A recorded history carried out once more, from any of its states: whole it leads to the same state
//! with the same events, and what is missing, out of order or otherwise than was decided is found
//! where it stands, before anything is made of it.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use era_core::bid::{Request, Shape, Window};
use era_core::cluster::Pool;
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::QueueTerms;
use era_core::resources::{Capacity, Resources};
use era_core::units::{GroupId, JobId, Money, Span, Time, UserId};
use era_core::{Command, Event, Input, Output, State};
use era_drive::{Engine, EntryWriter, Replay, ReplayError, SiteBuilder, name};

const START: Time = Time::from_s(1_800_000_000);
const USER: UserId = UserId(1);

/// What was recorded, with the state before each entry.
#[derive(Default)]
struct History {
    entries: Vec<(Input, Vec<Event>)>,
    states: Vec<State>,
}

impl EntryWriter for History {
    type Note = ();

    fn input(&mut self, input: &Input, _: Option<()>) {
        self.entries.push((input.clone(), Vec::new()));
    }

    fn output(&mut self, output: &Output, state: &State) {
        self.entries.last_mut().unwrap().1 = output.events.clone();
        self.states.push(state.clone());
    }
}

fn history(acts: &[u8]) -> History {
    let capacity = Capacity { cpu: 4000, memory: 4096, ..Capacity::default() };
    let mut site = SiteBuilder {
        pools: vec![Pool::new(name("main"))],
        nodes: vec![NewNode::new(name("n"), name("main"), capacity)],
        ..SiteBuilder::default()
    };
    site.user(USER, GroupId(1), Money::credits(1000));
    let mut history = History { states: vec![site.state()], ..History::default() };
    let mut engine = Engine::of(&site, START, &mut history).unwrap();
    for (nth, act) in acts.iter().enumerate() {
        let now = engine.state().now() + Span::from_s(i64::from(*act));
        let command = match act % 4 {
            0 | 1 => {
                let each = Resources { cpu: 1000, ..Resources::default() };
                let window = Window { earliest: now, deadline: now + Span::from_h(6) };
                let request = Request::new(Shape::gang(1), each, Span::from_min(5), window);
                let queue = QueueTerms::new(name("default"));
                let job = NewJob::new(USER, Terms::Queue { request, queue });
                Command::Submit { key: None, job }
            }
            2 => {
                let job = JobId(1 + nth as u64 / 2);
                Command::Cancel { job, by: era_core::accounts::Actor::Administrator }
            }
            _ => Command::Tick,
        };
        engine.send(now, command, None, &mut history);
        engine.pass_if_due(now, &mut history);
    }
    history
}

/// What became of a recorded history.
#[derive(Clone, Debug)]
enum Mischief {
    None,
    Missing(Index),
    Twice(Index),
    Swapped(Index),
    /// An event that was not decided.
    Added(Index),
}

fn mischief() -> impl Strategy<Value = Mischief> {
    prop_oneof![
        Just(Mischief::None),
        any::<Index>().prop_map(Mischief::Missing),
        any::<Index>().prop_map(Mischief::Twice),
        any::<Index>().prop_map(Mischief::Swapped),
        any::<Index>().prop_map(Mischief::Added),
    ]
}

proptest! {
    #[test]
    fn a_history_leads_from_any_of_its_states_to_its_end_or_to_where_it_was_changed(
        acts in vec(any::<u8>(), 2..40),
        from in any::<Index>(),
        mischief in mischief(),
    ) {
        let History { mut entries, states } = history(&acts);
        let from = from.index(entries.len() - 2);
        let rest = entries.split_off(from);
        let mut told = rest.clone();
        // Where the first entry stands that is not what comes next, and what is said of it.
        let at = |index: &Index, but: usize| index.index(rest.len() - but);
        let seq = |at: usize| rest[at].0.seq;
        let expected = match &mischief {
            Mischief::None => None,
            Mischief::Missing(index) => {
                let at = at(index, 1);
                told.remove(at);
                Some((at, ReplayError::Gap { expected: seq(at), found: seq(at + 1) }))
            }
            Mischief::Twice(index) => {
                let at = at(index, 0);
                told.insert(at, rest[at].clone());
                Some((at + 1, ReplayError::Gap { expected: seq(at) + 1, found: seq(at) }))
            }
            Mischief::Swapped(index) => {
                let at = at(index, 1);
                told.swap(at, at + 1);
                Some((at, ReplayError::Gap { expected: seq(at), found: seq(at + 1) }))
            }
            Mischief::Added(index) => {
                let at = at(index, 0);
                told[at].1.push(Event::Edited { job: JobId(1) });
                Some((at, ReplayError::Differs { seq: seq(at) }))
            }
        };
        let mut replay = Replay::new(Box::new(states[from].clone()));
        let mut ended = None;
        for (nth, (input, events)) in told.iter().enumerate() {
            let before = replay.state().clone();
            match replay.carry_out(input.clone(), |decided| decided == events) {
                Ok(output) => {
                    prop_assert_eq!(&output.events, &rest[nth].1);
                    prop_assert_eq!(replay.state(), &states[from + nth + 1]);
                }
                Err(error) => {
                    if matches!(error, ReplayError::Gap { .. }) {
                        prop_assert_eq!(replay.state(), &before, "nothing was made of it");
                    }
                    ended = Some((nth, error));
                    break;
                }
            }
        }
        prop_assert_eq!(ended, expected);
        let carried = expected.map_or(rest.len(), |(at, _)| at);
        prop_assert_eq!(replay.carried(), carried as u64);
    }
}
