//! From core version 3 to 4: a part of a job had 17 fields, most of which meant something in one
//! phase only. Now each phase has its own.

use serde_json::{Map, Value, json};

type Fields = Map<String, Value>;

/// Changes the parts of all jobs of a state.
pub(super) fn bring(state: &mut Value) -> Result<(), String> {
    let jobs = state.get_mut("jobs").and_then(Value::as_array_mut).ok_or("a state has jobs")?;
    for job in jobs {
        let parts = job.get_mut("parts").and_then(Value::as_array_mut).ok_or("a job has parts")?;
        for part in parts {
            bring_part(part.as_object_mut().ok_or("a part is an object")?)?;
        }
    }
    Ok(())
}

fn bring_part(part: &mut Fields) -> Result<(), String> {
    let mut phase = part.remove("phase").ok_or("a part has a phase")?;
    let mut of_phase = Fields::new();
    let names = ["plan", "escrow", "tasks", "extras", "grown", "exited_at", "prolonged"];
    for name in names.into_iter().chain(["hole", "cleared", "stop", "silent", "next"]) {
        of_phase.extend(part.remove(name).map(|value| (name.to_owned(), value)));
    }
    let mut take = |names: &[&str]| -> Fields {
        names.iter().filter_map(|name| of_phase.remove_entry(*name)).collect()
    };
    if phase == "booked" {
        phase = json!({ "booked": take(&["plan", "escrow", "cleared"]) });
    } else if let Some(waiting) = phase.get_mut("waiting").and_then(Value::as_object_mut) {
        waiting.extend(take(&["hole"]));
    } else if let Some(run) = phase.get_mut("active").and_then(Value::as_object_mut) {
        run.insert("tasks".into(), json!([]));
        run.extend(take(&names));
        let mut stopping = take(&["stop", "silent"]);
        let (next, cleared) = (take(&["next"]).remove("next"), take(&["cleared"]));
        if let Some(plan) = next {
            let next: Fields = cleared.into_iter().chain([("plan".to_owned(), plan)]).collect();
            stopping.insert("next".into(), next.into());
        }
        if stopping.contains_key("stop") {
            run.insert("stopping".into(), stopping.into());
        }
    }
    part.insert("phase".into(), phase);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase_of(old: Value) -> Value {
        let mut state = json!({ "jobs": [{ "id": 1, "parts": [old] }] });
        bring(&mut state).unwrap();
        state["jobs"][0]["parts"][0].take()
    }

    #[test]
    fn what_a_part_has_stands_in_its_phase() {
        let waiting = json!({ "request": {}, "phase": { "waiting": { "not_before": 5 } },
            "attempt": 2, "escrow": 0, "done": 7, "attained": 9, "hole": { "from": 8 } });
        let phase = json!({ "waiting": { "not_before": 5, "hole": { "from": 8 } } });
        let brought =
            json!({ "request": {}, "phase": phase, "attempt": 2, "done": 7, "attained": 9 });
        assert_eq!(phase_of(waiting), brought);

        let booked =
            json!({ "phase": "booked", "plan": { "to": 3 }, "escrow": 4, "cleared": true });
        let phase = json!({ "booked": { "plan": { "to": 3 }, "escrow": 4, "cleared": true } });
        assert_eq!(phase_of(booked), json!({ "phase": phase }));

        let done =
            json!({ "phase": { "done": { "at": 3 } }, "escrow": 0, "hole": {}, "attempt": 1 });
        assert_eq!(phase_of(done), json!({ "phase": { "done": { "at": 3 } }, "attempt": 1 }));
    }

    #[test]
    fn a_run_that_goes_on_elsewhere_has_its_next_plan_in_its_stop() {
        let stopping = json!({ "phase": { "active": { "since": 1 } }, "plan": { "to": 3 },
            "escrow": 4, "tasks": ["lost"], "grown": 1, "stop": { "why": "lost", "until": 2 },
            "silent": true, "next": { "to": 6 }, "cleared": true });
        let run = json!({ "since": 1, "plan": { "to": 3 }, "escrow": 4, "tasks": ["lost"],
            "grown": 1, "stopping": { "stop": { "why": "lost", "until": 2 }, "silent": true,
            "next": { "plan": { "to": 6 }, "cleared": true } } });
        assert_eq!(phase_of(stopping), json!({ "phase": { "active": run } }));
    }
}
