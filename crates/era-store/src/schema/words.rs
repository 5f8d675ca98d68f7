//! How each database says the steps in `migrations/`.
//!
//! A step is written once, nearly as SQLite reads it. Only where the databases differ does it have
//! words of its own, one for a column's type:
//!
//! | | |
//! | --- | --- |
//! | `TEXT`, `TEXT(n)` | a text, of that length at most where a limit costs nothing |
//! | `KEY_TEXT(n)` | a text that is looked up or ordered by, byte by byte; `n\|m` where MySQL and MariaDB have another length |
//! | `PATH(n)` | the same for a path, which MySQL and MariaDB keep as bytes: as letters it is too long for a key |
//! | `SERIAL` | a primary key that the database numbers |
//! | `UNIQUE_SERIAL` | the same, where no number is given out twice |
//! | `INTEGER`, `DOUBLE` | as SQLite has them |
//!
//! Whatever else stands there all of them understand, but for three things that MySQL and MariaDB
//! say otherwise: how a table is kept, what a column refers to, and that an index has all rows.
//!
//! The text of a step is its checksum in every database that has taken it, so what is derived here
//! from a published step must not change by a blank. A test compares.

/// A database as far as the definition of a table goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    Sqlite,
    MariaDb,
    MySql,
    Postgres,
}

impl Product {
    /// A step in this database's words.
    pub(super) fn said(self, step: &str) -> String {
        let mut lines: Vec<String> = Vec::new();
        let mut references = Vec::new();
        for line in step.lines() {
            if line.trim_start().starts_with("--") {
                lines.push(line.to_owned());
            } else if let Some(column) = line.strip_prefix("    ") {
                let (column, reference) = self.without_reference(column);
                references.extend(reference);
                lines.push(format!("    {}", self.column(&column)));
            } else if let Some((before, column)) = line.split_once("ADD COLUMN ") {
                lines.push(format!("{before}ADD COLUMN {}", self.column(column)));
            } else if line.starts_with(')') {
                for reference in references.drain(..) {
                    if let Some(last) = lines.last_mut() {
                        last.push(',');
                    }
                    lines.push(reference);
                }
                lines.push(self.end_of_table(line));
            } else if line.starts_with("CREATE INDEX") {
                lines.push(self.index(line));
            } else {
                lines.push(line.to_owned());
            }
        }
        lines.push(String::new());
        lines.join("\n")
    }

    fn is_mysql(self) -> bool {
        matches!(self, Product::MariaDb | Product::MySql)
    }

    /// A column, with its type in this database's words.
    fn column(self, column: &str) -> String {
        let Some((name, definition)) = column.split_once(' ') else { return column.to_owned() };
        let end = definition.find([' ', ',', ';']).unwrap_or(definition.len());
        let (word, rest) = definition.split_at(end);
        match said(word, rest.contains("DEFAULT")) {
            Some([sqlite, mysql, postgres]) => {
                let said = match self {
                    Product::Sqlite => sqlite,
                    Product::MariaDb | Product::MySql => mysql,
                    Product::Postgres => postgres,
                };
                format!("{name} {said}{rest}")
            }
            None => column.to_owned(),
        }
    }

    /// MySQL reads over what a column says that it refers to: it stands at the table's end there.
    fn without_reference(self, column: &str) -> (String, Option<String>) {
        match column.split_once(" REFERENCES ") {
            Some((before, target)) if self.is_mysql() => {
                let name = before.split(' ').next().unwrap_or_default();
                let target = target.trim_end_matches(',');
                let reference = format!("    FOREIGN KEY ({name}) REFERENCES {target}");
                (format!("{before},"), Some(reference))
            }
            _ => (column.to_owned(), None),
        }
    }

    fn end_of_table(self, line: &str) -> String {
        // Collations that compare texts byte by byte, blanks at the end and all.
        let collation = match self {
            Product::Sqlite => return line.to_owned(),
            Product::Postgres => return ");".to_owned(),
            Product::MariaDb => "utf8mb4_nopad_bin",
            Product::MySql => "utf8mb4_0900_bin",
        };
        format!(") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE={collation};")
    }

    fn index(self, line: &str) -> String {
        match line.split_once(" WHERE ") {
            Some((all, _)) if self.is_mysql() => format!("{all};"),
            _ => line.to_owned(),
        }
    }
}

/// What the word of a type is on SQLite, on MySQL and MariaDB, and on PostgreSQL; `None` where all
/// understand it.
fn said(word: &str, has_default: bool) -> Option<[String; 3]> {
    const BYTE_BY_BYTE: &str = "TEXT COLLATE \"C\"";
    const MYSQL_SERIAL: &str = "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY";
    const POSTGRES_SERIAL: &str = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY";
    let (word, length) = match word.strip_suffix(')').and_then(|word| word.split_once('(')) {
        Some((word, length)) => (word, Some(length)),
        None => (word, None),
    };
    let varchar = |length: &str| format!("VARCHAR({length})");
    let own = |words: [&str; 3]| words.map(str::to_owned);
    Some(match (word, length) {
        ("TEXT", None) => own(["TEXT", "LONGTEXT", "TEXT"]),
        // MySQL gives no long text a default.
        ("TEXT", Some(n)) if has_default => [varchar(n), varchar(n), "TEXT".to_owned()],
        ("TEXT", Some(n)) => [varchar(n), "LONGTEXT".to_owned(), "TEXT".to_owned()],
        ("KEY_TEXT", Some(n)) => {
            let (n, mysql) = n.split_once('|').unwrap_or((n, n));
            [varchar(n), varchar(mysql), BYTE_BY_BYTE.to_owned()]
        }
        ("PATH", Some(n)) => [varchar(n), format!("VARBINARY({n})"), BYTE_BY_BYTE.to_owned()],
        ("SERIAL", None) => own(["INTEGER NOT NULL PRIMARY KEY", MYSQL_SERIAL, POSTGRES_SERIAL]),
        ("UNIQUE_SERIAL", None) => {
            own(["INTEGER PRIMARY KEY AUTOINCREMENT", MYSQL_SERIAL, POSTGRES_SERIAL])
        }
        ("INTEGER", None) => own(["INTEGER", "BIGINT", "BIGINT"]),
        ("DOUBLE", None) => own(["DOUBLE", "DOUBLE", "DOUBLE PRECISION"]),
        _ => return None,
    })
}
