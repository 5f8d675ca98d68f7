//! Events in sentences that people read: times in UTC to the minute, or to the second where that
//! matters, money in credits, machines by name.

use era_api::Parameters;
use era_core::Event;
use era_core::job::{Outcome, Plan, StopReason};
use era_core::units::Time;

use super::Names;
use super::particulars::{NODES_MAX, nodes, particulars};

/// An event of the journal, as JSON, in a sentence, and what it says as values.
pub fn sentence(body: &str, names: &Names) -> (String, Parameters) {
    match serde_json::from_str::<Event>(body) {
        Ok(event) => (told(&event, names), particulars(&event, names)),
        // A newer version's event is still an event.
        Err(_) => ("something that this version has no words for".to_owned(), Parameters::new()),
    }
}

fn told(event: &Event, names: &Names) -> String {
    match event {
        Event::Refused { refusal } => format!("refused: {refusal}"),
        Event::BidDeclined { price: Some(price), .. } => {
            format!("bid declined: {price} credits would have won")
        }
        Event::BidDeclined { price: None, .. } => "bid declined: there is no room".to_owned(),
        Event::Promised { price, parts, .. } => {
            let slots: Vec<String> = parts.iter().map(|plan| slot(plan, names)).collect();
            format!("promised for {price} credits: {}", slots.join("; then "))
        }
        Event::Queued { queue, count: 1, .. } => format!("waits in queue {queue}"),
        Event::Queued { queue, count, .. } => format!("{count} jobs wait in queue {queue}"),
        Event::Ready { .. } => "what it waited for is over".to_owned(),
        Event::Held { price, expires, .. } => {
            format!("quote of {price} credits held until {}", clock(*expires))
        }
        Event::HoldEnded { .. } => "the hold is over".to_owned(),
        Event::Moved { rank, from, to, .. } => {
            let (from, to) = (names.node(from.node), names.node(to.node));
            format!("replica {rank} moved from {from} to {to}; its start is as it was")
        }
        Event::HoldMoved { .. } => "a held place moved to another node".to_owned(),
        Event::Launched { attempt, plan, .. } => {
            let nth = if *attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
            format!("sent to {}{nth}, until {} at most", some(&nodes(plan, names)), clock(plan.to))
        }
        Event::Running { attempt: 1, .. } => "runs".to_owned(),
        Event::Running { attempt, .. } => format!("runs again (attempt {attempt})"),
        Event::Stopping { why, until, .. } => {
            format!("told to stop by {}: {}", clock(*until), reason(*why))
        }
        Event::TaskEnded { task, code: Some(code) } => {
            format!("replica {} exited with code {code}", task.rank)
        }
        Event::TaskEnded { task, code: None } => format!("replica {} was lost", task.rank),
        Event::PartDone { part, .. } => format!("part {part} is over"),
        Event::Requeued { .. } => "waits again, with its age and its checkpoint".to_owned(),
        Event::Replanned { plan, .. } => {
            format!("planned anew because its hardware is gone: {}", slot(plan, names))
        }
        Event::Broken { reason, .. } => {
            format!("the promise cannot be kept and is refunded: {reason}")
        }
        Event::Extended { to, price, .. } => {
            format!("extended until {} for {price} credits", clock(*to))
        }
        Event::Resized { replicas, .. } => format!("has {replicas} replicas now"),
        Event::Ended { outcome, .. } => ended(outcome),
        Event::Posted { posting, .. } => format!("{} credits moved", posting.amount),
        Event::Edited { .. } => "changed by its owner".to_owned(),
        Event::Checkpointed { done_ms, .. } => {
            format!("saved its work: {} need not be run again", era_core::units::Span(*done_ms))
        }
        Event::IdleReported { released: true, .. } => {
            "its GPUs are idle and are given back, as its owner allowed".to_owned()
        }
        Event::IdleReported { released: false, .. } => "its GPUs are idle".to_owned(),
        Event::Ignored { task } => {
            format!("a late report on replica {} changed nothing", task.rank)
        }
        Event::NodesChanged { nodes } => {
            let all: Vec<String> = nodes.iter().map(|node| names.node(*node)).collect();
            format!("changed: {}", some(&all))
        }
        Event::Changed { what, name: Some(name) } => format!("{what} {name} changed"),
        Event::Changed { what, name: None } => format!("{what} changed"),
        Event::Forgotten { jobs } => format!("{} ended jobs left the scheduler", jobs.len()),
    }
}

