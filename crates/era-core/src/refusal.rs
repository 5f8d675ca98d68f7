//! Every way in which the core says no.
//!
//! A refusal has a stable code for programs, a sentence for people that says what is wrong and
//! what would be right, and the field that it is about. A refused input changes nothing.
//!
//! A sentence names jobs and holds by the number that people know. The numbers of users, groups
//! and nodes are the core's own, so no sentence has one: who asked knows whom it is about.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::units::{GroupId, HoldId, JobId, Milli, Money, Name, NodeId, Span, Time, UserId};

/// Why an input was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Refusal {
    // The shape of a bid.
    #[error("duration {given} is out of range: give more than zero and at most {most}")]
    BadDuration { given: Span, most: Span },
    #[error("replicas {min}..{max} are out of range: give 1 to {most}, the larger last")]
    BadReplicas { min: u32, max: u32, most: u32 },
    #[error("a total of GPUs is split by whole ones: ask for `gpu: 1` with each, not {each}m")]
    BadGpuTotal { each: u32 },
    #[error("the request asks for no resource: give cpu, memory, gpu or a device")]
    NothingAsked,
    #[error(
        "{given}m of a GPU is neither a share of one (below 1000m) nor whole: give 500m or 2000m"
    )]
    BrokenGpu { given: u32 },
    #[error("gpu.model and gpu.memory need `gpu`: say how many")]
    GpuFilterWithoutGpu,
    #[error("the amounts add up to more than can be counted: ask for less")]
    TooLarge,
    #[error(
        "window [{earliest}, {deadline}) is empty or out of range: give a deadline after the start, up to the year 9999"
    )]
    BadWindow { earliest: Time, deadline: Time },
    #[error("the deadline {deadline} has passed (it is {now}): give a later one")]
    WindowPast { deadline: Time, now: Time },
    #[error(
        "the earliest start {earliest} is beyond the horizon: bids reach until {limit}, give an earlier one"
    )]
    BeyondHorizon { earliest: Time, limit: Time },
    #[error(
        "what is left of the window ({window}) is shorter than the duration ({duration}): give a later deadline or a shorter duration"
    )]
    WindowTooShort { window: Span, duration: Span },
    #[error("{given} {what} given: give 1 to {most}")]
    TooMany { what: Cow<'static, str>, given: usize, most: usize },
    #[error(
        "request {request} can only come after requests that stand before it: list them in order"
    )]
    BadOrder { request: usize },
    #[error(
        "an array of {count} jobs, {running} at a time, is out of range: give 1 to {most} jobs, and at least 1 at a time"
    )]
    BadArray { count: u32, running: u32, most: u32 },
    #[error("a bid takes no `{what}`: {hint}")]
    NotWithBid { what: Cow<'static, str>, hint: Cow<'static, str> },
    #[error(
        "there is no job {} to wait for, or it ended long ago: leave it out if it ended as it should",
        job.0
    )]
    UnknownBefore { job: JobId },
    #[error(
        "job {0} did not succeed, so this would never start: run job {0} again, or wait for any end",
        job.0
    )]
    FailedBefore { job: JobId },
    #[error("job {} is no job of an array: cancel it alone", job.0)]
    NoArray { job: JobId },
    #[error("a value of {given} {}: give 0 to {most}", out_of(*given))]
    BadValue { given: Money, most: Money },
    #[error("a value may only fall: later steps must be later and worth no more")]
    RisingValue,
    #[error("the job and its bid are not of the same user: bid for yourself")]
    OthersBid { user: UserId, bidder: UserId },

    // Names that nobody knows.
    #[error("no {kind} is called `{name}`: known are {}", list(known))]
    Unknown { kind: Cow<'static, str>, name: Name, known: Vec<Name> },
    #[error("there is no such user: create the account first")]
    UnknownUser { user: UserId },
    #[error("there is no such group: create it first")]
    UnknownGroup { group: GroupId },
    #[error("there is no such node, or it has left: list the nodes to see their names")]
    UnknownNode { node: NodeId },
    #[error("there is no job {}, or it ended long ago: list the jobs to see their numbers", job.0)]
    UnknownJob { job: JobId },
    #[error("there is no hold {}, or it has expired: ask for a new quote", hold.0)]
    UnknownHold { hold: HoldId },

    // What the cluster cannot do.
    #[error("no node could hold one replica of {asked}, even when empty: {best}")]
    NeverFits { asked: String, best: String },
    #[error(
        "{asked} {} were asked for, and {} {most}{}: ask for fewer",
        each.as_deref().map_or("GPUs".to_owned(), |each| format!("replicas of {each}")),
        room_of(pool, *pools, each.is_some()),
        narrowed(within)
    )]
    GangNeverFits {
        asked: u64,
        most: u64,
        /// What a replica needs, where replicas are counted and not GPUs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        each: Option<String>,
        /// The pool that has the most of them.
        pool: Name,
        /// How many pools have any.
        pools: usize,
        /// What leaves no more of the pool.
        within: Vec<String>,
    },
    #[error("there is no room in its window: widen it, or ask for less")]
    NoRoom,
    #[error(
        "the cheapest slot costs {price}, which is more than its value {value}: bid at least that, or widen the window"
    )]
    TooDear { price: Money, value: Money },
    #[error(
        "the price is now {price}, more than the {most} that was agreed to: agree to that, or leave it"
    )]
    PriceRose { price: Money, most: Money },
    #[error(
        "level {level} may promise itself at most {share} of pool {pool} at a time: ask for less, for another time, or elsewhere"
    )]
    LevelShare { level: u8, share: Milli, pool: Name },

    // Quotas and money.
    #[error(
        "the {scope} may hold {} {} at once: this asks for {} beside {}: ask for less, or for another time",
        count(what, *limit), whole(what), count(what, *asked), count(what, *held)
    )]
    QuotaConcurrent { scope: QuotaScope, what: String, limit: u64, held: u64, asked: u64 },
    #[error(
        "the {scope} may use {} {} in a period: {} are used, this asks for {}: ask for less, or for more quota",
        count(what, *limit), whole(what), count(what, *used), count(what, *asked)
    )]
    QuotaPeriod { scope: QuotaScope, what: String, limit: u64, used: u64, asked: u64 },
    #[error(
        "the parts of the group would add up to {} {}, more than its own {}: lower a part, or raise the group's",
        count(what, *sum), whole(what), count(what, *limit)
    )]
    QuotaSum { group: GroupId, what: String, sum: u64, limit: u64 },
    #[error(
        "the wallet holds {balance} credits and this needs {needed}: ask for less, or have an administrator grant credits"
    )]
    Funds { balance: Money, needed: Money },
    #[error("the amount {given} {}: give more than 0 and at most {most}", out_of(*given))]
    BadAmount { given: Money, most: Money },
    #[error("at most {most} holds at a time: accept one or let it expire")]
    TooManyHolds { most: u32 },

    // Rights.
    #[error("job {} belongs to somebody else: only its owner and administrators may touch it", job.0)]
    NotYours { job: JobId },
    #[error(
        "only an administrator of the group may do this: ask one, or an administrator of the house"
    )]
    NotGroupAdmin { user: UserId, group: GroupId },

    // States.
    #[error("job {} is {state}: {hint}", job.0)]
    WrongState { job: JobId, state: String, hint: Cow<'static, str> },
    #[error("{what} `{name}` exists already: choose another name")]
    Exists { what: Cow<'static, str>, name: Name },
    #[error(
        "the node still has running tasks or promises that fit nowhere else (jobs: {}): drain it and wait, or report it lost",
        numbers(jobs)
    )]
    NodeBusy { node: NodeId, jobs: Vec<JobId> },
    #[error("{what} `{name}` is still in use: {hint}")]
    InUse { what: Cow<'static, str>, name: Name, hint: Cow<'static, str> },
    #[error("setting {field}: {problem}")]
    BadSetting { field: String, problem: String },
    #[error("formula: {problem}, at character {at}")]
    BadFormula { at: usize, problem: String },
    #[error("forecast: {problem}")]
    BadForecast { problem: String },
    #[error("the key was used before with another request: use a new key")]
    KeyReused,
    #[error("input {given} is out of order: {expected} comes next")]
    OutOfOrder { given: u64, expected: u64 },
    #[error("the time {given} is out of range: give one from 1970 to 9999")]
    BadTime { given: Time },
    #[error("the limit of {limit} {what} is reached: wait, or remove one first")]
    Limit { what: Cow<'static, str>, limit: usize },
}

