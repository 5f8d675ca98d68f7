//! What became of each job: told by the events of a run, recorded or not.

use std::collections::BTreeMap;

use era_core::bid::{Request, Value};
use era_core::job::{Attempt, Outcome, Part, Plan, StopReason, each_of};
use era_core::ledger::Account;
use era_core::units::{GroupId, JobId, Money, Name, NodeId, Span, Time, UserId};
use era_core::{Command, Event, Input, State};

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobHistory {
    pub user: UserId,
    /// The group that the owner was in.
    pub group: GroupId,
    /// When it was accepted.
    pub submitted: Time,
    /// What it bid; nothing for queue work.
    pub bid: Option<Value>,
    /// The most that was asked for: GPU thousandths, core thousandths where no GPU.
    pub size: u64,
    /// How long it was said to run.
    pub stated: Span,
    /// When its first task was sent out.
    pub started: Option<Time>,
    pub ended: Option<(Time, Outcome)>,
    /// What left its owner's wallet for it and did not come back.
    pub paid: Money,
    /// GPU thousandths (or core thousandths) times milliseconds that it had.
    pub had: u128,
    /// The model of the GPUs that it first got; nothing where it asked for none.
    pub model: Option<Name>,
    /// How often it was stopped and went back to its queue.
    pub requeued: u32,
    /// Whether somebody gave it up while it ran, so that nobody knows how long it would have run.
    pub cut_short: bool,
}

impl JobHistory {
    /// From submission to the first start.
    pub fn wait(&self) -> Option<Span> {
        self.started.map(|start| start.since(self.submitted))
    }

    /// What it was worth to its owner: its value at its finish, if it finished or had all the
    /// time that it was promised.
    pub fn value(&self) -> Money {
        match (&self.bid, &self.ended) {
            (Some(value), Some((at, Outcome::Succeeded | Outcome::LimitReached))) => value.at(*at),
            _ => Money::ZERO,
        }
    }
}

/// What a task held of a machine, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskStay {
    pub node: NodeId,
    /// Thousandths of a core, MiB, thousandths of a GPU.
    pub units: [u64; 3],
    pub from: Time,
    /// Until when; the end of time while it is there.
    pub to: Time,
}

/// What became of all jobs.
#[derive(Clone, Debug, Default)]
pub struct Book {
    pub stories: BTreeMap<JobId, JobHistory>,
    /// Parts that run: since when, and what they hold.
    running: BTreeMap<(JobId, u16), (Time, u64)>,
    /// Where tasks are, by job, part and rank.
    there: BTreeMap<(JobId, u16, u32), TaskStay>,
    gone: Vec<TaskStay>,
}

impl Book {
    /// A book that begins with the jobs of a state.
    pub fn of(state: &State) -> Book {
        let mut book = Book::default();
        let open: Vec<JobId> =
            state.jobs().filter(|job| job.ended.is_none()).map(|job| job.id).collect();
        for id in open {
            book.begin(state, id);
        }
        book
    }

    fn begin(&mut self, state: &State, id: JobId) {
        let Ok(job) = state.job(id) else { return };
        let mut started = None;
        for (index, part) in job.parts.iter().enumerate() {
            if let Some(Attempt { since, plan, .. }) = part.run() {
                let first = started.get_or_insert(*since);
                *first = *since.min(first);
                self.running.insert((id, index as u16), (*since, units(&part.request)));
                self.come((id, index as u16), &part.request, plan, *since);
            }
            self.grow((id, index as u16), part, state.now());
        }
        let size = job.parts.iter().map(|part| units(&part.request)).max();
        let stated = job.parts.iter().map(|part| part.request.duration).max();
        let story = JobHistory {
            user: job.user,
            group: job.group,
            submitted: job.submitted,
            bid: job.promise().map(|promise| promise.bid.value.clone()),
            size: size.unwrap_or(0),
            stated: stated.unwrap_or(Span::ZERO),
            started,
            ended: None,
            paid: Money::ZERO,
            had: 0,
            model: None,
            requeued: 0,
            cut_short: false,
        };
        self.stories.insert(id, story);
    }

    /// A job was accepted.
    fn announce(&mut self, state: &State, job: JobId) {
        // What was charged before it was announced is its own too.
        let paid = self.stories.get(&job).map(|story| story.paid);
        self.begin(state, job);
        if let (Some(paid), Some(story)) = (paid, self.stories.get_mut(&job)) {
            story.paid = paid;
        }
        // It may have started in the same step; the event that says so follows.
        let next = JobId(job.0 + 1);
        self.running.extract_if((job, 0)..(next, 0), |_, _| true).for_each(drop);
        self.there.extract_if((job, 0, 0)..(next, 0, 0), |_, _| true).for_each(drop);
        if let Some(story) = self.stories.get_mut(&job) {
            story.started = None;
        }
    }

