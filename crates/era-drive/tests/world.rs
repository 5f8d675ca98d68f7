//! Jobs on the machines of a virtual clock.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use era_core::accounts::Actor;
use era_core::bid::{Request, Shape, Window};
use era_core::cluster::Pool;
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::{Outcome, QueueTerms};
use era_core::resources::{Capacity, Resources};
use era_core::settings::Settings;
use era_core::units::{GroupId, JobId, Money, NodeId, Span, Time, UserId};
use era_core::{Command, Event, Input, Output, Refusal, Reply, State};
use era_drive::{Conduct, Engine, Pace, Scenario, SiteBuilder, World, name};

const START: Time = Time::from_s(1_800_000_000);

/// All jobs behave alike, and what happens is written down.
#[derive(Default)]
struct Alike {
    conduct: Conduct,
    commands: Vec<(Time, Command)>,
    events: Vec<(Time, Event)>,
}

impl Scenario for Alike {
    fn conduct(&self, _: &State, _: JobId, _: u16) -> Conduct {
        self.conduct.clone()
    }

    fn follow(&mut self, input: &Input, output: &Output, _: &State) {
        self.commands.push((input.at, input.command.clone()));
        self.events.extend(output.events.iter().map(|event| (input.at, event.clone())));
    }
}

impl Alike {
    fn end(&self) -> (Time, Outcome) {
        let end = |(at, event): &(Time, Event)| match event {
            Event::Ended { outcome, .. } => Some((*at, outcome.clone())),
            _ => None,
        };
        self.events.iter().find_map(end).unwrap()
    }

    fn count(&self, wanted: impl Fn(&Command) -> bool) -> usize {
        self.commands.iter().filter(|(_, command)| wanted(command)).count()
    }
}

/// Two nodes of four cores each.
fn site() -> SiteBuilder {
    let capacity = Capacity { cpu: 4000, memory: 4096, ..Capacity::default() };
    let node = |n: u32| NewNode::new(name(&format!("n{n}")), name("main"), capacity.clone());
    let mut site = SiteBuilder {
        pools: vec![Pool::new(name("main"))],
        nodes: vec![node(1), node(2)],
        ..SiteBuilder::default()
    };
    site.user(UserId(1), GroupId(1), Money::credits(1_000));
    site
}

/// A gang of so many nodes for at most an hour, that starts now.
fn world(pace: Pace, work: Span, nodes: u32) -> World<Alike> {
    let conduct =
        Conduct { work, saves_on_stop: true, breaks_with_a_rank: true, ..Conduct::default() };
    let mut world = World::of(&site(), START, pace, Alike { conduct, ..Alike::default() }).unwrap();
    let each = Resources { cpu: 4000, ..Resources::default() };
    let window = Window { earliest: START, deadline: Time::LATEST };
    let request = Request::new(Shape::gang(nodes), each, Span::from_h(1), window);
    let queue = QueueTerms::new(name("default"));
    let job = NewJob::new(UserId(1), Terms::Queue { request, queue });
    let reply = world.send(START, Command::Submit { key: None, job }).reply;
    assert!(matches!(reply, Reply::Accepted { .. }), "{reply:?}");
    world.settle(START);
    world
}

#[test]
fn a_job_is_over_when_its_work_is_done() {
    let pace = Pace { launch: Span::from_s(2), ..Pace::default() };
    let mut world = world(pace, Span::from_min(20), 2);
    world.until(START + Span::from_h(2));
    let end = START + Span::from_s(2) + Span::from_min(20);
    assert_eq!(world.scenario().end(), (end, Outcome::Succeeded));
    assert_eq!(world.scenario().count(|c| matches!(c, Command::Started { .. })), 2);
}

#[test]
fn a_start_need_not_be_reported() {
    let pace = Pace { reports_start: false, ..Pace::AT_ONCE };
    let mut world = world(pace, Span::from_min(20), 1);
    world.until(START + Span::from_h(2));
    assert_eq!(world.scenario().end(), (START + Span::from_min(20), Outcome::Succeeded));
    assert_eq!(world.scenario().count(|c| matches!(c, Command::Started { .. })), 0);
}

#[test]
fn a_job_that_does_not_stop_is_ended_by_its_guard() {
    let pace = Pace { stop: Span::from_h(9), ..Pace::AT_ONCE };
    let mut world = world(pace, Span::from_h(5), 1);
    world.until(START + Span::from_h(9));
    let scenario = world.scenario();
    let limit = START + Span::from_h(1);
    assert_eq!(scenario.end(), (limit, Outcome::LimitReached));
    let last = scenario.commands.iter().rfind(|(_, c)| matches!(c, Command::Exited { .. }));
    assert_eq!(last.unwrap().0, limit);
}

#[test]
fn a_gang_that_breaks_with_a_rank_saves_nothing_then_and_saves_when_it_is_given_up() {
    for (is_lost, saved) in [(true, 0), (false, 1)] {
        let mut world = world(Pace::AT_ONCE, Span::from_min(30), 2);
        let later = START + Span::from_min(10);
        world.until(later);
        let job = world.state().jobs().next().unwrap().id;
        let node = NodeId(world.state().cluster().nodes().next().unwrap().id.0);
        let command = match is_lost {
            true => Command::Lost { node },
            false => Command::Cancel { job, by: Actor::Administrator },
        };
        world.send(later, command);
        world.until(later + Span::from_min(1));
        let count = world.scenario().count(|c| matches!(c, Command::Checkpointed { .. }));
        assert_eq!(count, saved, "lost: {is_lost}");
    }
}

#[test]
fn a_site_that_the_core_refuses_is_refused_with_its_reason() {
    let nowhere = NewNode::new(name("n3"), name("spare"), Capacity::default());
    let site = SiteBuilder { nodes: vec![nowhere], ..site() };
    let refused = Engine::of(&site, START, &mut ()).err();
    assert!(matches!(refused, Some(Refusal::Unknown { .. })), "{refused:?}");
    let settings = Settings { slot: Span::ZERO, ..Settings::default() };
    let site = SiteBuilder { settings, ..SiteBuilder::default() };
    assert!(Engine::of(&site, START, &mut ()).is_err());
}
