//! The tables of each database, step by step.
//!
//! SQLite keeps three files, each with its own steps; a server keeps all in one database. A step
//! is written once, in `migrations/`, and put into each database's words (`words`). One that was
//! published is never changed.

mod words;

use std::borrow::Cow;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr};

use crate::Dialect;
use crate::database::Service;

use words::Product;

/// A step of a server.
struct Step {
    number: i64,
    name: &'static str,
    /// What it is made of: a step of one of SQLite's files, or two that follow one another.
    parts: &'static [FileSchema],
}

/// A step of one of SQLite's files.
struct FileSchema {
    file: &'static str,
    number: i64,
    name: &'static str,
    sql: &'static str,
}

macro_rules! steps {
    ($($number:literal $name:literal: $($file:literal $part_number:literal $part:literal),+;)+) => {
        &[$(Step {
            number: $number,
            name: $name,
            parts: &[$(FileSchema {
                file: $file,
                number: $part_number,
                name: $part,
                sql: include_str!(
                    concat!("../../migrations/", $file, "/0", $part_number, "_", $part, ".sql")
                ),
            }),+],
        }),+]
    };
}

const STEPS: &[Step] = steps! {
    100 "journal": "durable" 100 "journal", "durable" 600 "leader";
    200 "tables": "tables" 100 "cursor", "tables" 200 "tables";
    210 "projects": "tables" 210 "projects";
    300 "accounts": "durable" 300 "accounts", "durable" 310 "webhooks";
    330 "prices": "durable" 330 "prices";
    400 "metrics": "metrics" 100 "samples", "metrics" 150 "asks";
    500 "files": "durable" 500 "files", "durable" 510 "outputs_cursor";
    610 "seats": "durable" 610 "seats";
    620 "catalogue": "durable" 620 "catalogue";
    630 "secrets": "durable" 630 "secrets";
};

/// The steps of SQLite's three files: what is durable, tables, metrics.
pub(crate) fn files() -> [Migrator; 3] {
    ["durable", "tables", "metrics"].map(|file| Migrator::with_migrations(steps_of_file(file)))
}

/// The steps of a server.
pub(crate) fn server(service: &Service) -> Migrator {
    Migrator::with_migrations(steps_of_server(match service.dialect() {
        Dialect::Sqlite => Product::Sqlite,
        Dialect::MySql if service.is_mariadb() => Product::MariaDb,
        Dialect::MySql => Product::MySql,
        Dialect::Postgres => Product::Postgres,
    }))
}

fn steps_of_file(file: &str) -> Vec<Migration> {
    let parts = STEPS.iter().flat_map(|step| step.parts).filter(|part| part.file == file);
    let said =
        |part: &FileSchema| migration(part.number, part.name, Product::Sqlite.said(part.sql));
    parts.map(said).collect()
}

fn steps_of_server(product: Product) -> Vec<Migration> {
    let said = |step: &Step| {
        let parts: Vec<String> = step.parts.iter().map(|part| product.said(part.sql)).collect();
        migration(step.number, step.name, parts.join("\n"))
    };
    STEPS.iter().map(said).collect()
}

fn migration(number: i64, name: &'static str, sql: String) -> Migration {
    // Made of our own files alone.
    let sql = AssertSqlSafe(sql).into_sql_str();
    Migration::new(number, Cow::Borrowed(name), MigrationType::Simple, sql, false)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_step_in_a_folder_is_taken() {
        for file in ["durable", "tables", "metrics"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(file);
            let there: BTreeSet<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            let taken = STEPS.iter().flat_map(|step| step.parts).filter(|part| part.file == file);
            let taken = taken.map(|part| format!("{:04}_{}.sql", part.number, part.name));
            assert_eq!(there, taken.collect());
        }
    }

    #[test]
    fn a_published_step_says_the_same_to_every_database_as_when_it_was_published() {
        let mut said = String::new();
        let mut add = |of: &str, steps: Vec<Migration>| {
            for step in steps {
                let checksum: String =
                    step.checksum[..8].iter().map(|byte| format!("{byte:02x}")).collect();
                said += &format!("{checksum} {of}/{:04}_{}\n", step.version, step.description);
            }
        };
        for file in ["durable", "tables", "metrics"] {
            add(&format!("sqlite/{file}"), steps_of_file(file));
        }
        add("mariadb", steps_of_server(Product::MariaDb));
        add("mysql", steps_of_server(Product::MySql));
        add("postgres", steps_of_server(Product::Postgres));
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        let published = lines(include_str!("../../migrations/published.txt"));
        assert_eq!(lines(&said), published, "add the lines of a new step, and change no other");
    }

    #[test]
    fn every_table_is_copied_but_those_that_are_each_databases_own() {
        let lines = STEPS.iter().flat_map(|step| step.parts).flat_map(|part| part.sql.lines());
        let made = lines.filter_map(|line| line.strip_prefix("CREATE TABLE "));
        let mut made: BTreeSet<&str> = made.map(|name| name.trim_end_matches(" (")).collect();
        for (_, copied, _) in crate::copy::TABLES {
            assert!(made.remove(copied), "{copied} is no table");
        }
        assert_eq!(made.into_iter().collect::<Vec<_>>(), ["copying", "leader", "revisions"]);
    }
}
