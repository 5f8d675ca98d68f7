//! Reaching a server: is it there, does it let us in, and is it new enough.
//!
//! It is asked once before any pool is made, since a pool would try again in silence for as long
//! as it may; so whoever starts is told at once which service it was, what it answered and what to
//! do about it.

use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::StoreError;
use super::{Dialect, Durability, Place};

/// How long a server may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A server that was reached.
#[derive(Clone)]
pub(crate) struct Service {
    place: Place,
    version: String,
}

impl Service {
    /// Asks the server of a place. `None` for a folder, which has none.
    pub(crate) async fn reach(place: &Place) -> Result<Option<Service>, StoreError> {
        let Some(url) = place.url() else { return Ok(None) };
        sqlx::any::install_default_drivers();
        let refused = |answer: String, advice: &'static str, may_pass| StoreError::Service {
            service: format!("{} at {place}", place.dialect()),
            answer,
            advice,
            may_pass,
        };
        let silent =
            || refused("nothing".to_owned(), "see whether it is up and can be reached", true);
        let told = |error: &sqlx::Error| refused(answer(error), advice(error), may_pass(error));
        let options: AnyConnectOptions = url.parse().map_err(|e| told(&e))?;
        let connecting = tokio::time::timeout(ANSWER_MAX, options.connect());
        let mut connection: AnyConnection =
            connecting.await.map_err(|_| silent())?.map_err(|e| told(&e))?;
        let version = tokio::time::timeout(ANSWER_MAX, version(&mut connection, place.dialect()));
        let version = version.await.map_err(|_| silent())?.map_err(|e| told(&e))?;
        if place.dialect() == Dialect::MySql {
            warn_if_not_durable(&mut connection, place).await.map_err(|e| told(&e))?;
        }
        // It was only asked something.
        let _ = connection.close().await;
        if too_old(place.dialect(), &version) {
            let advice = "upgrade it: PostgreSQL 12, MariaDB 10.5 or MySQL 8.0.19 is the oldest \
                          that is used";
            return Err(refused(format!("that it is version {version}"), advice, false));
        }
        Ok(Some(Service { place: place.clone(), version }))
    }

    pub(super) fn url(&self) -> &str {
        self.place.url().unwrap_or_default()
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.place.dialect()
    }

    /// Whether it is MariaDB, which has collations of its own.
    pub(crate) fn is_mariadb(&self) -> bool {
        self.version.contains("MariaDB")
    }
}

async fn version(connection: &mut AnyConnection, dialect: Dialect) -> Result<String, sqlx::Error> {
    let sql = match dialect {
        Dialect::Postgres => "SELECT current_setting('server_version')",
        _ => "SELECT CAST(VERSION() AS CHAR)",
    };
    sqlx::query_scalar(sql).fetch_one(connection).await
}

/// A server may be told to answer before a commit is on the disk; a client cannot change that.
async fn warn_if_not_durable(
    connection: &mut AnyConnection,
    place: &Place,
) -> Result<(), sqlx::Error> {
    let sql = "SELECT CAST(@@GLOBAL.innodb_flush_log_at_trx_commit AS SIGNED)";
    let flush: i64 = sqlx::query_scalar(sql).fetch_one(connection).await?;
    if flush != 1 {
        tracing::warn!(
            %place,
            "innodb_flush_log_at_trx_commit is {flush}: a crash of the database may lose what was \
             acknowledged; set it to 1"
        );
    }
    Ok(())
}

