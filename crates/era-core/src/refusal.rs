//! Every way in which the core says no.
//!
//! A refusal has a stable code for programs, a sentence for people that says what is wrong and
//! what would be right, and the field that it is about. A refused input changes nothing.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::units::{GroupId, HoldId, JobId, Milli, Money, Name, NodeId, Span, Time, UserId};

/// Why an input was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
#[allow(missing_docs)] // the sentence above each variant says what its fields are
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
        "there is no job {job} to wait for, or it ended long ago: leave it out if it ended as it should"
    )]
    UnknownBefore { job: JobId },
    #[error(
        "{job} did not succeed, so this would never start: run {job} again, or wait for any end"
    )]
    FailedBefore { job: JobId },
    #[error("{job} is no job of an array: cancel it alone")]
    NoArray { job: JobId },
    #[error("a value of {given} is out of range: give 0 to {most}")]
    BadValue { given: Money, most: Money },
    #[error("a value may only fall: later steps must be later and worth no more")]
    RisingValue,
    #[error("the job is {user}'s and the bid {bidder}'s: bid for yourself")]
    OthersBid { user: UserId, bidder: UserId },

    // Names that nobody knows.
    #[error("no {kind} is called `{name}`: known are {}", list(known))]
    Unknown { kind: Cow<'static, str>, name: Name, known: Vec<Name> },
    #[error("there is no user {user}: create the account first")]
    UnknownUser { user: UserId },
    #[error("there is no group {group}: create it first")]
    UnknownGroup { group: GroupId },
    #[error("there is no node {node}, or it has left: list the nodes to see their numbers")]
    UnknownNode { node: NodeId },
    #[error("there is no job {job}, or it ended long ago: list the jobs to see their numbers")]
    UnknownJob { job: JobId },
    #[error("there is no hold {hold}, or it has expired: ask for a new quote")]
    UnknownHold { hold: HoldId },

    // What the cluster cannot do.
    #[error("no node could hold one replica of {asked}, even when empty: {best}")]
    NeverFits { asked: String, best: String },
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
        "{scope} may hold {limit} {what} at once: this asks for {asked} beside {held}: ask for less, or for another time"
    )]
    QuotaConcurrent { scope: Scope, what: String, limit: u64, held: u64, asked: u64 },
    #[error(
        "{scope} may use {limit} {what} in a period: {used} are used, this asks for {asked}: ask for less, or for more quota"
    )]
    QuotaPeriod { scope: Scope, what: String, limit: u64, used: u64, asked: u64 },
    #[error(
        "the parts of {group} would add up to {sum} {what}, more than its own {limit}: lower a part, or raise the group's"
    )]
    QuotaSum { group: GroupId, what: String, sum: u64, limit: u64 },
    #[error("the wallet holds {balance}, this needs {needed}: ask for less, or for a grant")]
    Funds { balance: Money, needed: Money },
    #[error("the amount {given} is out of range: give more than 0 and at most {most}")]
    BadAmount { given: Money, most: Money },
    #[error("at most {most} holds at a time: accept one or let it expire")]
    TooManyHolds { most: u32 },

    // Rights.
    #[error("{job} belongs to somebody else: only its owner and administrators may touch it")]
    NotYours { job: JobId },
    #[error("{user} is no administrator of {group}: ask one, or an administrator of the house")]
    NotGroupAdmin { user: UserId, group: GroupId },

    // States.
    #[error("{job} is {state}: {hint}")]
    WrongState { job: JobId, state: String, hint: Cow<'static, str> },
    #[error("{what} `{name}` exists already: choose another name")]
    Exists { what: Cow<'static, str>, name: Name },
    #[error(
        "{node} still has running tasks or promises that fit nowhere else ({jobs:?}): drain it and wait, or report it lost"
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
pub enum Scope {
    /// One user's own.
    User(UserId),
    /// The whole group's.
    Group(GroupId),
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scope::User(user) => write!(f, "user {user}"),
            Scope::Group(group) => write!(f, "group {group}"),
        }
    }
}

fn list(names: &[Name]) -> String {
    if names.is_empty() {
        return "none".into();
    }
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
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
            Refusal::BadReplicas { .. } => "shape",
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
