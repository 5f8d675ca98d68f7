//! The lead: who may write the journal, decided by the database.
//!
//! One row holds who leads, until when by the database's clock, and a *generation* that grows
//! whenever the lead is taken. Every append to the journal names the generation that its store
//! knows, in the same statement: once somebody else has taken the lead, whatever an older leader
//! still tries fails with [`StoreError::Deposed`], however long it was paused and whatever its own
//! clock says. A lease that has run out and that nobody took is still good to write by: time
//! decides only who may take the lead, never what is in the journal.
//!
//! Other parts of a site of which one may be at work have a [`LeaseRole`] of their own: the same lease,
//! by which nothing is fenced.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Row};

use crate::{Connection, Database, StoreError};

/// The generation that a store writes by. A clone shares.
#[derive(Clone, Debug)]
pub struct Generation(Arc<AtomicU64>);

impl Generation {
    /// As it stands: whoever takes the lead later is newer.
    pub(crate) async fn read(database: &Database) -> Result<Generation, StoreError> {
        let leader = row(database, LeaseRole::Scheduler).await?;
        Ok(Generation(Arc::new(AtomicU64::new(leader.generation))))
    }

    pub fn generation(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// As the database has it.
    pub(crate) fn number(&self) -> i64 {
        self.generation().cast_signed()
    }

    /// Holds the lead still until the transaction ends, or says who has it.
    pub(crate) async fn hold(&self, transaction: &mut Connection) -> Result<(), StoreError> {
        // A change to what it is takes the row's lock on every database.
        let held = sqlx::query(
            "UPDATE leader SET generation = generation WHERE id = 1 AND generation = ?",
        )
        .bind(self.number())
        .execute(&mut *transaction)
        .await?;
        if held.rows_affected() == 1 {
            return Ok(());
        }
        let newer = sqlx::query_scalar("SELECT generation FROM leader WHERE id = 1");
        let newer: i64 = newer.fetch_one(&mut *transaction).await?;
        Err(self.deposed(newer.cast_unsigned()))
    }

    /// What an append failed with: that the lead is another's, or else what the database said.
    pub(crate) async fn explain(&self, database: &Database, failed: sqlx::Error) -> StoreError {
        match row(database, LeaseRole::Scheduler).await {
            Ok(leader) if leader.generation != self.generation() => self.deposed(leader.generation),
            _ => failed.into(),
        }
    }

    fn deposed(&self, newer: u64) -> StoreError {
        StoreError::Deposed { ours: self.generation(), newer }
    }
}

/// What only one server of a site may be doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseRole {
    /// Writing the journal.
    Scheduler = 1,
    Cloud = 2,
    Files = 3,
}

/// Who leads.
#[derive(Clone, PartialEq, Eq)]
pub struct Leader {
    /// What it called itself; nothing where nobody ever led.
    pub holder: String,
    /// How it is reached, for those who may read this database: it may have a secret in it. Of who
    /// runs tasks: where they run.
    pub contact: String,
    /// How often the lead was taken.
    pub generation: u64,
    /// How long the lease still runs, by the database's clock; zero once it has run out.
    pub left: Duration,
}

impl fmt::Debug for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Leader { holder, generation, left, .. } = self;
        write!(f, "{holder} (generation {generation}, {left:?} left)")
    }
}

/// The lead, to be taken, kept and given up.
#[derive(Clone, Debug)]
pub struct Lease {
    database: Database,
    generation: Generation,
    role: LeaseRole,
}

impl Lease {
    pub(crate) fn new(database: Database, generation: Generation) -> Lease {
        Lease { database, generation, role: LeaseRole::Scheduler }
    }

    /// That of another role, which nobody has through this store yet.
    pub(crate) fn of(database: Database, role: LeaseRole) -> Lease {
        Lease { database, generation: Generation(Arc::new(AtomicU64::new(0))), role }
    }

    /// The generation that this store writes by.
    pub fn generation(&self) -> u64 {
        self.generation.generation()
    }

    pub fn role(&self) -> LeaseRole {
        self.role
    }

    pub async fn leader(&self) -> Result<Leader, StoreError> {
        row(&self.database, self.role).await
    }

