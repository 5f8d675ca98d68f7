//! The record beside the same history under another rule: who gained, who lost, and what cannot
//! be compared.

use std::collections::BTreeMap;

use era_core::Command;
use era_core::units::{GroupId, JobId, Time, UserId};
use serde::Serialize;

use super::book::JobHistory;
use super::history::RecordedHistory;
use super::rerun::Rerun;

/// Sums over the jobs of somebody under one rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Jobs that were accepted.
    pub accepted: u64,
    /// Mean wait from submission to the first start, over jobs that started under both rules.
    pub mean_wait_s: f64,
    /// Value received, in micro-credits.
    pub value: i64,
    /// What it cost, in micro-credits.
    pub paid: i64,
    #[serde(skip)]
    wait_ms: i128,
    #[serde(skip)]
    waits: u64,
}

/// A user or a group under both rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComparedParty {
    pub id: u32,
    /// Jobs that are compared.
    pub jobs: u64,
    /// As it was.
    pub recorded: Figures,
    /// As it would have been.
    pub other: Figures,
    /// Value less cost: what it would have had more, in micro-credits.
    pub net_change: i64,
    /// How much longer its jobs would have waited, on average.
    pub wait_change_s: f64,
}

/// Two rules on one history.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// All users together.
    pub total: ComparedParty,
    /// By user: who gains most first.
    pub users: Vec<ComparedParty>,
    /// By group: who gains most first.
    pub groups: Vec<ComparedParty>,
    /// What could not be compared, or only with an assumption, and how often.
    pub not_comparable: BTreeMap<&'static str, u64>,
}

/// A job under both rules.
struct Pair<'a> {
    recorded: Option<&'a JobHistory>,
    other: Option<&'a JobHistory>,
}

/// Sets a rerun beside its record.
pub fn compare(history: &RecordedHistory, rerun: &Rerun) -> Comparison {
    let mut notes = Notes::default();
    let mut users: BTreeMap<UserId, ComparedParty> = BTreeMap::new();
    let mut groups: BTreeMap<GroupId, ComparedParty> = BTreeMap::new();
    let mut total = ComparedParty::default();
    for pair in pairs(history, rerun) {
        let Some(either) = pair.recorded.or(pair.other) else { continue };
        if !notes.is_comparable(history.end, &pair) {
            continue;
        }
        let user = users.entry(either.user).or_default();
        let group = groups.entry(either.group).or_default();
        for party in [user, group, &mut total] {
            party.add(&pair);
        }
    }
    notes.count("asks_granted_there_impossible_here", rerun.skipped);
    notes.count("tasks_reported_lost_not_replayed", history.tasks_lost);
    total.finish();
    Comparison {
        total,
        users: ranked(users.into_iter().map(|(id, party)| ComparedParty { id: id.0, ..party })),
        groups: ranked(groups.into_iter().map(|(id, party)| ComparedParty { id: id.0, ..party })),
        not_comparable: notes.0,
    }
}

/// All jobs that were handed in, each once.
fn pairs<'a>(history: &'a RecordedHistory, rerun: &'a Rerun) -> Vec<Pair<'a>> {
    let recorded = &history.book.stories;
    let mut pairs: Vec<Pair<'a>> = recorded
        .iter()
        .map(|(id, story)| {
            let here: Option<&JobId> = rerun.job_of.get(id);
            let other = here.and_then(|here| rerun.book.stories.get(here));
            Pair { recorded: Some(story), other }
        })
        .collect();
    for (place, here) in &rerun.accepted_here {
        let submits = history.asks.get(*place).map(|ask| &ask.command);
        if matches!(submits, Some(Command::Submit { .. })) {
            pairs.push(Pair { recorded: None, other: rerun.book.stories.get(here) });
        }
    }
    pairs
}

fn ranked(parties: impl Iterator<Item = ComparedParty>) -> Vec<ComparedParty> {
    let mut parties: Vec<ComparedParty> = parties.collect();
    for party in &mut parties {
        party.finish();
    }
    let order = |a: &ComparedParty, b: &ComparedParty| {
        let by_net = b.net_change.cmp(&a.net_change);
        let by_wait = a.wait_change_s.total_cmp(&b.wait_change_s);
        by_net.then(by_wait).then(a.id.cmp(&b.id))
    };
    parties.sort_by(order);
    parties
}

impl ComparedParty {
    fn add(&mut self, pair: &Pair<'_>) {
        self.jobs += 1;
        let waits =
            match (pair.recorded.and_then(JobHistory::wait), pair.other.and_then(JobHistory::wait))
            {
                (Some(recorded), Some(other)) => Some((recorded, other)),
                _ => None,
            };
        let sides = [
            (&mut self.recorded, pair.recorded, waits.map(|w| w.0)),
            (&mut self.other, pair.other, waits.map(|w| w.1)),
        ];
        for (figures, story, wait) in sides {
            let Some(story) = story else { continue };
            figures.accepted += 1;
            figures.value = figures.value.saturating_add(story.value().0);
            figures.paid = figures.paid.saturating_add(story.paid.0);
            if let Some(wait) = wait {
                figures.wait_ms += i128::from(wait.0);
                figures.waits += 1;
            }
        }
    }

    fn finish(&mut self) {
        for figures in [&mut self.recorded, &mut self.other] {
            let mean_ms = figures.wait_ms as f64 / figures.waits.max(1) as f64;
            figures.mean_wait_s = (mean_ms / 1000.0 * 1000.0).round() / 1000.0;
        }
        let net = |figures: &Figures| figures.value.saturating_sub(figures.paid);
        self.net_change = net(&self.other).saturating_sub(net(&self.recorded));
        let change = self.other.mean_wait_s - self.recorded.mean_wait_s;
        self.wait_change_s = (change * 1000.0).round() / 1000.0;
    }
}

#[derive(Default)]
struct Notes(BTreeMap<&'static str, u64>);

impl Notes {
    fn count(&mut self, what: &'static str, by: u64) {
        if by > 0 {
            *self.0.entry(what).or_default() += by;
        }
    }

    /// Takes note of what is odd about a job, and says whether it can be compared at all.
    fn is_comparable(&mut self, end: Time, pair: &Pair<'_>) -> bool {
        match (pair.recorded, pair.other) {
            (Some(recorded), _) if recorded.ended.is_none() => {
                let what = match recorded.started {
                    Some(_) => "still_running_when_the_record_ends",
                    None => "still_waiting_when_the_record_ends",
                };
                self.count(what, 1);
                return false;
            }
            // In the record it would still be running, and left out.
            (None, Some(other)) if other.ended.as_ref().is_none_or(|(at, _)| *at > end) => {
                self.count("refused_there_still_running_here_when_the_record_ends", 1);
                return false;
            }
            (None, Some(_)) => self.count("refused_there_accepted_here", 1),
            (Some(_), None) => self.count("accepted_there_refused_here", 1),
            (Some(recorded), Some(other)) => {
                if recorded.cut_short {
                    self.count("length_unknown_cut_short_there", 1);
                } else if recorded.started.is_none() && other.started.is_some() {
                    self.count("length_unknown_never_started_there", 1);
                }
                if recorded.started.is_some() && other.started.is_none() {
                    self.count("started_there_never_here", 1);
                }
            }
            (None, None) => return false,
        }
        if pair.other.is_some_and(|other| other.ended.is_none()) {
            self.count("never_ended_here", 1);
        }
        true
    }
}
