//! The tables of each database, step by step.
//!
//! SQLite keeps three files, each with its own steps; a server keeps all in one database. A step
//! that was published is never changed.

use std::borrow::Cow;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr};

use crate::Dialect;
use crate::database::Service;

/// A step: its number, its name and its SQL.
type Step = (i64, &'static str, &'static str);

macro_rules! steps {
    ($folder:literal: $($number:literal $name:literal),*) => {
        &[$((
            $number,
            $name,
            include_str!(concat!("../migrations/", $folder, "/0", $number, "_", $name, ".sql")),
        )),*]
    };
}

/// MariaDB's collation that compares texts byte by byte, blanks at the end and all, and MySQL's.
const MARIADB_COLLATION: &str = "utf8mb4_nopad_bin";
const MYSQL_COLLATION: &str = "utf8mb4_0900_bin";

const DURABLE: &[Step] = steps!("sqlite/durable": 100 "journal", 300 "accounts", 310 "webhooks",
    330 "prices", 500 "files", 510 "outputs_cursor", 600 "leader",
    610 "seats", 620 "catalogue", 630 "secrets");
const TABLES: &[Step] = steps!("sqlite/tables": 100 "cursor", 200 "tables", 210 "projects");
const METRICS: &[Step] = steps!("sqlite/metrics": 100 "samples", 150 "asks");
const POSTGRES: &[Step] = steps!("postgres": 100 "journal", 200 "tables", 210 "projects",
    300 "accounts", 330 "prices", 400 "metrics", 500 "files", 610 "seats",
    620 "catalogue", 630 "secrets");
const MYSQL: &[Step] = steps!("mysql": 100 "journal", 200 "tables", 210 "projects",
    300 "accounts", 330 "prices", 400 "metrics", 500 "files", 610 "seats",
    620 "catalogue", 630 "secrets");

/// The steps of SQLite's three files: what is durable, tables, metrics.
pub(crate) fn files() -> [Migrator; 3] {
    [DURABLE, TABLES, METRICS].map(|steps| migrator(steps, Cow::Borrowed))
}

/// The steps of a server.
pub(crate) fn server(service: &Service) -> Migrator {
    match service.dialect() {
        Dialect::MySql if !service.is_mariadb() => {
            migrator(MYSQL, |sql| sql.replace(MARIADB_COLLATION, MYSQL_COLLATION).into())
        }
        Dialect::MySql => migrator(MYSQL, Cow::Borrowed),
        _ => migrator(POSTGRES, Cow::Borrowed),
    }
}

fn migrator(steps: &'static [Step], said: impl Fn(&'static str) -> Cow<'static, str>) -> Migrator {
    let migration = |(number, name, sql): &Step| {
        // Ours alone.
        let sql = AssertSqlSafe(said(sql)).into_sql_str();
        Migration::new(*number, Cow::Borrowed(name), MigrationType::Simple, sql, false)
    };
    Migrator::with_migrations(steps.iter().map(migration).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_step_in_a_folder_is_taken() {
        for (folder, steps) in [
            ("sqlite/durable", DURABLE),
            ("sqlite/tables", TABLES),
            ("sqlite/metrics", METRICS),
            ("postgres", POSTGRES),
            ("mysql", MYSQL),
        ] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(folder);
            let there: BTreeSet<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            let taken = steps.iter().map(|(number, name, _)| format!("{number:04}_{name}.sql"));
            assert_eq!(there, taken.collect());
        }
    }

    #[test]
    fn every_table_is_copied_but_those_that_are_each_databases_own() {
        let lines = POSTGRES.iter().flat_map(|(_, _, sql)| sql.lines());
        let made = lines.filter_map(|line| line.strip_prefix("CREATE TABLE "));
        let mut made: BTreeSet<&str> = made.map(|name| name.trim_end_matches(" (")).collect();
        for (_, copied, _) in crate::copy::TABLES {
            assert!(made.remove(copied), "{copied} is no table");
        }
        assert_eq!(made.into_iter().collect::<Vec<_>>(), ["copying", "leader", "revisions"]);
    }

    #[test]
    fn servers_keep_the_tables_and_columns_that_the_files_keep() {
        let columns = |steps: &[&[Step]]| -> BTreeSet<String> {
            let (mut all, mut table) = (BTreeSet::new(), "");
            for line in steps.iter().copied().flatten().flat_map(|(_, _, sql)| sql.lines()) {
                if let Some(name) = line.strip_prefix("CREATE TABLE ") {
                    table = name.trim_end_matches(" (");
                } else if let Some(column) = line.strip_prefix("    ")
                    && column.starts_with(|c: char| c.is_ascii_lowercase())
                {
                    all.insert(format!("{table}.{}", column.split(' ').next().unwrap_or("")));
                }
            }
            all
        };
        let ours = columns(&[DURABLE, TABLES, METRICS]);
        assert!(ours.contains("journal.seq") && ours.contains("samples.value"));
        assert_eq!(columns(&[POSTGRES]), ours);
        assert_eq!(columns(&[MYSQL]), ours);
    }
}
