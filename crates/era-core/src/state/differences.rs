//! What an edit changed of a list. It does not know what is listed.

/// What is in one of two lists and not in the other. Both are in the same order.
pub(super) fn differences<T: PartialEq + Copy>(
    before: impl Iterator<Item = T>,
    after: impl Iterator<Item = T>,
    order: impl Fn(&T, &T) -> std::cmp::Ordering,
) -> (Vec<T>, Vec<T>) {
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    let (mut before, mut after) = (before.peekable(), after.peekable());
    while let (Some(was), Some(is)) = (before.peek().copied(), after.peek().copied()) {
        let order = order(&was, &is);
        if order.is_le() {
            before.next();
        }
        if order.is_ge() {
            after.next();
        }
        if order.is_lt() || (order.is_eq() && was != is) {
            gone.push(was);
        }
        if order.is_gt() || (order.is_eq() && was != is) {
            new.push(is);
        }
    }
    gone.extend(before);
    new.extend(after);
    (gone, new)
}
