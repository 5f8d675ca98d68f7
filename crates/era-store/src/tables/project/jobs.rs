//! What becomes of a job's row.

use std::collections::BTreeMap;

use era_core::Command;
use era_core::bid::{Bid, Request, Shape};
use era_core::input::{NewJob, Terms};
use era_core::job::{Outcome, Plan, StopReason};
use era_core::refusal::Refusal;
use era_core::units::{HoldId, JobId, Money, Name, Span, Time, Title, UserId};
use era_spec::{ArraySpec, JobState};

use super::Projection;
use super::memory::{LiveJob, LivePart, Untouched};
use crate::tables::rows::{JobRow, RefusalRow};

/// Who handed something in that can be refused as demand.
pub(super) fn asker(command: &Command) -> Option<UserId> {
    match command {
        Command::Submit { job, .. } => Some(job.user),
        Command::Hold { bid, .. } => Some(bid.user),
        _ => None,
    }
}

impl Projection<'_> {
    pub(super) fn promised(&mut self, id: JobId, user: UserId, price: Money, plans: &[Plan]) {
        let entry = self.entry;
        let Command::Submit { job, .. } = &entry.input.command else { return };
        let requests = match &job.terms {
            Terms::Bid { bid, .. } => accepted(bid, plans),
            Terms::Hold { hold, .. } => {
                self.memory.holds.get(hold).and_then(|bid| accepted(bid, plans))
            }
            Terms::Queue { request, .. } => Some(std::slice::from_ref(request)),
        };
        let requests = requests.map(<[Request]>::to_vec).unwrap_or_default();
        let told = plans.iter().map(|plan| Some(plan.from));
        let parts: Vec<LivePart> =
            requests.into_iter().zip(told).map(|(r, told)| LivePart::new(r, told)).collect();
        let mut live = self.new_job(id, user, job, parts);
        live.row.state = JobState::Promised;
        live.row.price = price.0;
        live.row.promised_start = plans.iter().map(|plan| plan.from).min();
        live.row.promised_finish = plans.iter().map(|plan| plan.to).max();
        self.add(live);
    }

    /// One job, or as many as are counted with numbers that follow one another: an array.
    pub(super) fn queued(&mut self, id: JobId, user: UserId, queue: &Name, count: u32) {
        let entry = self.entry;
        let Command::Submit { job, .. } = &entry.input.command else { return };
        let Terms::Queue { request, .. } = &job.terms else { return };
        let mut live = self.new_job(id, user, job, vec![LivePart::new(request.clone(), None)]);
        live.row.queue = Some(queue.to_string());
        let array = entry.note.spec.as_ref().and_then(|spec| spec.array);
        if count <= 1 && array.is_none() {
            return self.add(live);
        }
        self.keep_spec(id);
        self.changes.tally(entry.input.at, "jobs", i64::from(count));
        let indices = array.unwrap_or(ArraySpec { from: 0, to: count - 1, step: 1, limit: None });
        live.row.array = Some((id, indices.nth(0)));
        self.changes.untouched.insert(id);
        self.memory.arrays.insert(id, Untouched { first: live, count, indices });
    }

    fn keep_spec(&mut self, id: JobId) {
        // Strings and numbers only, so writing to memory cannot fail.
        let spec = self.entry.note.spec.as_ref().and_then(|spec| serde_json::to_string(spec).ok());
        self.changes.specs.extend(spec.map(|spec| (id, spec)));
    }

    fn add(&mut self, live: LiveJob) {
        let (id, at) = (live.row.id, self.at());
        self.keep_spec(id);
        self.changes.tally(at, "jobs", 1);
        self.changes.touched.insert(id);
        self.memory.jobs.insert(id, live);
    }

    fn new_job(&self, id: JobId, user: UserId, job: &NewJob, parts: Vec<LivePart>) -> LiveJob {
        let note = &self.entry.note;
        let team = self.memory.team_of(user);
        let first = parts.first().map(|part| &part.request);
        let longest = parts.iter().map(|part| part.request.duration).max();
        let at = self.at();
        let project = note.spec.as_ref().and_then(|spec| spec.project.as_ref());
        let row = JobRow {
            id,
            name: job.name.as_ref().map(Title::to_string),
            account: user,
            account_name: note.user.clone().unwrap_or_else(|| self.memory.account_name(user)),
            team,
            team_name: note.group.clone().unwrap_or_else(|| self.memory.team_name(team)),
            state: JobState::Waiting,
            queue: None,
            submitted: at,
            promised_start: None,
            promised_finish: None,
            started: None,
            ended: None,
            exit_code: None,
            price: 0,
            resources: first.map_or_else(|| "{}".to_owned(), resources),
            replicas: first.map_or(1, |request| request.shape.promised()),
            duration_ms: longest.unwrap_or(Span::ZERO).0,
            array: None,
            simulated: false,
            reason: None,
            attempts: 0,
            charged: 0,
            refunded: 0,
            changed: self.seq(),
            project: project.map(|told| told.trim().to_owned()),
        };
        LiveJob {
            row,
            parts,
            accept_ms: note.received_ms.map(|received| (at.0 - received).max(0)),
            quote_us: note.quote_us,
            launched: None,
            ran: false,
            kept: None,
            gpu_ms: 0,
            model: None,
            prepared_ms: 0,
            bad_code: None,
            cause: None,
        }
    }

    pub(super) fn held(&mut self, hold: HoldId) {
        if let Command::Hold { bid, .. } = &self.entry.input.command {
            self.memory.holds.insert(hold, bid.clone());
            self.changes.holds.insert(hold);
        }
    }

    pub(super) fn hold_ended(&mut self, hold: HoldId) {
        self.memory.holds.remove(&hold);
        self.changes.holds.insert(hold);
    }

    pub(super) fn refused(&mut self, refusal: &Refusal) {
        let Some(account) = asker(&self.entry.input.command) else { return };
        let price = self.entry.events.iter().find_map(|event| match event {
            era_core::Event::BidDeclined { price, .. } => *price,
            _ => None,
        });
        let (seq, at) = (self.seq(), self.at());
        self.changes.tally(at, "refusals", 1);
        self.changes.refusals.push(RefusalRow {
            seq,
            at,
            account,
            code: refusal.code(),
            sentence: refusal.to_string(),
            price: price.map(|price| price.0),
        });
    }

    pub(super) fn stopping(&mut self, id: JobId, part: u16, why: StopReason, until: Time) {
        self.change(id, |live, _| {
            live.row.state = JobState::Stopping;
            if let Some(part) = live.parts.get_mut(usize::from(part)) {
                part.stop = Some((why, until));
            }
        });
    }

    pub(super) fn part_done(&mut self, id: JobId, part: u16) {
        self.close_attempt(id, part);
        self.change(id, |live, _| {
            if let Some(part) = live.parts.get_mut(usize::from(part)) {
                part.done = true;
            }
            live.row.state = state_of(live);
        });
    }

    pub(super) fn requeued(&mut self, id: JobId) {
        self.close_attempt(id, 0);
        self.change(id, |live, _| {
            live.row.state = JobState::Waiting;
            live.row.started = None;
        });
    }

    pub(super) fn replanned(&mut self, id: JobId, to: Time) {
        self.change(id, |live, _| {
            // What was told and not kept is seen when it starts.
            live.row.promised_finish = live.row.promised_finish.max(Some(to));
        });
    }

    pub(super) fn broken(&mut self, id: JobId, reason: &str) {
        let at = self.at();
        self.change(id, |live, changes| {
            live.row.reason = Some(format!("the promise could not be kept: {reason}"));
            let due = live.row.promised_start.unwrap_or(at);
            match live.kept.replace(false) {
                None => changes.tally(due, "promises_due", 1),
                Some(true) => changes.tally(due, "promises_kept", -1),
                Some(false) => {}
            }
        });
    }

    pub(super) fn extended(&mut self, id: JobId, to: Time) {
        self.change(id, |live, _| {
            live.row.promised_finish = live.row.promised_finish.max(Some(to));
        });
    }

    pub(super) fn edited(&mut self, id: JobId) {
        let entry = self.entry;
        let Command::Edit { limit, queue, .. } = &entry.input.command else { return };
        let (limit, queue) = (*limit, queue.clone());
        self.change(id, |live, _| {
            if let Some(limit) = limit {
                live.row.duration_ms = limit.0;
                if let Some(part) = live.parts.first_mut() {
                    part.request.duration = limit;
                }
            }
            if let Some(queue) = queue {
                live.row.queue = Some(queue.to_string());
            }
        });
    }

    pub(super) fn ended(&mut self, id: JobId, outcome: &Outcome, before: Option<Time>) {
        let parts = self.memory.job(id).map_or(0, |live| live.parts.len());
        for part in 0..parts {
            self.close_attempt(id, u16::try_from(part).unwrap_or(u16::MAX));
        }
        let at = self.at();
        self.change(id, |live, changes| {
            live.row.ended = Some(before.unwrap_or(at));
            live.row.state = over(outcome);
            live.row.exit_code = match outcome {
                Outcome::Succeeded => Some(0),
                Outcome::Failed { code } => Some(*code),
                _ => live.bad_code,
            };
            if live.row.reason.is_none() {
                live.row.reason = Some(reason(outcome, live.cause.as_deref()));
            }
            let gave_up = matches!(outcome, Outcome::Cancelled | Outcome::Released);
            // A task may be over before anybody said that it runs.
            let ran = live.ran || *outcome == Outcome::Succeeded;
            if ran && !live.ran {
                changes.tally(at, "starts", 1);
                changes.tally(at, "starts_first", i64::from(live.row.attempts == 1));
                changes.tally(at, "starts_second", i64::from(live.row.attempts <= 2));
            }
            if ran && !gave_up {
                changes.tally(at, "runs", 1);
                changes.tally(at, "runs_ok", i64::from(*outcome == Outcome::Succeeded));
            }
            if !ran && !gave_up && live.row.attempts > 0 {
                changes.tally(at, "starts", 1);
            }
            let net = live.row.cost();
            if live.gpu_ms > 0 {
                let model = live.model.as_deref().unwrap_or("any");
                changes.tally(at, &format!("paid/{model}"), net);
                changes.tally(at, &format!("gpu_ms/{model}"), live.gpu_ms);
            }
        });
    }
}

