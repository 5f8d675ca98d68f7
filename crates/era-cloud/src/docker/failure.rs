//! What an engine answers when it does not do as it was told, and what follows from it.
//!
//! Sentences say which engine, what it answered and what to do. They go to users' logs, so nothing
//! that authenticates is ever part of them.

use bollard::errors::Error as ApiError;

/// Why an engine could not be used.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// It cannot be reached.
    #[error(
        "the engine at {engine} cannot be reached: {problem}: is it running, and is the address right?"
    )]
    Unreachable {
        /// Which engine.
        engine: String,
        /// What happened.
        problem: String,
    },
    /// It is too old.
    #[error(
        "the engine at {engine} speaks version {has} of its API, and {needs} is needed: install Docker 20.10 or later"
    )]
    TooOld {
        /// Which engine.
        engine: String,
        /// What it speaks.
        has: String,
        /// What is needed.
        needs: &'static str,
    },
    /// It is in a Swarm and cannot give orders there.
    #[error("the engine at {engine} is a worker of a Swarm: give the address of a manager")]
    Worker {
        /// Which engine.
        engine: String,
    },
    /// It refused.
    #[error("the engine refused to {what}: {answer}")]
    Refused {
        /// What was asked.
        what: String,
        /// What it answered.
        answer: String,
        /// The status of its answer.
        status: u16,
    },
    /// What was asked for is not there.
    #[error("the engine knows no {what}: {answer}")]
    Missing {
        /// What.
        what: String,
        /// What it answered.
        answer: String,
    },
    /// An image is not there.
    #[error(
        "image `{image}` could not be had: {answer}: check its name, and the registry's password"
    )]
    NoImage {
        /// Which.
        image: String,
        /// What the engine answered.
        answer: String,
    },
    /// An image could not be built.
    #[error("the Dockerfile failed: {answer}\n{last}")]
    Build {
        /// What the engine answered.
        answer: String,
        /// The last lines of output.
        last: String,
    },
    /// Where images go is not said.
    #[error(
        "an image that is built must be pushed to a registry, so that every node finds it: start the server with `registry=HOST:PORT` in `--executor`, or in `--images` of `era app`"
    )]
    NoRegistry,
    /// The file with credentials is not as it should be.
    #[error("{file}: {problem}")]
    Credentials {
        /// Which file.
        file: String,
        /// What is wrong, without what is in it.
        problem: String,
    },
    /// Something on this machine failed.
    #[error("could not {what}: {source}")]
    Io {
        /// What was to be done.
        what: String,
        /// Why it could not.
        source: std::io::Error,
    },
}

impl DockerError {
    /// What became of a call to the engine.
    pub(super) fn of(engine: &str, what: &str, error: ApiError) -> DockerError {
        let (engine, what) = (engine.to_owned(), what.to_owned());
        match error {
            ApiError::DockerResponseServerError { status_code: 404, message } => {
                DockerError::Missing { what, answer: sentence(&message) }
            }
            ApiError::DockerResponseServerError { status_code, message } => {
                DockerError::Refused { what, answer: sentence(&message), status: status_code }
            }
            ApiError::DockerStreamError { error } => {
                DockerError::Refused { what, answer: sentence(&error), status: 500 }
            }
            other => DockerError::Unreachable { engine, problem: chain(&other) },
        }
    }

    /// Whether the same call may do better later.
    pub fn is_passing(&self) -> bool {
        matches!(self, DockerError::Unreachable { .. })
            || matches!(self, DockerError::Refused { status: 503, .. })
            || matches!(self, DockerError::Refused { answer, .. } if answer.contains("no leader"))
    }

    /// Whether it says that something of that name is there already.
    pub(super) fn is_already_there(&self) -> bool {
        match self {
            DockerError::Refused { status: 409, .. } => true,
            DockerError::Refused { answer, .. } => {
                ["already exists", "already in use", "conflicts with an existing object"]
                    .iter()
                    .any(|words| answer.contains(words))
            }
            _ => false,
        }
    }

    /// Whether it says that something is not there.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, DockerError::Missing { .. })
    }
}

/// Most of an engine's answer that is repeated.
const ANSWER_MAX: usize = 600;

/// An engine's answer on one line.
pub(super) fn sentence(answer: &str) -> String {
    let line = answer.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(ANSWER_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// An error with all that caused it, each said once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = next.source();
    }
    sentence(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status_code: u16, message: &str) -> DockerError {
        let error = ApiError::DockerResponseServerError { status_code, message: message.into() };
        DockerError::of("docker:///s", "make a thing", error)
    }

    #[test]
    fn a_second_start_is_told_from_a_failure() {
        assert!(answered(409, "name conflicts with an existing object").is_already_there());
        assert!(answered(500, "network with name x already exists").is_already_there());
        assert!(
            answered(500, "rpc error: name conflicts with an existing object").is_already_there()
        );
        assert!(!answered(500, "no space left on device").is_already_there());
        assert!(answered(404, "no such service").is_missing());
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        assert!(answered(503, "x").is_passing());
        assert!(!answered(400, "invalid mount").is_passing());
        assert!(!answered(507, "no space left on device").is_passing());
    }

    #[test]
    fn an_answer_is_one_line_and_not_endless() {
        let said = answered(500, &format!("a\n b{}", "c".repeat(9000))).to_string();
        assert!(said.contains("a bc") && said.len() < 700, "{}", said.len());
    }
}
