//! The first start: a group, an administrator with a one-time password, and credits.

use era_api::Credits;
use era_api::account::{NewUser, Role};

use super::Auth;
use super::accounts::{AccountError, DEFAULT_GROUP};
use crate::driver::Handle;

/// The name of the first account.
pub const FIRST_ADMINISTRATOR: &str = "admin";
/// What it begins with.
pub const FIRST_CREDITS: Credits = Credits(1_000_000_000_000);

/// The account that was made.
pub struct FirstAccount {
    pub name: String,
    /// Its one-time password, told once.
    pub password: String,
}

impl Auth {
    /// Makes the first administrator where there is no account at all. On every start the core
    /// is told whatever it does not know of the accounts there are.
    pub async fn first_start(&self, driver: &Handle) -> Result<Option<FirstAccount>, AccountError> {
        if self.directory().users().next().is_some() {
            self.mirror(driver).await?;
            return Ok(None);
        }
        let wanted = NewUser {
            name: FIRST_ADMINISTRATOR.to_owned(),
            group: Some(DEFAULT_GROUP.to_owned()),
            role: Role::Administrator,
            level: 0,
            credits: FIRST_CREDITS,
            password: None,
        };
        let (user, password) = self.add_user(driver, &wanted).await?;
        Ok(password.map(|password| FirstAccount { name: user.name.clone(), password }))
    }
}