/// What a connection is told before it is used. A process that is paused within a transaction loses
/// it before its lease has run out, so that whoever takes over waits for no lock of it; MySQL knows
/// no such limit, and there the next leader waits until the paused process goes on or is gone.
pub(super) fn set_up(dialect: Dialect, durability: Durability) -> &'static [&'static str] {
    match (dialect, durability) {
        (Dialect::Sqlite, Durability::Full) => &[
            "PRAGMA busy_timeout = 10000",
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            // On macOS what is synced is else only on its way to the disk; others take no notice.
            "PRAGMA fullfsync = ON",
            "PRAGMA foreign_keys = ON",
            "PRAGMA temp_store = MEMORY",
        ],
        (Dialect::Sqlite, Durability::Rebuildable) => &[
            "PRAGMA busy_timeout = 10000",
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = NORMAL",
            "PRAGMA foreign_keys = ON",
            "PRAGMA temp_store = MEMORY",
        ],
        // Whatever the server's own mode is: what does not fit is refused, and never cut.
        (Dialect::MySql, _) => &[
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,\
             NO_ENGINE_SUBSTITUTION,PIPES_AS_CONCAT' \
             /*M!100300 , SESSION idle_transaction_timeout = 2 */",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        ],
        (Dialect::Postgres, Durability::Full) => &[
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET SESSION idle_in_transaction_session_timeout = 2000",
            "SELECT set_config('synchronous_commit', 'on', false) \
             WHERE current_setting('synchronous_commit') = 'off'",
        ],
        (Dialect::Postgres, Durability::Rebuildable) => &[
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET SESSION idle_in_transaction_session_timeout = 2000",
            "SET synchronous_commit = off",
        ],
    }
}

fn answer(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(told) => told.message().to_owned(),
        other => other.to_string(),
    }
}

fn advice(error: &sqlx::Error) -> &'static str {
    let code = match error {
        sqlx::Error::Io(_) => return "see whether it is up, and whether host and port are right",
        sqlx::Error::Tls(_) => {
            return "see whether its certificate is right, or name its authority in the URL \
                    (sslrootcert, ssl-ca)";
        }
        sqlx::Error::Configuration(_) => return "correct the URL",
        sqlx::Error::Database(told) => told.code().unwrap_or_default(),
        _ => return "see its log",
    };
    match code.as_ref() {
        // The first is PostgreSQL's, the others are MySQL's: a class of SQL's own states.
        "28P01" | "28000" => "see whether user and password are right, and let that user in",
        "3D000" | "42000" => "make that database, and give this user all rights on it",
        "57P03" => "it is starting or stopping: try again in a moment",
        "53300" | "08004" => "it has too many connections: allow it more",
        _ => "see its log",
    }
}

/// Whether the same server may answer otherwise in a while: it is not up or not to be reached yet,
/// is starting or stopping, or has too many connections. What is wrong with the address or with
/// whoever asks stays wrong.
fn may_pass(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(told) => {
            let code = told.code().unwrap_or_default();
            ["08", "53", "57P"].iter().any(|class| code.starts_with(class))
        }
        _ => false,
    }
}

/// Compares the first numbers of a version, such as `15.7 (Debian)` or `10.11.6-MariaDB`.
fn too_old(dialect: Dialect, version: &str) -> bool {
    let numbers: Vec<u32> = version
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|digits| digits.parse().ok())
        .collect();
    let oldest: &[u32] = match dialect {
        Dialect::Sqlite => &[],
        Dialect::Postgres => &[12],
        Dialect::MySql if version.contains("MariaDB") => &[10, 5],
        Dialect::MySql => &[8, 0, 19],
    };
    numbers.as_slice() < oldest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (dialect, version, old) in [
            (Dialect::Postgres, "15.18 (Debian 15.18-0+deb12u1)", false),
            (Dialect::Postgres, "9.6.24", true),
            (Dialect::Postgres, "17beta1", false),
            (Dialect::MySql, "10.11.19-MariaDB-0+deb12u1", false),
            (Dialect::MySql, "10.4.2-MariaDB", true),
            (Dialect::MySql, "8.0.36", false),
            (Dialect::MySql, "8.0.11", true),
            (Dialect::MySql, "5.7.44-log", true),
        ] {
            assert_eq!(too_old(dialect, version), old, "{dialect} {version}");
        }
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_named_with_what_to_do_and_without_its_password() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        for scheme in ["mysql", "postgres"] {
            let place: Place =
                format!("{scheme}://era:s3cret@127.0.0.1:{port}/era").parse().unwrap();
            let error = Service::reach(&place).await.err().unwrap();
            assert!(error.may_pass(), "it may come up yet: {error}");
            let error = error.to_string();
            assert!(error.contains(&format!("{scheme}://era@127.0.0.1:{port}/era")), "{error}");
            assert!(error.contains("see whether it is up"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
