//! Promises bought at the command line: by a person who is asked, by a held quote, by a script.

use serde_json::Value;

use crate::harness::Platform;
use crate::skipped::skipped;

/// A small job.
const SMALL: [&str; 7] = ["--cpu", "100m", "--memory", "32Mi", "--time", "1m", "--no-code"];

/// Soon enough for a test to wait for: else the cheapest start counts, whenever that is.
const SOON: [&str; 2] = ["--by", "now+2m"];

fn jobs(platform: &Platform) -> Vec<Value> {
    platform.get("/jobs")["items"].as_array().unwrap().clone()
}

#[test]
fn whoever_says_yes_at_the_terminal_gets_what_was_quoted() {
    let platform = Platform::start();
    let small = SMALL.join(" ");
    let line = format!("run {small} --by now+2m --value 30 -- echo hello");
    let Some((code, shown)) = platform.at_a_terminal(&line, "n\n") else {
        return skipped("there is no `script` here to make a terminal");
    };
    assert_eq!(code, 130, "{shown}");
    assert!(jobs(&platform).is_empty(), "whoever says no buys nothing: {shown}");

    let (code, shown) = platform.at_a_terminal(&line, "y\n").unwrap();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("Take it?") && shown.contains("hello"), "{shown}");
    let made = jobs(&platform);
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(made[0]["promised_start"].is_string(), "it has a promise: {made:?}");

    let line = format!("run {small} --value 30 --most 0.000001 -- echo hello");
    let (code, shown) = platform.at_a_terminal(&line, "y\n").unwrap();
    assert_eq!(code, 6, "what it may cost at most counts for a held quote, too: {shown}");
}

#[test]
fn a_held_quote_is_taken_whatever_it_was_said_to_be_worth() {
    let platform = Platform::start();
    for more in [&["--value", "30"][..], &["--value", "30", "--most", "20"], &[]] {
        let ask = ["quote", "--hold", "--brief", "-o", "json"];
        let quoted = platform.ok(&[&ask[..], &SMALL, &SOON, more].concat());
        let quoted: Value = serde_json::from_str(&quoted).unwrap();
        let hold = quoted["hold"]["id"].to_string();
        let taken = platform.ok(&["accept", &hold, "-o", "json", "--", "true"]);
        let taken: Value = serde_json::from_str(&taken).unwrap();
        assert_eq!(taken["quote"]["price"], quoted["quote"]["price"], "{more:?}");
        let ended = platform.ended(taken["job"].as_u64().unwrap());
        assert_eq!(ended["state"], "succeeded", "{ended}");
    }
}

#[test]
fn a_script_buys_only_what_it_says_that_it_buys() {
    let platform = Platform::start();
    let bid = [&["run"][..], &SMALL, &SOON, &["--value", "30"]].concat();
    let (code, said) = platform.fails(&[&bid[..], &["--", "true"]].concat());
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("-y"), "{said}");
    assert!(jobs(&platform).is_empty());
    platform.ok(&[&bid[..], &["-y", "--", "true"]].concat());
    // Work for a queue has no price to agree to.
    platform.ok(&[&["run"][..], &SMALL, &["--", "true"]].concat());
    assert_eq!(jobs(&platform).len(), 2);
}
