//! Debian's registry for tests: in a daemon's namespace, behind a user and a password.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tokio::time::Instant;

use super::bed::{Daemon, PATIENCE};

/// Who is let in.
pub(crate) const LOGIN: &str = "ada:s3cret-word";
/// The same, as `htpasswd -nbB` writes it.
const HASHED: &str = "ada:$2y$05$LLGsHk.0W7ZvqMkYweYJdOpUhjb95G3YbA.C4XY4MHZjZvzIXCNk2\n";
const LISTENS: &str = "127.0.0.1:5000";

/// A registry at work. It ends with the value.
pub(crate) struct Registry(Child);

impl Registry {
    /// Starts one, and waits until it listens.
    pub(crate) fn start(daemon: &Daemon) -> Result<Registry, String> {
        let config = daemon.folder.join("registry.yml");
        let password = daemon.folder.join("htpasswd");
        let text = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\n\
             http:\n  addr: {LISTENS}\nauth:\n  htpasswd:\n    realm: era\n    path: {}\n",
            daemon.folder.join("registry").display(),
            password.display()
        );
        std::fs::write(&password, HASHED).map_err(|error| error.to_string())?;
        std::fs::write(&config, text).map_err(|error| error.to_string())?;
        let child = Command::new("nsenter")
            .arg(format!("--net=/run/netns/{}", daemon.namespace.0))
            .args(["docker-registry", "serve"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let registry = Registry(child);
        let (begun, knock) = (Instant::now(), format!("</dev/tcp/{}", LISTENS.replace(':', "/")));
        while let Err(why) = daemon.namespace.run(&["bash", "-c", &knock]) {
            if begun.elapsed() > PATIENCE {
                return Err(format!("docker-registry does not listen: {why}"));
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        Ok(registry)
    }

    /// Where images of a site go.
    pub(crate) fn place(&self) -> &'static str {
        "127.0.0.1:5000/era"
    }

    /// The daemon's address with this registry, whose password is in a file.
    pub(crate) fn address(&self, daemon: &Daemon, auth: &Path) -> String {
        let (place, auth) = (self.place(), auth.display());
        format!("{}&registry={place}&registry-auth={auth}", daemon.address())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes what nobody else may read.
pub(crate) fn write_private(file: &Path, text: &str) {
    std::fs::write(file, text).expect("write");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).expect("chmod");
}
