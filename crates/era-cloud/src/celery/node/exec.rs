//! Commands that any worker may run: no launch describes them, the message says it all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use era_core::job::TaskId;
use era_core::resources::Resources;
use era_core::units::{JobId, NodeId, Time, UserId};
use serde::Deserialize;

use super::CeleryNode;
use crate::celery::outcome::TaskEnd;
use crate::executor::{self, Launch, TaskSpec};
use crate::log::{LogReader, Only};
use crate::secrets::TaskSecrets;

/// Marks the numbers of tasks that no scheduler knows.
pub(super) const EXEC_BIT: u64 = 1 << 63;
/// Whom they run as, where the node is root: none of the accounts.
const USER: UserId = UserId(900_000_000);
/// Most words of a command, and longest.
const WORDS_MAX: usize = 10_000;
const WORD_BYTES_MAX: usize = 128 << 10;
/// So much of the end of what it printed is told.
const OUTPUT_BYTES_MAX: usize = 4096;
/// Longest that a command may run where nobody says otherwise.
const TIME_MAX: Duration = Duration::from_secs(7 * 86_400);

/// A command that any worker may run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// The command and its arguments.
    pub command: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Thousandths of a core.
    #[serde(default = "one_core")]
    pub cpu: u32,
    /// MiB of memory.
    #[serde(default = "one_gib")]
    pub memory: u32,
}

fn one_core() -> u32 {
    1000
}

fn one_gib() -> u32 {
    1024
}

impl Exec {
    /// What is wrong with it, if anything is.
    pub fn problem(&self) -> Option<&'static str> {
        let words = || self.command.iter().chain(self.env.keys()).chain(self.env.values());
        if self.command.first().is_none_or(String::is_empty) {
            Some("the command is empty: give at least a program")
        } else if self.command.len() + self.env.len() > WORDS_MAX {
            Some("the command has too many words: give at most 10,000")
        } else if words().any(|word| word.len() > WORD_BYTES_MAX || word.contains('\0')) {
            Some("a word is too long or has a zero byte in it")
        } else {
            None
        }
    }
}

/// What a message says of a command beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExecLimits {
    /// After how long it is told to end.
    pub soft: Option<Duration>,
    /// How long it may take.
    pub hard: Option<Duration>,
    /// Whether its start is told: a Celery worker that hears of a revocation takes for revoked what
    /// nobody has started.
    pub tracked: bool,
}

/// The number of a task that Celery calls by this id: the same for the same id, so that a message
/// that comes twice is one task.
pub(super) fn task_of(id: &str) -> TaskId {
    let hash = blake3::hash(id.as_bytes());
    let first = hash.as_bytes().first_chunk().copied().unwrap_or_default();
    let job = JobId(u64::from_le_bytes(first) | EXEC_BIT);
    TaskId { job, part: 0, attempt: 1, rank: 0 }
}

impl CeleryNode {
    /// Runs an attempt of a command once; asked again while it runs, it waits for the same run. That
    /// nobody else runs it is its claim's to see to.
    pub(super) async fn execute(
        &self,
        task: TaskId,
        exec: &Exec,
        limits: ExecLimits,
    ) -> Option<TaskEnd> {
        let ExecLimits { soft, hard: limit, .. } = limits;
        let (first, mut ended) = self.running().wait(task, None);
        let folder = self.inner.folder.join("exec").join(format!("{:016x}", task.job.0));
        let until = || self.after(limit.unwrap_or(TIME_MAX).min(TIME_MAX));
        if first {
            self.leased().await;
            while !self.begin(launch(self.name(), task, exec, until(), &folder)) {
                self.leased().await;
            }
        } else {
            // One that ran before this worker did has not told how long it may.
            self.running().limit(task, until());
        }
        let timer = soft.map(|soft| tokio::spawn(stop_later(self.clone(), task, soft, limit)));
        let told = ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        if let Some(timer) = timer {
            timer.abort();
        }
        told.map(|ended| with_output(ended, &folder))
    }

