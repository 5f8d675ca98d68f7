//! A workload like that of a large deep-learning cluster: Philly's sizes, durations, groups,
//! bursts and cycles, with users, stated durations, values and deadlines added.
//!
//! It is an iterator, so that millions of jobs need no more memory than one. The offered load is
//! exact because the jobs are drawn twice: once to add up their work, and once more to spread
//! them over as long a time as that work takes at the load asked for.

use super::curve::{Share, near, share};
use super::cycle::Cycle;
use super::fitted;
use crate::BadInput;
use crate::seeded::Seeded;
use crate::trace::{NameTable, Status, TraceJob};

/// No workload is larger.
pub const JOBS_MAX: u64 = 10_000_000;
const GPUS_MAX: u32 = 1_000_000;
const LOAD_MILLI: std::ops::RangeInclusive<u32> = 1..=100_000;

/// How many runs of jobs are under way at a time, taking turns.
const RUNS: usize = 4;
/// After a job, the next one is of another run in this many thousandths.
const TURN: u64 = 80;

/// What is asked of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhillySpec {
    /// Another seed gives another workload.
    pub seed: u64,
    /// How many jobs, at least 2.
    pub jobs: u64,
    /// How many GPUs the cluster has; no job asks for more.
    pub gpus: u32,
    /// The work that is submitted, as a share in thousandths of what the cluster could do from
    /// the first submission to the last.
    pub load_milli: u32,
}

/// The jobs, in order of submission; see [`philly`].
pub struct Philly {
    spec: PhillySpec,
    draws: Draws,
    cycle: Cycle,
    /// Gaps up to the job that was given last, and all of them.
    passed: u128,
    gaps: u128,
    span_s: u64,
    given: u64,
}

/// Generates a Philly-like workload. User and group numbers are those of [`philly_names`].
pub fn philly(spec: PhillySpec) -> Result<Philly, BadInput> {
    let problem = |field: &str, text: String| Err(BadInput::new(text).field(field));
    if !(2..=JOBS_MAX).contains(&spec.jobs) {
        return problem("jobs", format!("give 2 to {JOBS_MAX}, not {}", spec.jobs));
    }
    if !(1..=GPUS_MAX).contains(&spec.gpus) {
        return problem("gpus", format!("give 1 to {GPUS_MAX}, not {}", spec.gpus));
    }
    if !LOAD_MILLI.contains(&spec.load_milli) {
        return problem("load", "give 0.001 to 100".to_owned());
    }
    let (mut gaps, mut work) = (0u128, 0u128);
    let mut draws = Draws::new(&spec);
    for number in 0..spec.jobs {
        let drawn = draws.next();
        gaps += if number == 0 { 0 } else { u128::from(drawn.gap) };
        work += u128::from(drawn.gpus) * u128::from(drawn.duration_s);
    }
    let rate_milli = u128::from(spec.gpus) * u128::from(spec.load_milli);
    let span_s = (work * 1000 + rate_milli / 2) / rate_milli;
    Ok(Philly {
        spec,
        draws: Draws::new(&spec),
        cycle: Cycle::new(),
        passed: 0,
        gaps: gaps.max(1),
        // Work is at most jobs × GPUs × a month, so this fits.
        span_s: (span_s as u64).max(1),
        given: 0,
    })
}

/// The names of all users and groups of a Philly-like workload, by number.
pub fn philly_names() -> (NameTable, NameTable) {
    let (mut users, mut groups) = (NameTable::default(), NameTable::default());
    for (number, (_, members)) in (1..).zip(&fitted::GROUPS) {
        groups.number(&format!("vc{number:02}"));
        for _ in 0..*members {
            users.number(&format!("u{:03}", users.len() + 1));
        }
    }
    (users, groups)
}

impl Philly {
    /// The time from the first submission to the last.
    pub fn span_s(&self) -> u64 {
        self.span_s
    }
}

impl Iterator for Philly {
    type Item = TraceJob;