/// The requests of the alternative that these plans are for.
fn accepted<'a>(bid: &'a Bid, plans: &[Plan]) -> Option<&'a [Request]> {
    let fits = |request: &Request, plan: &Plan| {
        let seats = match request.shape {
            Shape::Replicas { min, .. } => plan.seats.len() == min as usize,
            Shape::Gpus { .. } => true,
        };
        let pool = request.constraints.pool.as_ref().is_none_or(|pool| *pool == plan.pool);
        seats && pool && plan.to.since(plan.from) == request.duration
    };
    let same = |requests: &&[Request]| {
        requests.len() == plans.len() && requests.iter().zip(plans).all(|(r, p)| fits(r, p))
    };
    let mut alternatives = bid.one_of.iter().map(|all| all.all_of.as_slice());
    alternatives.find(same).or_else(|| bid.one_of.first().map(|all| all.all_of.as_slice()))
}

/// What each replica needs, as a JSON object of texts.
fn resources(request: &Request) -> String {
    let pairs: BTreeMap<String, String> = request.each.clone().into();
    // Texts only: writing cannot fail.
    serde_json::to_string(&pairs).unwrap_or_default()
}

/// Where a job stands by what its parts do.
pub(super) fn state_of(live: &LiveJob) -> JobState {
    let open = |part: &&LivePart| part.active;
    let parts = || live.parts.iter().filter(open);
    if parts().any(|part| part.stop.is_some()) {
        JobState::Stopping
    } else if parts().any(|part| part.running) {
        JobState::Running
    } else if parts().next().is_some() {
        JobState::Starting
    } else if live.row.queue.is_some() {
        JobState::Waiting
    } else {
        JobState::Promised
    }
}

