//! What a command's failure is to the shell and to people: its exit code, and hints.

use era_api::Problem;
use era_api::client::ClientError;
use era_api::client::transfer::TransferError;
use jiff::Zoned;

use super::clock;
use super::exit::{
    BAD_INPUT, BID_REFUSED, BadUsage, ExitWith, NO_SERVER, NOT_ALLOWED, NOT_THERE, REFUSED,
};
use super::look::quote::counter_offers;
use super::look::{Look, stamps};
use crate::job::JobError;
use crate::job::past::BadPast;
use crate::paint::Paint;

/// How credits come into a wallet.
pub(crate) const GRANTING: &str =
    "an administrator grants credits with `era admin credit NAME AMOUNT`";

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
        let hint = escaped(hint);
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
    if error.downcast_ref::<BadUsage>().is_some() || error.downcast_ref::<BadPast>().is_some() {
        return Some(Verdict::of(BAD_INPUT, ""));
    }
    match of_client(error)? {
        ClientError::Refused(problem) => Some(refused(problem)),
        ClientError::BadAddress { .. } | ClientError::BadAuthority { .. } => {
            Some(Verdict::of(BAD_INPUT, ""))
        }
        ClientError::Unreachable { .. }
        | ClientError::NobodyBehind { .. }
        | ClientError::Certificate { .. }
        | ClientError::NotKnown { .. }
        | ClientError::TimedOut { .. }
        | ClientError::Broken { .. }
        | ClientError::NotUnderstood { .. } => Some(Verdict::of(NO_SERVER, "")),
        ClientError::NoRandomness(_) => Some(Verdict::of(1, "")),
    }
}

