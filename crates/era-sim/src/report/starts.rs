//! When each job started and ended, as a table.

use std::io::Write;

use crate::run::TraceRun;
use crate::trace::Trace;

/// Writes a row for each job of the trace, in its order, those that fit nowhere too: their times
/// are empty and `note` says why. `nodes` are the names of the machines.
pub fn write_starts(
    out: impl Write,
    trace: &Trace,
    run: &TraceRun,
    nodes: &[Box<str>],
) -> std::io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record([
        "job",
        "submit_s",
        "start_s",
        "end_s",
        "wait_s",
        "gpus",
        "node",
        "preemptions",
        "losses",
        "note",
    ])?;
    let mut never = run.never_fit.iter().peekable();
    for (index, (job, ran)) in trace.jobs.iter().zip(&run.jobs).enumerate() {
        let text = |second: Option<i64>| second.map_or(String::new(), |second| second.to_string());
        let note = match never.next_if(|(place, _)| *place == index) {
            Some((_, why)) => format!("never fits: {why}"),
            None if ran.over_limit => "stopped at its limit".to_owned(),
            None if ran.end_s.is_none() => "never ended".to_owned(),
            None => String::new(),
        };
        let node = ran.start_s.and_then(|_| nodes.get(ran.node as usize));
        table.write_record([
            &*job.id,
            &job.submit_s.to_string(),
            &text(ran.start_s),
            &text(ran.end_s),
            &text(ran.start_s.map(|start_s| start_s - job.submit_s)),
            &(f64::from(job.gpu_milli) / 1000.0).to_string(),
            node.map_or("", |node| node),
            &ran.preemptions.to_string(),
            &ran.losses.to_string(),
            &note,
        ])?;
    }
    table.flush()
}
