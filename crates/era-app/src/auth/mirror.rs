//! The core knows users as numbers with a group and a level: whatever of that is missing there is
//! put again when the server starts.

use era_core::Command;
use era_core::accounts as core;
use era_core::quota::Quota;

use serde_json::value::RawValue;

use super::Auth;
use super::accounts::{AccountError, ask_noting, for_core, names};
use crate::driver::Handle;

impl Auth {
    /// Tells the core of every group and user that it does not know as it should. Gives how many
    /// there were.
    pub async fn mirror(&self, driver: &Handle) -> Result<usize, AccountError> {
        let _turn = self.turn().await?;
        let missing = self.missing(driver);
        let count = missing.len();
        for (command, note) in missing {
            ask_noting(driver, command, note).await?;
        }
        Ok(count)
    }

    fn missing(&self, driver: &Handle) -> Vec<(Command, Option<Box<RawValue>>)> {
        let directory = self.directory();
        let snapshot = driver.snapshot();
        let accounts = snapshot.accounts();
        let groups = directory.groups().filter_map(|group| {
            let known = accounts.group(group.id).ok();
            let quota = known.map_or(Quota::UNLIMITED, |known| known.quota);
            let note = names(None, &group.name);
            let group = core::Group { id: group.id, level: group.level, quota };
            (known != Some(&group)).then_some((Command::PutGroup { group }, note))
        });
        let users = directory.users().filter_map(|user| {
            let known = accounts.user(user.id).ok();
            let note = names(Some(&user.name), &directory.group_name(user.group));
            let user = for_core(user, known.map_or(Quota::UNLIMITED, |known| known.quota));
            (known != Some(&user)).then_some((Command::PutUser { user }, note))
        });
        groups.chain(users).collect()
    }
}