    /// Takes the lead if nobody has it, and makes this store write by it; else says who leads.
    /// Whoever has it by the same name is the same server before a restart, and is succeeded.
    pub async fn acquire(
        &self,
        holder: &str,
        span: Duration,
    ) -> Result<Option<Leader>, StoreError> {
        self.acquire_with(holder, Some(""), span).await
    }

    /// The same, and says how the new leader is reached. Without that, what the one before it has
    /// told stays.
    pub async fn acquire_with(
        &self,
        holder: &str,
        contact: Option<&str>,
        span: Duration,
    ) -> Result<Option<Leader>, StoreError> {
        let now = self.database.dialect().now_ms();
        let told = if contact.is_some() { ", contact = ?" } else { "" };
        let sql = format!(
            "UPDATE leader SET generation = generation + 1, expires = {now} + ?, holder = ?{told} \
             WHERE id = ? AND (expires <= {now} OR holder = ?)"
        );
        let mut transaction = self.database.writer().begin().await?;
        // Made of constants alone.
        let mut taking =
            sqlx::query(AssertSqlSafe(sql)).bind(milliseconds(span)).bind(holder.to_owned());
        if let Some(contact) = contact {
            taking = taking.bind(contact.to_owned());
        }
        let taken = taking
            .bind(self.role as i32)
            .bind(holder.to_owned())
            .execute(&mut *transaction)
            .await?;
        if taken.rows_affected() == 0 {
            return self.leader().await.map(Some);
        }
        let generation = sqlx::query_scalar("SELECT generation FROM leader WHERE id = ?");
        let generation: i64 =
            generation.bind(self.role as i32).fetch_one(&mut *transaction).await?;
        transaction.commit().await?;
        self.generation.0.store(generation.cast_unsigned(), Ordering::Release);
        Ok(None)
    }

    /// Keeps the lead for so long from now on.
    pub async fn renew(&self, span: Duration) -> Result<(), StoreError> {
        let sql = format!(
            "UPDATE leader SET expires = {} + ? WHERE id = ? AND generation = ?",
            self.database.dialect().now_ms()
        );
        self.change(sql, milliseconds(span)).await
    }

    /// Tells something else than when the lead was taken.
    pub async fn tell(&self, contact: &str) -> Result<(), StoreError> {
        let sql = "UPDATE leader SET contact = ? WHERE id = ? AND generation = ?";
        self.change(sql.to_owned(), contact.to_owned()).await
    }

    /// Gives the lead up: anybody may take it at once. What this store writes is still taken until
    /// somebody does.
    pub async fn release(&self) -> Result<(), StoreError> {
        let sql = "UPDATE leader SET expires = ? WHERE id = ? AND generation = ?";
        self.change(sql.to_owned(), 0_i64).await
    }

    async fn change<'q, V>(&self, sql: String, value: V) -> Result<(), StoreError>
    where
        V: sqlx::Encode<'q, sqlx::Any> + sqlx::Type<sqlx::Any> + Send + 'q,
    {
        // Made of constants alone.
        let changed = sqlx::query(AssertSqlSafe(sql))
            .bind(value)
            .bind(self.role as i32)
            .bind(self.generation.number())
            .execute(self.database.writer())
            .await?;
        match changed.rows_affected() {
            1 => Ok(()),
            _ => Err(self.generation.deposed(self.leader().await?.generation)),
        }
    }
}

async fn row(database: &Database, role: LeaseRole) -> Result<Leader, StoreError> {
    let now = database.dialect().now_ms();
    let sql =
        format!("SELECT holder, generation, expires - {now}, contact FROM leader WHERE id = ?");
    // Made of constants alone.
    let row = sqlx::query(AssertSqlSafe(sql)).bind(role as i32);
    let row = row.fetch_one(database.readers()).await?;
    let (generation, left): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
    Ok(Leader {
        holder: row.try_get(0)?,
        contact: row.try_get(3)?,
        generation: generation.cast_unsigned(),
        left: Duration::from_millis(left.max(0).cast_unsigned()),
    })
}

/// No lease is longer than a day, whatever is asked.
fn milliseconds(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX).min(86_400_000)
}

#[cfg(test)]
mod tests {
    use era_core::units::Time;
    use era_core::{Command, Input};

    use super::*;
    use crate::journal::{JournalEntry, Segment};
    use crate::{Store, testing};

