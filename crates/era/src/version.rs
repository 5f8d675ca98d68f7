//! `era version`: of the binary, and of what it reads and writes.

use std::io::Write;

/// Print the versions of the binary, the core and the journal's serialisation
#[derive(Debug, clap::Args)]
pub(crate) struct Version {}

impl Version {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (core, wire) = (era_core::CORE_VERSION, era_core::wire::WIRE_VERSION);
        let version = env!("CARGO_PKG_VERSION");
        writeln!(std::io::stdout(), "era {version} (core {core}, wire {wire})")?;
        Ok(())
    }
}
