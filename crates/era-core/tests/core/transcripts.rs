//! Small scenarios as a person would read them: what went in, and what came out, line by line.
//!
//! Times are hours, minutes and seconds since the start; money is in credits.

use std::fmt::Write as _;

use era_core::bid::{Bid, Shape};
use era_core::calendar::Seat;
use era_core::input::Terms;
use era_core::job::{Outcome, Overrun, Plan, TaskId};
use era_core::ledger::Posting;
use era_core::offer::CounterOffers;
use era_core::output::Notification;
use era_core::units::{JobId, Money, Span, Time};
use era_core::{Command, Effect, Event, Input, Output, Reply, next_wakeup, step};

use crate::bed::{ALICE, BOB, Bed, T0, bid, by, gang, min, name, new_job};
use crate::verbs::{for_queue, n, queue_terms, with_bid};

/// A bench that writes down what happens.
struct Script {
    bed: Bed,
    text: String,
}

fn at(time: Time) -> String {
    let s = time.since(T0).0 / 1000;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

fn seats(seats: &[Seat]) -> String {
    let gpus = |mask: u64| match mask {
        0 => String::new(),
        _ => {
            let (first, count) = (mask.trailing_zeros(), mask.count_ones());
            if count == 1 {
                format!("[{first}]")
            } else {
                format!("[{first}-{}]", first + count - 1)
            }
        }
    };
    let seat = |s: &Seat| format!("{}{}", s.node, gpus(s.gpus));
    seats.iter().map(seat).collect::<Vec<_>>().join(" ")
}

fn plan(plan: &Plan) -> String {
    format!("{}–{} on {}", at(plan.from), at(plan.to), seats(&plan.seats))
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Succeeded => "succeeded".into(),
        Outcome::Failed { code } => format!("failed with {code}"),
        Outcome::Cancelled => "cancelled".into(),
        Outcome::Released => "released".into(),
        Outcome::LimitReached => "stopped at its limit".into(),
        Outcome::Broken { reason } => format!("broken: {reason}"),
        Outcome::Unfulfilled { job } => format!("in vain: {job} did not succeed"),
    }
}

fn event(event: &Event) -> Option<String> {
    Some(match event {
        Event::Promised { job, price, parts, .. } => {
            let plans: Vec<String> = parts.iter().map(plan).collect();
            format!("{job} is promised {} for {price}", plans.join(" and "))
        }
        Event::Queued { job, queue, count: 1, .. } => format!("{job} waits in {queue}"),
        Event::Queued { job, queue, count, .. } => {
            format!("{job} and {} like it wait in {queue}", count - 1)
        }
        Event::Ready { jobs } => {
            let jobs: Vec<String> = jobs.iter().map(ToString::to_string).collect();
            format!("{} no longer wait for others", jobs.join(", "))
        }
        Event::Held { hold, price, expires, .. } => {
            format!("{hold} holds a price of {price} until {}", at(*expires))
        }
        Event::HoldEnded { hold } => format!("{hold} is over"),
        Event::Moved { job, rank, to, .. } => {
            format!("{job} rank {rank} moves to {}", seats(&[*to]))
        }
        Event::Launched { job, attempt, plan: p, .. } => {
            format!("{job} is launched, attempt {attempt}, until {}", at(p.to))
        }
        Event::Running { job, .. } => format!("{job} runs"),
        Event::Stopping { job, why, until, .. } => {
            format!("{job} is told to stop by {} ({why:?})", at(*until))
        }
        Event::Requeued { job, .. } => format!("{job} waits again"),
        Event::Replanned { job, plan: p, .. } => format!("{job} is planned anew: {}", plan(p)),
        Event::Broken { job, reason } => format!("{job} is broken: {reason}"),
        Event::Extended { job, to, price, .. } => {
            format!("{job} lasts until {} for {price} more", at(*to))
        }
        Event::Resized { job, replicas, .. } => format!("{job} has {replicas} replicas"),
        Event::Ended { job, outcome: o, .. } => format!("{job} has ended: {}", outcome(o)),
        Event::Posted { posting: Posting { from, to, amount, reason }, .. } => {
            format!("{amount} from {from} to {to} ({reason:?})")
        }
        Event::Checkpointed { job, done_ms, .. } => format!("{job} saved {}", Span(*done_ms)),
        Event::Ignored { task } => format!("a late word of {task} is ignored"),
        Event::Refused { refusal } => format!("refused: {refusal}"),
        Event::Changed { what, name } => match name {
            Some(name) => format!("{what} {name} changed"),
            None => format!("{what} changed"),
        },
        // What the lines above say already.
        Event::BidDeclined { .. }
        | Event::HoldMoved { .. }
        | Event::TaskEnded { .. }
        | Event::PartDone { .. }
        | Event::Edited { .. }
        | Event::IdleReported { .. }
        | Event::NodesChanged { .. }
        | Event::Forgotten { .. } => return None,
    })
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Launch { task, node, gpus, each, .. } => {
            format!("→ launch {task} on {node} with {each} (GPUs {gpus:?})")
        }
        Effect::Stop { task, node, until, .. } => {
            format!("→ stop {task} on {node} by {}", at(*until))
        }
        Effect::Prolong { task, until, .. } => format!("→ prolong {task} until {}", at(*until)),
        Effect::Resize { job, replicas, .. } => format!("→ tell {job} that it has {replicas}"),
        Effect::Notify { user, job, notification: news } => {
            let news = match news {
                Notification::Started => "runs",
                Notification::Ended => "has ended",
                Notification::Broken => "was broken and refunded",
                Notification::Replanned => "was planned anew",
                Notification::Preempted => "gave way and waits again",
                Notification::Idle => "is idle",
            };
            format!("→ tell {user} that {job} {news}")
        }
    }
}

