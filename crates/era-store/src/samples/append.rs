//! Appending: one transaction for a batch, however many jobs it is from.

use std::collections::BTreeMap;

use era_core::units::Time;
use sqlx::{Any, QueryBuilder};

use super::{
    NAME_BYTES_MAX, NewSample, POINTS_PER_SERIES_MAX, Point, SERIES_PER_JOB_MAX, Samples, loaded,
    replica, stored, thin,
};
use crate::{StoreError, Transaction};

/// Rows of one statement; SQLite allows some ten thousand variables.
const ROWS_PER_STATEMENT: usize = 1000;

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Values that are kept.
    pub kept: u64,
    /// Values that are not: not finite, a name too long, or more names than a job may have.
    pub dropped: u64,
}

type SeriesKey<'a> = (u64, &'a str, i64);

/// A series as it is while a batch is appended.
struct Open {
    id: i64,
    told: i64,
    kept: i64,
}

impl Samples {
    /// Appends values, all or none of those that can be kept.
    pub async fn append(&self, batch: &[NewSample]) -> Result<Appended, StoreError> {
        let mut series: BTreeMap<SeriesKey<'_>, Vec<&NewSample>> = BTreeMap::new();
        for sample in batch.iter().filter(|sample| can_be_kept(sample)) {
            let key = (sample.job.0, sample.name.as_str(), replica(sample.part, sample.rank));
            series.entry(key).or_default().push(sample);
        }
        let mut appended = Appended::default();
        if !series.is_empty() {
            let mut transaction = self.database.writer().begin().await?;
            for (key, samples) in &series {
                if append_series(&mut transaction, *key, samples).await? {
                    appended.kept += samples.len() as u64;
                }
            }
            transaction.commit().await?;
        }
        appended.dropped = batch.len() as u64 - appended.kept;
        Ok(appended)
    }
}

fn can_be_kept(sample: &NewSample) -> bool {
    sample.value.is_finite() && (1..=NAME_BYTES_MAX).contains(&sample.name.len())
}

/// Whether there was room for it.
async fn append_series(
    transaction: &mut Transaction,
    key: SeriesKey<'_>,
    samples: &[&NewSample],
) -> Result<bool, StoreError> {
    let Some(mut open) = open_series(transaction, key).await? else { return Ok(false) };
    // No series is ever kept longer than it may be, however long the batch is.
    for chunk in samples.chunks(ROWS_PER_STATEMENT) {
        let mut insert: QueryBuilder<Any> =
            QueryBuilder::new("INSERT INTO samples (series, number, step, at, value) ");
        let first = open.told;
        insert.push_values((first..).zip(chunk), |mut row, (number, sample)| {
            row.push_bind(open.id)
                .push_bind(number)
                .push_bind(stored(sample.step))
                .push_bind(sample.at.0)
                .push_bind(sample.value);
        });
        insert.build().execute(&mut **transaction).await?;
        open.told += chunk.len() as i64;
        open.kept += chunk.len() as i64;
        if open.kept > POINTS_PER_SERIES_MAX as i64 {
            open.kept = thin_stored(transaction, open.id).await?;
        }
    }
    let Some(last) = samples.last() else { return Ok(true) };
    sqlx::query(
        "UPDATE series SET told = ?, kept = ?, last_step = ?, last_at = ?, last_value = ? \
         WHERE id = ?",
    )
    .bind(open.told)
    .bind(open.kept)
    .bind(stored(last.step))
    .bind(last.at.0)
    .bind(last.value)
    .bind(open.id)
    .execute(&mut **transaction)
    .await?;
    Ok(true)
}

/// The series, made where it is not there; `None` where the job has too many.
async fn open_series(
    transaction: &mut Transaction,
    (job, name, replica): SeriesKey<'_>,
) -> Result<Option<Open>, StoreError> {
    let known = sqlx::query_as::<_, (i64, i64, i64)>(
        "SELECT id, told, kept FROM series WHERE job = ? AND name = ? AND replica = ?",
    )
    .bind(stored(job))
    .bind(name)
    .bind(replica)
    .fetch_optional(&mut **transaction)
    .await?;
    if let Some((id, told, kept)) = known {
        return Ok(Some(Open { id, told, kept }));
    }
    let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM series WHERE job = ?")
        .bind(stored(job))
        .fetch_one(&mut **transaction)
        .await?;
    if count >= SERIES_PER_JOB_MAX as i64 {
        return Ok(None);
    }
    sqlx::query(
        "INSERT INTO series (job, name, replica, told, kept, last_step, last_at, last_value) \
         VALUES (?, ?, ?, 0, 0, 0, 0, 0)",
    )
    .bind(stored(job))
    .bind(name)
    .bind(replica)
    .execute(&mut **transaction)
    .await?;
    let id = sqlx::query_scalar("SELECT id FROM series WHERE job = ? AND name = ? AND replica = ?")
        .bind(stored(job))
        .bind(name)
        .bind(replica)
        .fetch_one(&mut **transaction)
        .await?;
    Ok(Some(Open { id, told: 0, kept: 0 }))
}

/// Halves a series, and says how many are kept.
async fn thin_stored(transaction: &mut Transaction, id: i64) -> Result<i64, StoreError> {
    let rows = sqlx::query_as::<_, (i64, f64)>(
        "SELECT number, value FROM samples WHERE series = ? ORDER BY number",
    )
    .bind(id)
    .fetch_all(&mut **transaction)
    .await?;
    let point = |(number, value)| Point { number: loaded(number), step: 0, at: Time(0), value };
    let all: Vec<Point> = rows.into_iter().map(point).collect();
    let kept: std::collections::BTreeSet<u64> =
        thin(&all, POINTS_PER_SERIES_MAX / 2).into_iter().map(|point| point.number).collect();
    let dropped: Vec<u64> =
        all.iter().map(|point| point.number).filter(|number| !kept.contains(number)).collect();
    for chunk in dropped.chunks(ROWS_PER_STATEMENT) {
        let mut delete: QueryBuilder<Any> =
            QueryBuilder::new("DELETE FROM samples WHERE series = ");
        delete.push_bind(id).push(" AND number IN (");
        let mut numbers = delete.separated(", ");
        for number in chunk {
            numbers.push_bind(stored(*number));
        }
        delete.push(")");
        delete.build().execute(&mut **transaction).await?;
    }
    Ok(kept.len() as i64)
}
