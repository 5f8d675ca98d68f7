//! What a command's failure is to the shell: an exit code, and a hint for people.

use std::fmt;

use era_api::Problem;
use era_api::client::ClientError;

use super::look::Look;
use super::quote::counter_offers;
use crate::job::JobError;
use crate::paint::Paint;

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

/// What is told about a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The exit code.
    pub(crate) code: u8,
    /// Whether the error itself is still to be told.
    pub(crate) silent: bool,
    /// Lines for people behind the error.
    pub(crate) hints: Vec<String>,
}

impl Verdict {
    fn of(code: u8, hint: &str) -> Verdict {
        let hints = if hint.is_empty() { Vec::new() } else { vec![format!("hint: {hint}")] };
        Verdict { code, silent: false, hints }
    }
}

/// What an error of a client's command means; `None` for those of others.
pub(crate) fn verdict(error: &anyhow::Error) -> Option<Verdict> {
    if let Some(ExitWith(code)) = error.downcast_ref() {
        return Some(Verdict { code: *code, silent: true, hints: Vec::new() });
    }
    if error.downcast_ref::<JobError>().is_some() {
        return Some(Verdict::of(BAD_INPUT, "`era submit --help` lists what a job can say"));
    }
    if error.downcast_ref::<BadUsage>().is_some() {
        return Some(Verdict::of(BAD_INPUT, ""));
    }
    match error.downcast_ref::<ClientError>()? {
        ClientError::Refused(problem) => Some(refused(problem)),
        ClientError::BadAddress { .. } | ClientError::BadAuthority { .. } => {
            Some(Verdict::of(BAD_INPUT, ""))
        }
        ClientError::Unreachable { .. }
        | ClientError::Certificate { .. }
        | ClientError::NotKnown { .. }
        | ClientError::TimedOut { .. }
        | ClientError::Broken { .. }
        | ClientError::NotUnderstood { .. } => Some(Verdict::of(NO_SERVER, "")),
        ClientError::NoRandomness(_) => Some(Verdict::of(1, "")),
    }
}

fn refused(problem: &Problem) -> Verdict {
    if let Some(offers) = &problem.counter_offers {
        let look =
            Look { width: None, paint: Paint::plain(), wide: false, now: super::clock::now() };
        let hints = counter_offers(offers, &look);
        return Verdict { code: BID_REFUSED, silent: false, hints };
    }
    match problem.status {
        401 => Verdict::of(NOT_ALLOWED, "log in with `era login`, or set ERA_TOKEN"),
        403 => Verdict::of(NOT_ALLOWED, "`era whoami` says who you are and what you may"),
        404 => Verdict::of(NOT_THERE, ""),
        400 => Verdict::of(BAD_INPUT, ""),
        500..=599 => match &problem.request_id {
            Some(id) => {
                let hint = format!("tell your administrator the request's id: {id}");
                Verdict::of(1, &hint)
            }
            None => Verdict::of(1, ""),
        },
        _ => Verdict::of(REFUSED, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(error: impl Into<anyhow::Error>) -> Option<u8> {
        verdict(&error.into()).map(|verdict| verdict.code)
    }

    fn problem(status: u16) -> ClientError {
        ClientError::Refused(Box::new(Problem::new(status, "x", "No.")))
    }

    #[test]
    fn each_kind_of_failure_has_its_exit_code() {
        assert_eq!(code(problem(401)), Some(NOT_ALLOWED));
        assert_eq!(code(problem(404)), Some(NOT_THERE));
        assert_eq!(code(problem(409)), Some(REFUSED));
        assert_eq!(code(problem(500)), Some(1));
        assert_eq!(code(JobError::NoCommand), Some(BAD_INPUT));
        assert_eq!(code(ExitWith(42)), Some(42));
        assert_eq!(code(anyhow::anyhow!("other")), None);
        let away = ClientError::Unreachable { url: String::new(), why: String::new() };
        assert_eq!(code(away), Some(NO_SERVER));
    }

    #[test]
    fn a_refused_bid_comes_with_its_counter_offers() {
        let mut problem = Problem::new(422, "value_too_low", "The price is 12.00.");
        let offers = era_api::quote::CounterOffers {
            value: Some(era_api::Credits(12_000_000)),
            ..Default::default()
        };
        problem.counter_offers = Some(offers);
        let verdict = verdict(&ClientError::Refused(Box::new(problem)).into()).unwrap();
        assert_eq!(verdict.code, BID_REFUSED);
        assert_eq!(verdict.hints.len(), 1);
        assert!(verdict.hints[0].contains("12.00"), "{:?}", verdict.hints);
    }
}
