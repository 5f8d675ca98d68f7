//! Where an engine is, as `--executor docker://…` says it.
//!
//! ```text
//! docker://                              the engine of this machine, at its usual socket
//! docker:///run/docker.sock              a socket
//! docker://127.0.0.1:2375                TCP on this machine
//! docker://manager.example:2376?tls=DIR  TCP with ca.pem, cert.pem and key.pem of a folder
//! ```
//! Another machine is reached without TLS only where `insecure-plain=yes` says so: secrets and
//! passwords of registries go that way, and whoever can speak to an engine is root there.
//! Behind the question mark, joined by `&`: `image=REFERENCE` for jobs that name none,
//! `volumes=bind` (the data folder is at the same path on every node: the default),
//! `volumes=nfs:SERVER:/EXPORT` (that export is the data folder) or `volumes=local:NAME` (that
//! volume of the engine is it, for a server in a container), `registry=HOST:PORT/PREFIX` where images
//! that are built go, and `registry-auth=FILE`, which holds `user:password`.

use std::path::PathBuf;

/// Where the engine of a machine usually listens.
const USUAL_SOCKET: &str = "/var/run/docker.sock";
/// Longest address.
const ADDRESS_MAX: usize = 4096;

/// An engine's address with what is said beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineAddress {
    /// How it is reached.
    pub endpoint: Endpoint,
    /// The image of jobs that name none.
    pub image: Option<String>,
    /// How nodes see the data folder.
    pub volumes: Volumes,
    /// Where images go that are built here.
    pub registry: Option<String>,
    /// The file with the registry's `user:password`.
    pub registry_auth: Option<PathBuf>,
}

/// How an engine is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A socket of this machine.
    Unix(PathBuf),
    /// Another machine, or this one, over TCP.
    Tcp {
        /// Host and port.
        host: String,
        /// The folder with certificates, where it is encrypted.
        tls: Option<PathBuf>,
    },
}

/// How the nodes of an engine see the data folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Volumes {
    /// At the same path as the server: the same machine, or a file system that is mounted on all.
    #[default]
    Bind,
    /// As an export of an NFS server, which the engine mounts for each task.
    Nfs {
        /// The NFS server.
        server: String,
        /// Its export that is the data folder.
        export: String,
    },
    /// As a volume of the one engine, which the server's own container mounts too.
    Local {
        /// What it is called.
        name: String,
    },
}

/// What is wrong with an address.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{address}` is no engine: {problem}")]
pub struct BadEngineAddress {
    address: String,
    problem: String,
}

impl EngineAddress {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<EngineAddress, BadEngineAddress> {
        read(text).map_err(|problem| BadEngineAddress { address: shown(text), problem })
    }
}

/// An address as it may be repeated: without what stands before an `@`, and not all of a long one.
fn shown(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let text = match (rest.rsplit_once('@'), scheme) {
        (None, _) => text.to_owned(),
        (Some((_, place)), "") => format!("***@{place}"),
        (Some((_, place)), scheme) => format!("{scheme}://***@{place}"),
    };
    text.chars().take(200).collect()
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(f, "docker://{}", path.display()),
            Endpoint::Tcp { host, .. } => write!(f, "docker://{host}"),
        }
    }
}

fn read(text: &str) -> Result<EngineAddress, String> {
    if text.len() > ADDRESS_MAX {
        return Err(format!("it is longer than {ADDRESS_MAX} characters"));
    }
    let rest = text.strip_prefix("docker://").ok_or("it must begin with `docker://`")?;
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    if place.contains('@') {
        return Err("an engine takes no user or password: use `tls=DIR`".into());
    }
    let mut address = EngineAddress {
        endpoint: endpoint(place)?,
        image: None,
        volumes: Volumes::Bind,
        registry: None,
        registry_auth: None,
    };
    let mut plain = false;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if value.is_empty() {
            return Err(format!("`{key}` needs a value: `{key}=…`"));
        }
        match key {
            "image" => address.image = Some(value.to_owned()),
            "volumes" => address.volumes = volumes(value)?,
            "registry" => address.registry = Some(registry(value)?),
            "registry-auth" => address.registry_auth = Some(value.into()),
            "tls" => match &mut address.endpoint {
                Endpoint::Tcp { tls, .. } => *tls = Some(value.into()),
                Endpoint::Unix(_) => {
                    return Err("a socket is not encrypted: leave `tls` out".into());
                }
            },
            "insecure-plain" if value == "yes" => plain = true,
            "insecure-plain" => return Err("`insecure-plain` is `yes` or left out".into()),
            other => {
                return Err(format!(
                    "`{other}` is not known: image, volumes, registry, registry-auth, tls and \
                     insecure-plain are"
                ));
            }
        }
    }
    match &address.endpoint {
        Endpoint::Tcp { host, tls: None } if !plain && !is_here(host) => Err(
            "secrets and passwords would go to another machine in plain text: give `tls=DIR`, or \
             `insecure-plain=yes` if nobody else is on the line"
                .into(),
        ),
        _ => Ok(address),
    }
}

fn endpoint(place: &str) -> Result<Endpoint, String> {
    if place.is_empty() {
        return Ok(Endpoint::Unix(USUAL_SOCKET.into()));
    }
    if place.starts_with('/') {
        return Ok(Endpoint::Unix(place.into()));
    }
    match place.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) =>
        {
            Ok(Endpoint::Tcp { host: place.to_owned(), tls: None })
        }
        _ => Err("give a socket (`docker:///run/docker.sock`) or HOST:PORT".into()),
    }
}

