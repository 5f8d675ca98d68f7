//! What is left of the day: the picture, a statement, and whether all was as it should be.

use era_core::job::{Job, Outcome};
use era_core::ledger::{Account, PostingReason};
use era_core::resources::Resource;
use era_core::units::{Money, Time, UserId};
use era_core::{check, outstanding};

use super::chart::{self, Letters};
use super::story::Story;
use super::tell::{job_name, user_name};
use super::text::{Page, credits, minute};
use super::world::World;
use crate::paint::Tone;

/// Lines of a statement that are shown.
const STATEMENT_LINES: usize = 14;

/// The whole report on `[from, to)`.
pub(super) fn report(story: &mut Story, from: Time, to: Time) -> anyhow::Result<()> {
    let Story { world, page, .. } = story;
    page.section("The day, two GPUs a line");
    let letters = Letters::of(world.state().jobs().map(|job| &**job));
    chart::day(page, world, &letters, from, to);
    page.line("");
    legend(page, world, &letters);
    page.section("What it came to");
    let user = whose_statement(world);
    statement(page, world, user);
    page.line("");
    totals(page, world, from, to)
}

fn legend(page: &mut Page, world: &World, letters: &Letters) {
    const ACROSS: usize = 3;
    let (promises, queued): (Vec<_>, Vec<_>) =
        world.state().jobs().partition(|job| job.promise().is_some());
    let entries: Vec<String> = promises
        .into_iter()
        .chain(queued)
        .map(|job| {
            let text = format!("{} {}, {}", user_name(job.user), job_name(job), fate(job));
            format!("{} {text:<27}", letters.bar(page, job.id, 1))
        })
        .collect();
    for row in entries.chunks(ACROSS) {
        page.line(&row.join("  "));
    }
    page.quiet("capitals have a promise, small letters came through the queue; · idle, × lost");
}

/// How a job stands, in a word.
fn fate(job: &Job) -> &'static str {
    match job.ended.as_ref().map(|ended| &ended.outcome) {
        Some(Outcome::Succeeded) => "done",
        Some(Outcome::Broken { .. }) => "broken",
        Some(Outcome::LimitReached) => "cut off",
        Some(_) => "ended",
        None => job.state(),
    }
}

/// Whoever had a promise broken has the statement with most to see.
fn whose_statement(world: &World) -> UserId {
    let broken = world.state().jobs().find(|job| fate(job) == "broken");
    broken.map_or(UserId(1), |job| job.user)
}

fn statement(page: &mut Page, world: &World, user: UserId) {
    page.line(&format!("The statement of {}", user_name(user)));
    page.line("");
    let lines: Vec<_> = world.state().ledger().statement(user).collect();
    let left_out = lines.len().saturating_sub(STATEMENT_LINES);
    for line in lines.into_iter().take(STATEMENT_LINES) {
        let job = line.job.and_then(|id| world.state().job(id).ok());
        let job = job.map_or_else(String::new, |job| job_name(job));
        let gets = line.posting.to == Account::Wallet(user);
        let amount = Money(if gets { line.posting.amount.0 } else { -line.posting.amount.0 });
        let sign = if gets { "+" } else { "" };
        let shown = format!("{:>11}", format!("{sign}{}", credits(amount)));
        let shown = page.paint.tone(if gets { Tone::Good } else { Tone::Warn }, &shown);
        let (time, why) = (minute(line.at), why(line.posting.reason));
        let balance = credits(line.balance_after);
        let time = page.paint.tone(Tone::Quiet, &format!("{time:<6}"));
        page.line(&format!("    {time} {why:<28} {job:<12} {shown} {balance:>12}"));
    }
    if left_out > 0 {
        page.quiet(&format!("    and {left_out} more lines"));
    }
}

fn why(reason: PostingReason) -> &'static str {
    match reason {
        PostingReason::Grant => "granted",
        PostingReason::Withdraw => "withdrawn",
        PostingReason::Charge => "a promise is paid",
        PostingReason::Extension => "more time is paid",
        PostingReason::QueueEscrow => "the most that it may use",
        PostingReason::Earned => "used",
        PostingReason::RefundUnused => "80 % of the unused time",
        PostingReason::RefundBroken => "a broken promise, in full",
        PostingReason::Returned => "what it did not use",
    }
}

fn totals(page: &mut Page, world: &World, from: Time, to: Time) -> anyhow::Result<()> {
    let replay = world.replay()?;
    let promises: Vec<_> = world.state().jobs().filter(|job| job.promise().is_some()).collect();
    let counted = |which: &dyn Fn(&Job) -> bool| promises.iter().filter(|j| which(j)).count();
    let broken = |job: &Job| fate(job) == "broken";
    let chronicle = world.chronicle();
    let moved =
        |job: &Job| job.ended.is_some() && chronicle.replanned.contains(&job.id) && !broken(job);
    let kept = |job: &Job| job.ended.is_some() && !broken(job) && !moved(job);
    let open = counted(&|job| job.ended.is_none());
    let open = if open > 0 { format!(", {open} still open") } else { String::new() };
    let (made, kept) = (promises.len(), counted(&kept));
    let (moved, lost) = (counted(&moved), counted(&broken));
    let (used, promised, there) = gpu_time(world, from, to);
    let percent = |part: i64| part * 100 / there.max(1);
    let sum: i64 = world.state().ledger().balances().map(|(_, balance)| balance.0).sum();
    let revenue = credits(world.state().ledger().balance(Account::Revenue));
    let checked = check(world.state()).is_ok();
    let left = outstanding(world.state()).len();
    let rows = [
        (
            "promises",
            format!(
                "{made} made: {kept} kept as told{open}; with the node, {moved} re-planned, {lost} refunded"
            ),
        ),
        (
            "GPU time",
            format!(
                "{} % used: {} % by promises, {} % by queue work in the holes",
                percent(used),
                percent(promised),
                percent(used - promised)
            ),
        ),
        ("ledger", format!("{revenue} earned; all accounts together {}", credits(Money(sum)))),
        ("effects", format!("{left} wait to be confirmed")),
        ("check", format!("all invariants hold, after each of {} inputs", replay.inputs)),
        (
            "replay",
            format!("the journal was replayed: {} events agreed byte for byte", replay.events),
        ),
    ];
    for (what, text) in rows {
        let fine = what != "check" || checked;
        let mark = page.paint.tone(if fine { Tone::Good } else { Tone::Bad }, "✓");
        page.line(&format!("{mark} {what:<10} {text}"));
    }
    page.line("");
    Ok(())
}

/// GPU-milliseconds that were used, used by promises, and there at all.
fn gpu_time(world: &World, from: Time, to: Time) -> (i64, i64, i64) {
    let (mut used, mut promised) = (0, 0);
    let chronicle = world.chronicle();
    for stint in chronicle.stints(world.now) {
        let span = stint.to.min(to).since(stint.from.max(from)).0.max(0);
        let work = span * stint.gpus.len() as i64;
        used += work;
        if world.state().job(stint.job).is_ok_and(|job| job.promise().is_some()) {
            promised += work;
        }
    }
    let mut there = 0;
    for node in world.state().cluster().nodes() {
        let gpus = node.capacity.amount(Resource::Gpu) as i64 / 1000;
        let away = chronicle.outages.iter().filter(|outage| outage.node == node.id);
        let away: i64 = away.map(|o| o.to.min(to).since(o.from.max(from)).0.max(0)).sum();
        there += gpus * (to.since(from).0 - away);
    }
    (used, promised, there)
}
