//! Nodes, pools, domains and what is booked on them.

use std::collections::{BTreeMap, BTreeSet};

use era_api::cluster as wire;
use era_core::State;
use era_core::calendar::{Booking, BookingHolder, CPU, GPU0, MEMORY};
use era_core::cluster::{Domain, DomainKeep, Health, Node, NodeReservation, Pool, Rates};
use era_core::resources::{WHOLE_GPU, show_decimal, show_mib, show_milli};
use era_core::units::{JobId, Time};

use super::{BadField, credits, fraction, milli, money, name, stamp};

/// A node with what is given out on it now.
pub fn node(state: &State, node: &Node) -> wire::NodeView {
    let now = state.now();
    let node_calendar = state.calendar().node(node.id);
    let bookings = node_calendar.map(|node_calendar| node_calendar.bookings()).unwrap_or_default();
    let held: Vec<&Booking> =
        bookings.iter().map(|b| &**b).filter(|b| is_held(state, b, now)).collect();
    let sum = |column: usize| held.iter().map(|b| amount(b, column)).sum::<u32>();
    let gpus: Vec<wire::GpuView> =
        (0..node.capacity.gpus.len()).map(|index| gpu(node, &held, index)).collect();
    let given: u32 = (0..node.capacity.gpus.len()).map(|i| sum(GPU0 + i).min(WHOLE_GPU)).sum();
    let gpu_count = u32::try_from(gpus.len()).unwrap_or(0);
    wire::NodeView {
        id: node.id.0,
        name: node.name.to_string(),
        pool: node.pool.to_string(),
        domain: node.domain.as_ref().map(ToString::to_string),
        rack: node.rack.as_ref().map(ToString::to_string),
        labels: node.labels.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        health: match node.health {
            Health::Up => "up",
            Health::Cordoned => "cordoned",
            Health::Draining => "draining",
            Health::Lost => "lost",
        }
        .into(),
        capacity: amounts(node.capacity.cpu, node.capacity.memory, gpu_count * WHOLE_GPU),
        allocated: amounts(sum(CPU), sum(MEMORY), given),
        gpus,
        jobs: jobs_of(held.iter().copied()),
        maintenance: node
            .maintenance
            .iter()
            .map(|(from, to)| wire::Absence { from: stamp(*from), to: stamp(*to) })
            .collect(),
        stop_at: node.stop_at.map(stamp),
        simulated: is_simulated(node),
    }
}

/// Whether a node's tasks only sleep.
pub fn is_simulated(node: &Node) -> bool {
    node.labels.keys().any(|key| key.as_str() == SIMULATED)
}

/// The label of nodes whose tasks only sleep.
pub const SIMULATED: &str = "simulated";

fn amounts(cpu: u32, memory: u32, gpu: u32) -> BTreeMap<String, String> {
    let mut amounts = BTreeMap::from([
        ("cpu".to_owned(), show_milli(cpu)),
        ("memory".to_owned(), show_mib(memory)),
    ]);
    if gpu > 0 {
        amounts.insert("gpu".to_owned(), show_decimal(gpu));
    }
    amounts
}

fn gpu(node: &Node, held: &[&Booking], index: usize) -> wire::GpuView {
    let on_it = || held.iter().copied().filter(|b| amount(b, GPU0 + index) > 0);
    let given: u32 = on_it().map(|b| amount(b, GPU0 + index)).sum();
    let device = &node.capacity.gpus[index];
    wire::GpuView {
        index: u8::try_from(index).unwrap_or(u8::MAX),
        model: Some(device.model.to_string()),
        memory: Some(show_mib(device.memory)),
        allocated: f64::from(given) / f64::from(WHOLE_GPU),
        jobs: jobs_of(on_it()),
    }
}

/// What a booking takes of one column.
fn amount(booking: &Booking, column: usize) -> u32 {
    booking.take.columns().filter(|(c, _)| *c == column).map(|(_, amount)| amount).sum()
}

