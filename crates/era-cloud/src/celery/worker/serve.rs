//! One message: what it asks for, whether that may be done now, and what is said of it.

use std::time::Duration;

use era_core::units::Time;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use super::held::Phase;
use super::sequel::Due;
use super::{Inner, lock};
use crate::celery::bus::{self, BusError, Claimed, Taken};
use crate::celery::envelope::Envelope;
use crate::celery::follow::Following;
use crate::celery::message::{BadMessage, TaskMessage};
use crate::celery::node::{AGAIN, Exec, Followed, Limits, Ran, Run};
use crate::celery::result::Meta;
use crate::celery::{EXEC, RUN};

/// How a message was served.
struct Served {
    /// Why it lies with the dead, where nobody here could serve it.
    dead: Option<String>,
    /// What is due for its end.
    due: Option<Due>,
    /// The task that no other worker may run until all that is done.
    claimed: Option<Claimed>,
}

impl Served {
    /// There is nothing to say, or it was said already.
    const QUIETLY: Served = Served { dead: None, due: None, claimed: None };

    fn with(due: Due) -> Served {
        Served { due: Some(due), ..Served::QUIETLY }
    }

    fn dead(why: String, due: Option<Due>) -> Served {
        Served { dead: Some(why), due, claimed: None }
    }
}

/// A task of ours, and what follows it.
struct Asked {
    message: TaskMessage,
    following: Following,
}

impl Asked {
    /// It has come to this end, which is kept or not.
    fn ended(&self, worker: &Inner, end: Meta, kept: bool) -> Due {
        Due::of(worker.bus(), &self.message.headers, &self.following, end, kept)
    }

    /// It failed by its sender's fault.
    fn refused(&self, worker: &Inner, kind: (&str, &str), why: String) -> Served {
        let end = Meta::failure(&self.message.headers.id, kind, &why, bus::now());
        Served::dead(why, Some(self.ended(worker, end, true)))
    }
}

/// Serves a message to its end.
pub(super) async fn serve(worker: &Inner, taken: &Taken, place: Option<OwnedSemaphorePermit>) {
    let served = judge(worker, taken, place).await;
    while let Err(error) = conclude(worker, taken, &served).await {
        tracing::warn!(%error, "what became of a message waits for Redis");
        tokio::time::sleep(AGAIN).await;
    }
    if let Some(claimed) = &served.claimed {
        worker.node.dropped(&claimed.id);
    }
    if let Some(why) = served.dead {
        tracing::warn!(why, queue = taken.key, "a message was put with the dead");
    }
}

/// Says what became of a message. What was said may be said again.
async fn conclude(worker: &Inner, taken: &Taken, served: &Served) -> Result<(), BusError> {
    let bus = worker.bus();
    let result = match &served.due {
        Some(due) if due.is_alone() => due.kept(),
        Some(due) => {
            due.carry_out(bus, &taken.tag).await?;
            None
        }
        None => None,
    };
    match &served.dead {
        None => {
            let followed = served.due.as_ref().and_then(Due::followed);
            let claimed = served.claimed.as_ref();
            bus.acknowledge(&taken.tag, result, followed.as_deref(), claimed).await
        }
        Some(why) => bus.bury(taken, why, result).await,
    }
}

async fn judge(worker: &Inner, taken: &Taken, place: Option<OwnedSemaphorePermit>) -> Served {
    let envelope = match Envelope::read(&taken.raw) {
        Ok(envelope) => envelope,
        Err(error) => return Served::dead(error.to_string(), None),
    };
    let message = match TaskMessage::read(&envelope) {
        Ok(message) => message,
        Err(error) => return malformed(&envelope, &error),
    };
    let (starts, ends) = match (message.headers.starts(), message.headers.ends()) {
        (Ok(starts), Ok(ends)) => (starts, ends),
        (Err(error), _) | (_, Err(error)) => return malformed(&envelope, &error),
    };
    lock(&worker.held).read(&taken.tag, &taken.key, &message);
    let id = message.headers.id.clone();
    let following = match Following::read(&message.headers, &message.embed) {
        Ok(following) => following,
        Err(error) => {
            let why = error.to_string();
            let end = Meta::failure(&id, ("celery.exceptions", "Reject"), &why, bus::now());
            return Served::dead(why, Some(Due::result(end)));
        }
    };
    let asked = Asked { message, following };
    let task = asked.message.headers.task.as_str();
    if ![RUN, EXEC].contains(&task) {
        let why = format!("no task is called `{task}` here: this worker has {RUN} and {EXEC}");
        return asked.refused(worker, ("celery.exceptions", "NotRegistered"), why);
    }
    let _place = match starts.filter(|at| *at > bus::now()) {
        Some(at) => wait_until(worker, &taken.tag, at, place).await,
        None => place,
    };
    lock(&worker.held).is(&taken.tag, Phase::Active(bus::now()));
    // Whether a launch may still start, Redis says: it may have been prolonged.
    let expires = ends.filter(|_| task != RUN);
    let expired = expires.is_some_and(|ends| ends <= bus::now()).then_some("expired");
    if let Some(why) = expired.or(worker.is_revoked(&id).then_some("revoked")) {
        let end = Meta::revoked(&id, why, bus::now());
        return Served::with(asked.ended(worker, end, true));
    }
    match task {
        RUN => run(worker, &asked).await,
        _ => exec(worker, &asked).await,
    }
}

