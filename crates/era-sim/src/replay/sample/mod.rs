//! A journal to try things on: a small cluster, a few groups, and seeded days in which everything
//! happens that can.
//!
//! The same seed gives the same bytes. Nothing here is a claim about real workloads: `era sim
//! generate` makes those.

mod asks;
mod house;

use std::io::{self, Write};

use era_core::units::{JobId, Span, Time};
use era_core::{Input, Output, State};
use era_drive::{Conduct, JobReport, Pace, Scenario, World};

use crate::journal::Writer;
use crate::seeded::Seeded;

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleSpec {
    /// The same seed gives the same journal.
    pub seed: u64,
    /// How many inputs, at the least; a few more end what is under way at that instant.
    pub inputs: u64,
    /// How many segments.
    pub segments: u64,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Written {
    inputs: u64,
    events: u64,
}

/// Monday morning.
const START: Time = Time::from_s(1_792_396_800);

/// Writes a sampled journal, and says how many inputs and events it has. `progress` is told how
/// many inputs are written.
pub fn sample(spec: SampleSpec, out: impl Write, progress: &dyn Fn(u64)) -> io::Result<(u64, u64)> {
    let site = house::site();
    let mut writer = Writer::new(out);
    writer.begin(&site.state())?;
    let journal = Journal { seed: spec.seed, writer, written: Written::default(), failed: None };
    let mut world = World::of(&site, START, Pace::default(), journal).map_err(io::Error::other)?;
    let mut seeded = Seeded::new(spec.seed);
    let mut next_ask = START;
    let mut segment = 1;
    loop {
        let written = world.scenario().written;
        progress(written.inputs);
        if let Some(error) = world.scenario_mut().failed.take() {
            return Err(error);
        }
        if written.inputs >= spec.inputs {
            return Ok((written.inputs, written.events));
        }
        if written.inputs * spec.segments.max(1) >= spec.inputs * segment {
            segment += 1;
            let state = world.state().clone();
            world.scenario_mut().writer.begin(&state)?;
        }
        let now = world.next().map_or(next_ask, |time| time.min(next_ask));
        world.advance(now);
        if now >= next_ask {
            let command = asks::ask(&mut seeded, world.state(), now);
            world.send(now, command);
            next_ask = now + asks::pause(&mut seeded, now.since(START));
        }
        world.settle(now);
    }
}

struct Journal<W> {
    seed: u64,
    writer: Writer<W>,
    written: Written,
    failed: Option<io::Error>,
}

impl<W: Write> Scenario for Journal<W> {
    fn conduct(&self, state: &State, job: JobId, part: u16) -> Conduct {
        conduct(self.seed, state, job, part)
    }

    fn follow(&mut self, input: &Input, output: &Output, _: &State) {
        self.written.inputs += 1;
        self.written.events += output.events.len() as u64;
        if self.failed.is_none() {
            self.failed = self.writer.entry(input, &output.events).err();
        }
    }
}

/// How a job behaves: decided by its number alone, so that it is the same whenever it runs.
fn conduct(seed: u64, state: &State, job: JobId, part: u16) -> Conduct {
    let mut seeded = Seeded::new(seed ^ (job.0 << 8 | u64::from(part)).wrapping_mul(0x9e37_79b9));
    let stated = state
        .job(job)
        .ok()
        .and_then(|job| job.parts.get(usize::from(part)).map(|part| part.request.duration));
    let stated = stated.map_or(1000, |stated| stated.0);
    // Most say more than they need; some say less.
    let work = Span((stated * seeded.range(200, 1060) / 1000).max(1));
    let code = if seeded.range(0, 20) == 0 { 1 } else { 0 };
    let mut reports = Vec::new();
    if seeded.range(0, 3) == 0 {
        reports.extend((1..4).map(|n| {
            let at = Span(work.0 * n / 4);
            (at, JobReport::Saved(at))
        }));
    }
    if seeded.range(0, 25) == 0 {
        reports.push((Span(work.0 / 2 + 1), JobReport::Idle));
    }
    let saves_on_stop = seeded.range(0, 2) == 0;
    Conduct { work, code, reports, saves_on_stop, ..Conduct::default() }
}