    const LONG: Duration = Duration::from_secs(600);
    const SHORT: Duration = Duration::from_millis(30);

    /// Two servers of one site.
    async fn two() -> (tempfile::TempDir, Store, Store) {
        let folder = tempfile::tempdir().unwrap();
        let first = testing::open(folder.path()).await;
        let second = testing::open(folder.path()).await;
        (folder, first, second)
    }

    fn entry(seq: u64) -> JournalEntry {
        JournalEntry::of(&Input { seq, at: Time::from_s(1), command: Command::Tick }, None)
    }

    async fn append(store: &Store, seq: u64) -> Result<(), StoreError> {
        store.journal().append(&[entry(seq), entry(seq + 1)]).await
    }

    #[tokio::test]
    async fn one_leads_and_another_takes_over_once_the_lease_has_run_out() {
        let (_folder, first, second) = two().await;
        assert_eq!(first.lease().leader().await.unwrap().left, Duration::ZERO);
        assert_eq!(first.lease().acquire("first", LONG).await.unwrap(), None);
        let leader = second.lease().acquire("second", LONG).await.unwrap().unwrap();
        assert_eq!((leader.holder.as_str(), leader.generation), ("first", 1));
        assert!(leader.left > LONG / 2 && leader.left <= LONG, "{leader:?}");
        first.lease().renew(SHORT).await.unwrap();
        tokio::time::sleep(SHORT * 3).await;
        assert_eq!(second.lease().acquire("second", LONG).await.unwrap(), None);
        assert_eq!(second.lease().generation(), 2);
        let deposed = first.lease().renew(LONG).await.unwrap_err();
        assert!(matches!(deposed, StoreError::Deposed { ours: 1, newer: 2 }), "{deposed}");
        assert!(first.lease().release().await.is_err(), "it has nothing to give up");
        second.lease().release().await.unwrap();
        assert_eq!(first.lease().acquire("first", LONG).await.unwrap(), None);
        // The same server before a restart is succeeded at once.
        assert_eq!(second.lease().acquire("first", LONG).await.unwrap(), None);
        assert_eq!(second.lease().generation(), 4);
    }

    #[tokio::test]
    async fn every_seat_is_taken_by_itself_and_tells_how_its_holder_is_reached() {
        let (_folder, first, second) = two().await;
        assert_eq!(first.lease().acquire_with("a", Some("here s3cret"), LONG).await.unwrap(), None);
        let cloud = second.lease_of(LeaseRole::Cloud);
        assert_eq!(cloud.acquire_with("b", Some("there"), LONG).await.unwrap(), None);
        let led = second.lease().leader().await.unwrap();
        assert_eq!((led.holder.as_str(), led.contact.as_str()), ("a", "here s3cret"));
        assert!(!format!("{led:?}").contains("s3cret"), "{led:?}");
        assert_eq!(first.lease_of(LeaseRole::Cloud).leader().await.unwrap().contact, "there");
        assert_eq!(first.lease_of(LeaseRole::Files).leader().await.unwrap().generation, 0);
        // Who runs tasks writes nothing into the journal, and takes the lead from nobody.
        cloud.renew(LONG).await.unwrap();
        append(&first, 1).await.unwrap();
        cloud.release().await.unwrap();
        // What the one before told stays until another one tells something else.
        let next = first.lease_of(LeaseRole::Cloud);
        assert_eq!(next.acquire_with("c", None, LONG).await.unwrap(), None);
        assert_eq!(next.leader().await.unwrap().contact, "there");
        assert!(matches!(cloud.tell("here").await, Err(StoreError::Deposed { .. })));
        next.tell("elsewhere").await.unwrap();
        assert_eq!(cloud.leader().await.unwrap().contact, "elsewhere");
    }

