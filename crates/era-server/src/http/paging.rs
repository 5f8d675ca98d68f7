//! Pages of lists: where one begins, how long it is, and where the next one begins.

use era_api::Page;
use era_api::page::{PAGE_DEFAULT, PAGE_MAX, PageAsk};

use super::Failure;

/// How many items a page has.
pub fn size(ask: &PageAsk) -> Result<usize, Failure> {
    match ask.limit {
        None => Ok(PAGE_DEFAULT as usize),
        Some(limit @ 1..=PAGE_MAX) => Ok(limit as usize),
        Some(other) => {
            let detail = format!("a page of {other} is out of range: give 1 to {PAGE_MAX}");
            Err(Failure::new(axum::http::StatusCode::BAD_REQUEST, "bad_query", detail)
                .about("limit"))
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
pub fn number(ask: &PageAsk, first: u64) -> Result<u64, Failure> {
    let Some(cursor) = &ask.cursor else { return Ok(first) };
    cursor.parse().map_err(|_| {
        let detail = "this is no cursor: give `next` of the page before, as it is";
        Failure::new(axum::http::StatusCode::BAD_REQUEST, "bad_query", detail).about("cursor")
    })
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
}
