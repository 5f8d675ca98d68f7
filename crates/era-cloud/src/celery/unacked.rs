//! Messages that were taken from their queues and not acknowledged, as Celery's transport keeps
//! them: who holds them, and how those of one node go back. Celery finds abandoned ones by their age
//! alone (its visibility timeout); for those that a worker of ours holds there is a shorter way, by
//! its name.

use std::collections::BTreeMap;

use super::bus::{Bus, BusError};
use super::{names, queue};

/// Puts back what earlier workers of this node held: whatever came from the node's own queue, and
/// whatever is noted under its name. Only one worker serves a node, and it has just begun.
pub(super) async fn restore_held_by(bus: &Bus, node: &str) -> Result<usize, BusError> {
    let mine = queue::of_node(node);
    let mut restored = 0;
    for (tag, holder) in holders(bus).await? {
        if holder == node {
            restored += usize::from(bus.restore(&tag).await?);
        }
    }
    let mut cursor = 0_u64;
    loop {
        let mut scan = redis::cmd("HSCAN");
        scan.arg(names::UNACKED).arg(cursor).arg("COUNT").arg(500);
        let (next, held): (u64, Vec<(String, Vec<u8>)>) =
            bus.run("show held messages", &scan).await?;
        for (tag, bytes) in held {
            let from = serde_json::from_slice::<(serde_json::Value, String, String)>(&bytes);
            if from.is_ok_and(|(_, exchange, key)| exchange.is_empty() && key == mine) {
                restored += usize::from(bus.restore(&tag).await?);
            }
        }
        if next == 0 {
            return Ok(restored);
        }
        cursor = next;
    }
}

/// Which worker of ours holds which message.
pub(super) async fn holders(bus: &Bus) -> Result<BTreeMap<String, String>, BusError> {
    bus.run("show who holds messages", redis::cmd("HGETALL").arg(names::TAKEN)).await
}