    fn next(&mut self) -> Option<TraceJob> {
        if self.given == self.spec.jobs {
            return None;
        }
        let drawn = self.draws.next();
        if self.given > 0 {
            self.passed += u128::from(drawn.gap);
        }
        self.given += 1;
        // Gaps are measured in work of the cluster's rhythm: the same gap is short in a busy hour.
        let all = self.cycle.by(self.span_s);
        let submit_s = self.cycle.when(all * self.passed / self.gaps) as i64;
        Some(drawn.job(self.given, submit_s))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.spec.jobs - self.given) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Philly {}

/// Jobs without their time of submission.
struct Draws {
    seeded: Seeded,
    seed: u64,
    gpus: u32,
    /// Weights of (group, size), as sums up to each.
    weights: Vec<(u64, usize, usize)>,
    runs: [AlikeJobs; RUNS],
    turn: usize,
}

/// Alike jobs of one user, one after the other.
#[derive(Clone, Copy, Default)]
struct AlikeJobs {
    left: u64,
    until_change: u64,
    group: usize,
    user: u32,
    size: usize,
    /// Where on the curve of durations its jobs are.
    base: Share,
}

/// One job, but for when it comes.
struct Drawn {
    gap: u64,
    gpus: u32,
    duration_s: u64,
    stated_s: u64,
    user: u32,
    group: u32,
    status: Status,
    deadline_after_s: Option<u64>,
    value: u64,
}

impl Draws {
    fn new(spec: &PhillySpec) -> Draws {
        let mut weights = Vec::new();
        let mut sum = 0;
        for (group, (counts, _)) in fitted::GROUPS.iter().enumerate() {
            for (size, jobs) in counts.iter().enumerate() {
                // Long runs are begun less often, so that the share of jobs comes out right.
                sum += jobs * 1_000_000 / fitted::run(size).mean_milli();
                weights.push((sum, group, size));
            }
        }
        Draws {
            seeded: Seeded::new(spec.seed),
            seed: spec.seed,
            gpus: spec.gpus,
            weights,
            runs: [AlikeJobs::default(); RUNS],
            turn: 0,
        }
    }

    fn next(&mut self) -> Drawn {
        if self.seeded.range(0, 1000) < TURN as i64 {
            self.turn = self.seeded.range(0, RUNS as i64) as usize;
        }
        let begins = self.runs[self.turn].left == 0;
        let curve = if begins { &fitted::GAP_BETWEEN } else { &fitted::GAP_WITHIN };
        // Thousandths of a second, so that gaps of jobs in one second still add up to something.
        let gap = curve.draw(&mut self.seeded) * 1000 + self.seeded.next() % 1000;
        if begins {
            self.runs[self.turn] = self.run();
        }
        let run = &mut self.runs[self.turn];
        run.left -= 1;
        run.until_change -= 1;
        if run.until_change == 0 {
            run.until_change = fitted::TRIES;
            run.base = share(&mut self.seeded);
        }
        let run = *run;
        self.drawn(&run, gap)
    }

    /// A new run: whose, of which size, how long and of what duration.
    fn run(&mut self) -> AlikeJobs {
        let all = self.weights.last().map_or(1, |(sum, _, _)| *sum);
        let point = self.seeded.range(0, all as i64) as u64;
        let place = self.weights.partition_point(|(sum, _, _)| *sum <= point);
        let (_, group, size) = self.weights[place];
        let before: u32 = fitted::GROUPS[..group].iter().map(|(_, members)| members).sum();
        let members = i64::from(fitted::GROUPS[group].1);
        // The lesser of two draws: a few users submit most.
        let member = self.seeded.range(0, members).min(self.seeded.range(0, members));
        AlikeJobs {
            left: fitted::run(size).draw(&mut self.seeded).max(1),
            until_change: fitted::TRIES,
            group,
            user: before + member as u32,
            size,
            base: share(&mut self.seeded),
        }
    }

