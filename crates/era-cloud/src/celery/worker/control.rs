//! Commands of Celery's remote control, and our answers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::Inner;
use crate::celery::bus::BusError;
use crate::celery::control::{self, Command, ReplyTo};
use crate::celery::names;
use crate::celery::node::AGAIN;
use crate::celery::queue;
use crate::celery::{EXEC, RUN};

/// What a task that is told to end by a command gets.
const GRACE: Duration = Duration::from_secs(10);

/// Hears commands until the worker is gone.
pub(super) async fn listen(worker: Arc<Inner>) {
    loop {
        if let Err(error) = hear(&worker).await {
            tracing::warn!(%error, "commands are not heard: trying again");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn hear(worker: &Inner) -> Result<(), BusError> {
    let mut listening = worker.bus().listening().await?;
    let channel = control::channel(worker.bus().address().database);
    let heard = listening.psubscribe(&channel).await;
    heard.map_err(|e| worker.bus().broken("let us hear commands", e))?;
    let mut messages = listening.on_message();
    while let Some(message) = messages.next().await {
        match Command::read(message.get_payload_bytes()) {
            Ok(command) if command.is_for(&worker.name) => answer(worker, &command).await,
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "a command was not understood"),
        }
    }
    Ok(())
}

async fn answer(worker: &Inner, command: &Command) {
    let said = obey(worker, command);
    let Some(to) = &command.reply_to else { return };
    if let Err(error) = reply(worker, said, to, command.ticket.as_deref()).await {
        tracing::warn!(%error, method = command.method, "a command was not answered");
    }
}

/// Carries a command out, and gives the answer.
fn obey(worker: &Inner, command: &Command) -> Value {
    match command.method.as_str() {
        "ping" => json!({ "ok": "pong" }),
        "revoke" => {
            let ids = command.ids();
            worker.revoke(&ids);
            if command.argument("terminate").and_then(Value::as_bool) == Some(true) {
                for id in &ids {
                    worker.node.stop_exec(id, GRACE);
                }
            }
            json!({ "ok": format!("tasks {} flagged as revoked", ids.join(", ")) })
        }
        // A worker that starts tells what it knows, and asks.
        "hello" => {
            let answer = json!({ "revoked": worker.revoked(), "clock": 1 });
            worker.revoke(&command.ids_in("revoked"));
            answer
        }
        "revoked" | "dump_revoked" => worker.revoked().into(),
        "registered" | "dump_tasks" => json!([EXEC, RUN]),
        "active_queues" => {
            let queue = |name: String| json!({ "name": name, "routing_key": name });
            names::queues(worker.node.name()).into_iter().map(queue).collect()
        }
        "active" | "dump_active" => super::lock(&worker.held).active(&worker.name),
        "reserved" | "dump_reserved" => super::lock(&worker.held).reserved(&worker.name),
        "scheduled" | "dump_schedule" => super::lock(&worker.held).scheduled(&worker.name),
        "stats" => json!({
            "pid": std::process::id(),
            "total": { EXEC: *super::lock(&worker.served) },
            "pool": {
                "implementation": "era",
                "max-concurrency": *super::lock(&worker.limit),
                "processes": worker.node.busy(),
            },
            "autoscaler": {
                "max": worker.scale.most(),
                "min": worker.scale.least(),
                "current": *super::lock(&worker.limit),
            },
            "broker": { "transport": "redis" },
        }),
        other => json!({ "error": format!("KeyError('{other}')") }),
    }
}

/// Puts an answer into the queues that its exchange feeds.
async fn reply(
    worker: &Inner,
    said: Value,
    to: &ReplyTo,
    ticket: Option<&str>,
) -> Result<(), BusError> {
    let mut members = redis::cmd("SMEMBERS");
    members.arg(queue::bindings_key(&to.exchange));
    let entries: Vec<String> = worker.bus().run("show where answers go", &members).await?;
    let Ok(text) = control::reply(&worker.name, said, to, ticket, worker.bus().tag()) else {
        return Ok(());
    };
    for queue in entries.iter().filter_map(|entry| queue::bound(entry, &to.routing_key)) {
        let mut push = redis::cmd("LPUSH");
        push.arg(queue).arg(&text);
        let _: i64 = worker.bus().run("take an answer", &push).await?;
    }
    Ok(())
}