    /// Takes note of what a step decided. `state` is as the step left it.
    pub fn follow(&mut self, state: &State, input: &Input, events: &[Event]) {
        let now = state.now();
        for event in events {
            if let Some((job, count)) = event.accepted() {
                (0..u64::from(count)).for_each(|nth| self.announce(state, JobId(job.0 + nth)));
            }
            match event {
                Event::Launched { job, part, plan, .. } => {
                    let request = state.job(*job).ok().and_then(|job| {
                        job.parts.get(usize::from(*part)).map(|part| &*part.request)
                    });
                    if let Some(request) = request {
                        self.running.insert((*job, *part), (now, units(request)));
                        self.come((*job, *part), request, plan, now);
                    }
                    if let Some(story) = self.stories.get_mut(job) {
                        story.started.get_or_insert(now);
                        let on_gpus = request.is_some_and(|request| request.each.gpu > 0);
                        let model = || model_of(state, plan);
                        story.model = story.model.take().or_else(|| on_gpus.then(model).flatten());
                    }
                }
                Event::Stopping { job, why, .. } => {
                    let cut = matches!(
                        why,
                        StopReason::Cancelled | StopReason::Released | StopReason::Limit
                    );
                    if let Some(story) = self.stories.get_mut(job) {
                        story.cut_short |= cut;
                    }
                }
                Event::Resized { job, part, .. } => {
                    let parts = state.job(*job).ok().map(|job| &job.parts);
                    if let Some(of) = parts.and_then(|parts| parts.get(usize::from(*part))) {
                        self.grow((*job, *part), of, now);
                    }
                }
                Event::TaskEnded { task, .. } => {
                    let told = match &input.command {
                        Command::Exited { task: told, at, .. } if told == task => *at,
                        _ => None,
                    };
                    self.leave((task.job, task.part, task.rank), told.unwrap_or(now));
                }
                Event::PartDone { job, part } => {
                    self.stops(*job, *part, done_at(state, *job, *part));
                }
                Event::Requeued { job, .. } => {
                    self.stops(*job, 0, now);
                    if let Some(story) = self.stories.get_mut(job) {
                        story.requeued += 1;
                    }
                }
                Event::Replanned { job, part, .. } => self.stops(*job, *part, now),
                Event::Ended { job, outcome, at } => {
                    let at = at.unwrap_or(now);
                    let parts: Vec<u16> =
                        self.running.keys().filter(|(id, _)| id == job).map(|(_, p)| *p).collect();
                    for part in parts {
                        self.stops(*job, part, at);
                    }
                    if let Some(story) = self.stories.get_mut(job) {
                        story.ended = Some((at, outcome.clone()));
                    }
                }
                Event::Posted { job: Some(job), posting } => {
                    let amount = match (posting.from, posting.to) {
                        (Account::Wallet(_), _) => posting.amount.0,
                        (_, Account::Wallet(_)) => -posting.amount.0,
                        _ => 0,
                    };
                    if !self.stories.contains_key(job) {
                        self.begin(state, *job);
                    }
                    if let Some(story) = self.stories.get_mut(job) {
                        story.paid = Money(story.paid.0.saturating_add(amount));
                    }
                }
                _ => {}
            }
        }
    }

    fn stops(&mut self, job: JobId, part: u16, now: Time) {
        let tasks = self.there.range((job, part, 0)..=(job, part, u32::MAX)).map(|(key, _)| *key);
        for task in tasks.collect::<Vec<_>>() {
            self.leave(task, now);
        }
        let Some((since, size)) = self.running.remove(&(job, part)) else { return };
        let ms = now.since(since).0.max(0).unsigned_abs();
        if let Some(story) = self.stories.get_mut(&job) {
            story.had += u128::from(size) * u128::from(ms);
        }
    }

    /// The tasks of a plan are there.
    fn come(&mut self, (job, part): (JobId, u16), request: &Request, plan: &Plan, from: Time) {
        for (rank, seat) in (0..).zip(&plan.seats) {
            let units = each_of(request, plan.gpus_per_node, rank).units(1);
            let stay = TaskStay { node: seat.node, units, from, to: Time::MAX };
            self.there.insert((job, part, rank), stay);
        }
    }

    /// Growth beyond a promise that is new is there from now on; what was told to stop is gone by
    /// then, whether it says so or not.
    fn grow(&mut self, (job, index): (JobId, u16), part: &Part, now: Time) {
        for extra in part.extras() {
            let units = part.request.each.units(1);
            let new = TaskStay { node: extra.seat.node, units, from: now, to: Time::MAX };
            let stay = self.there.entry((job, index, extra.rank)).or_insert(new);
            stay.to = extra.stop_until.unwrap_or(Time::MAX);
        }
    }

    /// A task is gone.
    fn leave(&mut self, task: (JobId, u16, u32), now: Time) {
        if let Some(stay) = self.there.remove(&task) {
            self.gone.push(TaskStay { to: now.min(stay.to).max(stay.from), ..stay });
        }
    }

    pub fn stays(&self) -> impl Iterator<Item = TaskStay> {
        self.gone.iter().chain(self.there.values()).copied()
    }
}

/// When a part was over: what ended while no scheduler was there is heard of before time goes on.
pub(super) fn done_at(state: &State, job: JobId, part: u16) -> Time {
    let part = state.job(job).ok().and_then(|job| job.parts.get(usize::from(part)));
    part.and_then(Part::done_at).unwrap_or(state.now())
}

/// When a task of a job exited, if that is what an input says and knows better than its own time.
pub(super) fn exited(input: &Input, job: JobId) -> Option<Time> {
    match &input.command {
        Command::Exited { task, at, .. } if task.job == job => *at,
        _ => None,
    }
}

/// The model of the GPUs where a plan begins.
fn model_of(state: &State, plan: &Plan) -> Option<Name> {
    let node = state.cluster().node(plan.seats.first()?.node).ok()?;
    node.capacity.gpus.first().map(|gpu| gpu.model.clone())
}

/// What a request holds: GPU thousandths, or core thousandths where it asks for no GPU.
fn units(request: &Request) -> u64 {
    let [cpu, _, gpu] = request.units();
    if gpu > 0 { gpu } else { cpu }
}
