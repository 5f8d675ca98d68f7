//! How a program is started where a child needs no namespaces: on systems other than Linux.

use std::io;

use rustix::process::Pid;

use super::Birth;

impl Birth<'_> {
    /// Starts it as every system can.
    pub(crate) fn start(&self) -> io::Result<Pid> {
        self.spawn()
    }
}