    fn drawn(&mut self, run: &AlikeJobs, gap: u64) -> Drawn {
        let seeded = &mut self.seeded;
        let kind = seeded.range(0, 1000) as u64;
        let place = if kind < fitted::ALIKE {
            near(seeded, run.base, fitted::NEAR)
        } else if kind < fitted::ALIKE + fitted::SIMILAR {
            near(seeded, run.base, fitted::NEARBY)
        } else {
            share(seeded)
        };
        let duration_s = fitted::duration(run.size).at(place).max(1);
        let mut gpus = fitted::SIZES[run.size];
        while gpus > self.gpus {
            gpus /= 2;
        }
        let owner = Owner::of(self.seed, run.user);
        let stated_s = owner.states(seeded, duration_s);
        let (deadline_after_s, urgency) = patience(seeded, stated_s);
        let density = fitted::DENSITY.draw(seeded) * owner.importance_percent * urgency / 10_000;
        let status = match seeded.range(0, 1000) as u64 {
            n if n < fitted::COMPLETED => Status::Completed,
            n if n < fitted::COMPLETED + fitted::FAILED => Status::Failed,
            _ => Status::Cancelled,
        };
        Drawn {
            gap,
            gpus,
            duration_s,
            stated_s,
            user: run.user,
            group: run.group as u32,
            status,
            deadline_after_s,
            // A thousandth of a credit for an hour, in micro-credits for seconds.
            value: density * 1000 * u64::from(gpus) * duration_s / 3600,
        }
    }
}

impl Drawn {
    fn job(&self, number: u64, submit_s: i64) -> TraceJob {
        TraceJob {
            id: format!("g{number}").into(),
            submit_s,
            duration_s: self.duration_s as i64,
            stated_s: Some(self.stated_s as i64),
            gpu_milli: self.gpus * 1000,
            user: Some(self.user),
            group: Some(self.group),
            status: self.status,
            deadline_s: self.deadline_after_s.map(|after| submit_s + after as i64),
            value: Some(self.value as i64),
            ..TraceJob::default()
        }
    }
}

/// What a user is like, whatever the job.
struct Owner {
    overstates_percent: u64,
    rounds: bool,
    importance_percent: u64,
}

impl Owner {
    fn of(seed: u64, user: u32) -> Owner {
        let mut seeded =
            Seeded::new(seed ^ (u64::from(user) + 1).wrapping_mul(0x9e6c_63d0_676a_9a99));
        Owner {
            overstates_percent: seeded.pick(&fitted::HABITS),
            rounds: seeded.next().is_multiple_of(2),
            importance_percent: seeded.range(50, 200) as u64,
        }
    }

    /// How long the user says that it will run: never less than it does.
    fn states(&self, seeded: &mut Seeded, duration_s: u64) -> u64 {
        let today = self.overstates_percent * seeded.range(80, 125) as u64;
        let stated_s = (duration_s * today).div_ceil(10_000).max(duration_s);
        let round = fitted::ROUND_MINUTES.iter().map(|minutes| minutes * 60);
        match round.into_iter().find(|round| *round >= stated_s) {
            Some(round) if self.rounds => round,
            _ => stated_s,
        }
    }
}

/// How long after submission a job is worth something, if that ends at all, and how much more an
/// urgent one is worth, in percent. Assumed: a quarter is urgent, a tenth has no deadline.
fn patience(seeded: &mut Seeded, stated_s: u64) -> (Option<u64>, u64) {
    let kind = seeded.range(0, 100);
    let slack_percent = seeded.range(0, 100) as u64;
    let after = |percent: u64, s: u64| Some(stated_s + stated_s * percent / 100 + s);
    match kind {
        0..25 => (after(5 + slack_percent / 2, 120), 200 + 3 * slack_percent),
        25..70 => (after(100 + 4 * slack_percent, 3600), 100),
        70..90 => (after(900 + 30 * slack_percent, 86_400), 70),
        _ => (None, 50),
    }
}
