//! `era admin webhook`: addresses that are told when something happens.

use era_api::Credits;
use era_api::account::{NewWebhook, Webhook, WebhookEvent};
use serde_json::json;

use crate::cli::connection::Common;
use crate::cli::exit::BadUsage;
use crate::cli::look::{self, Look, right};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum WebhookCommand {
    /// List your webhooks
    List {
        #[command(flatten)]
        common: Common,
    },
    Add(Add),
    /// Tell an address no more
    Remove {
        /// The webhook's number
        id: u64,
        #[command(flatten)]
        common: Common,
    },
}

/// Have an address told; the secret of its signatures is printed once
#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// Where it is told
    address: String,
    /// About what: job_started, job_finished, job_failed, reservation_kept, reservation_broken or
    /// price_below; may be repeated
    #[arg(short, long, required = true)]
    event: Vec<String>,
    /// For price_below: in which pool
    #[arg(long)]
    pool: Option<String>,
    /// For price_below: a GPU-hour below this
    #[arg(long, value_name = "CREDITS")]
    below: Option<Credits>,
    #[command(flatten)]
    common: Common,
}

/// An event by its name on the wire.
fn event(name: &str) -> Result<WebhookEvent, BadUsage> {
    let read = serde_json::from_value(serde_json::Value::String(name.replace('-', "_")));
    read.map_err(|_| BadUsage(format!("--event: there is no event `{name}`")))
}

/// The name on the wire of an event.
fn name(event: WebhookEvent) -> String {
    let value = serde_json::to_value(event).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

impl WebhookCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            WebhookCommand::List { common } => {
                let client = common.client()?;
                let webhooks = era_api::page::every(|page| client.webhooks(page))?;
                look::print(common.output, &webhooks, |hooks| render(hooks, &common.look()))
            }
            WebhookCommand::Add(add) => {
                let events = add.event.iter().map(|name| event(name)).collect::<Result<_, _>>()?;
                let made = add.common.client()?.make_webhook(&NewWebhook {
                    url: add.address,
                    events,
                    pool: add.pool,
                    below: add.below,
                })?;
                look::print(add.common.output, &made, |made| {
                    format!("Webhook {}; its secret, told once: {}\n", made.webhook.id, made.secret)
                })
            }
            WebhookCommand::Remove { id, common } => {
                common.client()?.remove_webhook(id)?;
                look::print(common.output, &json!({ "removed": id }), |_| {
                    format!("Webhook {id} is gone.\n")
                })
            }
        }
    }
}

fn render(webhooks: &[Webhook], look: &Look) -> String {
    look.rows(&["WEBHOOK", "ADDRESS", "EVENTS", "LAST DELIVERY"], webhooks, |webhook| {
        let events: Vec<String> = webhook.events.iter().map(|event| name(*event)).collect();
        vec![
            right(webhook.id),
            webhook.url.clone().into(),
            events.join(", ").into(),
            webhook.last.clone().unwrap_or_default().into(),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_named_as_on_the_wire() {
        for event_name in ["job_started", "price_below"] {
            assert_eq!(name(event(event_name).unwrap()), event_name);
        }
        assert!(event("lunch").is_err());
    }
}