fn counter(counter: &CounterOffers) -> Vec<String> {
    let offer =
        |o: &era_core::offer::Offer| format!("{}–{} for {}", at(o.start), at(o.finish), o.price);
    let mut lines = Vec::new();
    lines.extend(counter.value.map(|v| format!("a value of {v} would win")));
    lines.extend(counter.window.map(|o| format!("the nearest window: {}", offer(&o))));
    lines.extend(counter.size.map(|(n, o)| format!("{n} replicas would fit: {}", offer(&o))));
    lines.extend(counter.duration.map(|(d, o)| format!("{d} would fit: {}", offer(&o))));
    lines
}

impl Script {
    fn new(title: &str, nodes: usize) -> Script {
        Script { bed: Bed::new(nodes), text: format!("# {title}\n") }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.text, "    {line}").unwrap();
    }

    fn write(&mut self, output: &Output) {
        output.events.iter().filter_map(event).for_each(|line| self.say(&line));
        if let Reply::Refused { counter: offers, .. } = &output.reply {
            counter(offers).iter().for_each(|line| self.say(line));
        }
        output.effects.iter().map(effect).for_each(|line| self.say(&line));
    }

    /// One input, in words, and what comes of it.
    fn then(&mut self, words: &str, command: Command) -> Reply {
        writeln!(self.text, "{} {words}", at(self.bed.at)).unwrap();
        let output = self.bed.step(command);
        self.write(&output);
        output.reply
    }

    /// A job handed in.
    fn submit(&mut self, words: &str, bid: Bid) -> Option<JobId> {
        self.submit_with(words, bid, Overrun::Stop)
    }

    fn submit_with(&mut self, words: &str, bid: Bid, overrun: Overrun) -> Option<JobId> {
        let job = with_bid(bid, None, overrun, false);
        match self.then(words, Command::Submit { key: None, job }) {
            Reply::Accepted { job, .. } => Some(job),
            _ => None,
        }
    }

    /// Executors report all launches of a job started.
    fn started(&mut self, job: JobId) {
        let ranks = self.launching(job);
        for task in ranks {
            self.then(&format!("{task} has started"), Command::Started { task });
        }
    }

    fn launching(&self, job: JobId) -> Vec<TaskId> {
        let waits = |e: &Effect| match e {
            Effect::Launch { task, .. } if task.job == job => Some(*task),
            _ => None,
        };
        era_core::outstanding(&self.bed.state).iter().filter_map(waits).collect()
    }

    /// Executors report all live tasks of a job gone.
    fn exited(&mut self, job: JobId, code: i32) {
        let part = self.bed.state.job(job).unwrap().first_part();
        let extras = part.extras().iter().map(|e| e.rank);
        let ranks: Vec<u32> = (0..part.tasks().len() as u32).chain(extras).collect();
        let attempt = part.attempt;
        for rank in ranks {
            let task = TaskId { job, part: 0, attempt, rank };
            self.then(
                &format!("{task} exits with {code}"),
                Command::Exited { task, code, at: None },
            );
        }
    }

    fn pass(&mut self) {
        self.then("a scheduling pass", Command::Pass);
    }

    /// Lets time pass; what happens by itself is written at its time.
    fn until(&mut self, time: Time) {
        while let Some(wakeup) = next_wakeup(&self.bed.state).filter(|w| *w <= time) {
            self.bed.at = self.bed.at.max(wakeup);
            let seq = self.bed.state.seq() + 1;
            let input = Input { seq, at: self.bed.at, command: Command::Tick };
            let output = step(&mut self.bed.state, input);
            era_core::check(&self.bed.state).unwrap();
            if !output.events.is_empty() {
                writeln!(self.text, "{} by itself", at(self.bed.at)).unwrap();
                self.write(&output);
            }
        }
        self.bed.at = time;
    }

    #[track_caller]
    fn check(self, file: &str) {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("transcripts");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(file, self.text));
    }
}

