//! How each database says what SQL says in common.
//!
//! Statements are written once, as SQLite reads them. PostgreSQL wants its parameters numbered;
//! MySQL and MariaDB have words of their own for "insert or change" and for a whole number. Both
//! are put into a statement's text on its way to the database, so nobody who writes one has to
//! know. What differs beyond words stands here as a method. Decision 0019 says why.

use std::fmt;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

/// Which database is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    /// MySQL or MariaDB.
    MySql,
    Postgres,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Sqlite => "SQLite",
            Dialect::MySql => "MySQL/MariaDB",
            Dialect::Postgres => "PostgreSQL",
        })
    }
}

impl Dialect {
    /// A statement in this database's words.
    pub(super) fn said(self, sql: SqlStr) -> SqlStr {
        match self {
            Dialect::Sqlite => sql,
            // The words of a statement that was safe before, put in another order.
            Dialect::MySql => AssertSqlSafe(for_mysql(sql.as_str())).into_sql_str(),
            Dialect::Postgres => AssertSqlSafe(numbered(sql.as_str())).into_sql_str(),
        }
    }

    /// Milliseconds since the epoch, by the database's own clock.
    pub(crate) fn now_ms(self) -> &'static str {
        match self {
            Dialect::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Dialect::MySql => "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
            Dialect::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }

    /// What makes a row that is read stay as it is until the transaction ends.
    pub(crate) fn for_share(self) -> &'static str {
        match self {
            // It has one writer at a time, so nothing changes while a statement writes.
            Dialect::Sqlite => "",
            Dialect::MySql => " LOCK IN SHARE MODE",
            Dialect::Postgres => " FOR SHARE",
        }
    }

    /// Whether an error is that of a connection, and not of what was asked: the server or the way to
    /// it is gone for a moment, or somebody ended the connection. A file has no connection.
    pub(crate) fn lost_connection(self, error: &sqlx::Error) -> bool {
        let of_a_connection = match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::WorkerCrashed => true,
            sqlx::Error::Database(told) => {
                let code = told.code().unwrap_or_default();
                // A connection's, PostgreSQL's shutdown or start, MySQL's `KILL`.
                code.starts_with("08") || code.starts_with("57P0") || code == "70100"
            }
            _ => false,
        };
        of_a_connection && self != Dialect::Sqlite
    }

    /// A column whose index is not to be used. Only SQLite has to be told; the others know from
    /// their statistics.
    pub(crate) fn unindexed(self, column: &str) -> String {
        match self {
            Dialect::Sqlite => format!("+{column}"),
            Dialect::MySql | Dialect::Postgres => column.to_owned(),
        }
    }

    /// A path in lower case. In MySQL a path is kept as bytes, so that it fits into a key.
    pub(crate) fn lower_path(self) -> &'static str {
        match self {
            Dialect::Sqlite | Dialect::Postgres => "lower(path)",
            Dialect::MySql => "lower(CONVERT(path USING utf8mb4))",
        }
    }
}

/// `?` becomes `$1`, `$2` and so on, but not inside quotes.
fn numbered(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + sql.len() / 4);
    let (mut number, mut quoted, mut written) = (0, false, 0);
    for (at, byte) in sql.bytes().enumerate() {
        match byte {
            b'\'' => quoted = !quoted,
            b'?' if !quoted => {
                number += 1;
                out.push_str(&sql[written..at]);
                out.push('$');
                out.push_str(itoa(&mut [0; 5], number));
                written = at + 1;
            }
            _ => {}
        }
    }
    out.push_str(&sql[written..]);
    out
}

/// A number below 100,000 as text: a statement may have thousands, and each is written once.
fn itoa(digits: &mut [u8; 5], mut number: u32) -> &str {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 || first == 0 {
            break;
        }
    }
    // Digits are text.
    std::str::from_utf8(&digits[first..]).unwrap_or_default()
}

/// `ON CONFLICT … DO UPDATE SET` becomes `ON DUPLICATE KEY UPDATE`, `DO NOTHING` becomes `INSERT
/// IGNORE` (which says how many rows were new, as the other would not), `excluded.a` becomes
/// `VALUES(a)`, and a cast to BIGINT one to SIGNED.
fn for_mysql(sql: &str) -> String {
    let sql = sql.replace(" AS BIGINT)", " AS SIGNED)");
    let Some((insert, conflict)) = sql.split_once("ON CONFLICT") else { return sql };
    if conflict.trim_end().ends_with("DO NOTHING") {
        return insert.trim_end().replacen("INSERT INTO", "INSERT IGNORE INTO", 1);
    }
    let Some((_, changes)) = conflict.split_once("DO UPDATE SET") else { return sql };
    let mut out = format!("{insert}ON DUPLICATE KEY UPDATE");
    let mut parts = changes.split("excluded.");
    out.extend(parts.next());
    for part in parts {
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
        out.push_str("VALUES(");
        out.push_str(&part[..end]);
        out.push(')');
        out.push_str(&part[end..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(dialect: Dialect, sql: &'static str) -> String {
        dialect.said(sql.into_sql_str()).as_str().to_owned()
    }

    #[test]
    fn parameters_are_numbered_for_postgres_and_texts_left_alone() {
        let sql = "SELECT 'why?' FROM t WHERE a = ? AND b IN (?,?) AND c LIKE ? ESCAPE '!'";
        assert_eq!(
            said(Dialect::Postgres, sql),
            "SELECT 'why?' FROM t WHERE a = $1 AND b IN ($2,$3) AND c LIKE $4 ESCAPE '!'"
        );
        assert_eq!(said(Dialect::Sqlite, sql), sql);
        let many = vec!["?"; 12_345].join(",");
        let numbered = numbered(&many);
        assert!(numbered.starts_with("$1,$2,") && numbered.ends_with(",$12344,$12345"));
    }

    #[test]
    fn insert_or_change_is_said_in_mysqls_words() {
        for (common, mysql) in [
            (
                "INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = excluded.b, \
                 c = t.c + excluded.c",
                "INSERT INTO t (a, b) VALUES (?, ?) ON DUPLICATE KEY UPDATE b = VALUES(b), \
                 c = t.c + VALUES(c)",
            ),
            (
                "INSERT INTO t (a) VALUES (?) ON CONFLICT (a) DO NOTHING",
                "INSERT IGNORE INTO t (a) VALUES (?)",
            ),
            (
                "INSERT INTO t (a) VALUES (?) ON CONFLICT DO NOTHING",
                "INSERT IGNORE INTO t (a) VALUES (?)",
            ),
            ("SELECT CAST(SUM(a) AS BIGINT) FROM t", "SELECT CAST(SUM(a) AS SIGNED) FROM t"),
        ] {
            assert_eq!(said(Dialect::MySql, common), mysql);
        }
    }
}
