//! The rows of a table, whatever its columns: read in order, hashed on the way, written in pieces.

use futures_util::TryStreamExt;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Column, Executor, Row, TypeInfo, ValueRef};

use crate::{ConnectionPool, Database, StoreError, Transaction};

/// Most values in one statement, and rows in one transaction.
const VALUES_MAX: usize = 4096;
const ROWS_MAX: usize = 8192;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CellValue {
    Nothing,
    Number(i64),
    Real(f64),
    Text(String),
}

impl CellValue {
    fn add_to(&self, hasher: &mut blake3::Hasher) {
        match self {
            CellValue::Nothing => hasher.update(&[0]),
            CellValue::Number(number) => hasher.update(&[1]).update(&number.to_le_bytes()),
            CellValue::Real(real) => hasher.update(&[2]).update(&real.to_bits().to_le_bytes()),
            CellValue::Text(text) => {
                let length = (text.len() as u64).to_le_bytes();
                hasher.update(&[3]).update(&length).update(text.as_bytes())
            }
        };
    }
}

/// The sum of the rows' hashes, and how many they are. It is the same in whatever order they come:
/// databases do not agree on that of texts and of nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Checksum {
    sum: [u64; 4],
    pub(super) rows: u64,
}

impl Checksum {
    fn add(&mut self, row: &[CellValue]) {
        let mut hasher = blake3::Hasher::new();
        row.iter().for_each(|value| value.add_to(&mut hasher));
        let hash = hasher.finalize();
        let (pieces, _) = hash.as_bytes().as_chunks::<8>();
        for (sum, piece) in self.sum.iter_mut().zip(pieces) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*piece));
        }
        self.rows += 1;
    }
}

fn in_order(table: &str, keys: &str) -> AssertSqlSafe<String> {
    // Made of constants alone.
    AssertSqlSafe(format!("SELECT * FROM {table} ORDER BY {keys}"))
}

fn values(row: &AnyRow) -> Result<Vec<CellValue>, StoreError> {
    (0..row.columns().len()).map(|column| value(row, column)).collect()
}

fn value(row: &AnyRow, column: usize) -> Result<CellValue, StoreError> {
    let raw = row.try_get_raw(column)?;
    if raw.is_null() {
        return Ok(CellValue::Nothing);
    }
    let kind = raw.type_info();
    Ok(match kind.name() {
        "DOUBLE" | "REAL" => CellValue::Real(row.try_get(column)?),
        "TEXT" => CellValue::Text(row.try_get(column)?),
        // A path, in MySQL.
        "BLOB" => {
            let bytes: Vec<u8> = row.try_get(column)?;
            CellValue::Text(String::from_utf8(bytes).map_err(|e| StoreError::Damaged {
                what: format!("column {}", row.columns()[column].name()),
                problem: e.to_string(),
            })?)
        }
        _ => CellValue::Number(row.try_get(column)?),
    })
}

/// The checksum of a table.
pub(super) async fn checksum(
    from: &ConnectionPool,
    table: &str,
    keys: &str,
) -> Result<Checksum, StoreError> {
    let mut checksum = Checksum::default();
    let mut rows = from.fetch(sqlx::query(in_order(table, keys)));
    while let Some(row) = rows.try_next().await? {
        checksum.add(&values(&row)?);
    }
    Ok(checksum)
}

/// All rows of a small table.
#[cfg(test)]
pub(crate) async fn read_all(
    from: &ConnectionPool,
    table: &str,
    keys: &str,
) -> Result<Vec<Vec<CellValue>>, StoreError> {
    let rows = sqlx::query(in_order(table, keys)).fetch_all(from).await?;
    rows.iter().map(values).collect()
}

/// Copies a table, telling how many rows are written; gives the checksum of what was read.
pub(super) async fn copy(
    from: &Database,
    to: &Database,
    table: &'static str,
    keys: &str,
    tell: &mut (dyn FnMut(u64) + Send),
) -> Result<Checksum, StoreError> {
    let mut checksum = Checksum::default();
    let mut rows = from.readers().fetch(sqlx::query(in_order(table, keys)));
    let (mut waiting, mut columns) = (Vec::new(), String::new());
    loop {
        let row = rows.try_next().await?;
        if let Some(row) = &row {
            if columns.is_empty() {
                let names: Vec<&str> = row.columns().iter().map(Column::name).collect();
                columns = names.join(", ");
            }
            let values = values(row)?;
            checksum.add(&values);
            waiting.push(values);
        }
        if waiting.len() == ROWS_MAX || (row.is_none() && !waiting.is_empty()) {
            write(to, table, &columns, &waiting).await?;
            waiting.clear();
            tell(checksum.rows);
        }
        if row.is_none() {
            return Ok(checksum);
        }
    }
}

async fn write(
    to: &Database,
    table: &'static str,
    columns: &str,
    rows: &[Vec<CellValue>],
) -> Result<(), StoreError> {
    let mut transaction = to.writer().begin().await?;
    let width = rows.first().map_or(1, Vec::len).max(1);
    for chunk in rows.chunks(VALUES_MAX / width) {
        insert(&mut transaction, table, columns, chunk).await?;
    }
    Ok(transaction.commit().await?)
}

async fn insert(
    to: &mut Transaction,
    table: &'static str,
    columns: &str,
    rows: &[Vec<CellValue>],
) -> Result<(), StoreError> {
    let mut sql = format!("INSERT INTO {table} ({columns}) VALUES ");
    for (index, row) in rows.iter().enumerate() {
        sql.push_str(if index == 0 { "(" } else { ",(" });
        for (index, value) in row.iter().enumerate() {
            sql.push_str(if index == 0 { "" } else { "," });
            // Nothing has no type, which a parameter would need.
            sql.push_str(if *value == CellValue::Nothing { "NULL" } else { "?" });
        }
        sql.push(')');
    }
    // Made of constants and the names of columns; what was read is bound.
    let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
    for value in rows.iter().flatten() {
        query = match value {
            CellValue::Nothing => query,
            CellValue::Number(number) => query.bind(*number),
            CellValue::Real(real) => query.bind(*real),
            CellValue::Text(text) => query.bind(text.as_str()),
        };
    }
    query.execute(&mut **to).await?;
    Ok(())
}

/// Whether a table has rows.
pub(super) async fn any(database: &Database, table: &'static str) -> Result<bool, StoreError> {
    // Made of constants alone.
    let one = sqlx::query(AssertSqlSafe(format!("SELECT 1 FROM {table} LIMIT 1")));
    Ok(one.fetch_optional(database.readers()).await?.is_some())
}

/// Removes all rows of a table.
pub(super) async fn empty(database: &Database, table: &'static str) -> Result<(), StoreError> {
    // Made of constants alone.
    let all = sqlx::query(AssertSqlSafe(format!("DELETE FROM {table}")));
    all.execute(database.writer()).await?;
    Ok(())
}
