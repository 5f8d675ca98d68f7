//! Queues as Celery's Redis transport lays them out: a list for each step of priority.
//!
//! Names and keys only; nothing here talks to Redis.

/// The queue of tasks that any worker may take.
pub const COMPUTE: &str = "eracompute";
/// The queue of tasks that must not wait: a worker takes them even when all its places are taken.
pub const EAGER: &str = "eraeagerjob";
/// The steps of priority that Celery's Redis transport knows. Lower steps are taken first.
pub const PRIORITY_STEPS: [u8; 4] = [0, 3, 6, 9];
/// The highest priority that a message may carry; what is above counts as this.
pub const PRIORITY_MAX: u8 = 9;

/// What stands between a queue's name and its step.
const SEPARATOR: &str = "\x06\x16";

/// The queue that a node's own worker consumes.
pub fn of_node(node: &str) -> String {
    format!("{COMPUTE}.{node}")
}

/// The step that a priority falls on: the highest that is not above it.
pub fn step(priority: u8) -> u8 {
    let fits = PRIORITY_STEPS.iter().rev().find(|step| **step <= priority.min(PRIORITY_MAX));
    fits.copied().unwrap_or(PRIORITY_STEPS[0])
}

/// The list that messages of this priority are in.
pub fn key(queue: &str, priority: u8) -> String {
    match step(priority) {
        0 => queue.to_owned(),
        step => format!("{queue}{SEPARATOR}{step}"),
    }
}

/// All lists of these queues, in the order in which they are taken from: first by step, then as
/// the queues are given.
pub fn keys(queues: &[String]) -> Vec<String> {
    let of_step = |step: u8| queues.iter().map(move |queue| key(queue, step));
    PRIORITY_STEPS.into_iter().flat_map(of_step).collect()
}

/// The queue that a list belongs to.
pub fn of_key(key: &str) -> &str {
    key.rsplit_once(SEPARATOR).map_or(key, |(queue, _)| queue)
}

/// The table in which Celery's Redis transport keeps which queues an exchange feeds.
pub fn bindings_key(exchange: &str) -> String {
    format!("_kombu.binding.{exchange}")
}

/// The queue that an entry of such a table feeds for this routing key, if it does. Exchanges of
/// Celery are direct unless somebody chose otherwise, and direct is what is understood here.
pub fn bound<'a>(entry: &'a str, routing_key: &str) -> Option<&'a str> {
    let mut parts = entry.split(SEPARATOR);
    let (key, _pattern, queue) = (parts.next()?, parts.next()?, parts.next()?);
    (key == routing_key && !queue.is_empty()).then_some(queue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_fall_on_the_steps_of_kombu() {
        // `PRIORITY_STEPS[bisect(PRIORITY_STEPS, n) - 1]` for n of 0 to 10.
        let steps: Vec<u8> = (0..=10).map(step).collect();
        assert_eq!(steps, [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9]);
    }

    #[test]
    fn the_first_step_has_the_plain_name() {
        assert_eq!(key("eracompute", 2), "eracompute");
        assert_eq!(key("eracompute", 4), "eracompute\x06\x163");
    }

    #[test]
    fn urgent_messages_of_every_queue_come_before_others_of_any() {
        let queues = ["a".to_owned(), "b".to_owned()];
        let expected = ["a", "b", "a\x06\x163", "b\x06\x163"];
        assert_eq!(keys(&queues)[..4], expected);
        assert_eq!(keys(&queues).len(), 8);
    }

    #[test]
    fn a_list_leads_back_to_its_queue() {
        for queue in ["eracompute", "eracompute.node-1"] {
            for priority in 0..=9 {
                assert_eq!(of_key(&key(queue, priority)), queue);
            }
        }
    }

    #[test]
    fn a_binding_is_found_by_its_routing_key() {
        let entry = "eracompute\x06\x16\x06\x16eracompute";
        assert_eq!(bound(entry, "eracompute"), Some("eracompute"));
        assert_eq!(bound(entry, "other"), None);
        assert_eq!(bound("no separators", "no separators"), None);
    }
}
