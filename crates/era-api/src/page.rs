//! Lists come in pages.

use serde::{Deserialize, Serialize};

/// Most items on a page.
pub const PAGE_MAX: u32 = 1000;
/// Items on a page where nothing is said.
pub const PAGE_DEFAULT: u32 = 50;

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next page begins; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// The same page of what each item is told as.
    pub fn map<U>(self, tell: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(tell).collect(), next: self.next }
    }
}

/// All of a list, asked for page by page.
pub fn every<T, E>(mut ask: impl FnMut(&PageAsk) -> Result<Page<T>, E>) -> Result<Vec<T>, E> {
    let mut all = Vec::new();
    let mut page = PageAsk { cursor: None, limit: Some(PAGE_MAX) };
    loop {
        let Page { items, next } = ask(&page)?;
        all.extend(items);
        page.cursor = next;
        if page.cursor.is_none() {
            return Ok(all);
        }
    }
}

/// Which page is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PageAsk {
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}

/// Which of a list of named things are listed. Every field narrows the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct NameFilter {
    /// Whose name has this in it.
    pub search: Option<String>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_list_is_asked_for_page_by_page() {
        let mut asked = Vec::new();
        let all = every(|page| {
            asked.push(page.cursor.clone());
            let next = (asked.len() < 3).then(|| asked.len().to_string());
            Ok::<_, ()>(Page { items: vec![asked.len()], next })
        });
        assert_eq!(all, Ok(vec![1, 2, 3]));
        assert_eq!(asked, [None, Some("1".to_owned()), Some("2".to_owned())]);
        assert_eq!(every::<u8, _>(|_| Err("no")), Err("no"));
    }
}
