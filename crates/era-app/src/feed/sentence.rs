//! Events in sentences that people read: times in UTC to the minute, or to the second where that
//! matters, money in credits, machines by name. What an event says is for the core to know; how
//! each kind of fact is written is known here.

use era_core::Event;
use era_core::event::Fact;
use era_core::job::Plan;
use era_core::units::Time;

use super::NameIndex;
use super::particulars::{NODES_MAX, nodes};

pub(super) fn sentence(event: &Event, names: &NameIndex) -> String {
    event.sentence(|fact| written(fact, names))
}

/// A fact, as people read it.
fn written(fact: Fact<'_>, names: &NameIndex) -> String {
    match fact {
        Fact::Number(number) => number.to_string(),
        Fact::Flag(flag) => flag.to_string(),
        Fact::Job(job) => job.0.to_string(),
        Fact::Credits(amount) => amount.to_string(),
        Fact::At(at) => text(at),
        Fact::Lasting(span) => span.to_string(),
        Fact::Word(word) => word.to_owned(),
        Fact::Node(node) => names.node(node),
        Fact::Nodes(all) => some(&all.iter().map(|node| names.node(*node)).collect::<Vec<_>>()),
        Fact::NodesOf(plan) => some(&nodes(plan, names)),
        Fact::Slot(plan) => slot(plan, names),
        Fact::Slots(plans) => {
            let slots: Vec<String> = plans.iter().map(|plan| slot(plan, names)).collect();
            slots.join("; then ")
        }
        Fact::Refusal(refusal) => refusal.to_string(),
    }
}

fn slot(plan: &Plan, names: &NameIndex) -> String {
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

/// As `2026-11-20 14:00`, with seconds where there are any.
fn text(at: Time) -> String {
    let stamp = at.to_string();
    let Some((day, rest)) = stamp.split_once('T') else { return stamp };
    let time = rest.get(..8).unwrap_or(rest);
    let time = time.strip_suffix(":00").unwrap_or(time);
    format!("{day} {time}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::particulars::particulars;

    fn says(body: &str) -> String {
        let nodes = [(3, "node-3"), (4, "node-4")];
        let nodes = nodes.map(|(id, name)| (era_core::units::NodeId(id), name.to_owned()));
        sentence(&serde_json::from_str(body).unwrap(), &NameIndex::new(nodes.into(), [].into()))
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
            NameIndex::new([(era_core::units::NodeId(3), "node-3".to_owned())].into(), [].into());
        let bodies = WRITTEN.lines().chain(MORE.lines()).filter(|line| line.starts_with('{'));
        let said = |body: &str| {
            let event: Event = serde_json::from_str(body).unwrap();
            let values = serde_json::Value::Object(particulars(&event, &names));
            format!("{:?}: {}\n    {values}", event.kind(), sentence(&event, &names))
        };
        let said: Vec<String> = bodies.map(said).collect();
        insta::assert_snapshot!("said", said.join("\n"));
    }
}
