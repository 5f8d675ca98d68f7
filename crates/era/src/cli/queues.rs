//! `era queues`: where jobs without a promise wait.

use era_api::queue::QueueView;

use super::connection::Common;
use super::look::{self, Look, right};

/// List queues: their order, and how many wait and run
#[derive(Debug, clap::Args)]
pub(crate) struct Queues {
    #[command(flatten)]
    common: Common,
}

impl Queues {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let queues = self.common.client()?.queues()?;
        let look = self.common.look();
        look::print(self.common.output, &queues, |queues| render(queues, &look))
    }
}

fn render(queues: &[QueueView], look: &Look) -> String {
    let mut headings = vec!["QUEUE", "LEVEL", "POLICY", "SHARE", "WAITING", "RUNNING"];
    if look.wide {
        headings.extend([
            "BORROWS",
            "PREEMPTS",
            "AGES",
            "MOST WAITING",
            "MOST RUNNING",
            "MOST GPUS",
        ]);
    }
    let yes = |value: bool| if value { "yes" } else { "no" };
    look.rows(&headings, queues, |queue| {
        let mut row = vec![
            queue.name.clone().into(),
            right(queue.level),
            queue.policy.clone().into(),
            right(format!("{:.0} %", queue.share * 100.0)),
            right(queue.waiting),
            right(queue.running),
        ];
        if look.wide {
            row.extend([
                yes(queue.borrows).into(),
                yes(queue.preempts).into(),
                yes(queue.ages).into(),
                right(queue.waiting_max),
                right(queue.running_max),
                right(queue.gpus_max.map_or_else(|| "–".to_owned(), |most| most.to_string())),
            ]);
        }
        row
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_listed_with_who_waits() {
        let text = r#"[{"name": "default", "level": 1, "policy": "fair", "share": 0.5,
            "waiting": 12, "running": 3}]"#;
        let queues: Vec<QueueView> = serde_json::from_str(text).unwrap();
        let wide = Look { wide: true, width: None, ..look::plain() };
        let both = render(&queues, &look::plain()) + &render(&queues, &wide);
        insta::assert_snapshot!(both);
    }
}
