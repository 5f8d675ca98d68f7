//! What a supervisor is told about its node before it starts: a file in its folder.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The search path of tasks where nothing else is said.
const PATH: &str = if cfg!(target_os = "macos") {
    "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
} else {
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
};

/// What a supervisor is told about its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SupervisorSettings {
    /// Folders that no task may see: ERA's own.
    pub hidden: Vec<PathBuf>,
    /// As root, user 0 runs under this user id and the others count on from it.
    pub first_uid: u32,
    /// Whether control groups are used where they can be.
    pub cgroups: bool,
    /// Whether namespaces and user ids are used where they can be.
    pub isolation: bool,
    /// The search path of tasks.
    pub path: String,
    /// What CUDA calls each GPU of this node, by its index.
    pub gpu_uuids: Vec<String>,
    /// How many idle keepers are kept ready.
    pub spare_keepers: usize,
    /// Whether only those means are used that every Unix has, as they are on all but Linux.
    pub portable: bool,
}

impl Default for SupervisorSettings {
    fn default() -> SupervisorSettings {
        SupervisorSettings {
            hidden: Vec::new(),
            first_uid: 100_000,
            cgroups: true,
            isolation: true,
            path: PATH.into(),
            gpu_uuids: Vec::new(),
            spare_keepers: 2,
            portable: false,
        }
    }
}

impl SupervisorSettings {
    /// Reads the settings in a supervisor's folder; where there are none, the default.
    pub fn read(folder: &Path) -> io::Result<SupervisorSettings> {
        match std::fs::read(folder.join("settings.json")) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(SupervisorSettings::default())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes them where the next supervisor reads them.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let (new, place) = (folder.join("settings.json.new"), folder.join("settings.json"));
        std::fs::write(&new, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(new, place)
    }
}
