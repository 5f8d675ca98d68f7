//! How a command ends: the exit codes, and the errors that stand for one of them. Which code an
//! error of somebody else's has is `failure`'s to say.

use std::fmt;

/// Something that is wrong with what was typed or asked for.
pub(crate) const BAD_INPUT: u8 = 2;
/// The server refused.
pub(crate) const REFUSED: u8 = 3;
/// Nobody is logged in, or not allowed to.
pub(crate) const NOT_ALLOWED: u8 = 4;
/// There is no such thing.
pub(crate) const NOT_THERE: u8 = 5;
/// The bid was refused: the price, or no room.
pub(crate) const BID_REFUSED: u8 = 6;
/// No server, or none that can be trusted.
pub(crate) const NO_SERVER: u8 = 7;
/// `era run`: the job ended without a code of its own.
pub(crate) const NO_CODE: u8 = 125;
/// Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// An end with this code, about which everything has been said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExitWith(pub(crate) u8);

impl fmt::Display for ExitWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}", self.0)
    }
}

impl std::error::Error for ExitWith {}

/// What somebody typed that cannot be meant.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadUsage(pub(crate) String);