/// Whether HOST:PORT is on this machine.
fn is_here(place: &str) -> bool {
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let ip: Result<std::net::IpAddr, _> = bare.parse();
    host == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

fn volumes(value: &str) -> Result<Volumes, String> {
    let bad = || "`volumes` is `bind`, `nfs:SERVER:/EXPORT` or `local:NAME`".to_owned();
    if value == "bind" {
        return Ok(Volumes::Bind);
    }
    if value == "local" {
        return Err("a local volume has a name: `volumes=local:NAME`, and is mounted as the data \
                    folder of the server's own container"
            .into());
    }
    if let Some(name) = value.strip_prefix("local:") {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(fits) {
            return Err("a volume's name has letters, digits and `_`, `.` or `-`".into());
        }
        return Ok(Volumes::Local { name: name.to_owned() });
    }
    let (server, export) =
        value.strip_prefix("nfs:").and_then(|rest| rest.split_once(":/")).ok_or_else(bad)?;
    if server.is_empty() || server.contains([',', '/']) || export.contains(',') {
        return Err(bad());
    }
    Ok(Volumes::Nfs { server: server.to_owned(), export: format!("/{}", export.trim_matches('/')) })
}

/// A registry, with a path below it or none.
fn registry(value: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-:/".contains(c);
    let value = value.trim_end_matches('/');
    if value.is_empty() || !value.chars().all(fits) || value.contains("//") {
        return Err("`registry` is HOST:PORT, or HOST:PORT/PATH in small letters".into());
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        EngineAddress::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn a_socket_a_host_and_the_usual_place_are_understood() {
        let endpoint = |text| EngineAddress::parse(text).expect(text).endpoint;
        assert_eq!(endpoint("docker://"), Endpoint::Unix(USUAL_SOCKET.into()));
        assert_eq!(endpoint("docker:///tmp/x"), Endpoint::Unix("/tmp/x".into()));
        let tcp = |tls| Endpoint::Tcp { host: "m:2375".into(), tls };
        assert_eq!(endpoint("docker://m:2375?insecure-plain=yes"), tcp(None));
        assert_eq!(endpoint("docker://m:2375?tls=/certs"), tcp(Some("/certs".into())));
    }

    #[test]
    fn another_machine_needs_tls_or_a_word_that_names_the_risk() {
        for text in ["docker://m:2375", "docker://10.0.0.1:2375?image=a", "docker://127.evil:1"] {
            let said = problem(text);
            assert!(said.contains("`tls=DIR`") && said.contains("`insecure-plain=yes`"), "{said}");
        }
        for text in [
            "docker://127.0.0.1:2375",
            "docker://[::1]:2375",
            "docker://localhost:2375",
            "docker://m:2376?tls=/certs",
            "docker://m:2375?insecure-plain=yes",
        ] {
            assert!(EngineAddress::parse(text).is_ok(), "{text}");
        }
        assert!(problem("docker://m:2375?insecure-plain=no").contains("`yes` or left out"));
    }

    #[test]
    fn what_stands_behind_the_question_mark_is_understood() {
        let text = "docker:///s?image=a/b:1&volumes=nfs:10.0.0.1:/srv/era/&registry=r:5000/era&\
                    registry-auth=/etc/era/registry";
        let address = EngineAddress::parse(text).expect(text);
        assert_eq!(address.image.as_deref(), Some("a/b:1"));
        let nfs = Volumes::Nfs { server: "10.0.0.1".into(), export: "/srv/era".into() };
        assert_eq!(address.volumes, nfs);
        assert_eq!(address.registry.as_deref(), Some("r:5000/era"));
        assert_eq!(address.registry_auth, Some("/etc/era/registry".into()));
        let address = EngineAddress::parse("docker://?volumes=local:era-files").expect("a volume");
        assert_eq!(address.volumes, Volumes::Local { name: "era-files".into() });
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        for (text, says) in [
            ("http://x", "must begin with `docker://`"),
            ("docker://host", "HOST:PORT"),
            ("docker://host:0", "HOST:PORT"),
            ("docker://user:pw@host:1", "takes no user or password"),
            ("docker:///s?tls=/c", "leave `tls` out"),
            ("docker:///s?image=", "needs a value"),
            ("docker:///s?images=x", "`images` is not known"),
            ("docker:///s?volumes=nfs", "nfs:SERVER:/EXPORT"),
            ("docker:///s?volumes=nfs:/srv", "nfs:SERVER:/EXPORT"),
            ("docker:///s?volumes=nfs:a:/srv,rw", "nfs:SERVER:/EXPORT"),
            ("docker:///s?volumes=local", "`volumes=local:NAME`"),
            ("docker:///s?volumes=local:", "a volume's name"),
            ("docker:///s?volumes=local:../etc", "a volume's name"),
            ("docker:///s?volumes=disk", "`bind`, `nfs:SERVER:/EXPORT` or `local:NAME`"),
            ("docker:///s?volumes=nfs:a,rw:/x", "nfs:SERVER:/EXPORT"),
            ("docker:///s?registry=http://r", "HOST:PORT"),
        ] {
            assert!(problem(text).contains(says), "{text}: {}", problem(text));
        }
        for text in ["docker://ada:s3cret@host:1", "docker:///s?registry=ada:s3cret@r:5000"] {
            assert!(!problem(text).contains("s3cret"), "{}", problem(text));
        }
        assert!(problem(&format!("docker://{}", "x".repeat(5000))).len() < 400);
    }
}