fn jobs_of<'a>(bookings: impl Iterator<Item = &'a Booking>) -> Vec<u64> {
    let job = |b: &Booking| match b.holder {
        BookingHolder::Job { job, .. } => Some(job.0),
        _ => None,
    };
    bookings.filter_map(job).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether a booking is being used now: of a job whose part is active.
pub(super) fn is_held(state: &State, booking: &Booking, now: Time) -> bool {
    let BookingHolder::Job { job, part, .. } = booking.holder else { return false };
    let active = |id: JobId| {
        let job = state.job(id).ok()?;
        Some(job.parts.get(usize::from(part))?.is_active())
    };
    booking.from <= now && now < booking.to && active(job).unwrap_or(false)
}

/// What is booked on a node in `[from, to)`; jobs that `may_see` refuses keep their number to
/// themselves.
pub fn bookings(
    state: &State,
    node: &Node,
    from: Time,
    to: Time,
    may_see: impl Fn(JobId) -> bool,
) -> Vec<wire::BookingView> {
    let Some(node_calendar) = state.calendar().node(node.id) else { return Vec::new() };
    let within = |b: &&std::sync::Arc<Booking>| b.from < to && from < b.to;
    let show = |b: &std::sync::Arc<Booking>| {
        let (job, kind) = match b.holder {
            BookingHolder::Job { job, .. } if is_held(state, b, state.now()) => {
                (Some(job), "running")
            }
            BookingHolder::Job { job, .. } => (Some(job), "promise"),
            BookingHolder::Hold { .. } => (None, "hold"),
            BookingHolder::Maintenance => (None, "maintenance"),
        };
        wire::BookingView {
            job: job.filter(|job| may_see(*job)).map(|job| job.0),
            from: stamp(b.from),
            to: stamp(b.to),
            cpu_milli: u64::from(b.take.cpu),
            memory_mib: u64::from(b.take.memory),
            gpus: (0..node.capacity.gpus.len())
                .filter(|i| amount(b, GPU0 + i) > 0)
                .filter_map(|i| u8::try_from(i).ok())
                .collect(),
            kind: kind.into(),
        }
    };
    node_calendar.bookings().iter().filter(within).map(show).collect()
}

pub fn pool(state: &State, pool: &Pool) -> wire::PoolView {
    wire::PoolView {
        name: pool.name.to_string(),
        cpu_rate: credits(pool.rates.cpu),
        memory_rate: credits(pool.rates.memory),
        gpu_rate: credits(pool.rates.gpu),
        closed_share: fraction(pool.closed_share),
        level_caps: pool.level_caps.iter().map(|(l, share)| (*l, fraction(*share))).collect(),
        nodes: u32::try_from(state.cluster().nodes_of(&pool.name).count()).unwrap_or(u32::MAX),
    }
}

pub fn pool_put(given: &wire::PoolView) -> Result<Pool, BadField> {
    let cap = |(level, share): (&u8, &f64)| Ok((*level, milli("level_caps", *share)?));
    Ok(Pool {
        name: name("name", &given.name)?,
        rates: Rates {
            cpu: money(given.cpu_rate),
            memory: money(given.memory_rate),
            gpu: money(given.gpu_rate),
        },
        closed_share: milli("closed_share", given.closed_share)?,
        level_caps: given.level_caps.iter().map(cap).collect::<Result<_, BadField>>()?,
    })
}

/// A domain with its nodes.
pub fn domain(state: &State, domain: &Domain) -> wire::DomainView {
    let inside = state.cluster().nodes().filter(|n| n.domain.as_ref() == Some(&domain.name));
    wire::DomainView {
        name: domain.name.to_string(),
        keep_share: domain.keep.map_or(0.0, |kept| fraction(kept.share)),
        keep_gpus_min: domain.keep.map_or(0, |kept| kept.keep.gpus_min / 1000),
        keep_level_min: domain.keep.map_or(0, |kept| kept.keep.level_min),
        nodes: inside.map(|n| n.name.to_string()).collect(),
    }
}

pub fn domain_put(given: &wire::DomainView) -> Result<Domain, BadField> {
    let share = milli("keep_share", given.keep_share)?;
    let keep = NodeReservation {
        gpus_min: given.keep_gpus_min.saturating_mul(1000),
        level_min: given.keep_level_min,
    };
    Ok(Domain {
        name: name("name", &given.name)?,
        keep: (share.0 > 0).then_some(DomainKeep { share, keep }),
    })
}
