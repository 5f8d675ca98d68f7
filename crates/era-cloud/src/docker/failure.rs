//! What an engine answers when it does not do as it was told, and what follows from it.
//!
//! Sentences say which engine, what it answered and what to do. They go to users' logs, so nothing
//! that authenticates is ever part of them.

use bollard::errors::Error as ApiError;

use super::held::{ENGINE_AWAY, NODE_FULL};

/// Why an engine could not be used.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// It cannot be reached.
    #[error("the engine at {engine} cannot be reached: {problem}: {}", reach_remedy(problem))]
    Unreachable { engine: String, problem: String },
    /// It is too old.
    #[error(
        "the engine at {engine} speaks version {has} of its API, and {needs} is needed: install Docker 20.10 or later"
    )]
    TooOld {
        engine: String,
        /// What it speaks.
        has: String,
        needs: &'static str,
    },
    /// It is in a Swarm and cannot give orders there.
    #[error("the engine at {engine} is a worker of a Swarm: give the address of a manager")]
    Worker { engine: String },
    #[error("the engine at {engine} refused to {what}: {answer}: {}", remedy(what, answer))]
    Refused {
        engine: String,
        /// What was asked.
        what: String,
        answer: String,
        /// The status of its answer.
        status: u16,
    },
    /// What was asked for is not there.
    #[error(
        "the engine at {engine} could not {what}: {answer}: somebody may have removed it there; hand the job in again"
    )]
    Missing {
        engine: String,
        /// What was asked.
        what: String,
        answer: String,
    },
    /// The volume that is to be the data folder is not there.
    #[error(
        "the engine at {engine} keeps no volume `{name}` on its own disk: make one by `docker volume create {name}`, and mount it as the data folder of the server's container"
    )]
    NoVolume {
        engine: String,
        /// What it would be called.
        name: String,
    },
    /// An image is not there.
    #[error(
        "image `{image}` could not be had by the engine at {engine}: {answer}: {}",
        image_remedy(answer)
    )]
    NoImage {
        engine: String,
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
                DockerError::Missing { engine, what, answer: sentence(&message) }
            }
            ApiError::DockerResponseServerError { status_code: status, message } => {
                DockerError::Refused { engine, what, answer: sentence(&message), status }
            }
            ApiError::DockerStreamError { error } => {
                DockerError::Refused { engine, what, answer: sentence(&error), status: 500 }
            }
            other => DockerError::Unreachable { engine, problem: chain(&other) },
        }
    }

    /// What an engine says of an instance that it took and could not start.
    pub(super) fn of_start(engine: &str, image: &str, answer: &str) -> DockerError {
        let (engine, answer) = (engine.to_owned(), sentence(answer));
        let no_image = [
            "no such image",
            "pull access denied",
            "manifest unknown",
            "manifest for",
            "repository does not exist",
        ];
        let said = answer.to_ascii_lowercase();
        if no_image.iter().any(|words| said.contains(words)) || is_away(&answer) {
            return DockerError::NoImage { engine, image: image.to_owned(), answer };
        }
        DockerError::Refused { engine, what: "start the task".into(), answer, status: 500 }
    }

    /// Whether the same call may do better later: the engine, or the registry that it asked, could
    /// not be reached. What is known not to be there will not be there later.
    pub fn is_passing(&self) -> bool {
        match self {
            DockerError::Unreachable { .. } | DockerError::Refused { status: 503, .. } => true,
            DockerError::Refused { answer, .. } => answer.contains("no leader"),
            DockerError::NoImage { answer, .. } => is_away(answer),
            _ => false,
        }
    }

    /// Why a task is lost that waited for this to pass, or could not wait.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            full if full.is_full() => NODE_FULL,
            _ => ENGINE_AWAY,
        }
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

    /// Whether it says that a disk is full.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, DockerError::Refused { answer, .. } | DockerError::NoImage { answer, .. }
            if answer.contains("no space left on device"))
    }

    /// Whether it says that something is not there.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, DockerError::Missing { .. })
    }
}

/// What is added to a node's word that it has no image, where it could have had it.
pub(super) const REGISTRY_HAS_IT: &str = "though its registry has it";

/// Whether an answer says that a registry could not be reached, or not now. A host that does not
/// exist is a name that is wrong.
fn is_away(answer: &str) -> bool {
    let answer = answer.to_ascii_lowercase();
    let away = [
        REGISTRY_HAS_IT,
        "connection refused",
        "connection reset",
        "no route to host",
        "network is unreachable",
        "i/o timeout",
        "handshake timeout",
        "timeout exceeded",
        "deadline exceeded",
        "temporary failure in name resolution",
        "server misbehaving",
        "unexpected eof",
        "bad gateway",
        "service unavailable",
        "gateway timeout",
        "internal server error",
        "too many requests",
        "toomanyrequests",
    ];
    away.iter().any(|words| answer.contains(words))
}

