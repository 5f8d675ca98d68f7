//! Orders beside launches, from a stream of the node's own, and reports beside results.

use std::time::Duration;

use redis::streams::{StreamReadOptions, StreamReadReply};
use redis::{AsyncCommands as _, RedisError};

use super::{AGAIN, CeleryNode};
use crate::celery::bus::BLOCK_TIME;
use crate::celery::names;
use crate::executor::{ExecutorReport, Order};

/// Most orders in one turn.
const ORDERS_MAX: usize = 256;
/// Most reports that wait for a server that is away.
const REPORTS_MAX: usize = 100_000;
/// How long a report may wait for Redis.
const REPORT_TIME: Duration = Duration::from_secs(2);

/// Obeys the node's orders until it is gone. After a start all that are kept are read again: each
/// is harmless twice.
pub(super) async fn follow(again: impl Fn() -> Option<CeleryNode>) {
    let mut last = "0".to_owned();
    loop {
        let Some(node) = again() else { return };
        if let Err(error) = read(&node, &again, &mut last).await {
            tracing::warn!(%error, "orders cannot be read: trying again");
            drop(node);
            tokio::time::sleep(AGAIN).await;
        }
    }
}

async fn read(
    node: &CeleryNode,
    again: &impl Fn() -> Option<CeleryNode>,
    last: &mut String,
) -> Result<(), crate::celery::bus::BusError> {
    let broken = |error: RedisError| node.bus().broken("give orders", error);
    let mut connection = node.bus().waiting().await?;
    let block = usize::try_from(BLOCK_TIME.as_millis()).unwrap_or(1000);
    let options = StreamReadOptions::default().block(block).count(ORDERS_MAX);
    let key = names::orders(node.name());
    while again().is_some() {
        let asked = connection.xread_options(&[&key], &[&*last], &options).await;
        let reply: Option<StreamReadReply> = asked.map_err(broken)?;
        for entry in reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids) {
            let order: Option<Vec<u8>> = entry.get("order");
            match order.map(|bytes| serde_json::from_slice::<Order>(&bytes)) {
                Some(Ok(order)) => node.obey(order),
                _ => tracing::error!(id = entry.id, "an order cannot be read"),
            }
            *last = entry.id;
        }
        // Only we hold it: everybody else has let it go.
        if std::sync::Arc::strong_count(&node.inner) == 1 {
            return Ok(());
        }
    }
    Ok(())
}

impl CeleryNode {
    fn obey(&self, order: Order) {
        match order {
            Order::Stop { task, until } => self.stop(task, until),
            Order::Prolong { task, until } => {
                let ends = self.running().prolong(task, until);
                if let Some(until) = ends.map(|ends| self.guarded(ends)) {
                    self.inner.behind.carry_out(Order::Prolong { task, until });
                }
            }
            Order::Resize { .. } => self.inner.behind.carry_out(order),
            // Launches come by message, and never by this road.
            Order::Launch(_) | Order::Stage(_) => {}
        }
    }
}

/// Passes a report on. None of these is precious: one that cannot be told in time is dropped.
pub(super) async fn tell(node: &CeleryNode, report: &ExecutorReport) {
    let Ok(text) = serde_json::to_string(report) else { return };
    let mut add = redis::cmd("XADD");
    add.arg(names::REPORTS).arg("MAXLEN").arg("~").arg(REPORTS_MAX).arg("*");
    add.arg("report").arg(text);
    let told = node.bus().run::<String>("take a report", &add);
    match tokio::time::timeout(REPORT_TIME, told).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a report was dropped"),
        Err(_) => tracing::debug!("a report was dropped: Redis is slow"),
    }
}
