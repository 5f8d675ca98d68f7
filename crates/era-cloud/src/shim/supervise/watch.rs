//! What a supervisor looks at from time to time while tasks live: what they use, what they write
//! for TensorBoard, memory and processes where the kernel does not limit them, and disk.
//!
//! Disk is walked on a thread of its own, since a walk can take seconds.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use era_core::job::TaskId;

use super::Supervisor;
use crate::clock::MachineClock;
use crate::discover;
use crate::executor::{Ending, ExecutorReport};
use crate::limits::census::Census;
use crate::limits::disk::{ENTRIES_MAX, Walked, counted, walk};
use crate::limits::{Amounts, tree};
use crate::task::Places;
use crate::usage::{IdleRule, Processes, Sampler, Watched};

/// How often.
const EVERY: Duration = Duration::from_secs(1);
/// When a task's disk is first looked at: most tasks are over by then.
pub(super) const DISK_FIRST: Duration = Duration::from_secs(1);

/// When it was last looked, and the thread that walks disks.
#[derive(Default)]
pub(super) struct Watch {
    last: Option<Instant>,
    /// Made at the first look: a supervisor without tasks need not ask the GPU driver.
    sampler: Option<Sampler>,
    /// Where there is no other way to see processes.
    census: Option<Census>,
    walker: Option<Walker>,
}

/// Where walks are asked for, and where what they found comes from.
type Walker = (Sender<Walk>, Receiver<(TaskId, Walked)>);

/// What to walk.
#[derive(Debug)]
struct Walk {
    task: TaskId,
    folders: Vec<PathBuf>,
    owner: Option<u32>,
}

impl Watch {
    /// When to look next, if there is anything to look at.
    pub(super) fn due(&self, active: bool, now: Instant) -> Option<Instant> {
        active.then(|| self.last.map_or(now, |last| last + EVERY))
    }

    /// Whether it is time to look.
    pub(super) fn is_due(&self, active: bool, now: Instant) -> bool {
        self.due(active, now).is_some_and(|due| due <= now)
    }

    pub(super) fn look(&mut self, on: &mut Supervisor) {
        self.last = Some(on.clock.steady());
        unfinished_lines(on);
        if on.node.settings.portable {
            self.follow(on);
        } else {
            self.usage(on, None);
        }
        scalars(on);
        memory_and_processes(on);
        self.disks(on);
    }

    /// Follows who belongs to which task, samples what they use, and enforces limits by a kill:
    /// all from one look at the system.
    fn follow(&mut self, on: &mut Supervisor) {
        let mut census = self.census.take();
        let counted = match &mut census {
            Some(census) => census.count(),
            none => Census::new().and_then(|new| none.insert(new).count()),
        };
        let all = match counted {
            Ok(all) => all,
            Err(error) => {
                tracing::error!(%error, "tasks are not held to their limits");
                return;
            }
        };
        let mut over = Vec::new();
        for kept in on.keepers.values_mut() {
            let (Some(task), Some(trail)) = (kept.task, &mut kept.trail) else { continue };
            let Some(about) = on.tasks.get(&task) else { continue };
            let tree = trail.follow(&all);
            let bytes = tree.iter().map(|process| process.resident_bytes).sum();
            let broken = broken(Amounts::of(&about.launch), bytes, tree.len() as u64);
            over.extend(broken.map(|why| (task, why)));
        }
        self.usage(on, Some(&Processes::counted(&all)));
        for (task, (ending, why)) in over {
            on.kill(task, ending, why);
        }
        self.census = census;
    }

    /// Samples what tasks use, and tells whose GPUs are idle for long.
    fn usage(&mut self, on: &mut Supervisor, processes: Option<&Processes>) {
        let at = on.clock.now();
        let watched: Vec<Watched> = on
            .tasks
            .iter()
            .filter(|(_, about)| about.started.is_some())
            .filter_map(|(task, about)| {
                let kept = on.keepers.get(&about.keeper?)?;
                let limit = Amounts::of(&about.launch).memory_bytes;
                Some(Watched {
                    task: *task,
                    // All that descends from the keeper. Its groups are not asked: they count on
                    // from the task before.
                    processes: match &kept.trail {
                        Some(trail) => trail.pids(),
                        None => vec![kept.child.id()],
                    },
                    groups: Vec::new(),
                    memory_limit: (limit > 0).then_some(limit),
                    gpus: about.launch.gpus.clone(),
                })
            })
            .collect();
        let has_gpus = !on.node.settings.gpu_uuids.is_empty();
        let sampler = self.sampler.get_or_insert_with(|| {
            let gpus = if has_gpus { discover::this_machine().gpus } else { Vec::new() };
            Sampler::new(&gpus)
        });
        let usages = match processes {
            Some(processes) => sampler.sample_of(processes, &watched, at),
            None => sampler.sample(&watched, at),
        };
        for (task, usage) in usages {
            let Some(about) = on.tasks.get_mut(&task) else { continue };
            about.samples += 1;
            let (idle, tell) = about.idle.look(&usage.gpus, at, IdleRule::default());
            about.idle = idle;
            let samples = usage.samples(about.samples, at);
            on.report(ExecutorReport::Samples { task, samples });
            if tell {
                on.report(ExecutorReport::GpusIdle { task });
            }
        }
    }

