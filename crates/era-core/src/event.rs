//! What was decided, and all that those outside know of it: what it is called, which job it is
//! about, who may see it, what changes with it, and what it says.
//!
//! An event is classified once, in `Event::about`. A new one is a variant and an arm there:
//! tables, live events, webhooks and Redis ask the event, and keep no list of kinds. Whoever acts
//! on one kind, as the projection does on a job's end, matches that kind and no other.
//!
//! What things are called is not known here. A fact carries a number, an amount or an instant;
//! whoever passes it on puts in the name of the machine and writes the time as people do.

use serde::{Deserialize, Serialize};

use crate::calendar::Seat;
use crate::job::{Outcome, Plan, StopReason, TaskId};
use crate::ledger::Posting;
use crate::refusal::Refusal;
use crate::units::{HoldId, JobId, Money, Name, NodeId, Span, Time, UserId};

/// What was decided: with the input that it follows from, enough to keep every table outside up
/// to date.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// An input was refused.
    Refused {
        refusal: Refusal,
    },
    /// A bid was refused: demand that a forecast wants to know of.
    BidDeclined {
        user: UserId,
        price: Option<Money>,
    },
    /// A bid became a promise.
    Promised {
        job: JobId,
        user: UserId,
        price: Money,
        parts: Vec<Plan>,
    },
    /// A job went into a queue, or as many as are counted, with numbers that follow one another.
    Queued {
        job: JobId,
        user: UserId,
        queue: Name,
        #[serde(default = "one", skip_serializing_if = "is_one")]
        count: u32,
    },
    /// All that these jobs waited for is over as they asked.
    Ready {
        jobs: Vec<JobId>,
    },
    /// A quote was made binding.
    Held {
        hold: HoldId,
        user: UserId,
        price: Money,
        expires: Time,
    },
    /// A hold is over: it was accepted, given up, or it expired.
    HoldEnded {
        hold: HoldId,
    },
    /// A promise's replica moved to another seat. Its start is as it was.
    Moved {
        job: JobId,
        part: u16,
        rank: u32,
        from: Seat,
        to: Seat,
    },
    /// A held quote's replica moved to another seat.
    HoldMoved {
        hold: HoldId,
        part: u16,
        rank: u32,
        to: Seat,
    },
    /// Tasks were sent out.
    Launched {
        job: JobId,
        part: u16,
        attempt: u32,
        plan: Plan,
    },
    /// All tasks of an attempt run.
    Running {
        job: JobId,
        part: u16,
        attempt: u32,
    },
    /// A part was told to stop.
    Stopping {
        job: JobId,
        part: u16,
        attempt: u32,
        why: StopReason,
        until: Time,
    },
    /// A task ended.
    TaskEnded {
        task: TaskId,
        code: Option<i32>,
    },
    /// A part is over.
    PartDone {
        job: JobId,
        part: u16,
    },
    /// Queue work goes back to its queue, with its age and its checkpoint.
    Requeued {
        job: JobId,
        not_before: Time,
    },
    /// A promise was re-planned within its window because hardware was lost.
    Replanned {
        job: JobId,
        part: u16,
        plan: Plan,
    },
    /// A promise could not be kept.
    Broken {
        job: JobId,
        reason: String,
    },
    /// A running promise lasts longer.
    Extended {
        job: JobId,
        part: u16,
        to: Time,
        price: Money,
    },
    /// An elastic job has another number of replicas.
    Resized {
        job: JobId,
        part: u16,
        replicas: u32,
    },
    /// A job is over.
    Ended {
        job: JobId,
        outcome: Outcome,
        /// When, where that was before anybody could tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Time>,
    },
    Posted {
        job: Option<JobId>,
        posting: Posting,
    },
    /// A job or hold was changed by its owner.
    Edited {
        job: JobId,
    },
    /// A checkpoint was recorded.
    Checkpointed {
        job: JobId,
        part: u16,
        done_ms: i64,
    },
    /// Idle GPUs were reported.
    IdleReported {
        job: JobId,
        released: bool,
    },
    /// A report was ignored: it is of an older attempt, or says what is known.
    Ignored {
        task: TaskId,
    },
    /// Nodes joined, left or changed.
    NodesChanged {
        nodes: Vec<NodeId>,
    },
    /// A pool, domain, queue, policy, account or rule changed.
    Changed {
        what: Name,
        name: Option<Name>,
    },
    /// Ended jobs were forgotten.
    Forgotten {
        jobs: Vec<JobId>,
    },
}

pub(crate) fn one() -> u32 {
    1
}

pub(crate) fn is_one(count: &u32) -> bool {
    *count == 1
}

