//! `era explain`: why a job waits, or when it will run.

use era_api::job::ExplanationView;

use super::connection::Common;
use super::look::{self, Look};

/// Say why a job waits, or when it will run
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// The job's number
    #[arg(value_name = "JOB")]
    id: u64,
    #[command(flatten)]
    common: Common,
}

impl Explain {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let explanation = self.common.client()?.explain(self.id)?;
        let look = self.common.look();
        look::print(self.common.output, &explanation, |e| render(e, &look))
    }
}

fn render(explanation: &ExplanationView, look: &Look) -> String {
    let mut text = format!("{}\n", look.sentence(&explanation.sentence));
    if let Some(position) = explanation.position {
        text += &format!("  position   {position}\n");
    }
    if let Some(start) = explanation.start {
        text += &format!("  start      {}", look.time(start));
        let spread = explanation.earliest.zip(explanation.latest);
        let spread = spread.map(|(from, to)| (look.time(from), look.time(to)));
        if let Some((earliest, latest)) = spread.filter(|(from, to)| from != to) {
            text += &format!(" (between {earliest} and {latest})");
        }
        text.push('\n');
    }
    if !explanation.ahead.is_empty() {
        let ahead: Vec<String> = explanation.ahead.iter().map(u64::to_string).collect();
        text += &format!("  ahead      {}\n", ahead.join(", "));
    }
    if let Some(why) = &explanation.why {
        text += &format!("  reason     {why}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_is_certain_has_no_spread() {
        let at = r#""2026-11-15T15:00:00Z""#;
        let text = format!(
            r#"{{"state": "waiting", "sentence": "It waits.", "start": {at}, "earliest": {at},
                "latest": {at}}}"#
        );
        let shown = render(&serde_json::from_str(&text).unwrap(), &look::plain());
        assert!(shown.contains("start") && !shown.contains("between"), "{shown}");
    }

    #[test]
    fn a_waiting_job_is_explained() {
        let text = r#"{"state": "waiting", "sentence": "It may not start before 2026-11-15T14:00:00Z.",
            "position": 3, "why": "behind_others", "start": "2026-11-15T15:00:00Z",
            "earliest": "2026-11-15T14:00:00Z", "latest": "2026-11-15T18:00:00Z",
            "ahead": [4, 5]}"#;
        let explanation = serde_json::from_str(text).unwrap();
        insta::assert_snapshot!(render(&explanation, &look::plain()));
    }
}
