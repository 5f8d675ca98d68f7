//! The rules of the house.

use super::{Client, ClientError};
use crate::settings::SettingsView;

impl Client {
    /// All settings in force.
    pub fn settings(&self) -> Result<SettingsView, ClientError> {
        self.get("/settings")
    }

    /// Changes those that are named.
    pub fn change_settings(&self, changes: &SettingsView) -> Result<(), ClientError> {
        self.patch("/settings", changes)
    }
}
