//! `era job`: everything about one job.

use era_api::job::{JobView, TimelineLine};
use era_api::page::PageAsk;
use serde::Serialize;

use super::connection::Common;
use super::jobs::needs;
use super::look::money::Money;
use super::look::{self, Look, right, span};

/// Show one job: what it is, where it stands, what it did, what it cost
#[derive(Debug, clap::Args)]
#[command(name = "job")]
pub(crate) struct JobCommand {
    /// The job's number
    #[arg(value_name = "JOB")]
    id: u64,
    /// Change a waiting job's priority
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    priority: Option<i32>,
    /// Change a waiting job's longest run
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// Move a waiting job to another queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// A job with its history.
#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    job: JobView,
    timeline: Vec<TimelineLine>,
}

impl JobCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let time = self.time.as_deref().map(str::parse::<crate::job::SpanSpec>).transpose();
        let time =
            time.map_err(|e| crate::job::JobError::Flag { flag: "--time", what: e.to_string() })?;
        let edit = era_api::job::JobEdit {
            priority: self.priority,
            duration_s: time.map(|span| span.seconds),
            queue: self.queue,
        };
        if edit != era_api::job::JobEdit::default() {
            client.edit_job(self.id, &edit)?;
        }
        let job = client.job(self.id)?;
        let page = PageAsk { limit: Some(1000), cursor: None };
        let timeline = client.timeline(self.id, &page)?.items;
        let look = self.common.look();
        look::print(self.common.output, &Whole { job, timeline }, |whole| {
            render(&whole.job, &whole.timeline, &look)
        })
    }
}

fn render(job: &JobView, timeline: &[TimelineLine], look: &Look) -> String {
    let summary = &job.summary;
    let name = summary.name.as_deref().unwrap_or("without a name");
    let state = summary.state.as_str().replace('_', " ");
    let mut text = format!("job {} ({name}) of {}: {state}", summary.id, summary.user);
    if let Some(code) = summary.exit_code {
        text += &format!(", exit code {code}");
    }
    if let Some(reason) = &job.reason {
        text += &format!(": {}", look.sentence(reason));
    }
    if summary.simulated {
        text += " (simulated)";
    }
    text.push('\n');
    let mut fact = |name: &str, value: String| text += &format!("  {name:<10} {value}\n");
    fact("command", shell_words(&job.spec.work.command));
    fact("needs", format!("{} for {}", needs(summary), span(summary.duration_s)));
    if let Some(queue) = &summary.queue {
        fact("queue", queue.clone());
    }
    if let (Some(start), Some(finish)) = (summary.promised_start, summary.promised_finish) {
        fact("promised", format!("{} to {}", look.time(start), look.time(finish)));
    }
    fact("submitted", look.time(summary.submitted));
    if let Some(started) = summary.started {
        fact("started", look.time(started));
    }
    if let Some(ended) = summary.ended {
        fact("ended", look.time(ended));
    }
    let cost = job.cost;
    let money = Money::of_sum(cost.charged, cost.refunded, cost.net);
    let [net, charged, back] = [cost.net, cost.charged, cost.refunded].map(|c| money.show(c));
    fact("cost", format!("{net} ({charged} charged, {back} back)"));
    if let Some(explanation) = &job.explanation {
        fact("outlook", look.sentence(&explanation.sentence));
    }
    if !job.tasks.is_empty() {
        text += &format!("\n{}", tasks(job, look));
    }
    if !timeline.is_empty() {
        text.push('\n');
        for line in timeline {
            let mut sentence = look.sentence(&line.sentence);
            if line.simulated {
                sentence += " (simulated)";
            }
            text += &format!("  {:<16}  {sentence}\n", look.time(line.at));
        }
    }
    text
}

fn tasks(job: &JobView, look: &Look) -> String {
    let headings = ["ATTEMPT", "RANK", "NODE", "GPUS", "STARTED", "ENDED", "CODE", "CAUSE"];
    look.rows(&headings, &job.tasks, |task| {
        let gpus: Vec<String> = task.gpus.iter().map(u8::to_string).collect();
        let mut node = task.node.clone();
        if task.simulated {
            node += " (simulated)";
        }
        vec![
            right(task.attempt),
            right(task.rank),
            node.into(),
            gpus.join(",").into(),
            look.time_or_dash(task.started).into(),
            look.time_or_dash(task.ended).into(),
            right(task.exit_code.map_or_else(String::new, |code| code.to_string())),
            task.cause.clone().unwrap_or_default().replace('_', " ").into(),
        ]
    })
}

/// A command as one could type it.
fn shell_words(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            return word.clone();
        }
        format!("'{}'", word.replace('\'', r"'\''"))
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A job that ran and failed.
    pub(crate) fn example() -> JobView {
        let text = r#"{
            "id": 7, "name": "resnet", "user": "ann", "group": "vision", "state": "failed",
            "queue": null, "submitted": "2026-11-15T08:00:00Z",
            "promised_start": "2026-11-15T09:00:00Z", "promised_finish": "2026-11-15T11:00:00Z",
            "started": "2026-11-15T09:00:00Z", "ended": "2026-11-15T10:30:30Z", "exit_code": 3,
            "price": "12.50", "resources": {"cpu": "4", "gpu": "1", "memory": "16Gi"},
            "replicas": 1, "duration_s": 7200,
            "spec": {
                "work": {"command": ["python", "train.py", "--note", "it's big"]},
                "ask": {"resources": {"gpu": "1"}, "duration_s": 7200}, "priority": 0
            },
            "reason": "a task exited with code 3", "attempts": 1,
            "tasks": [{
                "part": 0, "attempt": 1, "rank": 0, "node": "node-1", "gpus": [2],
                "launched": "2026-11-15T09:00:00Z", "started": "2026-11-15T09:00:00Z",
                "ended": "2026-11-15T10:30:30Z", "exit_code": 3, "cause": "out_of_memory"
            }],
            "cost": {"charged": "12.50", "refunded": "2.50", "net": "10.00"}
        }"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn one_job_is_told_whole() {
        let line = TimelineLine {
            seq: 4,
            at: "2026-11-15T08:00:00Z".parse().unwrap(),
            event: "promised".to_owned(),
            sentence: "promised for 12.50 credits: 2026-11-15 09:00–11:00 on node-1".to_owned(),
            parameters: era_api::Parameters::new(),
            simulated: false,
        };
        let explanation =
            r#"{"state": "ended", "sentence": "It ended at 2026-11-15T10:30:30.182Z."}"#;
        let explanation = serde_json::from_str(explanation).unwrap();
        let job = JobView { explanation: Some(explanation), ..example() };
        insta::assert_snapshot!(render(&job, std::slice::from_ref(&line), &look::plain()));
        let mut job = example();
        job.summary.simulated = true;
        job.tasks[0].simulated = true;
        let launched = "launched on node-1".to_owned();
        let later = TimelineLine { sentence: launched, simulated: true, ..line.clone() };
        insta::assert_snapshot!(render(&job, &[line, later], &look::plain()));
    }

    #[test]
    fn a_command_can_be_typed_again() {
        let words = ["a", "", "b c", "it's"].map(str::to_owned);
        assert_eq!(shell_words(&words), r"a '' 'b c' 'it'\''s'");
    }
}