    /// Where a disk is nearly full, ends the task that fills it the fastest. One that only has much
    /// on it, or writes a line now and then, is let be.
    fn keep_room(&mut self, on: &mut Supervisor, now: Instant) {
        let mut fastest: Option<(u64, TaskId)> = None;
        for (task, about) in &mut on.tasks {
            let ending = about.doom.is_some() || about.keeper.is_none();
            let Some(reserve) = reserve_used(&about.launch.spec.folder).filter(|_| !ending) else {
                continue;
            };
            // It is looked at again at once, so that who writes is known.
            about.disk_due = about.disk_due.map(|due| due.min(now));
            if let Some((_, grown)) = about.disk
                && grown > reserve / 64
                && fastest.is_none_or(|(most, _)| grown > most)
            {
                fastest = Some((grown, *task));
            }
        }
        // One at a time: the next look tells whether that was enough.
        if let Some((_, task)) = fastest {
            on.kill(
                task,
                Ending::OutOfDisk,
                "the disk is nearly full, and it fills it the fastest",
            );
        }
    }

    /// Acts on walks that are done, and asks for those that are due.
    fn disks(&mut self, on: &mut Supervisor) {
        let now = on.clock.steady();
        if let Some((_, walked)) = &self.walker {
            for (task, walked) in walked.try_iter() {
                let Some(about) = on.tasks.get_mut(&task) else { continue };
                about.disk_due = Some(now + walked.rest);
                let before = about.disk.map_or(0, |(bytes, _)| bytes);
                about.disk = Some((walked.bytes, walked.bytes.saturating_sub(before)));
                if walked.bytes > about.launch.spec.limits.disk_bytes {
                    on.kill(task, Ending::OutOfDisk, "it filled more disk than it may");
                }
            }
        }
        self.keep_room(on, now);
        for (task, about) in &mut on.tasks {
            if about.keeper.is_none() || about.disk_due.is_none_or(|due| due > now) {
                continue;
            }
            about.disk_due = None;
            let owner = on.node.isolation.uid(about.launch.spec.user).ok().flatten();
            let folders = counted(&Places::of(&about.launch));
            let (ask, _) = self.walker.get_or_insert_with(|| walker(on.clock.clone()));
            // The thread lives as long as we hold the other end.
            let _ = ask.send(Walk { task: *task, folders, owner });
        }
    }
}

/// What is kept free of a disk for the platform itself, whose journal would stop for want of room:
/// a tenth of it, and no more than 4 GiB.
fn reserve(disk_bytes: u64) -> u64 {
    (disk_bytes / 10).min(4 << 30)
}

/// How much of a disk is used up below what is kept free; `None` where there is room, or where it
/// cannot be told.
fn reserve_used(folder: &std::path::Path) -> Option<u64> {
    let about = rustix::fs::statvfs(folder).ok()?;
    let reserve = reserve(about.f_blocks.saturating_mul(about.f_frsize));
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    (free < reserve).then_some(reserve)
}

fn walker(clock: MachineClock) -> Walker {
    let (ask, asked) = channel::<Walk>();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for Walk { task, folders, owner } in asked {
            if tell.send((task, walk(&folders, owner, ENTRIES_MAX, &clock))).is_err() {
                return;
            }
        }
    });
    (ask, told)
}

/// Reads what tasks have written for TensorBoard.
fn scalars(on: &mut Supervisor) {
    let at = on.clock.now();
    let mut reports = Vec::new();
    for (task, about) in &mut on.tasks {
        // The outputs are the job's: the first replica's task reads them for all.
        let Some(scalars) = &mut about.scalars else { continue };
        let samples = scalars.look(at);
        if !samples.is_empty() {
            reports.push(ExecutorReport::Samples { task: *task, samples });
        }
    }
    reports.into_iter().for_each(|report| on.report(report));
}

/// Shows lines whose end has not come, such as a progress bar.
fn unfinished_lines(on: &mut Supervisor) {
    for kept in on.keepers.values_mut() {
        if let Some(log) = &mut kept.log
            && log.has_unfinished()
        {
            log.flush(on.clock.now());
        }
    }
}

/// Which limit is broken by so many bytes and processes.
fn broken(limits: Amounts, bytes: u64, processes: u64) -> Option<(Ending, &'static str)> {
    if limits.memory_bytes > 0 && bytes > limits.memory_bytes {
        return Some((Ending::OutOfMemory, "it used more memory than it had asked for"));
    }
    let many = processes > u64::from(limits.processes);
    many.then_some((Ending::Itself, "it had more processes than it may"))
}

/// Enforces by a kill what the kernel does not limit here.
fn memory_and_processes(on: &mut Supervisor) {
    let (memory, processes) = (on.cgroups.limits_memory(), on.cgroups.limits_processes());
    if (memory && processes) || on.node.settings.portable {
        return;
    }
    let all = tree::processes();
    let mut over = Vec::new();
    for (task, about) in &on.tasks {
        let Some(kept) = about.keeper.and_then(|keeper| on.keepers.get(&keeper)) else { continue };
        let below = tree::descendants(i32::try_from(kept.child.id()).unwrap_or(0), &all);
        let limits = Amounts::of(&about.launch);
        let threads: u64 = below.iter().map(|process| u64::from(process.threads)).sum();
        let bytes = match memory || limits.memory_bytes == 0 {
            true => 0,
            false => tree::memory_bytes(&below, limits.memory_bytes),
        };
        over.extend(broken(limits, bytes, if processes { 0 } else { threads }).map(|b| (*task, b)));
    }
    for (task, (ending, why)) in over {
        on.kill(task, ending, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_a_small_disk_and_little_of_a_large_one_is_kept_free() {
        assert_eq!(reserve(200 << 20), 20 << 20);
        assert_eq!(reserve(8 << 40), 4 << 30);
        assert_eq!(reserve_used("/nowhere".as_ref()), None);
    }
}
