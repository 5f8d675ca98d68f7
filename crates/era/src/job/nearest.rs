//! What somebody may have meant.

/// How alike two names must be for one to be meant by the other.
const ALIKE_MIN: f64 = 0.7;

/// The known name that is most like a word, if any is. One slip is understood in short words too,
/// where a measure of likeness sees little that is alike.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(alike, name)| *alike >= ALIKE_MIN || strsim::osa_distance(word, name) == 1)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_nonsense_is_not() {
        let known = ["resources", "replicas", "command", "queue"];
        assert_eq!(nearest("resorces", known), Some("resources"));
        assert_eq!(nearest("comand", known), Some("command"));
        assert_eq!(nearest("xyzzy", known), None);
        assert_eq!(nearest("gup", ["cpu", "gpu"]), Some("gpu"));
        assert_eq!(nearest("mx", ["min", "max"]), Some("max"));
    }
}
