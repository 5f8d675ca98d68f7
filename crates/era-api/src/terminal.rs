//! What is said on the WebSocket of a task's terminal beside the bytes that are typed and shown.

use serde::{Deserialize, Serialize};

/// From the client, as a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalWord {
    /// The window has this size from now on.
    Resize(TerminalSize),
}

/// The size of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    pub rows: u16,
    /// Characters in a line.
    pub cols: u16,
}

/// From the server, as the last text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TerminalEnd {
    /// The task is over, with this code.
    Exited(i32),
    /// The task is gone through no fault of its own, and its job may start another.
    Lost(String),
}
