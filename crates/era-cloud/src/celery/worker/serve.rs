//! One message: what it asks for, whether that may be done now, and what is said of it.

use std::time::Duration;

use era_core::units::Time;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use super::Inner;
use crate::celery::bus::{BusError, Claimed, Delivery};
use crate::celery::envelope::Envelope;
use crate::celery::message::{BadMessage, Headers, TaskMessage};
use crate::celery::node::{AGAIN, CommandOutcome, Exec, ExecLimits, LaunchOutcome};
use crate::celery::result::Meta;
use crate::celery::{EXEC, RUN};

/// How a message was served.
enum Served {
    /// It is over.
    Over {
        /// Its result, where that is kept here.
        result: Option<Box<Meta>>,
        /// The task that no other worker may run until then.
        claimed: Option<Claimed>,
    },
    /// Nobody here can serve it.
    Dead {
        why: String,
        /// The failures that those who wait are told.
        failures: Vec<Meta>,
    },
}

impl Served {
    fn over(result: Option<Meta>) -> Served {
        Served::Over { result: result.map(Box::new), claimed: None }
    }
}

/// Serves a message to its end.
pub(super) async fn serve(worker: &Inner, taken: &Delivery, place: Option<OwnedSemaphorePermit>) {
    let served = judge(worker, taken, place).await;
    while let Err(error) = conclude(worker, taken, &served).await {
        tracing::warn!(%error, "what became of a message waits for Redis");
        tokio::time::sleep(AGAIN).await;
    }
    match &served {
        Served::Over { claimed: Some(claimed), .. } => worker.node.dropped(&claimed.id),
        Served::Over { claimed: None, .. } => {}
        Served::Dead { why, .. } => {
            tracing::warn!(why, queue = taken.key, "a message was put with the dead");
        }
    }
}

/// Says what became of a message. What was said may be said again.
async fn conclude(worker: &Inner, taken: &Delivery, served: &Served) -> Result<(), BusError> {
    match served {
        Served::Over { result, claimed } => {
            worker.bus().acknowledge(&taken.tag, result.as_deref(), claimed.as_ref()).await
        }
        Served::Dead { why, failures } => worker.bus().bury(taken, why, failures).await,
    }
}

async fn judge(worker: &Inner, taken: &Delivery, place: Option<OwnedSemaphorePermit>) -> Served {
    let envelope = match Envelope::read(&taken.raw) {
        Ok(envelope) => envelope,
        Err(error) => return Served::Dead { why: error.to_string(), failures: Vec::new() },
    };
    let message = match TaskMessage::read(&envelope) {
        Ok(message) => message,
        Err(error) => return malformed(&envelope, &error, worker.bus().now()),
    };
    let headers = &message.headers;
    let (starts, ends) = match (headers.starts(), headers.ends()) {
        (Ok(starts), Ok(ends)) => (starts, ends),
        (Err(error), _) | (_, Err(error)) => {
            return malformed(&envelope, &error, worker.bus().now());
        }
    };
    let task = headers.task.as_str();
    if ![RUN, EXEC].contains(&task) {
        let why = format!("no task is called `{task}` here: this worker has {RUN} and {EXEC}");
        return refused(&message, ("celery.exceptions", "NotRegistered"), why, worker.bus().now());
    }
    if message.embed.calls() {
        return leave_to_celery(worker, &message).await;
    }
    let _place = match starts.filter(|at| *at > worker.bus().now()) {
        Some(at) => wait_until(worker, at, place).await,
        None => place,
    };
    // Whether a launch may still start, Redis says: it may have been prolonged.
    if task != RUN && ends.is_some_and(|ends| ends <= worker.bus().now()) {
        let end = Meta::revoked(&headers.id, "expired", worker.bus().now());
        return Served::over(Some(as_celery_tells(headers, end)));
    }
    match task {
        RUN => run(worker, &message).await,
        _ => exec(worker, &message).await,
    }
}

/// A message that waits for its time gives its place to others, as long as not too many do.
async fn wait_until(
    worker: &Inner,
    at: Time,
    place: Option<OwnedSemaphorePermit>,
) -> Option<OwnedSemaphorePermit> {
    let left = u64::try_from(at.0 - worker.bus().now().0).unwrap_or(0);
    let pause = tokio::time::sleep(Duration::from_millis(left));
    match worker.waiting.try_acquire() {
        Ok(_waits) => {
            let counted = place.is_some();
            drop(place);
            pause.await;
            if !counted {
                return None;
            }
            std::sync::Arc::clone(&worker.places).acquire_owned().await.ok()
        }
        Err(_) => {
            pause.await;
            place
        }
    }
}

/// A result with the group and the parent that Celery's workers tell with it.
fn as_celery_tells(headers: &Headers, mut end: Meta) -> Meta {
    for (name, id) in [("group_id", &headers.group), ("parent_id", &headers.parent_id)] {
        if let Some(id) = id {
            end.rest.insert(name.to_owned(), id.as_str().into());
        }
    }
    end
}

/// Whoever sent it, if that can be read, is told what is wrong.
fn malformed(envelope: &Envelope, error: &BadMessage, now: Time) -> Served {
    let why = error.to_string();
    let id = envelope.headers.get("id").and_then(Value::as_str).filter(|id| id.len() <= 2048);
    let tell = |id| Meta::failure(id, ("kombu.exceptions", "DecodeError"), &why, now);
    let failures = id.map(tell).into_iter().collect();
    Served::Dead { why, failures }
}

