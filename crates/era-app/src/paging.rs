//! Pages of lists: where one begins, how long it is, and where the next one begins.

use era_api::Page;
use era_api::page::{NameFilter, PAGE_DEFAULT, PAGE_MAX, PageAsk};

use crate::error::{AppError, Kind};

/// How many items a page has.
pub fn size(ask: &PageAsk) -> Result<usize, AppError> {
    match ask.limit {
        None => Ok(PAGE_DEFAULT as usize),
        Some(limit @ 1..=PAGE_MAX) => Ok(limit as usize),
        Some(other) => {
            let detail = format!("a page of {other} is out of range: give 1 to {PAGE_MAX}");
            Err(AppError::new(Kind::Malformed, "bad_query", detail).about("limit"))
        }
    }
}

/// A page out of one more item than it may have, which says whether there is another.
pub fn page<T>(mut items: Vec<T>, size: usize, key: impl Fn(&T) -> String) -> Page<T> {
    let more = items.len() > size;
    items.truncate(size);
    let next = items.last().filter(|_| more).map(key);
    Page { items, next }
}

/// A cursor that is a number.
pub fn number(ask: &PageAsk, first: u64) -> Result<u64, AppError> {
    let Some(cursor) = &ask.cursor else { return Ok(first) };
    cursor.parse().map_err(|_| no_cursor())
}

/// What a cursor that is none is told.
pub fn no_cursor() -> AppError {
    let detail = "this is no cursor: give `next` of the page before, as it is";
    AppError::new(Kind::Malformed, "bad_query", detail).about("cursor")
}

/// Whether a name has a text in it, whatever the case of its letters; any has none.
pub fn has(name: &str, text: Option<&str>) -> bool {
    text.is_none_or(|text| name.to_lowercase().contains(&text.to_lowercase()))
}

/// A page of what stands in the order of its names.
pub fn named<T>(
    filter: &NameFilter,
    all: impl Iterator<Item = T>,
    name: impl Fn(&T) -> &str,
) -> Result<Page<T>, AppError> {
    let NameFilter { search, cursor, limit } = filter;
    let size = size(&PageAsk { cursor: None, limit: *limit })?;
    let after = cursor.as_deref().unwrap_or_default();
    let wanted = |one: &T| name(one) > after && has(name(one), search.as_deref());
    let items = all.filter(wanted).take(size + 1).collect();
    Ok(page(items, size, |one| name(one).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_has_no_next() {
        let all = page(vec![1, 2], 2, i32::to_string);
        assert_eq!((all.items, all.next), (vec![1, 2], None));
        let first = page(vec![1, 2, 3], 2, i32::to_string);
        assert_eq!((first.items, first.next), (vec![1, 2], Some("2".into())));
    }

    #[test]
    fn a_page_has_a_size_and_a_cursor_a_form() {
        let ask = |limit| PageAsk { limit, cursor: Some("x".into()) };
        assert!(size(&ask(Some(0))).is_err());
        assert!(size(&ask(Some(PAGE_MAX + 1))).is_err());
        assert_eq!(size(&ask(None)).ok(), Some(50));
        assert!(number(&ask(None), 0).is_err());
    }

    #[test]
    fn names_are_found_by_what_is_in_them_and_paged_in_their_order() {
        let all = ["a100", "cpu", "h100", "h200"];
        let some = |search: Option<&str>, cursor: Option<&str>| {
            let (search, cursor) = (search.map(str::to_owned), cursor.map(str::to_owned));
            let filter = NameFilter { search, cursor, limit: Some(2) };
            let page = named(&filter, all.into_iter(), |name| name).ok().unwrap();
            (page.items, page.next)
        };
        assert_eq!(some(None, None), (vec!["a100", "cpu"], Some("cpu".to_owned())));
        assert_eq!(some(None, Some("cpu")), (vec!["h100", "h200"], None));
        assert_eq!(some(Some("H"), None), (vec!["h100", "h200"], None));
        // What the last page ended with may be gone by now.
        assert_eq!(some(Some("00"), Some("b")), (vec!["h100", "h200"], None));
    }
}
