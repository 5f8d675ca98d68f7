//! What series come to in the mean: for whoever learns from jobs that ended.

use era_core::units::{JobId, Time};

use super::{Samples, loaded, part_and_rank};
use crate::StoreError;

/// The mean of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    pub job: JobId,
    pub name: String,
    /// Which request of the job's bid.
    pub part: u16,
    pub rank: u32,
    /// The mean of its values that are kept.
    pub mean: f64,
}

impl Samples {
    /// The means of series whose names begin so and that had a value since, by job. Only so many
    /// series are looked at, those that had a value last.
    pub async fn means(
        &self,
        beginning: &str,
        since: Time,
        most: u32,
    ) -> Result<Vec<Mean>, StoreError> {
        let rows: Vec<(i64, String, i64, f64)> = sqlx::query_as(
            "SELECT s.job, s.name, s.replica, AVG(v.value) FROM \
             (SELECT id, job, name, replica FROM series WHERE last_at >= ? AND name LIKE ? \
              ORDER BY last_at DESC LIMIT ?) s \
             JOIN samples v ON v.series = s.id \
             GROUP BY s.id, s.job, s.name, s.replica ORDER BY s.job, s.name, s.replica",
        )
        .bind(since.0)
        .bind(format!("{beginning}%"))
        .bind(i64::from(most))
        .fetch_all(self.database.readers())
        .await?;
        let mean = |(job, name, replica, mean)| {
            let (part, rank) = part_and_rank(replica);
            Mean { job: JobId(loaded(job)), name, part, rank, mean }
        };
        Ok(rows.into_iter().map(mean).collect())
    }
}
