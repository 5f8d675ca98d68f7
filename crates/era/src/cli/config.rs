//! What is remembered between commands: the address and the tokens of logins, in a file that
//! only its owner can read; and where a server of our own runs on this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// What a login leaves behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The server that commands go to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// Tokens, by address.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) tokens: BTreeMap<String, String>,
}

/// A server that `era up` runs on this machine as this user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LocalServer {
    pub(crate) url: String,
    /// The file that holds a token for whoever may read it.
    pub(crate) token_file: PathBuf,
}

/// The user's own folder for ERA: `ERA_CONFIG`, else the system's place for such things.
pub(crate) fn folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("ERA_CONFIG").or_else(|| {
        let base = set("XDG_CONFIG_HOME")
            .or_else(|| set("APPDATA"))
            .or_else(|| set("HOME").map(|home| home.join(".config")));
        base.map(|base| base.join("era"))
    })
}

fn place(name: &str) -> anyhow::Result<PathBuf> {
    let folder = folder();
    let folder = folder.context("no home folder: set ERA_CONFIG to a folder of your own")?;
    Ok(folder.join(name))
}

impl Config {
    /// What is remembered; nothing where there is no file.
    pub(crate) fn load() -> anyhow::Result<Config> {
        let Some(path) = folder().map(|folder| folder.join("config.yaml")) else {
            return Ok(Config::default());
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
            Err(e) => return Err(e).with_context(|| path.display().to_string()),
        };
        let read = serde_saphyr::from_str(&text);
        read.map_err(|e| anyhow::anyhow!("{}: {}", path.display(), e.without_snippet()))
            .context("the remembered login cannot be read: mend or delete the file")
    }

    pub(crate) fn save(&self) -> anyhow::Result<PathBuf> {
        let path = place("config.yaml")?;
        let text = serde_saphyr::to_string(self).context("the login as YAML")?;
        write_private(&path, text.as_bytes())?;
        Ok(path)
    }
}

/// The token for an address: of a login, or of a server of our own on this machine.
pub(crate) fn token_for(url: &str) -> anyhow::Result<Option<String>> {
    let url = url.trim_end_matches('/');
    if let Some(token) = Config::load()?.tokens.get(url) {
        return Ok(Some(token.clone()));
    }
    let Some(local) = local_server().filter(|local| local.url.trim_end_matches('/') == url) else {
        return Ok(None);
    };
    // A token that is not ours to read is as good as none: logging in still works.
    Ok(std::fs::read_to_string(local.token_file).ok().map(|token| token.trim().to_owned()))
}

/// Where `era up` said that it runs.
pub(crate) fn local_server() -> Option<LocalServer> {
    let text = std::fs::read_to_string(folder()?.join("local.json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// For `era up`: tells this user's commands where it runs and where its token is.
#[cfg(unix)]
pub(crate) fn record_local(url: &str, token_file: &Path) -> anyhow::Result<()> {
    let local = LocalServer { url: url.to_owned(), token_file: token_file.to_owned() };
    write_private(&place("local.json")?, &serde_json::to_vec_pretty(&local)?)
}

/// Writes a file that only its owner can read, whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    use std::io::Write;
    let named = || path.display().to_string();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(named)?;
    }
    let fresh = path.with_extension(format!("new-{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&fresh).with_context(named)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).with_context(named)?;
    std::fs::rename(&fresh, path).with_context(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_reads_back_and_nobody_else_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("era").join("config.yaml");
        let config = Config {
            url: Some("https://gpu.example.org".to_owned()),
            tokens: BTreeMap::from([("https://gpu.example.org".to_owned(), "t: 'x'".to_owned())]),
        };
        write_private(&path, serde_saphyr::to_string(&config).unwrap().as_bytes()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(serde_saphyr::from_str::<Config>(&text).unwrap(), config);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