/// Who may see an event. Administrators may see whatever anybody may, and whoever administers a
/// group what its members may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Nobody: it is told elsewhere, as money is in statements, or says nothing to anybody.
    Nobody,
    Administrators,
    /// The owner of a job.
    Owner(JobId),
    User(UserId),
    /// The user whose submission or hold this is an answer to.
    Sender,
}

/// Something that an event says, apart from its sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fact<'a> {
    Number(i64),
    Flag(bool),
    Job(JobId),
    Credits(Money),
    At(Time),
    Lasting(Span),
    /// The name of something, or a code.
    Word(&'a str),
    Node(NodeId),
    Nodes(&'a [NodeId]),
    /// The nodes of a plan, each once.
    NodesOf(&'a Plan),
    /// When and where something is planned.
    Slot(&'a Plan),
    Slots(&'a [Plan]),
    Refusal(&'a Refusal),
}

/// An event without what only its own kind knows.
struct About<'a> {
    kind: &'static str,
    job: Option<JobId>,
    audience: Audience,
    accepted: Option<u32>,
    changes_cluster: bool,
    gives_room: bool,
    sentence: &'static str,
    facts: Vec<(&'static str, Fact<'a>)>,
    wording: Vec<(&'static str, Fact<'a>)>,
}

/// An event that is not about one job.
fn seen_by<'a>(audience: Audience, kind: &'static str) -> About<'a> {
    About {
        kind,
        job: None,
        audience,
        accepted: None,
        changes_cluster: false,
        gives_room: false,
        sentence: "",
        facts: Vec::new(),
        wording: Vec::new(),
    }
}

/// An event about a job, for its owner.
fn of<'a>(job: JobId, kind: &'static str) -> About<'a> {
    About { job: Some(job), ..seen_by(Audience::Owner(job), kind) }
}

impl<'a> About<'a> {
    /// It took in so many jobs, with numbers that follow one another.
    fn accepts(self, count: u32) -> Self {
        About { accepted: Some(count), ..self }
    }

    /// What everybody may look at is no longer as it was: calendar, prices, machines, queues.
    fn changes_cluster(self) -> Self {
        About { changes_cluster: true, ..self }
    }

    /// A waiting job may start because of it.
    fn gives_room(self) -> Self {
        About { gives_room: true, ..self }
    }

    /// Its sentence, with facts by name in braces.
    fn says(self, sentence: &'static str) -> Self {
        About { sentence, ..self }
    }

    /// A fact, whether or not its sentence has it.
    fn with(mut self, name: &'static str, fact: impl Into<Fact<'a>>) -> Self {
        self.facts.push((name, fact.into()));
        self
    }

    /// What its sentence alone has: a piece of a fact, or more of the core's English.
    fn wording(mut self, name: &'static str, fact: impl Into<Fact<'a>>) -> Self {
        self.wording.push((name, fact.into()));
        self
    }

    fn named(&self, name: &str) -> Option<Fact<'a>> {
        let mut all = self.facts.iter().chain(&self.wording);
        all.find(|(known, _)| *known == name).map(|(_, fact)| *fact)
    }
}

/// What `Changed` is said of that is nobody else's.
const PRIVATE: [&str; 3] = ["user", "group", "quota"];