/// A message that waits for its time gives its place to others, as long as not too many do.
async fn wait_until(
    worker: &Inner,
    tag: &str,
    at: Time,
    place: Option<OwnedSemaphorePermit>,
) -> Option<OwnedSemaphorePermit> {
    lock(&worker.held).is(tag, Phase::Scheduled(at));
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
            lock(&worker.held).is(tag, Phase::Reserved);
            std::sync::Arc::clone(&worker.places).acquire_owned().await.ok()
        }
        Err(_) => {
            pause.await;
            place
        }
    }
}

/// Whoever sent it, if that can be read, is told what is wrong.
fn malformed(envelope: &Envelope, error: &BadMessage) -> Served {
    let why = error.to_string();
    let id = envelope.headers.get("id").and_then(Value::as_str).filter(|id| id.len() <= 2048);
    let tell = |id| Meta::failure(id, ("kombu.exceptions", "DecodeError"), &why, bus::now());
    let due = id.map(tell).map(Due::result);
    Served::dead(why, due)
}

/// A launch by its id. Its result is kept under that id by the node; the message's own id is told
/// too where it is another.
async fn run(worker: &Inner, asked: &Asked) -> Served {
    let TaskMessage { headers, args, kwargs, .. } = &asked.message;
    let launch = args.first().or_else(|| kwargs.get("id")).and_then(Value::as_str);
    let Some(launch) = launch else {
        let why = format!("{RUN} needs the id of a launch as its first argument");
        return asked.refused(worker, ("builtins", "TypeError"), why);
    };
    let other = launch != headers.id;
    match worker.node.run(launch).await {
        Run::Ended(ended) => {
            let end = ended.meta(&headers.id, bus::now());
            Served::with(asked.ended(worker, end, other && !headers.ignore_result))
        }
        Run::Over if other => {
            let why = format!("there is no launch {launch}: it is over, or was called off");
            let end = Meta::failure(&headers.id, ("builtins", "LookupError"), &why, bus::now());
            Served::with(asked.ended(worker, end, true))
        }
        Run::Over => Served::QUIETLY,
    }
}

/// A command. Of several workers that have the same message only one runs it.
async fn exec(worker: &Inner, asked: &Asked) -> Served {
    let headers = &asked.message.headers;
    let exec = match arguments(&asked.message.args, &asked.message.kwargs) {
        Ok(exec) => exec,
        Err(why) => return asked.refused(worker, ("builtins", "TypeError"), why),
    };
    let limit = |seconds: Option<f64>| {
        let seconds = seconds.filter(|s| s.is_finite() && *s > 0.0)?;
        Duration::try_from_secs_f64(seconds).ok()
    };
    let (hard, soft) = (limit(headers.timelimit.0), limit(headers.timelimit.1));
    let limits = Limits { soft, hard, tracked: false };
    let due = match worker.node.exec(&headers.id, &exec, limits).await {
        Ran::Now(ended) => {
            let end = ended.meta(&headers.id, bus::now());
            Some(asked.ended(worker, end, !headers.ignore_result))
        }
        // What follows may not have been sent.
        Ran::Before { end, followed: Followed::Unknown | Followed::Begun } => {
            Some(asked.ended(worker, *end, false))
        }
        Ran::Before { followed: Followed::Wholly, .. } | Ran::Over => None,
    };
    let claimed = worker.node.claimed(&headers.id, headers.ignore_result);
    Served { dead: None, due, claimed }
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