    /// The attempt of a command that is here, or its first.
    pub(super) fn attempt(&self, id: &str) -> TaskId {
        self.running().newest(task_of(id))
    }

    /// Tells the run of this id to end, if there is one.
    pub fn stop_exec(&self, id: &str, grace: Duration) {
        let task = self.attempt(id);
        if self.running().has(task) {
            self.stop(task, self.after(grace));
        }
    }

    fn after(&self, time: Duration) -> Time {
        let ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Time(self.bus().now().0.saturating_add(ms))
    }
}

async fn stop_later(node: CeleryNode, task: TaskId, soft: Duration, limit: Option<Duration>) {
    tokio::time::sleep(soft).await;
    let grace = limit.unwrap_or(soft + Duration::from_secs(10)).saturating_sub(soft);
    node.stop(task, node.after(grace));
}

fn launch(node: &str, task: TaskId, exec: &Exec, until: Time, folder: &Path) -> Launch {
    let each = Resources { cpu: exec.cpu, memory: exec.memory, ..Resources::default() };
    Launch {
        task,
        node: NodeId(0),
        node_name: node.to_owned(),
        gpus: Vec::new(),
        each,
        replicas: 1,
        until,
        master: "127.0.0.1".to_owned(),
        peers: vec!["127.0.0.1".to_owned()],
        spec: Arc::new(TaskSpec {
            user: USER,
            user_name: "celery".to_owned(),
            job_name: None,
            command: exec.command.clone(),
            env: exec.env.clone(),
            secrets: TaskSecrets::default(),
            code: Vec::new(),
            inputs: Vec::new(),
            image: None,
            folder: PathBuf::from(folder),
            // Its folder goes with it, to the next of them if it left nothing there.
            checkpoints_of: None,
            alone: true,
            terminal: false,
            array: None,
            limits: executor::TaskLimits::default(),
        }),
    }
}

/// The end with the last of what was printed. The folder goes, if it is still there: nobody else
/// reads it.
fn with_output(ended: TaskEnd, folder: &Path) -> TaskEnd {
    let TaskEnd::Outcome(mut outcome) = ended else { return ended };
    outcome.output = output(folder);
    if let Err(error) = std::fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(path = %folder.display(), %error, "a folder stays");
    }
    TaskEnd::Outcome(outcome)
}

fn output(folder: &Path) -> Option<String> {
    let logs = folder.join("logs");
    let quiet = std::fs::read_dir(&logs)
        .ok()?
        .flatten()
        .all(|file| file.metadata().is_ok_and(|about| about.len() == 0));
    if quiet {
        return None;
    }
    let mut text = String::new();
    let mut reader = LogReader::open(&logs, Only::default()).ok()?;
    while let Ok(entries) = reader.read(10_000, 1 << 20, Time::MAX) {
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            text.push_str(&String::from_utf8_lossy(&entry.text));
            if entry.ends {
                text.push('\n');
            }
        }
        let over = text.len().saturating_sub(OUTPUT_BYTES_MAX);
        let from = (over..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        text.drain(..from);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_message_is_the_same_task_and_never_one_of_the_scheduler() {
        assert_eq!(task_of("abc"), task_of("abc"));
        assert_ne!(task_of("abc"), task_of("abd"));
        assert!(task_of("abc").job.0 >= EXEC_BIT);
    }

    #[test]
    fn commands_that_cannot_run_are_told() {
        let exec = |command: &[&str]| Exec {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            env: BTreeMap::new(),
            cpu: 1,
            memory: 1,
        };
        assert_eq!(exec(&["true"]).problem(), None);
        assert!(exec(&[]).problem().is_some());
        assert!(exec(&[""]).problem().is_some());
        assert!(exec(&["a", "b\0"]).problem().is_some());
        assert!(exec(&["x"; WORDS_MAX + 1]).problem().is_some());
    }
}
