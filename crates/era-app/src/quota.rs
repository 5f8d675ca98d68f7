//! Quotas between the wire and the core, and what is used of them.

use crate::wire::{BadField, Wrong, credits, money, stamp};
use era_api::account::{Budget, BudgetOf, QuotaUse, QuotaView};
use era_core::State;
use era_core::quota as core;
use era_core::refusal::QuotaScope;
use era_core::resources::{Round, parse_mib, parse_milli, show_decimal, show_mib, show_milli};
use era_core::units::{Span, UserId};

pub fn read(quota: &QuotaView) -> Result<core::Quota, BadField> {
    fn milli(field: &str, text: Option<&str>) -> Result<Option<u64>, BadField> {
        let read = |text| parse_milli(field, text).map(u64::from);
        text.map(read).transpose().map_err(|bad| BadField::new(field, bad))
    }
    fn hours(field: &str, given: Option<u64>, whole: u64) -> Result<Option<u64>, BadField> {
        let fine = |hours: u64| hours.checked_mul(whole).filter(|fine| *fine <= i64::MAX as u64);
        let too_many = || BadField::new(field, Wrong::Uncountable);
        given.map(|hours| fine(hours).ok_or_else(too_many)).transpose()
    }
    let memory = |text: &str| parse_mib("memory", text, Round::Down).map(u64::from);
    let memory = quota.memory.as_deref().map(memory).transpose();
    Ok(core::Quota {
        concurrent: [
            milli("cpu", quota.cpu.as_deref())?,
            memory.map_err(|bad| BadField::new("memory", bad))?,
            milli("gpu", quota.gpu.as_deref())?,
        ],
        hours: [
            hours("cpu_hours", quota.cpu_hours, 1000)?,
            hours("memory_hours", quota.memory_hours, 1024)?,
            hours("gpu_hours", quota.gpu_hours, 1000)?,
        ],
        credits: quota.credits.map(money),
    })
}

/// A quota as the wire has it, with the limit on data that only the platform counts.
pub fn write(quota: &core::Quota, storage_bytes: Option<u64>) -> QuotaView {
    let [cpu, memory, gpu] = quota.concurrent;
    let [cpu_hours, memory_hours, gpu_hours] = quota.hours;
    QuotaView {
        cpu: cpu.map(|fine| show_milli(narrow(fine))),
        memory: memory.map(|fine| show_mib(narrow(fine))),
        gpu: gpu.map(|fine| show_decimal(narrow(fine))),
        cpu_hours: cpu_hours.map(|fine| fine / 1000),
        memory_hours: memory_hours.map(|fine| fine / 1024),
        gpu_hours: gpu_hours.map(|fine| fine / 1000),
        credits: quota.credits.map(credits),
        storage_bytes,
    }
}

/// What somebody holds now and has used in this period.
pub fn used(state: &State, scope: QuotaScope, storage_bytes: u64) -> QuotaUse {
    let now = state.now();
    let [cpu, memory, gpu] = state.usage().held(scope, now, now + Span(1));
    let used = state.usage().used(scope, now);
    let hours = |at: usize, whole: f64| used.unit_ms[at] as f64 / 3_600_000.0 / whole;
    let (from, to) = state.usage().period().around(now);
    QuotaUse {
        period_from: Some(stamp(from)),
        period_to: Some(stamp(to)),
        cpu: show_milli(narrow(cpu)),
        memory: show_mib(narrow(memory)),
        gpu: show_decimal(narrow(gpu)),
        cpu_hours: hours(0, 1000.0),
        memory_hours: hours(1, 1024.0),
        gpu_hours: hours(2, 1000.0),
        credits: spent(used.micro_credits),
        storage_bytes,
    }
}

/// The budgets that bind a user: its own, then its group's, where they are set.
pub fn budgets(state: &State, user: UserId, name: impl Fn(QuotaScope) -> String) -> Vec<Budget> {
    // Who has just been removed is bound by nothing.
    let Ok(quotas) = state.accounts().quotas(user) else { return Vec::new() };
    let budget = |(scope, quota): (QuotaScope, &core::Quota)| {
        let limit = quota.credits?;
        let spent = spent(state.usage().used(scope, state.now()).micro_credits);
        let of = match scope {
            QuotaScope::User(_) => BudgetOf::Account,
            QuotaScope::Group(_) => BudgetOf::Group,
        };
        let left = era_api::Credits((limit.0 - spent.0).max(0));
        Some(Budget { of, name: name(scope), limit: credits(limit), spent, left })
    };
    quotas.into_iter().filter_map(budget).collect()
}

/// What was spent, as the wire has it. The sum over a group may leave its range.
pub fn spent(micro_credits: u128) -> era_api::Credits {
    era_api::Credits(i64::try_from(micro_credits).unwrap_or(i64::MAX))
}

/// Amounts that people write fit; sums over everybody may not, and are shown as the most.
fn narrow(fine: u64) -> u32 {
    u32::try_from(fine).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_survives_the_way_there_and_back() {
        let quota = QuotaView {
            cpu: Some("16".into()),
            memory: Some("64Gi".into()),
            gpu: Some("0.5".into()),
            cpu_hours: Some(100),
            memory_hours: Some(7),
            gpu_hours: Some(0),
            credits: Some("12.5".parse().unwrap()),
            storage_bytes: Some(9),
        };
        assert_eq!(write(&read(&quota).unwrap(), Some(9)), quota);
        assert_eq!(write(&read(&QuotaView::default()).unwrap(), None), QuotaView::default());
    }

    #[test]
    fn what_is_no_amount_is_refused_by_its_field() {
        let bad = [
            (QuotaView { cpu: Some("many".into()), ..QuotaView::default() }, "cpu"),
            (QuotaView { memory: Some("-1".into()), ..QuotaView::default() }, "memory"),
            (QuotaView { gpu_hours: Some(u64::MAX), ..QuotaView::default() }, "gpu_hours"),
        ];
        for (quota, field) in bad {
            assert_eq!(read(&quota).unwrap_err().field, field);
        }
    }
}
