//! Forgetting: a job's values, old ones, and whatever is beyond a bound.

use era_core::units::{JobId, Time};

use super::{Samples, loaded, stored};
use crate::StoreError;

impl Samples {
    /// Forgets all values of a job.
    pub async fn forget(&self, job: JobId) -> Result<(), StoreError> {
        let mut transaction = self.database.writer().begin().await?;
        let series: Vec<i64> = sqlx::query_scalar("SELECT id FROM series WHERE job = ?")
            .bind(stored(job.0))
            .fetch_all(&mut *transaction)
            .await?;
        // One by one: where a DELETE has a SELECT in it, MariaDB reads the whole table.
        for series in series {
            sqlx::query("DELETE FROM samples WHERE series = ?")
                .bind(series)
                .execute(&mut *transaction)
                .await?;
        }
        sqlx::query("DELETE FROM series WHERE job = ?")
            .bind(stored(job.0))
            .execute(&mut *transaction)
            .await?;
        Ok(transaction.commit().await?)
    }

    /// Forgets jobs of which nothing was heard since an instant, and says how many.
    pub async fn forget_silent_since(&self, since: Time) -> Result<usize, StoreError> {
        let silent: Vec<i64> =
            sqlx::query_scalar("SELECT job FROM series GROUP BY job HAVING MAX(last_at) < ?")
                .bind(since.0)
                .fetch_all(self.database.readers())
                .await?;
        for job in &silent {
            self.forget(JobId(loaded(*job))).await?;
        }
        Ok(silent.len())
    }

    /// Forgets jobs, the longest silent ones first, until no more than so many values are kept;
    /// says how many jobs. A value takes about 40 bytes.
    pub async fn keep_at_most(&self, values_max: u64) -> Result<usize, StoreError> {
        let jobs: Vec<(i64, i64)> = sqlx::query_as(
            "SELECT job, CAST(SUM(kept) AS BIGINT) FROM series GROUP BY job \
             ORDER BY MAX(last_at), job",
        )
        .fetch_all(self.database.readers())
        .await?;
        let mut kept: u64 = jobs.iter().map(|(_, kept)| loaded(*kept)).sum();
        let mut forgotten = 0;
        for (job, values) in jobs {
            if kept <= values_max {
                break;
            }
            self.forget(JobId(loaded(job))).await?;
            kept -= loaded(values);
            forgotten += 1;
        }
        Ok(forgotten)
    }
}
