//! Where a database is: a folder for SQLite, or the URL of a server.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use sqlx::any::AnyConnectOptions;

use super::Dialect;

/// Where a database is. Its password is never written out.
#[derive(Clone, PartialEq, Eq)]
pub struct Place(Inner);

#[derive(Clone, PartialEq, Eq)]
enum Inner {
    Folder(PathBuf),
    Server { dialect: Dialect, url: String, shown: String },
}

/// What is no place of a database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no database: {problem}: give sqlite:FOLDER, mysql://USER:PASSWORD@HOST:PORT/NAME or \
     postgres://USER:PASSWORD@HOST:PORT/NAME"
)]
pub struct BadPlace {
    problem: String,
}

impl Place {
    /// SQLite files in this folder.
    pub fn folder(folder: impl Into<PathBuf>) -> Place {
        Place(Inner::Folder(folder.into()))
    }

    /// Which database it is.
    pub fn dialect(&self) -> Dialect {
        match &self.0 {
            Inner::Folder(_) => Dialect::Sqlite,
            Inner::Server { dialect, .. } => *dialect,
        }
    }

    /// The folder of SQLite's files.
    pub fn as_folder(&self) -> Option<&PathBuf> {
        match &self.0 {
            Inner::Folder(folder) => Some(folder),
            Inner::Server { .. } => None,
        }
    }

    /// How a server is reached, password and all: not to be shown.
    pub(super) fn url(&self) -> Option<&str> {
        match &self.0 {
            Inner::Folder(_) => None,
            Inner::Server { url, .. } => Some(url),
        }
    }
}

impl FromStr for Place {
    type Err = BadPlace;

    fn from_str(text: &str) -> Result<Place, BadPlace> {
        let bad = |problem: &str| BadPlace { problem: problem.to_owned() };
        let (scheme, rest) = text.split_once(':').ok_or_else(|| bad("it has no `:`"))?;
        let dialect = match scheme {
            "sqlite" => {
                let folder = rest.strip_prefix("//").unwrap_or(rest);
                if folder.is_empty() {
                    return Err(bad("there is no folder"));
                }
                return Ok(Place::folder(folder));
            }
            "mysql" | "mariadb" => Dialect::MySql,
            "postgres" | "postgresql" => Dialect::Postgres,
            other => return Err(bad(&format!("`{other}:` is not known"))),
        };
        // What is wrong with it is told without the text itself, which may have a password in it.
        let parsed: AnyConnectOptions =
            text.parse().map_err(|_| bad("it cannot be read as a URL"))?;
        let url = parsed.database_url;
        let name = url.path().trim_start_matches('/');
        if name.is_empty() || name.contains('/') {
            return Err(bad("it does not end in the name of one database"));
        }
        let host = url.host_str().unwrap_or("localhost");
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let user = if url.username().is_empty() { "" } else { "@" };
        let shown = format!("{scheme}://{}{user}{host}{port}/{name}", url.username());
        Ok(Place(Inner::Server { dialect, url: text.to_owned(), shown }))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Folder(folder) => write!(f, "sqlite:{}", folder.display()),
            Inner::Server { shown, .. } => f.write_str(shown),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_and_shown_without_its_password() {
        for (text, dialect, shown) in [
            ("sqlite:/srv/era", Dialect::Sqlite, "sqlite:/srv/era"),
            ("sqlite:///srv/era", Dialect::Sqlite, "sqlite:/srv/era"),
            ("mysql://era:s3cret@db:3307/era", Dialect::MySql, "mysql://era@db:3307/era"),
            ("mariadb://db/era", Dialect::MySql, "mariadb://db/era"),
            (
                "postgres://era:s3cret@[::1]/era?sslmode=require&password=s3cret",
                Dialect::Postgres,
                "postgres://era@[::1]/era",
            ),
        ] {
            let place: Place = text.parse().unwrap();
            assert_eq!((place.dialect(), place.to_string().as_str()), (dialect, shown));
            assert!(!format!("{place:?}").contains("s3cret"), "{place:?}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused_without_showing_a_password() {
        for (text, why) in [
            ("era", "it has no `:`"),
            ("sqlite:", "there is no folder"),
            ("oracle://x:s3cret@db/era", "`oracle:` is not known"),
            ("mysql://era:s3cret@db:port/era", "it cannot be read as a URL"),
            ("postgres://era:s3cret@db", "it does not end in the name"),
            ("postgres://era:s3cret@db/a/b", "it does not end in the name"),
        ] {
            let error = text.parse::<Place>().unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("s3cret"), "{error}");
            assert!(error.contains("give sqlite:FOLDER, mysql://"), "{error}");
        }
    }
}
