//! What an event says besides its kind, for whoever puts it in words of their own: money in
//! millionths of a credit, instants and spans in milliseconds, machines by name.

use std::collections::BTreeSet;

use era_api::Parameters;
use era_core::Event;
use era_core::event::Fact;
use era_core::job::Plan;
use serde_json::{Value, json};

use super::NameIndex;

/// Most machines that are named at once; the others are counted.
pub(super) const NODES_MAX: usize = 4;

/// All of it, by name.
pub fn particulars(event: &Event, names: &NameIndex) -> Parameters {
    let mut said = Parameters::new();
    for (name, fact) in event.facts() {
        match value(fact, names) {
            // Machines stand beside all else, with how many more there are.
            Value::Object(listed) if matches!(fact, Fact::Nodes(_)) => said.extend(listed),
            value => drop(said.insert(name.to_owned(), value)),
        }
    }
    said
}

fn value(fact: Fact<'_>, names: &NameIndex) -> Value {
    match fact {
        Fact::Number(number) => json!(number),
        Fact::Flag(flag) => json!(flag),
        Fact::Job(job) => json!(job),
        Fact::Credits(amount) => json!(amount),
        Fact::At(at) => json!(at),
        Fact::Lasting(span) => json!(span),
        Fact::Word(word) => json!(word),
        Fact::Node(node) => json!(names.node(node)),
        Fact::Nodes(all) => listed(all.iter().map(|node| names.node(*node)).collect()),
        Fact::NodesOf(plan) => listed(nodes(plan, names)),
        Fact::Slot(plan) => slot(plan, names),
        Fact::Slots(plans) => plans.iter().map(|plan| slot(plan, names)).collect(),
        Fact::Refusal(refusal) => json!(refusal),
    }
}

/// The names of a plan's machines.
pub(super) fn nodes(plan: &Plan, names: &NameIndex) -> Vec<String> {
    let nodes: BTreeSet<_> = plan.seats.iter().map(|seat| seat.node).collect();
    nodes.into_iter().map(|node| names.node(node)).collect()
}

fn slot(plan: &Plan, names: &NameIndex) -> Value {
    let mut slot = listed(nodes(plan, names));
    slot["from"] = json!(plan.from);
    slot["to"] = json!(plan.to);
    slot
}

/// A few by name, the others counted.
fn listed(mut all: Vec<String>) -> Value {
    let more = all.len().saturating_sub(NODES_MAX);
    all.truncate(NODES_MAX);
    json!({ "nodes": all, "more": more })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str) -> Value {
        let nodes = [(3, "node-3"), (4, "node-4")];
        let nodes = nodes.map(|(id, name)| (era_core::units::NodeId(id), name.to_owned()));
        let event: Event = serde_json::from_str(body).unwrap();
        Value::Object(particulars(&event, &NameIndex::new(nodes.into(), [].into())))
    }

    #[test]
    fn a_promise_says_its_price_its_time_and_its_machines_by_name() {
        let body = r#"{"type":"promised","job":1,"user":1,"price":12500000,"parts":[
            {"pool":"main","from":1800007200000,"to":1800014400000,
             "seats":[{"node":3,"gpus":1},{"node":4,"gpus":1}],"gpus_per_node":8}]}"#;
        let slot = json!({ "from": 1_800_007_200_000_i64, "to": 1_800_014_400_000_i64,
            "nodes": ["node-3", "node-4"], "more": 0 });
        assert_eq!(said(body), json!({ "price": 12_500_000, "slots": [slot] }));
    }

    #[test]
    fn stops_and_ends_are_told_by_their_codes() {
        let stop = r#"{"type":"stopping","job":1,"part":0,"attempt":1,"why":{"failed":{"code":3}},
            "until":1800000030000}"#;
        let told = json!({ "why": "failed", "code": 3, "until": 1_800_000_030_000_i64 });
        assert_eq!(said(stop), told);
        let drained = stop.replace(r#"{"failed":{"code":3}}"#, r#""drained""#);
        assert_eq!(said(&drained)["why"], "drained");
        let ended = r#"{"type":"ended","job":1,"outcome":{"failed":{"code":9}}}"#;
        assert_eq!(said(ended), json!({ "outcome": "failed", "code": 9 }));
        let broken = r#"{"type":"ended","job":1,"outcome":{"broken":{"reason":"in English"}}}"#;
        assert_eq!(said(broken), json!({ "outcome": "broken" }));
        let lost =
            r#"{"type":"task_ended","task":{"job":1,"part":0,"attempt":1,"rank":2},"code":null}"#;
        assert_eq!(said(lost), json!({ "rank": 2 }));
    }

    #[test]
    fn many_machines_are_named_in_part_and_counted() {
        let changed = r#"{"type":"nodes_changed","nodes":[3,4,5,6,7,8]}"#;
        let told = json!({ "nodes": ["node-3", "node-4", "node 5", "node 6"], "more": 2 });
        assert_eq!(said(changed), told);
    }
}