/// What to do about an engine that does not answer.
fn reach_remedy(problem: &str) -> &'static str {
    if problem.to_ascii_lowercase().contains("permission denied") {
        "let the server's user use its socket (group `docker`)"
    } else {
        "is it running, and is the address right?"
    }
}

/// What to do about an engine's refusal, as far as its answer tells.
fn remedy(what: &str, answer: &str) -> &'static str {
    let answer = answer.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| answer.contains(words));
    if says(&["no space left on device", "disk quota exceeded"]) {
        if what.starts_with("push") {
            "make room on the disk of the registry, or of the engine (`docker system prune`)"
        } else {
            "its disk is full: make room on that machine (`docker system df`, `docker system prune`)"
        }
    } else if says(&["unauthorized", "denied", "no basic auth", "authentication required"]) {
        "check who may do so there, and the file of `registry-auth`"
    } else if says(&["http response to https client", "x509"]) {
        "give the registry a certificate that the engine trusts, or list it under \
         `insecure-registries` in the engine's `daemon.json`"
    } else if says(&["address pool"]) {
        "give the engine more networks with `default-address-pools` in its `daemon.json`"
    } else if says(&["could not select device driver", "nvidia"]) {
        "install the NVIDIA container toolkit on that machine, and restart the engine"
    } else if says(&["exec format error"]) {
        "build the image for the machine's own processor"
    } else {
        "see that engine's own log on its machine (`journalctl -u docker`)"
    }
}

/// What to do about an image that an engine does not have.
fn image_remedy(answer: &str) -> &'static str {
    let full = answer.contains("no space left on device");
    if full {
        "the disk of the engine is full: make room there (`docker system prune`)"
    } else if is_away(answer) || answer.contains("no such host") {
        "is the registry running, and is the image's name right?"
    } else {
        "check its name, that it was pushed to a registry which every node reaches, and the \
         registry's password"
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
        let image = |answer: &str| DockerError::NoImage {
            engine: "docker:///s".into(),
            image: "r:5000/torch:2.9".into(),
            answer: answer.into(),
        };
        for away in [
            "Get http://r:5000/v2/: dial tcp 10.0.0.1:5000: connect: connection refused",
            "Get https://r/v2/: net/http: TLS handshake timeout",
            "dial tcp: lookup r: Temporary failure in name resolution",
            "received unexpected HTTP status: 503 Service Unavailable",
        ] {
            assert!(image(away).is_passing(), "{away}");
        }
        for absent in [
            "manifest for r:5000/torch:2.9 not found: manifest unknown",
            "pull access denied for torch, repository does not exist",
            "dial tcp: lookup nowhere.invalid: no such host",
            "No such image: r:5000/torch:2.9",
        ] {
            assert!(!image(absent).is_passing(), "{absent}");
        }
        assert!(image("write /x: no space left on device").is_full());
    }

    #[test]
    fn an_answer_is_one_line_and_not_endless() {
        let said = answered(500, &format!("a\n b{}", "c".repeat(9000))).to_string();
        assert!(said.contains("a bc") && said.len() < 800, "{}", said.len());
    }

    #[test]
    fn every_sentence_says_which_engine_what_it_answered_and_what_to_do() {
        let start = |answer: &str| DockerError::of_start("docker:///s", "torch:2.9", answer);
        for (error, remedy) in [
            (answered(500, "mkdir /x: no space left on device"), "docker system prune"),
            (answered(500, "could not find an available address pool"), "default-address-pools"),
            (answered(403, "denied: requested access"), "registry-auth"),
            (answered(400, "invalid mount"), "journalctl -u docker"),
            (answered(404, "network x not found"), "hand the job in again"),
            (start("No such image: torch:2.9"), "check its name"),
            (start("write /var/lib: no space left on device"), "docker system prune"),
            (start("OCI runtime create failed: exec: \"x\": not found"), "journalctl"),
            (start("network era-x not found"), "journalctl"),
        ] {
            let said = error.to_string();
            assert!(said.contains("docker:///s") && said.contains(remedy), "{said}");
        }
        let image = start("No such image: torch:2.9").to_string();
        assert!(image.starts_with("image `torch:2.9` could not be had"), "{image}");
        let error = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let closed = DockerError::of("docker:///s", "answer", ApiError::IOError { err: error });
        assert!(closed.to_string().contains("group `docker`"), "{closed}");
    }
}