/// What the server or the way to it is to blame for, also while files were on their way.
fn of_client(error: &anyhow::Error) -> Option<&ClientError> {
    match error.downcast_ref() {
        Some(TransferError::Client(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

fn refused(problem: &Problem) -> Verdict {
    if let Some(offers) = &problem.counter_offers {
        let look = Look { width: None, paint: Paint::plain(), wide: false, now: clock::now() };
        let hints = counter_offers(offers, &look);
        return Verdict { code: BID_REFUSED, silent: false, hints };
    }
    match problem.status {
        402 => Verdict::of(REFUSED, GRANTING),
        401 => Verdict::of(NOT_ALLOWED, "log in with `era login`, or set ERA_TOKEN"),
        403 => Verdict::of(NOT_ALLOWED, "`era whoami` says who you are and what you may"),
        404 => Verdict::of(NOT_THERE, ""),
        400 => Verdict::of(BAD_INPUT, ""),
        422 if is_bad_input(&problem.code) => Verdict::of(BAD_INPUT, ""),
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

/// Whether a code is about what a request says. Others of its status are about what there is: a
/// request that no node could ever hold is a good one elsewhere.
fn is_bad_input(code: &str) -> bool {
    code.starts_with("bad_")
        || matches!(
            code,
            "nothing_asked"
                | "broken_gpu"
                | "gpu_filter_without_gpu"
                | "too_large"
                | "too_many"
                | "window_past"
                | "window_too_short"
                | "beyond_horizon"
                | "rising_value"
                | "not_with_bid"
                | "no_array"
        )
}

/// An error as people read it.
pub(crate) fn told(error: &anyhow::Error) -> String {
    told_at(error, &clock::now())
}

fn told_at(error: &anyhow::Error, now: &Zoned) -> String {
    let words = format!("{error:#}");
    // Only a server writes times of another zone.
    match of_client(error) {
        Some(ClientError::Refused(_)) => escaped(&stamps::local(&words, now)),
        _ => escaped(&words),
    }
}

/// A text that a terminal shows and does not obey: an error repeats what was given. Lines stay
/// lines, since errors show what they are about in some.
fn escaped(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => plain.push(letter),
            letter if letter.is_control() => plain.extend(letter.escape_default()),
            letter => plain.push(letter),
        }
    }
    plain
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

    fn code_of_problem(status: u16, problem: &str) -> Option<u8> {
        code(ClientError::Refused(Box::new(Problem::new(status, problem, "No."))))
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
        let away = || ClientError::Unreachable { url: String::new(), why: String::new() };
        assert_eq!(code(away()), Some(NO_SERVER));
        assert_eq!(code(TransferError::Client(away())), Some(NO_SERVER), "with files on their way");
    }

    #[test]
    fn what_a_request_says_wrongly_is_bad_input_and_what_there_is_not_is_a_refusal() {
        use era_core::refusal::Refusal;
        use era_core::units::{JobId, Span, Time};
        let of = |code: &str| code_of_problem(422, code);
        for refusal in [
            Refusal::BadDuration { given: Span(0), most: Span(1) },
            Refusal::NothingAsked,
            Refusal::BrokenGpu { given: 1500 },
            Refusal::GpuFilterWithoutGpu,
            Refusal::TooLarge,
            Refusal::TooMany { what: "requests".into(), given: 9, most: 8 },
            Refusal::BadWindow { earliest: Time(1), deadline: Time(0) },
            Refusal::WindowPast { deadline: Time(0), now: Time(1) },
            Refusal::WindowTooShort { window: Span(1), duration: Span(2) },
            Refusal::BeyondHorizon { earliest: Time(2), limit: Time(1) },
            Refusal::RisingValue,
            Refusal::NotWithBid { what: "array".into(), hint: "leave it out".into() },
            Refusal::NoArray { job: JobId(1) },
        ] {
            assert_eq!(of(&refusal.code()), Some(BAD_INPUT), "{refusal}");
        }
        assert_eq!(of("bad_field"), Some(BAD_INPUT));
        for refusal in [
            Refusal::NeverFits { asked: String::new(), best: String::new() },
            Refusal::FailedBefore { job: JobId(1) },
            Refusal::UnknownBefore { job: JobId(1) },
            Refusal::KeyReused,
        ] {
            assert_eq!(of(&refusal.code()), Some(REFUSED), "{refusal}");
        }
        assert_eq!(of("files_missing"), Some(REFUSED));
        assert_eq!(
            code_of_problem(409, "too_many"),
            Some(REFUSED),
            "another status, another matter"
        );
    }

    #[test]
    fn a_refusal_is_told_in_the_readers_zone_and_what_was_typed_is_not() {
        let now = crate::cli::look::plain().now;
        let detail = "the deadline 2020-01-01T00:00:00Z has passed (it is 2026-11-15T13:30:00Z)";
        let problem = Problem::new(422, "window_past", detail).about("window");
        let refused = anyhow::Error::from(ClientError::Refused(Box::new(problem)));
        let told = told_at(&refused.context("the bid"), &now);
        let end = "window: the deadline 2020-01-01 01:00 has passed (it is today 14:30)";
        assert!(told.starts_with("the bid: ") && told.ends_with(end), "{told}");
        let typed = anyhow::Error::from(BadUsage("2020-01-01T00:00:00Z is over".to_owned()));
        assert_eq!(told_at(&typed, &now), "2020-01-01T00:00:00Z is over");
    }

    #[test]
    fn a_terminal_does_not_obey_what_an_error_repeats() {
        let bad = anyhow::anyhow!("`a\x1b[31mb\r\u{9b}c` is not a name:\n\tuse a-z, für 猫");
        let shown = "`a\\u{1b}[31mb\\r\\u{9b}c` is not a name:\n\tuse a-z, für 猫";
        assert_eq!(told(&bad), shown);
        let mut problem = Problem::new(500, "internal", "No.");
        problem.request_id = Some("\x1b]0;x\x07".to_owned());
        let verdict = verdict(&ClientError::Refused(Box::new(problem)).into()).unwrap();
        assert!(verdict.hints[0].ends_with(r"id: \u{1b}]0;x\u{7}"), "{:?}", verdict.hints);
    }

    #[test]
    fn a_refused_bid_comes_with_its_counter_offers() {
        let mut problem = Problem::new(422, "value_too_low", "The price is 12.00.");
        let offers = era_api::quote::CounterOffersView {
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