fn worth(user: era_core::units::UserId, request: era_core::bid::Request, credits: i64) -> Bid {
    Bid::single(user, request, Money::credits(credits))
}

#[test]
fn a_day_at_a_small_cluster() {
    let mut day = Script::new("One node of 8 GPUs: a promise, a queue, and preemption", 1);
    let words = "Alice bids 100 for 8 GPUs for two hours between 9:00 and 12:00";
    let promise = day.submit(words, worth(ALICE, gang(1, "gpu=8", 120, (540, 720)), 100)).unwrap();
    let mut soft = queue_terms("default");
    soft.preemptible = true;
    let sweep = for_queue(BOB, gang(1, "gpu=4", 1440, (0, 1)), soft);
    day.then(
        "Bob queues a day of 4 GPUs that may be preempted",
        Command::Submit { key: None, job: sweep },
    );
    let sweep = JobId(2);
    let firm = for_queue(BOB, gang(1, "gpu=4", 600, (0, 1)), queue_terms("default"));
    day.then(
        "Bob queues ten hours of 4 GPUs that may not",
        Command::Submit { key: None, job: firm },
    );
    day.pass();
    day.started(sweep);
    day.until(min(500));
    let task = day.bed.task(sweep, 0);
    let done = Span::from_h(8);
    day.then("Bob's sweep saves its work", Command::Checkpointed { task, done });
    day.until(min(540));
    day.started(promise);
    day.until(min(600));
    day.exited(promise, 0);
    day.pass();
    day.started(sweep);
    day.started(JobId(3));
    day.until(min(660));
    day.exited(JobId(3), 0);
    day.then("Bob cancels his sweep", Command::Cancel { job: sweep, by: by(BOB) });
    day.until(min(661));
    day.check("a_day");
}

#[test]
fn a_node_is_lost_and_its_work_goes_on() {
    let mut script = Script::new("Three nodes: one of them is lost under a gang of two", 3);
    let words = "Alice bids 1000 for a gang of two nodes for an hour, within three";
    let gang_of_two = worth(ALICE, gang(2, "gpu=8", 60, (0, 180)), 1000);
    let job = script.submit(words, gang_of_two).unwrap();
    script.started(job);
    script.until(min(20));
    let task = script.bed.task(job, 0);
    let done = Span::from_min(15);
    script.then("it saves its work", Command::Checkpointed { task, done });
    script.until(min(30));
    script.then("n1 is lost", Command::Lost { node: n(1) });
    script.until(min(31));
    script.started(job);
    let late = TaskId { attempt: 1, rank: 1, ..task };
    script.then(
        "n1 was only cut off: a late word",
        Command::Exited { task: late, code: 0, at: None },
    );
    script.then("n1 is back", Command::Resume { node: n(1) });
    script.until(min(70));
    script.exited(job, 0);
    script.check("a_node_lost");
}

