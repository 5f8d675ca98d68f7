//! Questions to leaders that come and go, on a model of them: however asking, sending, answering,
//! losing a leader, following the journal and time interleave, each question is told something once,
//! and what it is told is true.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use era_core::units::{NodeId, Time};
use era_core::{Command, Reply};
use era_drive::Answer;
use era_drive::forward::{
    CATCH_UP_MAX, Forwarder, NoAnswer, PATIENCE, SILENCE_MAX, Settled, is_harmless_twice,
};

const MS: Duration = Duration::from_millis(1);
/// How often it is looked what has waited long enough.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What the model knows of a question.
#[derive(Debug)]
struct Question {
    is_harmless: bool,
    is_patient: bool,
    asked: Duration,
    was_sent: bool,
    /// The entries that it became.
    entries: Vec<u64>,
    /// When it was answered.
    answered: Option<Duration>,
    told: Option<Result<u64, NoAnswer>>,
}

/// A leader with the line to it: what it has not carried out, and what it has not told.
#[derive(Default)]
struct Leader {
    inbox: VecDeque<(u64, usize)>,
    outbox: VecDeque<(u64, Answer)>,
}

#[derive(Default)]
struct Site {
    now: Duration,
    forwarder: Forwarder<usize>,
    questions: Vec<Question>,
    leader: Option<Leader>,
    /// The last entry of the journal, and the last that is here.
    last: u64,
    here: u64,
    /// Which question a number was last, and the order of first sends.
    numbers: BTreeMap<u64, usize>,
    first_sent: Vec<usize>,
}

fn command(is_harmless: bool) -> Command {
    let command = match is_harmless {
        true => Command::Tick,
        false => Command::Lost { node: NodeId(1) },
    };
    assert_eq!(is_harmless_twice(&command), is_harmless);
    command
}

impl Site {
    fn ask(&mut self, is_harmless: bool, is_patient: bool) {
        self.forwarder.ask(command(is_harmless), self.questions.len(), is_patient, self.now);
        let (asked, entries) = (self.now, Vec::new());
        let (was_sent, answered, told) = (false, None, None);
        let question =
            Question { is_harmless, is_patient, asked, was_sent, entries, answered, told };
        self.questions.push(question);
    }

    fn send(&mut self) {
        let sent: Vec<(u64, usize)> =
            self.forwarder.to_send().map(|(id, _, question)| (id, *question)).collect();
        let Some(leader) = &mut self.leader else {
            assert!(sent.is_empty(), "there is nobody to send it to");
            return;
        };
        for (id, question) in sent {
            assert!(!leader.inbox.contains(&(id, question)), "it was sent to this one before");
            assert_eq!(
                *self.numbers.entry(id).or_insert(question),
                question,
                "a number is used twice"
            );
            let known = &mut self.questions[question];
            assert!(known.told.is_none(), "it is over");
            assert!(!known.was_sent || known.is_harmless, "it may have been carried out");
            if !std::mem::replace(&mut known.was_sent, true) {
                self.first_sent.push(question);
            }
            leader.inbox.push_back((id, question));
        }
    }

    fn carry_out(&mut self, count: usize) {
        let Some(leader) = &mut self.leader else { return };
        for (id, question) in leader.inbox.drain(..count.min(leader.inbox.len())) {
            self.last += 1;
            self.questions[question].entries.push(self.last);
            let answer = Answer { seq: self.last, at: Time(0), reply: Reply::Done, made: false };
            leader.outbox.push_back((id, answer));
        }
    }

    fn hear(&mut self, count: usize) {
        let Some(leader) = &mut self.leader else { return };
        self.forwarder.heard(self.now);
        for (id, answer) in leader.outbox.drain(..count.min(leader.outbox.len())) {
            self.questions[self.numbers[&id]].answered = Some(self.now);
            self.forwarder.answered(id, answer, self.now);
        }
    }

    fn part(&mut self) {
        self.leader = None;
        let lost = self.forwarder.parted();
        self.settle(lost);
    }

