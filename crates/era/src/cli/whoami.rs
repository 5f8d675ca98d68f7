//! `era whoami`: the account behind the token.

use era_api::account::{Me, Role};

use super::connection::Common;
use super::look;

/// Say who you are to the server, and what you have
#[derive(Debug, clap::Args)]
#[command(name = "whoami")]
pub(crate) struct WhoAmI {
    #[command(flatten)]
    common: Common,
}

impl WhoAmI {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let me = client.me()?;
        look::print(self.common.output, &me, |me| render(me, client.url()))
    }
}

/// A role in words.
pub(crate) fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::GroupAdministrator => "group administrator",
        Role::Administrator => "administrator",
    }
}

fn render(me: &Me, url: &str) -> String {
    let mut text = format!(
        "{} of {}, {}, with {} credits, on {url}\n",
        me.name,
        me.group,
        role(me.role),
        me.balance
    );
    if me.must_change_password {
        text.push_str("The password is a one-time one: change it with `era login`.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_told_in_a_line() {
        let me = Me {
            id: 3,
            name: "ann".to_owned(),
            group: "vision".to_owned(),
            role: Role::GroupAdministrator,
            balance: era_api::Credits(12_500_000),
            must_change_password: true,
            csrf: None,
        };
        insta::assert_snapshot!(render(&me, "http://127.0.0.1:7632"));
    }
}