    #[tokio::test]
    async fn a_leader_that_was_deposed_can_write_nothing() {
        let (_folder, first, second) = two().await;
        append(&first, 1).await.unwrap();
        first.lease().acquire("first", SHORT).await.unwrap();
        tokio::time::sleep(SHORT * 3).await;
        // Its lease has run out, but nobody else leads.
        append(&first, 3).await.unwrap();
        second.lease().acquire("second", LONG).await.unwrap();
        for seq in [5, 1] {
            let deposed = append(&first, seq).await.unwrap_err();
            assert!(matches!(deposed, StoreError::Deposed { ours: 1, newer: 2 }), "{deposed}");
        }
        let many: Vec<JournalEntry> = (5..3000).map(entry).collect();
        let deposed = first.journal().append(&many).await.unwrap_err();
        assert!(matches!(deposed, StoreError::Deposed { .. }), "{deposed}");
        let state = era_core::State::default();
        let segment = first.journal().begin_segment(&Segment::of(&state)).await.unwrap_err();
        assert!(matches!(segment, StoreError::Deposed { .. }), "{segment}");
        assert_eq!(second.journal().last_seq().await.unwrap(), 4);
        assert_eq!(second.journal().newest_segment().await.unwrap(), None);
        append(&second, 5).await.unwrap();
        // What is wrong otherwise is told as what it is.
        let twice = append(&second, 5).await.unwrap_err();
        assert!(matches!(twice, StoreError::Database(_)), "{twice}");
        // A standby reads on from where it was.
        let seen = first.journal().read(3, 100).await.unwrap();
        assert_eq!(seen.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [4, 5, 6]);
    }

    /// Another connection has the number of the next segment, so that the state is long on its way.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_state_that_is_long_on_its_way_keeps_neither_appends_nor_the_lead_waiting() {
        let (_folder, first, second) = two().await;
        if first.durable().dialect() == crate::Dialect::Sqlite {
            return; // A file has one writer: whoever writes it is waited for.
        }
        first.lease().acquire("first", LONG).await.unwrap();
        let mut blocks = second.durable().writer().begin().await.unwrap();
        let number = "INSERT INTO segments (number, first_seq, begun, core_version, wire_version, \
                      state) VALUES (1, 1, 1, 1, 1, '')";
        sqlx::query(number).execute(&mut *blocks).await.unwrap();
        let journal = first.journal();
        let segment = Segment::of(&era_core::State::default());
        let begins = tokio::spawn(async move { journal.begin_segment(&segment).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        let meanwhile = async {
            first.lease().renew(LONG).await.unwrap();
            append(&first, 1).await.unwrap();
        };
        tokio::time::timeout(Duration::from_secs(1), meanwhile).await.expect("it waits");
        assert!(!begins.is_finished(), "the number of the segment is not free yet");
        drop(blocks);
        begins.await.unwrap().unwrap();
        assert!(first.journal().newest_segment().await.unwrap().is_some());
    }

    /// However appends and changes of the lead meet: nothing of an older leader comes after the
    /// first entry of a newer one.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_append_slips_past_a_change_of_the_lead() {
        let (folder, ..) = two().await;
        let contender = |name: &'static str| {
            let folder = folder.path().to_owned();
            tokio::spawn(async move {
                let store = testing::open(&folder).await;
                let (mut wrote, mut led) = (0, 0);
                for _ in 0..60 {
                    if store
                        .lease()
                        .acquire(name, Duration::from_millis(2))
                        .await
                        .unwrap()
                        .is_some()
                    {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        continue;
                    }
                    led += 1;
                    let generation = store.lease().generation();
                    let mut last = store.journal().last_seq().await.unwrap();
                    for _ in 0..4 {
                        let mut entry = entry(last + 1);
                        entry.at = Time(generation.cast_signed());
                        match store.journal().append(&[entry]).await {
                            Ok(()) => wrote += 1,
                            Err(StoreError::Deposed { .. }) => break,
                            Err(error) => panic!("{error}"),
                        }
                        last += 1;
                    }
                }
                (wrote, led)
            })
        };
        let contenders = ["a", "b", "c"].map(contender);
        let (mut wrote, mut led) = (0, 0);
        for contender in contenders {
            let (entries, times) = contender.await.unwrap();
            wrote += entries;
            led += times;
        }
        let store = testing::open(folder.path()).await;
        let entries = store.journal().read(0, 1000).await.unwrap();
        assert_eq!(entries.len(), wrote);
        assert!(led > 3 && wrote > 3, "{led} {wrote}");
        let generations: Vec<i64> = entries.iter().map(|entry| entry.at.0).collect();
        assert!(generations.is_sorted(), "{generations:?}");
    }
}
