//! Whoever is attached to the terminals of tasks.
//!
//! What a task prints to its terminal goes into its log as what others print to their pipes does,
//! and also to every connection that watches it: all of them see the same and all may type, and the
//! newest size of a window counts. Nothing waits for anybody: with nobody attached the task runs as
//! any other, and one who cannot keep up with what is shown misses some of it.

use era_core::job::TaskId;

use super::Supervisor;
use crate::shim::connection::Connection;
use crate::shim::protocol::{Bytes, FromShim};
use crate::shim::terminal::Terminal;

/// So much that was shown waits for a connection before the rest is left out for it.
const BACKLOG_BYTES_MAX: usize = 256 << 10;
/// Most connections to one terminal, and to all of them.
const WATCHERS_OF_ONE_MAX: usize = 8;
const WATCHERS_MAX: usize = 256;

/// Shows what a task printed to whoever watches its terminal and can keep up.
pub(super) fn show(connections: &mut [Connection], task: TaskId, piece: &[u8]) {
    let watching = connections.iter_mut().filter(|connection| connection.watches == Some(task));
    for connection in watching {
        connection.behind |= connection.backlog_bytes() > BACKLOG_BYTES_MAX;
        if !connection.behind {
            connection.tell(&FromShim::Shown(Bytes(piece.to_vec())));
        }
    }
}

impl Supervisor {
    /// Has a connection watch a task's terminal.
    pub(super) fn attach(&mut self, index: usize, task: TaskId) {
        let watching = self.connections.iter().filter_map(|connection| connection.watches);
        let (all, of_this) =
            watching.fold((0, 0), |(all, of), other| (all + 1, of + usize::from(other == task)));
        let no = match self.terminal(task) {
            _ if all >= WATCHERS_MAX || of_this >= WATCHERS_OF_ONE_MAX => {
                "too many are attached already: have one of them leave first"
            }
            Some(terminal) => {
                let recent = terminal.recent();
                let Some(connection) = self.connections.get_mut(index) else { return };
                connection.watches = Some(task);
                connection.tell(&FromShim::Attached);
                return connection.tell(&FromShim::Shown(Bytes(recent)));
            }
            None if self.tasks.get(&task).is_some_and(|about| about.launch.spec.terminal) => {
                "it has not started yet: try again in a moment"
            }
            None => "it has no terminal: submit such a job with --pty, or `terminal: true`",
        };
        self.answer(index, &FromShim::Unattached(no.into()));
    }

    /// Sends the scrollback to connections that have drained the output before it.
    pub(super) fn catch_up(&mut self) {
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            if !connection.behind || connection.has_more() {
                continue;
            }
            let recent = connection.watches.and_then(|task| self.terminal(task));
            let recent = recent.map(Terminal::recent).unwrap_or_default();
            let connection = &mut self.connections[index];
            connection.behind = false;
            let left_out = b"\r\n[... too much to be shown, all of it is in the log ...]\r\n";
            connection.tell(&FromShim::Shown(Bytes([&left_out[..], &recent].concat())));
        }
    }

    /// Types for a connection.
    pub(super) fn type_in(&mut self, index: usize, bytes: &[u8]) {
        if let Some(terminal) = self.watched(index) {
            terminal.type_in(bytes);
        }
    }

    /// Sets the size of the window that a connection has.
    pub(super) fn set_size(&mut self, index: usize, rows: u16, cols: u16) {
        if let Some(terminal) = self.watched(index) {
            terminal.set_size(rows, cols);
        }
    }

    /// Goes on with what was typed before the task could read it.
    pub(super) fn type_on(&mut self, keeper: u64) {
        if let Some(terminal) = self.keepers.get_mut(&keeper).and_then(|k| k.terminal.as_mut()) {
            terminal.flush();
        }
    }

    /// Whether more is heard of a connection: not while the task that it is attached to does not
    /// read what was typed before.
    pub(super) fn may_type(&self, connection: &Connection) -> bool {
        !connection.watches.and_then(|task| self.terminal(task)).is_some_and(Terminal::is_full)
    }

    fn terminal(&self, task: TaskId) -> Option<&Terminal> {
        self.keepers.get(&self.tasks.get(&task)?.keeper?)?.terminal.as_ref()
    }

    fn watched(&mut self, index: usize) -> Option<&mut Terminal> {
        let task = self.connections.get(index)?.watches?;
        self.keepers.get_mut(&self.tasks.get(&task)?.keeper?)?.terminal.as_mut()
    }
}