/// It fails by its sender's fault, and with it whatever runs only behind it.
fn refused(message: &TaskMessage, kind: (&str, &str), why: String, now: Time) -> Served {
    let TaskMessage { headers, embed, .. } = message;
    let failure = |id| as_celery_tells(headers, Meta::failure(id, kind, &why, now));
    let failures = embed.behind().chain([headers.id.as_str()]).map(failure).collect();
    Served::Dead { why, failures }
}

/// Only Celery calls what follows a task. A Celery worker that has begun the task tells how it ends.
async fn leave_to_celery(worker: &Inner, message: &TaskMessage) -> Served {
    let why = "chains, chords and callbacks are served by Celery workers only (`python -m \
               era.worker`): send this to a queue that no `era worker` takes from";
    let refused =
        refused(message, ("celery.exceptions", "Reject"), why.to_owned(), worker.bus().now());
    let id = std::slice::from_ref(&message.headers.id);
    loop {
        match worker.bus().results(id).await.as_deref() {
            Ok([Some(_)]) => return Served::Dead { why: why.to_owned(), failures: Vec::new() },
            Ok(_) => return refused,
            Err(error) => {
                tracing::warn!(%error, "whether a task has begun is asked again");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// A launch by its id. Its result is kept under that id by the node; the message's own id is told
/// too where it is another.
async fn run(worker: &Inner, message: &TaskMessage) -> Served {
    let TaskMessage { headers, args, kwargs, .. } = message;
    let launch = args.first().or_else(|| kwargs.get("id")).and_then(Value::as_str);
    let Some(launch) = launch else {
        let why = format!("{RUN} needs the id of a launch as its first argument");
        return refused(message, ("builtins", "TypeError"), why, worker.bus().now());
    };
    let other = launch != headers.id;
    let end = match worker.node.run(launch).await {
        LaunchOutcome::Ended(ended) if other && !headers.ignore_result => {
            ended.meta(&headers.id, worker.bus().now())
        }
        LaunchOutcome::Over if other => {
            let why = format!("there is no launch {launch}: it is over, or was called off");
            Meta::failure(&headers.id, ("builtins", "LookupError"), &why, worker.bus().now())
        }
        LaunchOutcome::Ended(_) | LaunchOutcome::Over => return Served::over(None),
    };
    Served::over(Some(as_celery_tells(headers, end)))
}

/// A command. Of several workers that have the same message only one runs it.
async fn exec(worker: &Inner, message: &TaskMessage) -> Served {
    let headers = &message.headers;
    let exec = match arguments(&message.args, &message.kwargs) {
        Ok(exec) => exec,
        Err(why) => return refused(message, ("builtins", "TypeError"), why, worker.bus().now()),
    };
    let limit = |seconds: Option<f64>| {
        let seconds = seconds.filter(|s| s.is_finite() && *s > 0.0)?;
        Duration::try_from_secs_f64(seconds).ok()
    };
    let (hard, soft) = (limit(headers.timelimit.0), limit(headers.timelimit.1));
    let limits = ExecLimits { soft, hard, tracked: false };
    let result = match worker.node.exec(&headers.id, &exec, limits).await {
        CommandOutcome::Now(ended) if !headers.ignore_result => {
            Some(Box::new(as_celery_tells(headers, ended.meta(&headers.id, worker.bus().now()))))
        }
        CommandOutcome::Now(_) | CommandOutcome::Before { .. } | CommandOutcome::Over => None,
    };
    let claimed = worker.node.claimed(&headers.id, headers.ignore_result);
    Served::Over { result, claimed }
}

fn arguments(args: &[Value], kwargs: &Map<String, Value>) -> Result<Exec, String> {
    let mut all = kwargs.clone();
    match args {
        [] => {}
        [command] => drop(all.insert("command".to_owned(), command.clone())),
        _ => return Err(format!("{EXEC} takes one argument, the command as a list of words")),
    }
    let exec: Exec = serde_json::from_value(Value::Object(all))
        .map_err(|error| format!("{EXEC} cannot read its arguments: {error}"))?;
    exec.problem().map_or(Ok(exec), |problem| Err(problem.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(args: Value, kwargs: Value) -> Result<Exec, String> {
        let (Value::Array(args), Value::Object(kwargs)) = (args, kwargs) else { panic!("shape") };
        arguments(&args, &kwargs)
    }

    #[test]
    fn a_command_is_one_argument_or_a_named_one() {
        let expected = read(json!([["echo", "x"]]), json!({})).expect("read");
        assert_eq!(expected.command, ["echo", "x"]);
        assert_eq!(read(json!([]), json!({"command": ["echo", "x"]})), Ok(expected));
        for (args, kwargs) in [
            (json!(["echo"]), json!({})),
            (json!([["a"], ["b"]]), json!({})),
            (json!([]), json!({})),
            (json!([["a"]]), json!({"shell": true})),
            (json!([[]]), json!({})),
        ] {
            assert!(read(args.clone(), kwargs).is_err(), "{args}");
        }
    }
}
