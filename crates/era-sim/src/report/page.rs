//! The page: one file with its data, its style and its script inside.

use serde::Serialize;

use super::{Digest, Headline, headline};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

#[derive(Serialize)]
struct Data<'a> {
    headline: Option<Headline>,
    facts: &'a [(String, String)],
    runs: &'a [Digest],
}

/// A page about these runs. `title` says what was run, `facts` on what and by which rules.
pub fn page(title: &str, facts: &[(String, String)], runs: &[Digest]) -> String {
    let data = Data { headline: headline(runs), facts, runs };
    // Digests hold numbers and text alone, and these have a JSON form.
    let data = serde_json::to_string(&data).unwrap_or_default();
    // Text from a trace must not end the script that it stands in.
    let data = data.replace('<', "\\u003c");
    let parts = [
        ("{{title}}", escaped(title)),
        ("{{style}}", STYLE.to_owned()),
        ("{{script}}", SCRIPT.to_owned()),
        ("{{data}}", data),
    ];
    // From the front to the back, so that what was put in is not looked at again.
    let mut page =
        String::with_capacity(PAGE.len() + parts.iter().map(|p| p.1.len()).sum::<usize>());
    let mut rest = PAGE;
    while let Some(at) = rest.find("{{") {
        page.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((mark, part)) = parts.iter().find(|(mark, _)| rest.starts_with(mark)) else {
            page.push_str("{{");
            rest = &rest[2..];
            continue;
        };
        page.push_str(part);
        rest = &rest[mark.len()..];
    }
    page.push_str(rest);
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
