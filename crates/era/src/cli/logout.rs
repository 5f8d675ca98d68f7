//! `era logout`: the token is revoked and forgotten.

use serde_json::json;

use super::config::Config;
use super::connection::Common;
use super::look::{self, note};

/// Revoke the remembered token, and forget it
#[derive(Debug, clap::Args)]
pub(crate) struct LogOut {
    #[command(flatten)]
    common: Common,
}

impl LogOut {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let url = client.url().to_owned();
        if let Err(error) = client.log_out() {
            // Forgotten in any case: whoever logs out wants no token lying about.
            let why = super::told(&error.into());
            note(&format!("The server could not revoke the token: {why}"));
        }
        let mut config = Config::load()?;
        config.tokens.remove(&url);
        if config.url.as_deref() == Some(url.as_str()) {
            config.url = None;
        }
        config.save()?;
        let sentence = format!("Logged out of {url}.\n");
        look::print(self.common.output, &json!({ "logged_out": url }), |_| sentence)
    }
}
