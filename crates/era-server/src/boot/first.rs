//! What a site has from its first start on: a pool, a queue and a market that works without
//! history. Whatever an administrator changes later stays as it is.

use era_app::driver::Handle;
use era_app::launch::nodes::{DEFAULT_POOL, new_pool};
use era_core::market::{MarketRules, MechanismChoice};
use era_core::queue::Queue;
use era_core::units::Name;
use era_core::{Command, Reply, Snapshot};

use super::BootError;

/// The queue of jobs that name none.
const DEFAULT_QUEUE: &str = "default";
/// The policy that orders it.
const DEFAULT_POLICY: &str = "priority";
/// The market of a site that has no history yet.
const FIRST_MECHANISM: &str = "surge";

/// Tells the scheduler what it does not know yet.
pub(super) async fn furnish(driver: &Handle) -> Result<(), BootError> {
    for command in missing(&driver.snapshot())? {
        if let Reply::Refused { refusal, .. } = driver.ask(command, None).await?.reply {
            return Err(BootError::First(refusal.to_string()));
        }
    }
    Ok(())
}

fn missing(state: &Snapshot) -> Result<Vec<Command>, BootError> {
    let name = |text: &str| Name::new(text).map_err(|e| BootError::First(e.to_string()));
    let mut commands = Vec::new();
    // Only a state to which nothing ever happened has a market that nobody chose.
    if state.seq() == 0 {
        let mechanism = MechanismChoice::named(&name(FIRST_MECHANISM)?)
            .map_err(|refusal| BootError::First(refusal.to_string()))?;
        let rules = MarketRules { mechanism, ..MarketRules::default() };
        commands.push(Command::SetMarket { rules });
    }
    if state.cluster().pools().next().is_none() {
        commands.push(Command::PutPool { pool: new_pool(name(DEFAULT_POOL)?) });
    }
    if state.queues().is_empty() {
        let queue = Queue::new(name(DEFAULT_QUEUE)?, name(DEFAULT_POLICY)?);
        commands.push(Command::PutQueue { queue });
    }
    Ok(commands)
}