    fn follow(&mut self, count: u64) {
        self.here = self.last.min(self.here + count);
        let told = self.forwarder.caught_up(self.here);
        self.settle(told);
    }

    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.now = until.min(self.now + LOOK_EVERY);
            let over = self.forwarder.given_up(self.now);
            self.settle(over);
            if self.forwarder.is_silent(self.now) {
                self.part();
            }
        }
        for question in self.questions.iter().filter(|question| question.told.is_none()) {
            let late = question.asked + PATIENCE + LOOK_EVERY;
            assert!(question.is_patient || question.answered.is_some() || self.now < late);
            let late = question.answered.map(|at| at + CATCH_UP_MAX + LOOK_EVERY);
            assert!(late.is_none_or(|late| self.now < late), "an answer is withheld for ever");
        }
    }

    fn settle(&mut self, over: Vec<Settled<usize>>) {
        for (question, told) in over {
            let known = &mut self.questions[question];
            assert_eq!(known.told, None, "it is told twice");
            match &told {
                Ok(answer) => {
                    assert!(known.entries.contains(&answer.seq), "that was another question");
                    let late = known.answered.is_some_and(|at| self.now >= at + CATCH_UP_MAX);
                    assert!(self.here >= answer.seq || late, "it is not to be read here yet");
                }
                Err(NoAnswer::NotAsked) => assert!(!known.was_sent && !known.is_patient),
                Err(NoAnswer::Unknown) => {
                    assert!(known.was_sent && known.answered.is_none());
                    let is_late = !known.is_patient && self.now >= known.asked + PATIENCE;
                    assert!(is_late || !known.is_harmless && self.leader.is_none());
                }
            }
            known.told = Some(told.map(|answer| answer.seq));
        }
    }
}

#[derive(Clone, Debug)]
enum Act {
    Ask { is_harmless: bool, is_patient: bool },
    Meet,
    Send,
    CarryOut(usize),
    Hear(usize),
    Part,
    Follow(u64),
    Pass(u32),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (any::<bool>(), any::<bool>())
            .prop_map(|(is_harmless, is_patient)| Act::Ask { is_harmless, is_patient }),
        3 => Just(Act::Meet),
        5 => Just(Act::Send),
        4 => (1..5usize).prop_map(Act::CarryOut),
        4 => (0..5usize).prop_map(Act::Hear),
        2 => Just(Act::Part),
        3 => (1..5u64).prop_map(Act::Follow),
        2 => (0..3000u32).prop_map(Act::Pass),
    ]
}

proptest! {
    #[test]
    fn each_question_is_told_once_what_is_true_however_leaders_come_and_go(
        acts in vec(act(), 1..200),
    ) {
        let mut site = Site::default();
        for act in acts {
            match act {
                Act::Ask { is_harmless, is_patient } => site.ask(is_harmless, is_patient),
                Act::Meet if site.leader.is_none() => {
                    site.leader = Some(Leader::default());
                    site.forwarder.met(site.now);
                }
                Act::Meet => {}
                Act::Send => site.send(),
                Act::CarryOut(count) => site.carry_out(count),
                Act::Hear(count) => site.hear(count),
                Act::Part => site.part(),
                Act::Follow(count) => site.follow(count),
                Act::Pass(ms) => site.pass(MS * ms),
            }
        }
        // A leader comes and stays: everything that still waits is answered.
        site.part();
        site.leader = Some(Leader::default());
        site.forwarder.met(site.now);
        site.send();
        site.carry_out(usize::MAX);
        site.hear(usize::MAX);
        site.follow(u64::MAX / 2);
        prop_assert!(site.forwarder.is_idle());
        for question in &site.questions {
            prop_assert!(question.told.is_some(), "{question:?}");
            if question.told == Some(Err(NoAnswer::NotAsked)) {
                prop_assert!(question.entries.is_empty(), "{question:?}");
            }
            prop_assert!(question.is_harmless || question.entries.len() < 2, "{question:?}");
        }
        prop_assert!(site.first_sent.is_sorted(), "they are asked in their order");
    }
}

#[test]
fn a_leader_that_says_nothing_is_silent_from_when_it_was_heard_last() {
    let mut forwarder = Forwarder::<()>::default();
    assert!(!forwarder.is_silent(SILENCE_MAX), "there is nobody");
    forwarder.met(MS);
    assert!(!forwarder.is_silent(SILENCE_MAX));
    forwarder.heard(1000 * MS);
    assert!(!forwarder.is_silent(SILENCE_MAX + 999 * MS));
    assert!(forwarder.is_silent(SILENCE_MAX + 1000 * MS));
    assert!(forwarder.parted().is_empty());
    forwarder.heard(1001 * MS);
    assert!(!forwarder.is_silent(2 * SILENCE_MAX));
}