#[test]
fn a_promise_is_broken_and_refunded() {
    let mut script = Script::new("One node: what cannot be kept is refunded whole", 1);
    let words = "Alice bids 1000 for the node for an hour, within an hour and a half";
    let job = script.submit(words, worth(ALICE, gang(1, "gpu=8", 60, (0, 90)), 1000)).unwrap();
    let words = "Bob bids 1000 for 1 GPU tonight";
    script.submit(words, worth(BOB, gang(1, "gpu=1", 60, (600, 660)), 1000));
    script.started(job);
    script.until(min(40));
    script.then("the node is lost", Command::Lost { node: n(0) });
    script.until(min(41));
    script.check("a_broken_promise");
}

#[test]
fn a_refusal_comes_with_offers() {
    let mut script = Script::new("One node at surge prices: what would win instead", 1);
    let rules = era_core::market::MarketRules {
        mechanism: era_core::market::MechanismChoice::named(&name("surge")).unwrap(),
        ..Default::default()
    };
    script.then("the house sets surge prices", Command::SetMarket { rules });
    let words = "Alice bids 1000 for 6 GPUs for an hour, now";
    script.submit(words, worth(ALICE, gang(1, "gpu=6", 60, (0, 60)), 1000));
    let words = "Bob bids 10 for 2 GPUs for the same hour";
    script.submit(words, worth(BOB, gang(2, "gpu=1", 60, (0, 60)), 10));
    let words = "Bob bids 1000 for 4 GPUs one by one for the same hour";
    script.submit(words, worth(BOB, gang(4, "gpu=1", 60, (0, 60)), 1000));
    let words = "Bob bids 1000 for 4 GPUs for 90 minutes, within two hours";
    script.submit(words, worth(BOB, gang(1, "gpu=4", 90, (0, 120)), 1000));
    let words = "Bob takes the window that was offered";
    script.submit(words, worth(BOB, gang(1, "gpu=4", 90, (0, 150)), 1000));
    script.check("offers");
}

#[test]
fn an_elastic_job_grows_and_shrinks() {
    let mut script = Script::new("One node: one to four replicas of 2 GPUs", 1);
    let mut request = gang(1, "gpu=2", 180, (0, 180));
    request.shape = Shape::Replicas { min: 1, max: 4 };
    let words = "Alice bids 1000 for one to four replicas of 2 GPUs for three hours";
    let job = script.submit(words, worth(ALICE, request, 1000)).unwrap();
    script.started(job);
    script.pass();
    script.started(job);
    script.until(min(30));
    let words = "Bob bids 1000 for 4 GPUs for an hour, from 1:00 to 2:00";
    let promise = script.submit(words, worth(BOB, gang(1, "gpu=4", 60, (60, 120)), 1000)).unwrap();
    script.until(min(60));
    script.started(promise);
    script.until(min(90));
    script.exited(promise, 0);
    script.pass();
    script.started(job);
    script.until(min(150));
    script.exited(job, 0);
    script.check("elastic");
}

#[test]
fn holds_bind_for_a_minute() {
    let mut script = Script::new("One node: holds are accepted, dropped, or expire", 1);
    let hold = |request| Command::Hold { key: None, bid: bid(request) };
    let accept = |user, number| {
        let hold = era_core::units::HoldId(number);
        let terms = Terms::Hold { hold, overrun: Overrun::Stop, release_when_idle: false };
        Command::Submit { key: None, job: new_job(user, terms) }
    };
    script.then("Alice holds 8 GPUs for the next hour", hold(gang(1, "gpu=8", 60, (0, 60))));
    let words = "Bob bids 1000 for the same";
    script.submit(words, worth(BOB, gang(1, "gpu=8", 60, (0, 60)), 1000));
    script.until(min(1));
    script.then("Alice accepts too late", accept(ALICE, 1));
    script.then("Alice holds them again", hold(gang(1, "gpu=8", 60, (0, 61))));
    script.then("Bob tries to accept her hold", accept(BOB, 2));
    script.bed.at = script.bed.at + Span::from_s(30);
    let id = era_core::units::HoldId(2);
    script.then("Alice gives it up", Command::DropHold { hold: id, by: by(ALICE) });
    script.then("Alice holds 8 GPUs for this evening", hold(gang(1, "gpu=8", 60, (600, 660))));
    let rules = era_core::market::MarketRules {
        floor: era_core::units::Milli(10_000),
        ..Default::default()
    };
    script.then("the house makes everything twenty times dearer", Command::SetMarket { rules });
    script.then("Alice accepts at the price that she was told", accept(ALICE, 3));
    script.check("holds");
}