/// Whose quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuotaScope {
    /// One user's own.
    User(UserId),
    /// The whole group's.
    Group(GroupId),
}

impl std::fmt::Display for QuotaScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QuotaScope::User(_) => f.write_str("user"),
            QuotaScope::Group(_) => f.write_str("group"),
        }
    }
}

fn list(names: &[Name]) -> String {
    if names.is_empty() {
        return "none".into();
    }
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}

/// What is wrong with an amount that is not within its range.
fn out_of(given: Money) -> &'static str {
    if given < Money::ZERO { "must not be negative" } else { "is out of range" }
}

/// The parts of a unit that quotas may count in, and how many decimals they are.
const PARTS: [(&str, u32); 2] = [("milli-", 3), ("micro-", 6)];

/// What a quota counts, as people call it: GPUs, whatever part of one it counts in.
fn whole(what: &str) -> &str {
    PARTS.iter().find_map(|(part, _)| what.strip_prefix(part)).unwrap_or(what)
}

/// An amount of it: 500 milli-gpus are 0.5 of a GPU.
fn count(what: &str, amount: u64) -> String {
    let Some((_, decimals)) = PARTS.iter().find(|(part, _)| what.starts_with(part)) else {
        return amount.to_string();
    };
    let of_one = 10_u64.pow(*decimals);
    let places = *decimals as usize;
    let text = format!("{}.{:0places$}", amount / of_one, amount % of_one);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn numbers(jobs: &[JobId]) -> String {
    jobs.iter().map(|job| job.0.to_string()).collect::<Vec<_>>().join(", ")
}

/// A gang runs in one pool, which is worth saying where there are several.
fn room_of(pool: &Name, pools: usize, of_replicas: bool) -> String {
    let has = if of_replicas { "has room, when empty, for" } else { "has" };
    match pools {
        0 | 1 => format!("pool {pool} {has}"),
        _ => format!("a job runs in one pool: the largest that it may use, {pool}, {has}"),
    }
}

fn narrowed(all: &[String]) -> String {
    if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
}

impl Refusal {
    /// The stable code, for programs.
    pub fn code(&self) -> String {
        // The serialised tag is the code: one source for both.
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(map)) => {
                map.get("code").and_then(|c| c.as_str()).unwrap_or("refused").to_owned()
            }
            _ => "refused".to_owned(),
        }
    }

    /// The field of the input that it is about, where there is one.
    pub fn field(&self) -> Option<&str> {
        Some(match self {
            Refusal::BadDuration { .. } => "duration",
            Refusal::BadReplicas { .. } | Refusal::GangNeverFits { .. } => "shape",
            Refusal::BadGpuTotal { .. }
            | Refusal::NothingAsked
            | Refusal::BrokenGpu { .. }
            | Refusal::GpuFilterWithoutGpu
            | Refusal::TooLarge
            | Refusal::NeverFits { .. } => "each",
            Refusal::BadWindow { .. }
            | Refusal::WindowPast { .. }
            | Refusal::BeyondHorizon { .. }
            | Refusal::WindowTooShort { .. }
            | Refusal::NoRoom => "window",
            Refusal::TooMany { what, .. } => match what.as_ref() {
                "alternatives" => "one_of",
                "requests" => "all_of",
                "value steps" => "value",
                "dependencies" | "dependencies of an array" => "after",
                "replicas on a node" => "constraints",
                what => what,
            },
            Refusal::LevelShare { .. } => "pool",
            Refusal::PriceRose { .. } => "most",
            Refusal::NotGroupAdmin { .. } => "by",
            Refusal::Exists { .. } | Refusal::InUse { .. } => "name",
            Refusal::BadSetting { field, .. } => field,
            Refusal::BadForecast { .. } => "forecast",
            Refusal::OutOfOrder { .. } => "seq",
            Refusal::BadTime { .. } => "at",
            Refusal::BadOrder { .. }
            | Refusal::UnknownBefore { .. }
            | Refusal::FailedBefore { .. } => "after",
            Refusal::BadArray { .. } => "array",
            Refusal::NotWithBid { what, .. } => what,
            Refusal::BadValue { .. } | Refusal::RisingValue | Refusal::TooDear { .. } => "value",
            Refusal::Unknown { kind, .. } => kind,
            Refusal::UnknownUser { .. } | Refusal::OthersBid { .. } => "user",
            Refusal::UnknownGroup { .. } | Refusal::QuotaSum { .. } => "group",
            Refusal::UnknownNode { .. } | Refusal::NodeBusy { .. } => "node",
            Refusal::UnknownJob { .. }
            | Refusal::NoArray { .. }
            | Refusal::NotYours { .. }
            | Refusal::WrongState { .. } => "job",
            Refusal::UnknownHold { .. } => "hold",
            Refusal::BadFormula { .. } => "formula",
            Refusal::KeyReused => "key",
            Refusal::BadAmount { .. } => "amount",
            _ => return None,
        })
    }
}
