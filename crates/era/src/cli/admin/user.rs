//! `era admin user`: accounts.

use clap::ValueEnum;
use era_api::Credits;
use era_api::account::{NewUser, Role, UserEdit, UserFilter, UserMade, UserView};
use era_api::page::{PageAsk, every};

use crate::cli::connection::Common;
use crate::cli::look::{self, Look, right};
use crate::cli::whoami::role;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum UserCommand {
    /// List accounts
    List {
        /// Whose name has this in it
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// With this role
        #[arg(short, long, value_enum)]
        role: Option<RoleName>,
        /// Of this group
        #[arg(short, long)]
        group: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Show one account with its limits
    Show {
        /// The account
        name: String,
        #[command(flatten)]
        common: Common,
    },
    Add(Add),
    Set(Set),
}

/// Add an account; its one-time password is printed once
#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// The account
    name: String,
    /// Its group; made where it does not exist
    #[arg(short, long)]
    group: Option<String>,
    /// What it may do
    #[arg(short, long, value_enum, default_value = "user")]
    role: RoleName,
    /// How much it counts in policies
    #[arg(short, long, default_value_t = 0)]
    level: u8,
    /// Credits to begin with
    #[arg(short, long, default_value = "0")]
    credits: Credits,
    #[command(flatten)]
    common: Common,
}

/// Change an account; what is not said stays
#[derive(Debug, clap::Args)]
pub(crate) struct Set {
    /// The account
    name: String,
    /// Its group
    #[arg(short, long)]
    group: Option<String>,
    /// What it may do
    #[arg(short, long, value_enum)]
    role: Option<RoleName>,
    /// How much it counts in policies
    #[arg(short, long)]
    level: Option<u8>,
    /// It may log in and submit
    #[arg(long, conflicts_with = "disable")]
    enable: bool,
    /// It may not log in or submit
    #[arg(long)]
    disable: bool,
    /// Make a new one-time password, and end all sessions
    #[arg(long)]
    reset_password: bool,
    #[command(flatten)]
    common: Common,
}

/// What an account may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleName {
    /// Its own jobs, data and money
    User,
    /// Also sees, cancels and retries the group's jobs and divides its quota
    GroupAdministrator,
    /// Everything
    Administrator,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Role {
        match name {
            RoleName::User => Role::User,
            RoleName::GroupAdministrator => Role::GroupAdministrator,
            RoleName::Administrator => Role::Administrator,
        }
    }
}

impl UserCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            UserCommand::List { search, role, group, common } => {
                let client = common.client()?;
                let filter =
                    UserFilter { search, role: role.map(Role::from), group, ..Default::default() };
                let users = every(|PageAsk { cursor, limit }| {
                    let (cursor, limit) = (cursor.clone(), *limit);
                    client.users(&UserFilter { cursor, limit, ..filter.clone() })
                })?;
                look::print(common.output, &users, |users| render(users, &common.look()))
            }
            UserCommand::Show { name, common } => {
                let user = common.client()?.user(&name)?;
                look::print(common.output, &user, |user| render_one(user, &common.look()))
            }
            UserCommand::Add(add) => add.run(),
            UserCommand::Set(set) => set.run(),
        }
    }
}

impl Add {
    fn run(self) -> anyhow::Result<()> {
        let made = self.common.client()?.make_user(&NewUser {
            name: self.name,
            group: self.group,
            role: self.role.into(),
            level: self.level,
            credits: self.credits,
            password: None,
        })?;
        look::print(self.common.output, &made, |made| told(made, &self.common.look()))
    }
}

impl Set {
    fn run(self) -> anyhow::Result<()> {
        let edit = UserEdit {
            group: self.group,
            role: self.role.map(Role::from),
            level: self.level,
            enabled: if self.enable { Some(true) } else { self.disable.then_some(false) },
            reset_password: self.reset_password,
        };
        let made = self.common.client()?.edit_user(&self.name, &edit)?;
        look::print(self.common.output, &made, |made| told(made, &self.common.look()))
    }
}

fn told(made: &UserMade, look: &Look) -> String {
    let mut text = render_one(&made.user, look);
    if let Some(password) = &made.password {
        text += &format!("One-time password, told once: {password}\n");
    }
    text
}

fn render(users: &[UserView], look: &Look) -> String {
    look.rows(&["USER", "GROUP", "ROLE", "LEVEL", "CREDITS", "GPUS", "ENABLED"], users, |user| {
        let most = user.quota.gpu.as_deref().unwrap_or("∞");
        vec![
            user.name.clone().into(),
            user.group.clone().into(),
            role(user.role).into(),
            right(user.level),
            right(user.balance),
            right(format!("{}/{most}", or_zero(&user.used.gpu))),
            (if user.enabled { "yes" } else { "no" }).into(),
        ]
    })
}

fn or_zero(text: &str) -> &str {
    if text.is_empty() { "0" } else { text }
}

fn render_one(user: &UserView, look: &Look) -> String {
    let table = render(std::slice::from_ref(user), look);
    format!("{table}\n{}", super::quota::render(&user.quota, &user.used, look))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_account_is_told_with_its_password() {
        let text = r#"{"user": {"id": 3, "name": "ann", "group": "vision", "role": "user",
            "level": 2, "enabled": true, "balance": "100", "quota": {"gpu": "8", "gpu_hours": 100},
            "used": {"gpu": "2", "gpu_hours": 12.5, "credits": "3"}}, "password": "correct-horse"}"#;
        let made: UserMade = serde_json::from_str(text).unwrap();
        insta::assert_snapshot!(told(&made, &look::plain()));
    }
}
