//! A node that others feed: a Celery worker in Python asks over a socket, a line of JSON for each
//! question and each answer.
//!
//! `{"run": ID}` runs a launch, `{"exec": {…}, "id": ID}` a command; the answer is
//! `{"ended": {…}}`, `{"lost": REASON}`, `{"over": true}` or `{"error": SENTENCE}`. A question that
//! is asked again while its task runs waits for the same run. A command is no other worker's until
//! whoever asked says `{"done": true}`, when it has kept the result and sent what follows; if it
//! goes away instead, the end is kept for whoever has the message next. `{"stop": ID}` tells a
//! command to end. Standard input tells that the one who started us is still there.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use era_cloud::celery::node::{
    CeleryNode, CommandAck, CommandOutcome, Exec, ExecLimits, LaunchOutcome,
};
use era_cloud::celery::outcome::TaskEnd;
use era_cloud::celery::result::TaskState;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

/// Longest question.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// What a command that is told to end gets.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(untagged)]
enum Question {
    Run {
        run: String,
    },
    Exec(ExecRequest),
    Stop {
        stop: String,
    },
    Done {
        done: bool,
        #[serde(default)]
        follows: bool,
    },
}

/// A command, and what its message says beside it.
#[derive(Deserialize)]
struct ExecRequest {
    id: String,
    exec: Exec,
    #[serde(default)]
    soft_s: Option<f64>,
    #[serde(default)]
    limit_s: Option<f64>,
    /// Whether nobody wants the result.
    #[serde(default)]
    ignored: bool,
}

/// Answers until standard input ends.
pub(super) async fn serve(node: CeleryNode, path: &Path) -> anyhow::Result<()> {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)
        .with_context(|| format!("{} cannot be listened on", path.display()))?;
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    }
    let (gone, mut ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let read = std::io::stdin().read_to_end(&mut rest);
        let _ = gone.send(read.is_ok());
    });
    loop {
        tokio::select! {
            _ = &mut ended => return Ok(()),
            told = crate::up::told_to_stop() => return told,
            accepted = listener.accept() => {
                let (stream, _) = accepted.context("the socket cannot be listened on")?;
                tokio::spawn(Talk::new(stream).go_on(node.clone()));
            }
        }
    }
}

struct Talk {
    lines: Lines<BufReader<tokio::io::Take<OwnedReadHalf>>>,
    write: OwnedWriteHalf,
}

impl Talk {
    fn new(stream: UnixStream) -> Talk {
        let (read, write) = stream.into_split();
        Talk { lines: BufReader::new(read.take(LINE_BYTES_MAX)).lines(), write }
    }

    /// Answers until the other side is gone.
    async fn go_on(mut self, node: CeleryNode) {
        while let Some(question) = self.next().await {
            let said = match question {
                Ok(Question::Run { run }) => run_answer(node.run(&run).await),
                Ok(Question::Exec(asked)) => match asked.exec.problem() {
                    Some(problem) => json!({ "error": problem }),
                    None => {
                        if !self.exec(&node, asked).await {
                            return;
                        }
                        continue;
                    }
                },
                Ok(Question::Stop { stop }) => {
                    node.stop_exec(&stop, GRACE);
                    json!({ "over": true })
                }
                // Of nothing that was asked.
                Ok(Question::Done { .. }) => continue,
                Err(error) => json!({ "error": format!("a question was not understood: {error}") }),
            };
            if !self.say(&said).await {
                return;
            }
        }
    }

    async fn next(&mut self) -> Option<Result<Question, serde_json::Error>> {
        let line = self.lines.next_line().await.ok().flatten()?;
        Some(serde_json::from_str(&line))
    }

    /// Whether it could be said.
    async fn say(&mut self, said: &Value) -> bool {
        self.write.write_all(format!("{said}\n").as_bytes()).await.is_ok()
    }

    /// Runs a command, and keeps it from others until its end was heard. Says whether the other
    /// side is still there.
    async fn exec(&mut self, node: &CeleryNode, asked: ExecRequest) -> bool {
        let ExecRequest { id, exec, soft_s, limit_s, ignored } = asked;
        let time = |s: Option<f64>| s.and_then(|s| Duration::try_from_secs_f64(s).ok());
        let limits = ExecLimits { soft: time(soft_s), hard: time(limit_s), tracked: !ignored };
        let ran = node.exec(&id, &exec, limits).await;
        let told = self.say(&exec_answer(&ran)).await;
        let answered = if told { self.next().await } else { None };
        let (here, heard) = match (answered, ran) {
            (Some(Ok(Question::Done { done: true, follows })), _) => {
                (true, CommandAck::Kept { follows, ignored })
            }
            (_, CommandOutcome::Now(ended)) => {
                (false, CommandAck::Gone { ended: Some(ended), ignored })
            }
            (_, CommandOutcome::Before { .. } | CommandOutcome::Over) => {
                (false, CommandAck::Gone { ended: None, ignored })
            }
        };
        node.let_go(&id, heard).await;
        here
    }
}

fn run_answer(run: LaunchOutcome) -> Value {
    match run {
        LaunchOutcome::Ended(ended) => ended_answer(&ended),
        LaunchOutcome::Over => json!({ "over": true }),
    }
}

/// What a command came to. One that is over, but whose followers may not have been sent, is told
/// once more, so that whoever asks sends them.
fn exec_answer(ran: &CommandOutcome) -> Value {
    match ran {
        CommandOutcome::Now(ended) => ended_answer(ended),
        CommandOutcome::Before { end, followed: false } if end.status == TaskState::Success => {
            json!({ "ended": end.result })
        }
        CommandOutcome::Before { .. } | CommandOutcome::Over => json!({ "over": true }),
    }
}

fn ended_answer(ended: &TaskEnd) -> Value {
    match ended {
        TaskEnd::Outcome(outcome) => json!({ "ended": outcome }),
        TaskEnd::Lost(reason) => json!({ "lost": reason }),
    }
}
