//! `era admin audit`: who changed what.

use era_api::account::AuditLine;
use era_api::page::PageAsk;

use crate::cli::connection::Common;
use crate::cli::look::{self, Look, right};

/// List who changed what, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    /// At most so many lines
    #[arg(short, long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Go on where the page before ended
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl Audit {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let page = PageAsk { cursor: self.cursor, limit: Some(self.limit) };
        let page = self.common.client()?.audit(&page)?;
        let look = self.common.look();
        look::print(self.common.output, &page, |page| {
            let mut text = render(&page.items, &look);
            if let Some(next) = &page.next {
                text += &format!("There are more: --cursor {next}\n");
            }
            text
        })
    }
}

fn render(lines: &[AuditLine], look: &Look) -> String {
    look.rows(&["LINE", "WHEN", "WHO", "FROM", "WHAT", "ON", "DONE"], lines, |line| {
        vec![
            right(line.id),
            look.time(line.at).into(),
            line.who.clone().into(),
            line.from.clone().into(),
            line.what.clone().into(),
            line.target.clone().into(),
            (if line.done { "yes" } else { "no" }).into(),
        ]
    })
}
