//! `era admin quota`: limits of an account or a group.

use era_api::Credits;
use era_api::account::{QuotaUse, QuotaView};
use era_core::resources::parse_bytes;

use crate::cli::connection::Common;
use crate::cli::exit::BadUsage;
use crate::cli::look::{self, Look, right};

/// Show or set the limits of an account or a group
///
/// Without a limit it shows them. With one, the others stay as they are; `none` lifts a limit.
#[derive(Debug, clap::Args)]
pub(crate) struct QuotaCommand {
    /// The account, or the group with --group
    name: String,
    /// It is a group
    #[arg(short, long)]
    group: bool,
    /// Cores at once
    #[arg(long, value_name = "N|none")]
    cpu: Option<String>,
    /// Memory at once, such as 64Gi
    #[arg(long, value_name = "SIZE|none")]
    memory: Option<String>,
    /// GPUs at once
    #[arg(long, value_name = "N|none")]
    gpu: Option<String>,
    /// Core-hours in a period
    #[arg(long, value_name = "N|none")]
    cpu_hours: Option<String>,
    /// GiB-hours in a period
    #[arg(long, value_name = "N|none")]
    memory_hours: Option<String>,
    /// GPU-hours in a period
    #[arg(long, value_name = "N|none")]
    gpu_hours: Option<String>,
    /// Credits spent in a period
    #[arg(long, value_name = "CREDITS|none")]
    credits: Option<String>,
    /// Data kept: bytes, or an amount such as 16GB
    #[arg(long, value_name = "SIZE|none")]
    storage_bytes: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl QuotaCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let (quota, used) = if self.group {
            let group = client.group(&self.name)?;
            (group.quota, group.used)
        } else {
            let user = client.user(&self.name)?;
            (user.quota, user.used)
        };
        let wanted = self.changed(quota.clone())?;
        let (quota, used) = if wanted == quota {
            (quota, used)
        } else if self.group {
            let group = client.set_group_quota(&self.name, &wanted)?;
            (group.quota, group.used)
        } else {
            let user = client.set_user_quota(&self.name, &wanted)?;
            (user.quota, user.used)
        };
        look::print(self.common.output, &quota, |q| render(q, &used, &self.common.look()))
    }

    fn changed(&self, mut quota: QuotaView) -> anyhow::Result<QuotaView> {
        set("--cpu", &self.cpu, &mut quota.cpu)?;
        set("--memory", &self.memory, &mut quota.memory)?;
        set("--gpu", &self.gpu, &mut quota.gpu)?;
        set("--cpu-hours", &self.cpu_hours, &mut quota.cpu_hours)?;
        set("--memory-hours", &self.memory_hours, &mut quota.memory_hours)?;
        set("--gpu-hours", &self.gpu_hours, &mut quota.gpu_hours)?;
        set::<Credits>("--credits", &self.credits, &mut quota.credits)?;
        if let Some(text) = &self.storage_bytes {
            quota.storage_bytes = storage(text)?;
        }
        Ok(quota)
    }
}

/// Bytes of data: a number of them, or an amount such as `16GB`.
fn storage(text: &str) -> anyhow::Result<Option<u64>> {
    if text == "none" {
        return Ok(None);
    }
    let bytes = parse_bytes("--storage-bytes", text).map_err(|e| BadUsage(e.to_string()))?;
    let large = |_| BadUsage(format!("--storage-bytes: `{text}` is more than any disk holds"));
    Ok(Some(u64::try_from(bytes).map_err(large)?))
}

/// What was said of one limit; what was not said stays.
fn set<T: std::str::FromStr>(
    flag: &str,
    said: &Option<String>,
    limit: &mut Option<T>,
) -> anyhow::Result<()> {
    match said.as_deref() {
        None => {}
        Some("none") => *limit = None,
        Some(text) => {
            let wrong = match text.parse::<f64>() {
                Ok(below) if below < 0.0 => "must not be negative: write 0 or more, or none",
                _ => "is no amount: write a number or none",
            };
            let bad = |_| BadUsage(format!("{flag}: `{text}` {wrong}"));
            *limit = Some(text.parse().map_err(bad)?);
        }
    }
    Ok(())
}

pub(super) fn render(quota: &QuotaView, used: &QuotaUse, look: &Look) -> String {
    let text = |limit: &Option<String>| limit.clone();
    let number = |limit: Option<u64>| limit.map(|n| n.to_string());
    let hours = |hours: f64| format!("{hours:.1}");
    let rows = [
        ("cores", used.cpu.clone(), text(&quota.cpu)),
        ("memory", used.memory.clone(), text(&quota.memory)),
        ("GPUs", used.gpu.clone(), text(&quota.gpu)),
        ("core-hours", hours(used.cpu_hours), number(quota.cpu_hours)),
        ("GiB-hours", hours(used.memory_hours), number(quota.memory_hours)),
        ("GPU-hours", hours(used.gpu_hours), number(quota.gpu_hours)),
        ("credits", used.credits.to_string(), quota.credits.map(|c| c.to_string())),
        ("storage", look::bytes(used.storage_bytes), quota.storage_bytes.map(look::bytes)),
    ];
    look.rows(&["LIMIT", "USED", "MOST"], rows, |(name, used, most)| {
        let used = if used.is_empty() { "0".to_owned() } else { used };
        vec![name.into(), right(used), right(most.unwrap_or_else(|| "∞".to_owned()))]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_stays_and_none_lifts_a_limit() {
        let mut limit = Some(3_u64);
        set("--x", &None, &mut limit).unwrap();
        assert_eq!(limit, Some(3));
        set("--x", &Some("9".to_owned()), &mut limit).unwrap();
        assert_eq!(limit, Some(9));
        set("--x", &Some("none".to_owned()), &mut limit).unwrap();
        assert_eq!(limit, None);
        assert!(set("--x", &Some("lots".to_owned()), &mut limit).is_err());
    }
}
