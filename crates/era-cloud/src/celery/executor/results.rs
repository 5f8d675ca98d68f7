//! What became of launches: heard when it happens, and looked up now and then in case it was not.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::AsyncCommands as _;
use redis::streams::{StreamReadOptions, StreamReadReply};
use tokio::time::Instant;

use super::{AGAIN, Shared};
use crate::celery::bus::{BLOCK_TIME, BusError};
use crate::celery::names::{self, CeleryId};
use crate::celery::outcome;
use crate::celery::result::{self, Meta};
use crate::executor::ExecutorReport;

/// How often results are looked up.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Most results in one command.
const LOOK_MAX: usize = 500;
/// After how long a launch that nobody claimed is sent again.
const UNHEARD_TIME: Duration = Duration::from_secs(20);
/// Where in the stream of reports we are.
const CURSOR: &str = "era:reports:cursor";
/// Most reports in one turn.
const REPORTS_MAX: usize = 256;

/// Hears results until the executor is gone.
pub(super) async fn listen(shared: Arc<Shared>) {
    loop {
        if let Err(error) = hear(&shared).await {
            tracing::warn!(%error, "results are looked up until they are heard again");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn hear(shared: &Shared) -> Result<(), BusError> {
    let mut listening = shared.bus.listening().await?;
    let pattern = result::key(&format!("era-{}-*", shared.site));
    let heard = listening.psubscribe(&pattern).await;
    heard.map_err(|e| shared.bus.broken("let us hear results", e))?;
    let mut messages = listening.on_message();
    while let Some(message) = messages.next().await {
        let id = result::of_key(message.get_channel_name()).and_then(CeleryId::read);
        if let (Some(id), Some(meta)) = (id, Meta::read(message.get_payload_bytes())) {
            shared.tell(outcome::reports(id.task, &meta, shared.bus.now())).await;
        }
    }
    Ok(())
}

/// Looks results up, and sends again what nobody took, until the executor is gone.
pub(super) async fn look(shared: Arc<Shared>) {
    loop {
        if let Err(error) = look_once(&shared).await {
            tracing::warn!(%error, "results cannot be looked up");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look_once(shared: &Shared) -> Result<(), BusError> {
    let tasks = shared.known().unended();
    for tasks in tasks.chunks(LOOK_MAX) {
        let ids: Vec<String> = tasks.iter().map(|task| shared.id(*task)).collect();
        let found = shared.bus.results(&ids).await?;
        for (task, meta) in tasks.iter().zip(found) {
            if let Some(meta) = meta {
                shared.tell(outcome::reports(*task, &meta, shared.bus.now())).await;
            }
        }
    }
    let unheard = shared.known().unheard(UNHEARD_TIME, Instant::now());
    shared.send_again(unheard).await
}

/// Takes what nodes report beside results until the executor is gone.
pub(super) async fn hear_reports(shared: Arc<Shared>) {
    loop {
        if let Err(error) = read_reports(&shared).await {
            tracing::warn!(%error, "reports cannot be read: trying again");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn read_reports(shared: &Shared) -> Result<(), BusError> {
    let mut connection = shared.bus.waiting().await?;
    let cursor: Option<String> =
        shared.bus.run("say how far we read", redis::cmd("GET").arg(CURSOR)).await?;
    let mut last = cursor.unwrap_or_else(|| "0".to_owned());
    let block = usize::try_from(BLOCK_TIME.as_millis()).unwrap_or(1000);
    let options = StreamReadOptions::default().block(block).count(REPORTS_MAX);
    loop {
        let asked = connection.xread_options(&[names::REPORTS], &[&last], &options).await;
        let reply: Option<StreamReadReply> =
            asked.map_err(|e| shared.bus.broken("give reports", e))?;
        let Some(reply) = reply else { continue };
        for entry in reply.keys.into_iter().flat_map(|key| key.ids) {
            let report: Option<Vec<u8>> = entry.get("report");
            match report.and_then(|bytes| serde_json::from_slice::<ExecutorReport>(&bytes).ok()) {
                // Starts and ends are results; nothing else may come by this road.
                Some(
                    report @ (ExecutorReport::Checkpointed { .. }
                    | ExecutorReport::GpusIdle { .. }
                    | ExecutorReport::Samples { .. }),
                ) => drop(shared.report([report]).await),
                _ => tracing::warn!(id = entry.id, "a report cannot be read"),
            }
            last = entry.id;
        }
        let mut keep = redis::pipe();
        keep.cmd("SET").arg(CURSOR).arg(&last);
        shared.fence.write("keep how far we read", &keep).await?;
    }
}
