//! `era jobs`: which jobs there are.

use era_api::job::{JobFilter, JobSummary};
use era_api::page::Page;

use super::connection::Common;
use super::look::money::Money;
use super::look::{self, Look, right, span};
use crate::job::past;

/// List jobs, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct Jobs {
    /// Also those that are over
    #[arg(short, long)]
    all: bool,
    /// In one of these states, by comma: waiting, promised, starting, running, stopping, succeeded,
    /// failed, cancelled, released, limit_reached, broken; `active` and `over` stand for several
    #[arg(short, long, conflicts_with = "all")]
    state: Option<String>,
    /// Of this account, where you may see others'
    #[arg(short, long)]
    user: Option<String>,
    /// Of this group
    #[arg(short, long)]
    group: Option<String>,
    /// In this queue
    #[arg(short, long)]
    queue: Option<String>,
    /// Of this project
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Whose name begins so
    #[arg(short, long)]
    name: Option<String>,
    /// Of the array that begins with this job
    #[arg(long, value_name = "JOB")]
    array: Option<u64>,
    /// Submitted at or after
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Submitted before
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// At most so many
    #[arg(short, long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Go on where the page before ended
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl Jobs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let look = self.common.look();
        // Who asks for an array or for a time wants all of it.
        let whole = self.all || self.array.is_some() || self.since.is_some();
        let filter = JobFilter {
            state: self.state.or_else(|| (!whole).then(|| "active".to_owned())),
            user: self.user,
            group: self.group,
            queue: self.queue,
            project: self.project,
            name: self.name,
            array: self.array,
            ids: None,
            likely: (!whole).then_some(true),
            since: past::flag_past("--since", self.since.as_deref(), &look.now)?,
            until: past::flag_past("--until", self.until.as_deref(), &look.now)?,
            cursor: self.cursor,
            limit: Some(self.limit),
        };
        let page = self.common.client()?.jobs(&filter)?;
        look::print(self.common.output, &page, |page| render(page, &look))
    }
}

/// What each replica needs, in a few letters.
pub(crate) fn needs(job: &JobSummary) -> String {
    let part = |name: &str, unit: &str| job.resources.get(name).map(|n| format!("{n}{unit}"));
    let parts = [part("gpu", " gpu"), part("cpu", " cpu"), part("memory", "")];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if job.replicas > 1 { format!("{} × ({text})", job.replicas) } else { text }
}

/// When it started, will start, or is likely to (`~`).
pub(crate) fn start(job: &JobSummary, look: &Look) -> String {
    match (job.started.or(job.promised_start), job.likely_start) {
        (None, Some(likely)) => format!("~{}", look.time(likely)),
        (known, _) => look.time_or_dash(known),
    }
}

fn render(page: &Page<JobSummary>, look: &Look) -> String {
    if page.items.is_empty() {
        return "No jobs; `era jobs --all` also lists those that are over.\n".to_owned();
    }
    let mut headings = vec!["JOB", "NAME", "USER", "STATE", "NEEDS", "START", "TIME", "PRICE"];
    if look.wide {
        headings.extend(["GROUP", "QUEUE", "SUBMITTED", "ENDED", "CODE", "ARRAY"]);
    }
    let mut table = look.table(&headings);
    let money = Money::of(page.items.iter().map(|job| job.price));
    for job in &page.items {
        let dash = || "–".to_owned();
        let mut name = job.name.clone().unwrap_or_else(dash);
        if job.simulated {
            name += " (simulated)";
        }
        let mut row = vec![
            right(job.id),
            name.into(),
            job.user.clone().into(),
            look::state(job.state),
            needs(job).into(),
            start(job, look).into(),
            span(job.duration_s).into(),
            right(money.show(job.price)),
        ];
        if look.wide {
            let array = job.array.map(|place| format!("{}[{}]", place.array, place.index));
            row.extend([
                job.group.clone().into(),
                job.queue.clone().unwrap_or_else(dash).into(),
                look.time(job.submitted).into(),
                look.time_or_dash(job.ended).into(),
                right(job.exit_code.map_or_else(dash, |code| code.to_string())),
                array.unwrap_or_else(dash).into(),
            ]);
        }
        table.add_row(row);
    }
    let mut text = look::finish(&table);
    if let Some(next) = &page.next {
        text += &format!("There are more: --cursor {next}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::job::tests::example;

    fn page() -> Page<JobSummary> {
        let mut waiting = example().summary;
        waiting.id = 9;
        waiting.name = None;
        waiting.state = era_api::job::JobState::Waiting;
        (waiting.started, waiting.ended, waiting.exit_code) = (None, None, None);
        waiting.queue = Some("default".to_owned());
        waiting.replicas = 4;
        waiting.simulated = true;
        waiting.promised_start = None;
        waiting.likely_start = Some("2026-11-15T15:00:00Z".parse().unwrap());
        Page { items: vec![example().summary, waiting], next: Some("abc".to_owned()) }
    }

    #[test]
    fn a_list_fits_the_terminal() {
        insta::assert_snapshot!(render(&page(), &look::plain()));
    }

    #[test]
    fn a_wide_list_shows_everything() {
        let look = Look { wide: true, width: None, ..look::plain() };
        insta::assert_snapshot!(render(&page(), &look));
    }

    #[test]
    fn a_narrow_terminal_breaks_cells_and_not_lines() {
        let look = Look { width: Some(60), ..look::plain() };
        let text = render(&page(), &look);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    }

    #[test]
    fn columns_stand_below_each_other_whatever_script_a_job_is_called_in() {
        let mut page = page();
        page.items[0].name = Some("实验 3".to_owned());
        // Each of these characters is as wide as two others.
        let wide =
            |text: &str| text.chars().map(|c| if c >= '\u{2e80}' { 2 } else { 1 }).sum::<usize>();
        let look = Look { wide: true, width: None, ..look::plain() };
        let text = render(&page, &look);
        let place = |line: &str| line.find("ann").map(|at| wide(&line[..at]));
        let places: Vec<usize> = text.lines().filter_map(place).collect();
        assert_eq!(places, [places[0]; 2], "{text}");
    }

    #[test]
    fn programs_get_what_the_api_gives() {
        insta::assert_json_snapshot!(page());
    }
}
