//! The rules of the house, by name.

use std::net::IpAddr;

use era_api::settings::SettingsView;
use era_core::Command;

use crate::answer::audited;
use crate::auth::Caller;
use crate::error::AppError;
use crate::{Services, wire};

/// All settings in force.
pub fn get(services: &Services) -> SettingsView {
    SettingsView(wire::settings(services.driver.snapshot().settings()))
}

/// Changes those that are named. For administrators.
pub async fn change(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    SettingsView(changes): SettingsView,
) -> Result<(), AppError> {
    caller.administers()?;
    let settings = wire::settings_put(services.driver.snapshot().settings(), &changes)?;
    let names = changes.keys().map(String::as_str).collect::<Vec<_>>().join(",");
    let command = Command::SetSettings { settings };
    audited(services, caller, from, "settings.set", &names, command).await
}
