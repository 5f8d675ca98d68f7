//! What work for a queue can cost at most: the rates of the dearest pool that it may run in, times
//! what queues pay of them, for all of its time. The server charges what was used, by the same
//! rates.

use era_api::Credits;
use era_api::client::Client;
use era_api::cluster::PoolView;
use era_api::job::{Ask, JobSpec, Replicas};
use era_core::resources::Resources;

/// The setting that says which part of a pool's rates work for a queue pays.
const DENSITY: &str = "queue_density";

/// The most that a job can cost; `None` where the server does not tell its rates.
pub(crate) fn at_most(client: &Client, job: &JobSpec) -> Option<Credits> {
    let density = client.settings().ok()?.0.get(DENSITY)?.as_f64()?;
    let jobs = job.array.and_then(|array| array.count()).unwrap_or(1);
    let mut ask = job.ask.clone();
    ask.complete();
    most(&ask, jobs, &client.pools().ok()?, density)
}

/// The same in words.
pub(crate) fn used(most: Credits) -> String {
    format!("It costs {most} credits at most; it pays for what it uses.")
}

fn most(ask: &Ask, jobs: u32, pools: &[PoolView], density: f64) -> Option<Credits> {
    let texts: Vec<_> = ask.resources.iter().map(|(key, q)| (key, q.to_string())).collect();
    let each =
        Resources::parse(texts.iter().map(|(key, text)| (key.as_str(), text.as_str()))).ok()?;
    let [cpu, gpu] = [each.cpu, each.gpu].map(|thousandths| f64::from(thousandths) / 1000.0);
    let memory = f64::from(each.memory) / 1024.0;
    let replicas = match (ask.replicas, ask.gpus) {
        (_, Some(total)) => total,
        (Some(Replicas::Fixed(n)), _) => n,
        (Some(Replicas::Range { max, .. }), _) => max,
        (None, None) => 1,
    };
    let only = ask.constraints.as_ref().and_then(|constraints| constraints.pool.as_deref());
    let hourly = |pool: &PoolView| {
        let rate = |credits: Credits| credits.0 as f64;
        cpu * rate(pool.cpu_rate) + memory * rate(pool.memory_rate) + gpu * rate(pool.gpu_rate)
    };
    let open = pools.iter().filter(|pool| only.is_none_or(|only| pool.name == only));
    let hourly = open.map(hourly).reduce(f64::max)?;
    let hours = ask.duration_s? as f64 / 3600.0;
    let millionths = hourly * hours * density * f64::from(replicas) * f64::from(jobs);
    // To the next cent: a bound that is rounded down is none.
    let cents = (millionths / 10_000.0).ceil();
    (0.0..1e12).contains(&cents).then(|| Credits(cents as i64 * 10_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str, gpu_rate: i64) -> PoolView {
        let text = format!(
            r#"{{"name": "{name}", "cpu_rate": "0.10", "memory_rate": "0.01",
            "gpu_rate": "{gpu_rate}", "closed_share": 0, "nodes": 1}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn ask(text: &str) -> Ask {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_dearest_pool_that_is_open_bounds_the_price() {
        let pools = [pool("slow", 1), pool("fast", 4)];
        let plain = ask(r#"{"resources": {"cpu": "4", "memory": "16Gi", "gpu": "1"},
            "duration_s": 7200}"#);
        let credits = |text: &str| Some(text.parse::<Credits>().unwrap());
        // (4 × 0.10 + 16 × 0.01 + 4) × 2 hours, of which queues pay half.
        assert_eq!(most(&plain, 1, &pools, 0.5), credits("4.56"));
        assert_eq!(most(&plain, 10, &pools, 0.5), credits("45.60"));
        let mut slow = plain.clone();
        slow.constraints = Some(serde_json::from_str(r#"{"pool": "slow"}"#).unwrap());
        slow.replicas = Some(Replicas::Range { min: 1, max: 3 });
        assert_eq!(most(&slow, 1, &pools, 0.5), credits("4.68"));
        slow.constraints = Some(serde_json::from_str(r#"{"pool": "away"}"#).unwrap());
        assert_eq!(most(&slow, 1, &pools, 0.5), None);
    }

    #[test]
    fn quantities_are_read_as_the_server_reads_them() {
        let pools = [pool("one", 1)];
        let cost = |memory: &str| {
            let text = format!(
                r#"{{"resources": {{"cpu": "500m", "memory": "{memory}"}}, "duration_s": 3600}}"#
            );
            most(&ask(&text), 1, &pools, 1.0).map(|credits| credits.to_string())
        };
        for memory in ["16Gi", "16GiB", "16384Mi"] {
            assert_eq!(cost(memory).as_deref(), Some("0.21"), "{memory}");
        }
        assert_eq!(cost("16GB").as_deref(), Some("0.20"));
        assert_eq!(cost("lots"), None);
    }
}
