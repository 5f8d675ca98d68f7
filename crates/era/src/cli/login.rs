//! `era login`: a name and a password for a token that is remembered.

use era_api::account::{Login, Me, PasswordChange};
use era_api::client::Client;

use super::config::Config;
use super::connection::Common;
use super::look::{self, note};
use super::prompt;

/// Log in, and remember the server and a token for later commands
///
/// The password is asked for, or read from the first line of standard input; a second line
/// replaces a one-time password. The token is kept in a file that only you can read.
#[derive(Debug, clap::Args)]
#[command(name = "login")]
pub(crate) struct LogIn {
    /// The account's name; asked for where nothing is said
    #[arg(value_name = "NAME")]
    user: Option<String>,
    /// What the token is for, as `era admin token list` shows it
    #[arg(long, default_value = "era login")]
    label: String,
    #[command(flatten)]
    common: Common,
}

impl LogIn {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let url = self.common.url()?;
        let client = self.common.stranger(&url)?;
        let user = match self.user {
            Some(user) => user,
            None => prompt::line(&format!("Account on {}: ", client.url()))?,
        };
        let password = prompt::password(&format!("Password of {user}: "))?;
        let login =
            Login { user, password: password.clone(), label: Some(self.label), cookie: false };
        let logged_in = client.log_in(&login)?;
        let token = logged_in.token.ok_or_else(|| anyhow::anyhow!("the server gave no token"))?;
        let mut config = Config::load()?;
        config.tokens.insert(client.url().to_owned(), token.clone());
        config.url = Some(client.url().to_owned());
        let path = config.save()?;
        if logged_in.me.must_change_password {
            let client = self.common.known(client.url(), &token)?;
            change_password(&client, &password)?;
        }
        note(&format!("The token is in {}.", path.display()));
        look::print(self.common.output, &logged_in.me, |me| sentence(me, client.url()))
    }
}

/// A one-time password is good for one thing: to be changed.
fn change_password(client: &Client, old: &str) -> anyhow::Result<()> {
    if !prompt::somebody_there() {
        let new = prompt::password("")?;
        if new.is_empty() {
            note("This is a one-time password: give your own as a second line, or at a terminal.");
            return Ok(());
        }
        return Ok(client.change_password(&PasswordChange { old: old.to_owned(), new })?);
    }
    note("This is a one-time password; please choose your own (at least 10 characters).");
    loop {
        let new = prompt::password("New password: ")?;
        if new != prompt::password("The same again: ")? {
            note("They differ.");
            continue;
        }
        match client.change_password(&PasswordChange { old: old.to_owned(), new }) {
            Ok(()) => return Ok(()),
            Err(error) if error.problem().is_some_and(|p| p.status == 422 || p.status == 400) => {
                note(&super::told(&error.into()));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn sentence(me: &Me, url: &str) -> String {
    format!("Logged in to {url} as {} of {}, with {} credits.\n", me.name, me.group, me.balance)
}