impl Event {
    /// What it is called wherever it is written: its tag.
    pub fn kind(&self) -> &'static str {
        self.about().kind
    }

    /// The job that it is about.
    pub fn job(&self) -> Option<JobId> {
        self.about().job
    }

    /// Who may see it.
    pub fn audience(&self) -> Audience {
        self.about().audience
    }

    /// The first of the jobs that it took in, and how many there are, with numbers that follow one
    /// another.
    pub fn accepted(&self) -> Option<(JobId, u32)> {
        let About { job, accepted, .. } = self.about();
        job.zip(accepted)
    }

    /// Whether what everybody may look at is no longer as it was: calendar, prices, machines or
    /// queues. What is not (credits, checkpoints, refusals) can be seen by nobody else.
    pub fn changes_cluster(&self) -> bool {
        self.about().changes_cluster
    }

    /// Whether room, money or right may have come that was not there before, so that a waiting job
    /// may start.
    pub(crate) fn gives_room(&self) -> bool {
        self.about().gives_room
    }

    /// What it says in English, with each fact as whoever passes it on writes it.
    pub fn sentence(&self, written: impl Fn(Fact<'_>) -> String) -> String {
        let about = self.about();
        // Between two braces is a name.
        let pieces = about.sentence.split(['{', '}']).enumerate();
        let said = pieces.map(|(at, piece)| match about.named(piece).filter(|_| at % 2 == 1) {
            Some(fact) => written(fact),
            None => {
                debug_assert!(at % 2 == 0, "{} has no {piece}", about.kind);
                piece.to_owned()
            }
        });
        said.collect()
    }

    /// What it says as values, by name.
    pub fn facts(&self) -> Vec<(&'static str, Fact<'_>)> {
        self.about().facts
    }

    /// The one place where events are told apart for those outside.
    fn about(&self) -> About<'_> {
        match self {
            Event::Refused { refusal } => seen_by(Audience::Sender, "refused")
                .says("refused: {refusal}")
                .with("refusal", Fact::Refusal(refusal)),
            Event::BidDeclined { user, price } => {
                let about = seen_by(Audience::User(*user), "bid_declined");
                match price {
                    Some(price) => about
                        .says("bid declined: {price} credits would have won")
                        .with("price", *price),
                    None => about.says("bid declined: there is no room"),
                }
            }
            Event::Promised { job, price, parts, .. } => of(*job, "promised")
                .accepts(1)
                .changes_cluster()
                .says("promised for {price} credits: {slots}")
                .with("price", *price)
                .with("slots", Fact::Slots(parts)),
            Event::Queued { job, queue, count, .. } => of(*job, "queued")
                .accepts(*count)
                .changes_cluster()
                .gives_room()
                .says(match count {
                    1 => "waits in queue {queue}",
                    _ => "{count} jobs wait in queue {queue}",
                })
                .with("queue", queue)
                .with("count", *count),
            Event::Ready { .. } => seen_by(Audience::Administrators, "ready")
                .changes_cluster()
                .gives_room()
                .says("what it waited for is over"),
            Event::Held { user, price, expires, .. } => seen_by(Audience::User(*user), "held")
                .changes_cluster()
                .says("quote of {price} credits held until {expires}")
                .with("price", *price)
                .with("expires", *expires),
            Event::HoldEnded { .. } => seen_by(Audience::Administrators, "hold_ended")
                .changes_cluster()
                .gives_room()
                .says("the hold is over"),
            Event::Moved { job, rank, from, to, .. } => of(*job, "moved")
                .changes_cluster()
                .gives_room()
                .says("replica {rank} moved from {from} to {to}; its start is as it was")
                .with("rank", *rank)
                .with("from", Fact::Node(from.node))
                .with("to", Fact::Node(to.node)),
            Event::HoldMoved { .. } => seen_by(Audience::Nobody, "hold_moved")
                .changes_cluster()
                .gives_room()
                .says("a held place moved to another node"),
            Event::Launched { job, attempt, plan, .. } => of(*job, "launched")
                .changes_cluster()
                .says(match attempt {
                    0 | 1 => "sent to {nodes}, until {until} at most",
                    _ => "sent to {nodes} (attempt {attempt}), until {until} at most",
                })
                .with("attempt", *attempt)
                .with("slot", Fact::Slot(plan))
                .wording("nodes", Fact::NodesOf(plan))
                .wording("until", plan.to),
            // A job grows from the moment that all of it runs: a pass is due if it is elastic.
            Event::Running { job, attempt, .. } => of(*job, "running")
                .changes_cluster()
                .says(match attempt {
                    1 => "runs",
                    _ => "runs again (attempt {attempt})",
                })
                .with("attempt", *attempt),
            Event::Stopping { job, why, until, .. } => {
                stopping(of(*job, "stopping").changes_cluster(), *why).with("until", *until)
            }
            // The seat of a rank that is gone is free before those of its gang.
            Event::TaskEnded { task, code } => {
                let about = of(task.job, "task_ended").gives_room().with("rank", task.rank);
                match code {
                    Some(code) => {
                        about.says("replica {rank} exited with code {code}").with("code", *code)
                    }
                    None => about.says("replica {rank} was lost"),
                }
            }
            Event::PartDone { job, part } => untold(*job, "part_done")
                .changes_cluster()
                .gives_room()
                .says("part {part} is over")
                .with("part", *part),
            Event::Requeued { job, .. } => of(*job, "requeued")
                .changes_cluster()
                .gives_room()
                .says("waits again, with its age and its checkpoint"),
            Event::Replanned { job, plan, .. } => of(*job, "replanned")
                .changes_cluster()
                .gives_room()
                .says("planned anew because its hardware is gone: {slot}")
                .with("slot", Fact::Slot(plan)),
            Event::Broken { job, reason } => of(*job, "broken")
                .changes_cluster()
                .gives_room()
                .says("the promise cannot be kept and is refunded: {reason}")
                .wording("reason", Fact::Word(reason)),
            // Who lasts longer gives no room.
            Event::Extended { job, to, price, .. } => of(*job, "extended")
                .changes_cluster()
                .says("extended until {to} for {price} credits")
                .with("to", *to)
                .with("price", *price),
            Event::Resized { job, replicas, .. } => of(*job, "resized")
                .changes_cluster()
                .gives_room()
                .says("has {replicas} replicas now")
                .with("replicas", *replicas),
            Event::Ended { job, outcome, .. } => {
                ended(of(*job, "ended").changes_cluster().gives_room(), outcome)
            }
            Event::Posted { job, posting } => {
                let about = seen_by(Audience::Nobody, "posted")
                    .says("{amount} credits moved")
                    .with("amount", posting.amount);
                match job {
                    Some(job) => About { job: Some(*job), ..about },
                    None => about.gives_room(),
                }
            }
            Event::Edited { job } => {
                of(*job, "edited").changes_cluster().gives_room().says("changed by its owner")
            }
            Event::Checkpointed { job, done_ms, .. } => of(*job, "checkpointed")
                .says("saved its work: {done_ms} need not be run again")
                .with("done_ms", Span(*done_ms)),
            Event::IdleReported { job, released } => of(*job, "idle_reported")
                .says(match released {
                    true => "its GPUs are idle and are given back, as its owner allowed",
                    false => "its GPUs are idle",
                })
                .with("released", Fact::Flag(*released)),
            Event::Ignored { task } => untold(task.job, "ignored")
                .says("a late report on replica {rank} changed nothing")
                .with("rank", task.rank),
            Event::NodesChanged { nodes } => seen_by(Audience::Administrators, "nodes_changed")
                .changes_cluster()
                .gives_room()
                .says("changed: {nodes}")
                .with("nodes", Fact::Nodes(nodes)),
            Event::Changed { what, name } => {
                let changes_cluster = !PRIVATE.contains(&what.as_str());
                let about = seen_by(Audience::Administrators, "changed");
                let about = About { changes_cluster, ..about }.gives_room().with("what", what);
                match name {
                    Some(name) => about.says("{what} {name} changed").with("name", name),
                    None => about.says("{what} changed"),
                }
            }
            Event::Forgotten { jobs } => seen_by(Audience::Nobody, "forgotten")
                .says("{jobs} ended jobs left the scheduler")
                .with("jobs", i64::try_from(jobs.len()).unwrap_or(i64::MAX)),
        }
    }
}

