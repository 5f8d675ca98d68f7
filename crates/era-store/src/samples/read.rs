//! Reading: which series a job has, their curves, and what has come since.

use std::collections::BTreeMap;

use era_core::units::{JobId, Time};
use sqlx::{Any, QueryBuilder};

use super::{Point, Samples, loaded, part_and_rank, stored, thin};
use crate::StoreError;

/// A series and its newest value.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesSummary {
    pub name: String,
    /// Which request of the job's bid.
    pub part: u16,
    pub rank: u32,
    /// How many values ever came.
    pub told: u64,
    pub last: Point,
    id: i64,
}

/// Which series and how much of them. Every field narrows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesAsk {
    /// Of these names; all where none is given.
    pub names: Vec<String>,
    /// Of this replica.
    pub rank: Option<u32>,
    pub step_from: Option<u64>,
    /// Up to and with this step.
    pub step_to: Option<u64>,
}

/// A series with its points.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleSeries {
    pub name: String,
    /// Which request of the job's bid.
    pub part: u16,
    pub rank: u32,
    /// Its points, by step.
    pub points: Vec<Point>,
}

/// How far a job's series were followed.
#[derive(Clone, Debug, Default)]
pub struct Follow {
    /// For each series how many values had come.
    told: BTreeMap<i64, u64>,
}

type SeriesRow = (i64, String, i64, i64, i64, i64, f64);

impl Samples {
    /// Every series of a job with its newest value, by name and replica.
    pub async fn series(
        &self,
        job: JobId,
        ask: &SeriesAsk,
    ) -> Result<Vec<SeriesSummary>, StoreError> {
        let mut query: QueryBuilder<Any> = QueryBuilder::new(
            "SELECT id, name, replica, told, last_step, last_at, last_value FROM series \
             WHERE job = ",
        );
        query.push_bind(stored(job.0));
        if !ask.names.is_empty() {
            query.push(" AND name IN (");
            let mut names = query.separated(", ");
            for name in &ask.names {
                names.push_bind(name.clone());
            }
            query.push(")");
        }
        query.push(" ORDER BY name, replica");
        let rows: Vec<SeriesRow> =
            query.build_query_as().fetch_all(self.database.replica()).await?;
        let summaries = rows.into_iter().map(summary);
        Ok(summaries.filter(|s| ask.rank.is_none_or(|rank| rank == s.rank)).collect())
    }

    /// Curves, each of at most so many points, thinned as [`thin`] says.
    pub async fn lines(
        &self,
        job: JobId,
        ask: &SeriesAsk,
        points_max: usize,
    ) -> Result<Vec<SampleSeries>, StoreError> {
        let mut lines = Vec::new();
        for series in self.series(job, ask).await? {
            let mut points = self.points(series.id, 0, ask).await?;
            points.sort_by_key(|point| (point.step, point.number));
            lines.push(SampleSeries {
                name: series.name,
                part: series.part,
                rank: series.rank,
                points: thin(&points, points_max),
            });
        }
        Ok(lines)
    }

    /// What has come since the last call with the same `follow`, the first time since the newest
    /// value of now. Every series at most so many points, thinned as [`thin`] says.
    pub async fn newer(
        &self,
        job: JobId,
        ask: &SeriesAsk,
        follow: &mut Follow,
        points_max: usize,
    ) -> Result<Vec<SampleSeries>, StoreError> {
        let mut lines = Vec::new();
        for series in self.series(job, ask).await? {
            let seen = follow.told.insert(series.id, series.told).unwrap_or(0);
            if seen < series.told {
                let points = self.points(series.id, seen, ask).await?;
                // What came in between the two questions is asked for the next time.
                let known: Vec<Point> =
                    points.into_iter().filter(|point| point.number < series.told).collect();
                lines.push(SampleSeries {
                    name: series.name,
                    part: series.part,
                    rank: series.rank,
                    points: thin(&known, points_max),
                });
            }
        }
        lines.retain(|line| !line.points.is_empty());
        Ok(lines)
    }

    async fn points(
        &self,
        series: i64,
        from: u64,
        ask: &SeriesAsk,
    ) -> Result<Vec<Point>, StoreError> {
        let rows = sqlx::query_as::<_, (i64, i64, i64, f64)>(
            "SELECT number, step, at, value FROM samples \
             WHERE series = ? AND number >= ? AND step >= ? AND step <= ? ORDER BY number",
        )
        .bind(series)
        .bind(stored(from))
        .bind(stored(ask.step_from.unwrap_or(0)))
        .bind(stored(ask.step_to.unwrap_or(u64::MAX)))
        .fetch_all(self.database.replica())
        .await?;
        let point = |(number, step, at, value)| Point {
            number: loaded(number),
            step: loaded(step),
            at: Time(at),
            value,
        };
        Ok(rows.into_iter().map(point).collect())
    }
}

fn summary((id, name, replica, told, step, at, value): SeriesRow) -> SeriesSummary {
    let (part, rank) = part_and_rank(replica);
    let last = Point { number: loaded(told - 1), step: loaded(step), at: Time(at), value };
    SeriesSummary { name, part, rank, told: loaded(told), last, id }
}
