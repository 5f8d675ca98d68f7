//! The beginning of a segment: a state, and the versions that wrote it.

use era_core::units::Time;
use era_core::wire::WIRE_VERSION;
use era_core::{CORE_VERSION, Snapshot};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Journal, number, signed, written};
use crate::StoreError;

/// The versions that a segment was written by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Versions {
    /// Of the core: what it decides.
    pub(super) core: u32,
    /// Of the serialisation: how it is written.
    pub(super) wire: u32,
}

/// Those of this binary.
pub(super) const OURS: Versions = Versions { core: CORE_VERSION, wire: WIRE_VERSION };

/// A state as it is kept. Making one takes as long as the state is large: not on the driver's
/// thread.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The number of the first input that comes after it.
    pub first_seq: u64,
    /// The state's time.
    pub begun: Time,
    /// The state, as JSON.
    pub state: String,
}

impl Segment {
    /// A segment that begins with this state.
    pub fn of(state: &Snapshot) -> Segment {
        Segment { first_seq: state.seq() + 1, begun: state.now(), state: written(state) }
    }
}

/// A segment's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) number: u64,
    pub(super) first_seq: u64,
    pub(super) core_version: u32,
    pub(super) wire_version: u32,
}

impl Head {
    fn of(row: &AnyRow) -> Result<Head, StoreError> {
        let version = |column: usize| -> Result<u32, StoreError> {
            let found: i64 = row.try_get(column)?;
            Ok(u32::try_from(found).unwrap_or(u32::MAX))
        };
        Ok(Head {
            number: number("segments", row.try_get(0)?)?,
            first_seq: number("segments", row.try_get(1)?)?,
            core_version: version(2)?,
            wire_version: version(3)?,
        })
    }

    pub(super) fn versions(&self) -> Versions {
        Versions { core: self.core_version, wire: self.wire_version }
    }

    /// Refuses what another version wrote.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        for (what, found, ours) in [
            ("core", self.core_version, CORE_VERSION),
            ("serialisation", self.wire_version, WIRE_VERSION),
        ] {
            if found != ours {
                return Err(StoreError::OtherVersion { segment: self.number, what, found, ours });
            }
        }
        Ok(())
    }
}

impl Journal {
    /// Begins a segment. Inputs after its state may be in the journal already.
    ///
    /// A large state takes its time on the way: meanwhile appends go on and the lease is renewed, so
    /// the lead is held still only at the end, and the state has a connection of its own.
    pub async fn begin_segment(&self, segment: &Segment) -> Result<(), StoreError> {
        let mut transaction = self.database.beside().begin().await?;
        sqlx::query(
            "INSERT INTO segments (number, first_seq, begun, core_version, wire_version, state) \
             SELECT COALESCE(MAX(number), 0) + 1, ?, ?, ?, ?, ? FROM segments",
        )
        .bind(signed(segment.first_seq)?)
        .bind(segment.begun.0)
        .bind(i64::from(CORE_VERSION))
        .bind(i64::from(WIRE_VERSION))
        .bind(segment.state.as_str())
        .execute(&mut *transaction)
        .await?;
        self.generation.hold(&mut transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// All segments, in order, without their states.
    pub(super) async fn heads(&self) -> Result<Vec<Head>, StoreError> {
        let rows = sqlx::query(
            "SELECT number, first_seq, core_version, wire_version FROM segments ORDER BY number",
        )
        .fetch_all(self.database.readers())
        .await?;
        rows.iter().map(Head::of).collect()
    }

    /// The state that a segment begins with, as JSON.
    pub(super) async fn state_text(&self, segment: u64) -> Result<String, StoreError> {
        Ok(sqlx::query_scalar("SELECT state FROM segments WHERE number = ?")
            .bind(signed(segment)?)
            .fetch_one(self.database.readers())
            .await?)
    }
}

impl Journal {
    /// The number of the newest segment that began at or before an instant.
    pub async fn segment_before(
        &self,
        at: era_core::units::Time,
    ) -> Result<Option<u64>, StoreError> {
        let sql = "SELECT MAX(number) FROM segments WHERE begun <= ?";
        let number: Option<i64> =
            sqlx::query_scalar(sql).bind(at.0).fetch_one(self.database.readers()).await?;
        number.map(|found| super::number("segments", found)).transpose()
    }
}
