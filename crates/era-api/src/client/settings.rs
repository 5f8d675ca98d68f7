//! The rules of the house.

use super::{Client, ClientError};
use crate::settings::Settings;

impl Client {
    /// All settings in force.
    pub fn settings(&self) -> Result<Settings, ClientError> {
        self.get("/settings")
    }

    /// Changes those that are named.
    pub fn change_settings(&self, changes: &Settings) -> Result<(), ClientError> {
        self.patch("/settings", changes)
    }
}
