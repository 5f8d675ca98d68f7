//! What stands for a task's own mounts where there are none: on systems other than Linux. A keeper
//! there is never asked for any, since [`Isolation::probe`] finds none.

use std::io;
use std::path::Path;

use super::{Isolation, Unisolated, View};

impl Isolation {
    /// Finds out what is permitted here, and what is to be said about it.
    pub fn probe(first_uid: u32, _task_root: &Path) -> (Isolation, Vec<String>) {
        Isolation::without_mounts(first_uid)
    }
}

/// A stay in a mount namespace, which nobody ever begins here.
#[derive(Debug)]
pub enum MountNamespace {}

impl MountNamespace {
    /// Refused.
    pub fn from_home() -> Result<MountNamespace, Unisolated> {
        let what = "make a mount namespace".to_owned();
        Err(Unisolated::Step { what, source: io::ErrorKind::Unsupported.into() })
    }

    /// Never called.
    pub fn arrange(&self, _view: &View<'_>) -> Result<(), Unisolated> {
        match *self {}
    }

    /// Never called.
    pub fn back(self) -> Result<(), Unisolated> {
        match self {}
    }
}
