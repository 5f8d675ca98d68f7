//! The private registry that images go to. Its password is read from a file, handed to the engine
//! with each call that needs it, and taken out of whatever is shown: no error, log or output line
//! repeats it.

use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bollard::auth::DockerCredentials;

use super::address::EngineAddress;
use super::failure::DockerError;

/// Where images go that are built here, and how one is let in.
#[derive(Clone, Default)]
pub struct Registry {
    /// Host, port, and a path below, if it was said.
    place: Option<String>,
    credentials: Option<(String, String)>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Registry {
    /// The registry that an engine's address names.
    pub(super) fn of(address: &EngineAddress) -> Result<Registry, DockerError> {
        let credentials = match &address.registry_auth {
            Some(file) => Some(read_credentials(file)?),
            None => None,
        };
        Ok(Registry { place: address.registry.clone(), credentials })
    }

    /// Where images go.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// What an image is called once it is in the registry.
    pub fn reference(&self, name: &str) -> Result<String, DockerError> {
        let place = self.place.as_ref().ok_or(DockerError::NoRegistry)?;
        Ok(format!("{place}/{name}"))
    }

    pub(super) fn host(&self) -> Option<&str> {
        self.place.as_deref().and_then(|place| place.split('/').next())
    }

    /// What lets an engine have this image, if it is one of this registry.
    pub(super) fn credentials_for(&self, image: &str) -> Option<DockerCredentials> {
        let host = self.host()?;
        let ours = image.split('/').next() == Some(host);
        let (user, password) = self.credentials.as_ref().filter(|_| ours)?;
        Some(DockerCredentials {
            username: Some(user.clone()),
            password: Some(password.clone()),
            serveraddress: Some(host.to_owned()),
            ..DockerCredentials::default()
        })
    }

    /// A text without what lets one in.
    pub(super) fn redact(&self, text: &str) -> String {
        let Some((user, password)) = &self.credentials else { return text.to_owned() };
        let pair = BASE64_STANDARD.encode(format!("{user}:{password}"));
        text.replace(password.as_str(), "***").replace(&pair, "***")
    }
}

fn read_credentials(file: &Path) -> Result<(String, String), DockerError> {
    use std::os::unix::fs::PermissionsExt as _;
    let bad = |problem: &str| DockerError::Credentials {
        file: file.display().to_string(),
        problem: problem.to_owned(),
    };
    let about = std::fs::metadata(file).map_err(|error| bad(&error.to_string()))?;
    if about.permissions().mode() & 0o077 != 0 {
        return Err(bad("others can read it: `chmod 600` it"));
    }
    let text = std::fs::read_to_string(file).map_err(|error| bad(&error.to_string()))?;
    match text.trim().split_once(':') {
        Some((user, password)) if !user.is_empty() && !password.is_empty() => {
            Ok((user.to_owned(), password.to_owned()))
        }
        _ => Err(bad("it must hold one line, `user:password`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn registry(text: &str, mode: u32) -> Result<Registry, DockerError> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("auth");
        std::fs::write(&file, text).expect("write");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("chmod");
        let text = format!("docker:///s?registry=r:5000/era&registry-auth={}", file.display());
        Registry::of(&EngineAddress::parse(&text).expect("an address"))
    }

    #[test]
    fn credentials_go_to_their_registry_only() {
        let registry = registry("ada:s3cret\n", 0o600).expect("a registry");
        let for_ours = registry.credentials_for("r:5000/era/x:1").expect("ours");
        assert_eq!(for_ours.password.as_deref(), Some("s3cret"));
        assert!(registry.credentials_for("busybox").is_none());
        assert!(registry.credentials_for("r:5000.evil/x").is_none());
    }

    #[test]
    fn credentials_are_shown_nowhere() {
        let registry = registry("ada:s3cret", 0o600).expect("a registry");
        assert!(!format!("{registry:?}").contains("s3cret"));
        let answer = format!("denied s3cret and {}", BASE64_STANDARD.encode("ada:s3cret"));
        assert_eq!(registry.redact(&answer), "denied *** and ***");
    }

    #[test]
    fn a_file_that_others_can_read_or_that_makes_no_sense_is_refused_unquoted() {
        for (text, mode, says) in
            [("a:s3cret", 0o644, "chmod 600"), ("s3cret", 0o600, "user:password")]
        {
            let problem = registry(text, mode).expect_err(text).to_string();
            assert!(problem.contains(says) && !problem.contains("s3cret"), "{problem}");
        }
    }
}