fn slot(plan: &Plan, names: &Names) -> String {
    format!("{} on {}", span(plan.from, plan.to), some(&nodes(plan, names)))
}

/// A few by name, the others counted.
fn some(all: &[String]) -> String {
    match all {
        [] => "no node".to_owned(),
        all if all.len() <= NODES_MAX => all.join(", "),
        all => format!("{} and {} more", all[..NODES_MAX].join(", "), all.len() - NODES_MAX),
    }
}

/// `2026-11-20 14:00–16:00`, with the second date where it is another one.
fn span(from: Time, to: Time) -> String {
    let (from, to) = (text(from), text(to));
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((day, _)), Some((same, end))) if day == same => format!("{from}–{end}"),
        _ => format!("{from} – {to}"),
    }
}

fn clock(at: Time) -> String {
    text(at)
}

/// As `2026-11-20 14:00`, with seconds where there are any.
fn text(at: Time) -> String {
    let stamp = at.to_string();
    let Some((day, rest)) = stamp.split_once('T') else { return stamp };
    let time = rest.get(..8).unwrap_or(rest);
    let time = time.strip_suffix(":00").unwrap_or(time);
    format!("{day} {time}")
}

fn reason(why: StopReason) -> String {
    match why {
        StopReason::Cancelled => "it was cancelled".to_owned(),
        StopReason::Released => "the rest of its time is given back".to_owned(),
        StopReason::Limit => "its time is over".to_owned(),
        StopReason::Preempted => "it gives way, and waits again".to_owned(),
        StopReason::Lost => "hardware under it was lost".to_owned(),
        StopReason::Drained => "its node is drained; it goes on elsewhere".to_owned(),
        StopReason::Failed { code } => format!("one of its tasks exited with code {code}"),
    }
}

fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Succeeded => "succeeded".to_owned(),
        Outcome::Failed { code } => format!("failed: a task exited with code {code}"),
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::Unfulfilled { job } => format!("given up: job {} had to succeed first", job.0),
        Outcome::Released => "over: what was left of its time was given back".to_owned(),
        Outcome::LimitReached => "over: its time was up".to_owned(),
        Outcome::Broken { reason } => format!("broken and refunded: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(body: &str) -> String {
        let nodes = [(3, "node-3"), (4, "node-4")];
        let nodes = nodes.map(|(id, name)| (era_core::units::NodeId(id), name.to_owned()));
        sentence(body, &Names::new(nodes.into(), [].into())).0
    }

    #[test]
    fn a_promise_tells_its_price_its_time_and_its_place() {
        let body = r#"{"type":"promised","job":1,"user":1,"price":12500000,"parts":[
            {"pool":"main","from":1800007200000,"to":1800014400000,
             "seats":[{"node":3,"gpus":1},{"node":4,"gpus":1}],"gpus_per_node":8}]}"#;
        let told = "promised for 12.50 credits: 2027-01-15 10:00–12:00 on node-3, node-4";
        assert_eq!(says(body), told);
    }

    #[test]
    fn a_slot_over_midnight_names_both_days() {
        let body = r#"{"type":"replanned","job":1,"part":0,
            "plan":{"pool":"main","from":1800054000000,"to":1800061200500,
             "seats":[{"node":9,"gpus":1}],"gpus_per_node":8}}"#;
        let told = "planned anew because its hardware is gone: \
                    2027-01-15 23:00 – 2027-01-16 01:00 on node 9";
        assert_eq!(says(body), told);
    }

    #[test]
    fn ends_and_stops_say_why() {
        let ended = r#"{"type":"ended","job":1,"outcome":{"failed":{"code":9}}}"#;
        assert_eq!(says(ended), "failed: a task exited with code 9");
        let stop = r#"{"type":"stopping","job":1,"part":0,"attempt":1,"why":"preempted",
            "until":1800000030000}"#;
        assert_eq!(
            says(stop),
            "told to stop by 2027-01-15 08:00:30: it gives way, and waits again"
        );
    }

    /// What journals have of every kind, and what they may have besides.
    const WRITTEN: &str =
        include_str!("../../../era-core/tests/core/snapshots/core__wire__events.snap");
    const MORE: &str = r#"
{"type":"bid_declined","user":1,"price":null}
{"type":"launched","job":1,"part":0,"attempt":1,"plan":{"pool":"main","from":1800007200000,"to":1800014400000,"seats":[],"gpus_per_node":8}}
{"type":"launched","job":1,"part":0,"attempt":2,"plan":{"pool":"main","from":1800007200000,"to":1800014400000,"seats":[{"node":9,"gpus":1},{"node":3,"gpus":1},{"node":3,"gpus":2},{"node":4,"gpus":1},{"node":5,"gpus":1},{"node":6,"gpus":1}],"gpus_per_node":8}}
{"type":"running","job":1,"part":0,"attempt":1}
{"type":"stopping","job":1,"part":0,"attempt":1,"why":"cancelled","until":1800000030000}
{"type":"stopping","job":1,"part":0,"attempt":1,"why":"released","until":1800000030000}
{"type":"stopping","job":1,"part":0,"attempt":1,"why":"limit","until":1800000030000}
{"type":"stopping","job":1,"part":0,"attempt":1,"why":"preempted","until":1800000030000}
{"type":"stopping","job":1,"part":0,"attempt":1,"why":"lost","until":1800000030000}
{"type":"stopping","job":1,"part":0,"attempt":1,"why":"drained","until":1800000030000}
{"type":"task_ended","task":{"job":1,"part":0,"attempt":1,"rank":2},"code":null}
{"type":"ended","job":1,"outcome":{"failed":{"code":-9}}}
{"type":"ended","job":1,"outcome":"cancelled"}
{"type":"ended","job":1,"outcome":"released"}
{"type":"ended","job":1,"outcome":"limit_reached"}
{"type":"ended","job":1,"outcome":{"broken":{"reason":"a {price} of its own"}}}
{"type":"idle_reported","job":1,"released":false}
{"type":"nodes_changed","nodes":[9,3,4,5,6,3]}
{"type":"changed","what":"settings","name":null}
{"type":"promised","job":1,"user":1,"price":12500000,"parts":[{"pool":"main","from":1800054000000,"to":1800061200500,"seats":[{"node":3,"gpus":1}],"gpus_per_node":8},{"pool":"main","from":1800061200500,"to":1800061300000,"seats":[],"gpus_per_node":8}]}
"#;

    #[test]
    fn every_event_has_its_sentence_and_its_values() {
        let names =
            Names::new([(era_core::units::NodeId(3), "node-3".to_owned())].into(), [].into());
        let bodies = WRITTEN.lines().chain(MORE.lines()).filter(|line| line.starts_with('{'));
        let said = |body: &str| {
            let (sentence, values) = sentence(body, &names);
            let values = serde_json::Value::Object(values);
            let kind = serde_json::from_str::<serde_json::Value>(body).unwrap()["type"].take();
            format!("{kind}: {sentence}\n    {values}")
        };
        let said: Vec<String> = bodies.map(said).collect();
        insta::assert_snapshot!("said", said.join("\n"));
    }

    #[test]
    fn an_event_of_a_later_version_is_no_error() {
        assert!(says(r#"{"type":"teleported"}"#).contains("no words"));
    }
}