/// An event about a job that is told to nobody.
fn untold<'a>(job: JobId, kind: &'static str) -> About<'a> {
    About { audience: Audience::Nobody, ..of(job, kind) }
}

fn stopping(about: About<'_>, why: StopReason) -> About<'_> {
    let (word, sentence) = match why {
        StopReason::Cancelled => ("cancelled", "told to stop by {until}: it was cancelled"),
        StopReason::Released => {
            ("released", "told to stop by {until}: the rest of its time is given back")
        }
        StopReason::Limit => ("limit", "told to stop by {until}: its time is over"),
        StopReason::Preempted => {
            ("preempted", "told to stop by {until}: it gives way, and waits again")
        }
        StopReason::Lost => ("lost", "told to stop by {until}: hardware under it was lost"),
        StopReason::Drained => {
            ("drained", "told to stop by {until}: its node is drained; it goes on elsewhere")
        }
        StopReason::Failed { .. } => {
            ("failed", "told to stop by {until}: one of its tasks exited with code {code}")
        }
    };
    let about = match why {
        StopReason::Failed { code } => about.with("code", code),
        _ => about,
    };
    about.says(sentence).with("why", Fact::Word(word))
}

fn ended<'a>(about: About<'a>, outcome: &'a Outcome) -> About<'a> {
    let is =
        |about: About<'a>, word, sentence| about.says(sentence).with("outcome", Fact::Word(word));
    match outcome {
        Outcome::Succeeded => is(about, "succeeded", "succeeded"),
        Outcome::Failed { code } => {
            is(about.with("code", *code), "failed", "failed: a task exited with code {code}")
        }
        Outcome::Cancelled => is(about, "cancelled", "cancelled"),
        Outcome::Unfulfilled { job } => {
            let about = about.with("job", Fact::Job(*job));
            is(about, "unfulfilled", "given up: job {job} had to succeed first")
        }
        Outcome::Released => {
            is(about, "released", "over: what was left of its time was given back")
        }
        Outcome::LimitReached => is(about, "limit_reached", "over: its time was up"),
        Outcome::Broken { reason } => {
            let about = about.wording("reason", Fact::Word(reason));
            is(about, "broken", "broken and refunded: {reason}")
        }
    }
}

macro_rules! facts {
    ($($from:ty => |$value:ident| $fact:expr),* $(,)?) => {$(
        impl<'a> From<$from> for Fact<'a> {
            fn from($value: $from) -> Fact<'a> {
                $fact
            }
        }
    )*};
}

facts! {
    i32 => |number| Fact::Number(number.into()),
    i64 => |number| Fact::Number(number),
    u16 => |number| Fact::Number(number.into()),
    u32 => |number| Fact::Number(number.into()),
    Money => |amount| Fact::Credits(amount),
    Time => |at| Fact::At(at),
    Span => |span| Fact::Lasting(span),
    &'a Name => |name| Fact::Word(name.as_str()),
}
