//! One message: what it asks for, whether that may be done now, and what is said of it.

use std::time::Duration;

use era_core::units::Time;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use super::Inner;
use crate::celery::bus::{self, BusError, Taken};
use crate::celery::envelope::Envelope;
use crate::celery::message::{BadMessage, TaskMessage};
use crate::celery::names;
use crate::celery::node::{AGAIN, Exec, Run};
use crate::celery::outcome::Ended;
use crate::celery::result::Meta;
use crate::celery::{EXEC, RUN};

/// How often a task that another worker runs is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often a command that was lost is begun again.
const LOST_MAX: usize = 3;

/// What is to be done with a message.
enum Verdict {
    /// It was served; what is kept of it.
    Served(Option<Meta>),
    /// It cannot be served by anybody here.
    Dead(String, Option<Meta>),
}

/// Serves a message to its end.
pub(super) async fn serve(worker: &Inner, taken: &Taken, place: Option<OwnedSemaphorePermit>) {
    let verdict = judge(worker, taken, place).await;
    loop {
        let done = match &verdict {
            Verdict::Served(meta) => worker.bus().acknowledge(&taken.tag, meta.as_ref()).await,
            Verdict::Dead(why, meta) => worker.bus().bury(taken, why, meta.as_ref()).await,
        };
        match done {
            Ok(()) => break,
            Err(error) => {
                tracing::warn!(%error, "what became of a message waits for Redis");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
    if let Verdict::Dead(why, _) = verdict {
        tracing::warn!(why, queue = taken.key, "a message was put with the dead");
    }
}

async fn judge(worker: &Inner, taken: &Taken, place: Option<OwnedSemaphorePermit>) -> Verdict {
    let envelope = match Envelope::read(&taken.raw) {
        Ok(envelope) => envelope,
        Err(error) => return Verdict::Dead(error.to_string(), None),
    };
    let message = match TaskMessage::read(&envelope) {
        Ok(message) => message,
        Err(error) => return malformed(&envelope, &error),
    };
    if let Some(verdict) = foreign(&message) {
        return verdict;
    }
    let (starts, ends) = match (message.headers.starts(), message.headers.ends()) {
        (Ok(starts), Ok(ends)) => (starts, ends),
        (Err(error), _) | (_, Err(error)) => return malformed(&envelope, &error),
    };
    let _place = match starts.filter(|at| *at > bus::now()) {
        Some(at) => wait_until(worker, at, place).await,
        None => place,
    };
    let id = &message.headers.id;
    if ends.is_some_and(|ends| ends <= bus::now()) {
        return Verdict::Served(Some(Meta::revoked(id, "expired", bus::now())));
    }
    if worker.is_revoked(id) {
        return Verdict::Served(Some(Meta::revoked(id, "revoked", bus::now())));
    }
    match message.headers.task.as_str() {
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
    let left = u64::try_from(at.0 - bus::now().0).unwrap_or(0);
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

/// Whoever sent it, if that can be read, is told what is wrong.
fn malformed(envelope: &Envelope, error: &BadMessage) -> Verdict {
    let why = error.to_string();
    let id = envelope.headers.get("id").and_then(Value::as_str).filter(|id| id.len() <= 2048);
    let tell = |id| Meta::failure(id, ("kombu.exceptions", "DecodeError"), &why, bus::now());
    Verdict::Dead(why.clone(), id.map(tell))
}

/// A task that is not ours, or asks for what only a Celery worker does.
fn foreign(message: &TaskMessage) -> Option<Verdict> {
    let headers = &message.headers;
    if ![RUN, EXEC].contains(&headers.task.as_str()) {
        let why =
            format!("no task is called `{}` here: this worker has {RUN} and {EXEC}", headers.task);
        let kind = ("celery.exceptions", "NotRegistered");
        let meta = Meta::failure(&headers.id, kind, &headers.task, bus::now());
        return Some(Verdict::Dead(why, Some(meta)));
    }
    let embed = &message.embed;
    let some = |list: &Option<Vec<Value>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let calls = some(&embed.callbacks) || some(&embed.errbacks) || some(&embed.chain);
    if calls || embed.chord.as_ref().is_some_and(|chord| !chord.is_null()) {
        let why = "callbacks, chains and chords are called by Celery workers only: \
                   send this to a queue that one of them consumes";
        let kind = ("celery.exceptions", "Reject");
        let meta = Meta::failure(&headers.id, kind, why, bus::now());
        return Some(Verdict::Dead(why.to_owned(), Some(meta)));
    }
    None
}

/// A launch by its id. Its result is kept under that id by the node; the message's own id is told
/// too where it is another.
async fn run(worker: &Inner, message: &TaskMessage) -> Verdict {
    let own = &message.headers.id;
    let launch = message.args.first().or_else(|| message.kwargs.get("id")).and_then(Value::as_str);
    let Some(launch) = launch else {
        let why = format!("{RUN} needs the id of a launch as its first argument");
        let meta = Meta::failure(own, ("builtins", "TypeError"), &why, bus::now());
        return Verdict::Dead(why, Some(meta));
    };
    match worker.node.run(launch).await {
        Run::Ended(ended) if launch != own && !message.headers.ignore_result => {
            Verdict::Served(Some(ended.meta(own, bus::now())))
        }
        Run::Over if launch != own => {
            let why = format!("there is no launch {launch}: it is over, or was called off");
            let meta = Meta::failure(own, ("builtins", "LookupError"), &why, bus::now());
            Verdict::Served(Some(meta))
        }
        Run::Ended(_) | Run::Over => Verdict::Served(None),
    }
}

/// A command. Of several workers that have the same message only one runs it.
async fn exec(worker: &Inner, message: &TaskMessage) -> Verdict {
    let headers = &message.headers;
    let exec = match arguments(&message.args, &message.kwargs) {
        Ok(exec) => exec,
        Err(why) => {
            let meta = Meta::failure(&headers.id, ("builtins", "TypeError"), &why, bus::now());
            return Verdict::Dead(why, Some(meta));
        }
    };
    if !claim_patiently(worker, &headers.id).await {
        return Verdict::Served(None);
    }
    let limit = |seconds: Option<f64>| {
        let seconds = seconds.filter(|s| s.is_finite() && *s > 0.0)?;
        Duration::try_from_secs_f64(seconds).ok()
    };
    let (hard, soft) = (limit(headers.timelimit.0), limit(headers.timelimit.1));
    let mut ended = worker.node.exec(&headers.id, &exec, soft, hard).await;
    for _ in 0..LOST_MAX {
        // What was lost with its lease certainly runs no more, and is begun again.
        if !matches!(ended, Some(Ended::Lost(_))) {
            break;
        }
        ended = worker.node.exec(&headers.id, &exec, soft, hard).await;
    }
    let kept = ended.filter(|_| !headers.ignore_result);
    let meta = kept.map(|ended: Ended| ended.meta(&headers.id, bus::now()));
    release(worker, &headers.id).await;
    Verdict::Served(meta)
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

/// Whether this worker is to run a task: nobody else does, and it is not over.
async fn claim_patiently(worker: &Inner, id: &str) -> bool {
    loop {
        match claim(worker, id).await {
            Ok(Some(mine)) => return mine,
            Ok(None) => tokio::time::sleep(LOOK_EVERY).await,
            Err(error) => {
                tracing::warn!(%error, id, "a task could not be claimed: trying again");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

async fn claim(worker: &Inner, id: &str) -> Result<Option<bool>, BusError> {
    let (key, name) = (names::claim(id), worker.node.name());
    let lease = super::claim_ms(worker.node.lease());
    let mut all = redis::pipe();
    all.cmd("GET").arg(crate::celery::result::key(id));
    all.cmd("SET").arg(&key).arg(name).arg("NX").arg("PX").arg(lease);
    all.cmd("GET").arg(&key);
    let (kept, _, holder): (Option<Vec<u8>>, Option<String>, Option<String>) =
        worker.bus().run_all("let us claim a task", &all).await?;
    if kept.and_then(|bytes| Meta::read(&bytes)).is_some_and(|meta| meta.status.is_final()) {
        return Ok(Some(false));
    }
    let mine = holder.as_deref() == Some(name);
    if mine {
        super::lock(&worker.claims).insert(id.to_owned());
    }
    Ok(mine.then_some(true))
}

async fn release(worker: &Inner, id: &str) {
    super::lock(&worker.claims).remove(id);
    // It lapses by itself if this fails.
    let _ =
        worker.bus().run::<i64>("release a task", redis::cmd("DEL").arg(names::claim(id))).await;
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

    #[test]
    fn what_only_celery_can_do_is_not_half_done() {
        let mut message = TaskMessage::new(EXEC, "1", vec![json!(["true"])], Map::new());
        assert!(foreign(&message).is_none());
        message.embed.chain = Some(vec![json!({"task": "next"})]);
        assert!(matches!(foreign(&message), Some(Verdict::Dead(_, Some(_)))));
        let other = TaskMessage::new("tasks.add", "1", vec![], Map::new());
        assert!(matches!(foreign(&other), Some(Verdict::Dead(_, Some(_)))));
    }
}
