//! One run as processes: their progress, their result, their end.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use era_api::lab::{LabAsk, LabRun};
use era_store::journal::Journal;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use super::Lab;
use super::order::{self, JOURNAL_FILE, TRACE_FILE};

/// Longest run.
const TIME_MAX: Duration = Duration::from_secs(3600);
/// Longest result.
const RESULT_BYTES_MAX: u64 = 64 << 20;
/// How much of what a command complains about is kept.
const COMPLAINT_BYTES_MAX: usize = 4_000;
/// Commands tell their progress in such lines where they are asked to.
const PROGRESS: &str = "progress ";

/// Does all of a run. Dropping it ends its process.
pub(super) async fn carry_out(lab: &Lab, run: &LabRun, journal: &Journal) -> Result<Value, String> {
    let folder = lab.folder_of(run.id);
    let of_journal = !matches!(run.asked, LabAsk::Simulate { .. });
    if of_journal {
        let to = folder.join(JOURNAL_FILE);
        journal.export_to(None, &to).await.map_err(|e| e.to_string())?;
    }
    let all = async {
        let mut result = Value::Null;
        for command in order::commands(&run.asked) {
            result = one(lab, run.id, &folder, command).await?;
        }
        Ok(result)
    };
    let outcome = tokio::time::timeout(TIME_MAX, all).await;
    for name in [JOURNAL_FILE, TRACE_FILE] {
        // Large, and of no use any more; there is one of them at most.
        let _ = tokio::fs::remove_file(folder.join(name)).await;
    }
    outcome.unwrap_or_else(|_| Err("it took more than an hour: ask for less".to_owned()))
}

/// Does one command that is no run of anybody's.
pub(super) async fn alone(lab: &Lab, arguments: Vec<OsString>) -> Result<Value, String> {
    const NO_RUN: u64 = 0;
    let outcome = tokio::time::timeout(TIME_MAX, one(lab, NO_RUN, Path::new("."), arguments)).await;
    outcome.unwrap_or_else(|_| Err("it took more than an hour".to_owned()))
}

async fn one(lab: &Lab, id: u64, folder: &Path, arguments: Vec<OsString>) -> Result<Value, String> {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(lab.program()).args(arguments).current_dir(folder);
    command.env("ERA_PROGRESS", "lines").env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|e| format!("the command cannot be started: {e}"))?;
    let (told, complaint) = listen(lab, id, &mut child).await.map_err(|e| e.to_string())?;
    let status = child.wait().await.map_err(|e| e.to_string())?;
    if !status.success() {
        let complaint = complaint.trim();
        return Err(if complaint.is_empty() { status.to_string() } else { complaint.to_owned() });
    }
    serde_json::from_slice(&told).map_err(|e| format!("the result cannot be read: {e}"))
}

/// What the process prints, and what it complains about, while its progress is noted.
async fn listen(lab: &Lab, id: u64, child: &mut Child) -> std::io::Result<(Vec<u8>, String)> {
    let (Some(out), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Ok(Default::default());
    };
    let told = async {
        let mut told = Vec::new();
        out.take(RESULT_BYTES_MAX).read_to_end(&mut told).await?;
        Ok(told)
    };
    let complaint = async {
        let mut complaint = String::new();
        let mut lines = BufReader::new(errors).lines();
        while let Some(line) = lines.next_line().await? {
            match line.strip_prefix(PROGRESS).map(share) {
                Some(Some(share)) => lab.progressed(id, share),
                Some(None) => {}
                None if complaint.len() + line.len() < COMPLAINT_BYTES_MAX => {
                    complaint.push_str(&line);
                    complaint.push('\n');
                }
                None => {}
            }
        }
        Ok(complaint)
    };
    tokio::try_join!(told, complaint)
}

/// `12 100` is 0.12.
fn share(told: &str) -> Option<f64> {
    let (done, of) = told.split_once(' ')?;
    let (done, of): (f64, f64) = (done.parse().ok()?, of.parse().ok()?);
    (of > 0.0).then(|| (done / of).clamp(0.0, 1.0))
}