fn over(outcome: &Outcome) -> JobState {
    match outcome {
        Outcome::Succeeded => JobState::Succeeded,
        Outcome::Failed { .. } => JobState::Failed,
        Outcome::Cancelled | Outcome::Unfulfilled { .. } => JobState::Cancelled,
        Outcome::Released => JobState::Released,
        Outcome::LimitReached => JobState::LimitReached,
        Outcome::Broken { .. } => JobState::Broken,
    }
}

/// How a job ended, in a sentence.
fn reason(outcome: &Outcome, cause: Option<&str>) -> String {
    let (cause, why) = cause.map_or((None, None), |cause| match cause.split_once(": ") {
        Some((cause, why)) => (Some(cause), Some(why)),
        None => (Some(cause), None),
    });
    match (outcome, cause) {
        (Outcome::Failed { .. }, Some("out_of_memory")) => {
            "it used more memory than it had asked for: ask for more".to_owned()
        }
        (Outcome::Failed { .. }, Some("out_of_disk")) => {
            "it filled more disk than it may: write less, or have the limit raised".to_owned()
        }
        (Outcome::Failed { .. }, Some("not_started")) => {
            format!("it could not be started: {}", why.unwrap_or("its log says why"))
        }
        (Outcome::Failed { code }, _) => format!("a task exited with code {code}"),
        (Outcome::Succeeded, _) => "every task exited with code 0".to_owned(),
        (Outcome::Cancelled, _) => "it was cancelled".to_owned(),
        (Outcome::Unfulfilled { job }, _) => {
            format!("job {}, which had to succeed first, did not", job.0)
        }
        (Outcome::Released, _) => "what was left of its time was given back".to_owned(),
        (Outcome::LimitReached, _) => "its time was over".to_owned(),
        (Outcome::Broken { reason }, _) => format!("the promise could not be kept: {reason}"),
    }
}
