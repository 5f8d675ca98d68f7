//! A node that others feed: a Celery worker in Python asks over a socket, a line of JSON for each
//! question and each answer.
//!
//! `{"run": ID}` runs a launch, `{"exec": {…}, "id": ID}` a command; the answer is
//! `{"ended": {…}}`, `{"lost": REASON}`, `{"over": true}` or `{"error": SENTENCE}`. A question that
//! is asked again while its task runs waits for the same run. Standard input tells that the one who
//! started us is still there.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use era_cloud::celery::node::{Exec, Node, Run};
use era_cloud::celery::outcome::Ended;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// Longest question.
const LINE_BYTES_MAX: u64 = 16 << 20;

#[derive(Deserialize)]
#[serde(untagged)]
enum Question {
    Run {
        run: String,
    },
    Exec {
        id: String,
        exec: Exec,
        #[serde(default)]
        soft_s: Option<f64>,
        #[serde(default)]
        limit_s: Option<f64>,
    },
}

/// Answers until standard input ends.
pub(super) async fn serve(node: Node, path: &Path) -> anyhow::Result<()> {
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
                tokio::spawn(talk(node.clone(), stream));
            }
        }
    }
}

async fn talk(node: Node, stream: UnixStream) {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read.take(LINE_BYTES_MAX)).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let said = answer(&node, &line).await;
        if write.write_all(format!("{said}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn answer(node: &Node, line: &str) -> Value {
    let ended = match serde_json::from_str::<Question>(line) {
        Ok(Question::Run { run }) => match node.run(&run).await {
            Run::Ended(ended) => ended,
            Run::Over => return json!({ "over": true }),
        },
        Ok(Question::Exec { id, exec, soft_s, limit_s }) => {
            if let Some(problem) = exec.problem() {
                return json!({ "error": problem });
            }
            let time = |s: Option<f64>| s.and_then(|s| Duration::try_from_secs_f64(s).ok());
            match node.exec(&id, &exec, time(soft_s), time(limit_s)).await {
                Some(ended) => ended,
                None => return json!({ "over": true }),
            }
        }
        Err(error) => return json!({ "error": format!("a question was not understood: {error}") }),
    };
    match ended {
        Ended::Outcome(outcome) => json!({ "ended": outcome }),
        Ended::Lost(reason) => json!({ "lost": reason }),
    }
}
