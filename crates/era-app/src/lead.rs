//! The lead of a site, and the seats beside it: taken before anything is written, kept while the
//! server runs, given up at its end.
//!
//! The database decides who has them, by its own clock. A server that was paused so long that
//! another one took its place finds out at its next renewal, and a scheduler at its next append at
//! the latest, which the journal refuses.

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use era_store::{Dialect, Leader, Lease, Seat, Store, StoreError, answered_within};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::machine;

/// Why a server does not lead.
#[derive(Debug, thiserror::Error)]
pub enum LeadError {
    /// Who leads cannot be told.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another server is at work on the same rows.
    #[error(
        "{place} is led by {holder} for another {left_s} s: stop that server, or wait until it is \
         gone; for a scheduler that stands by there is `era core`"
    )]
    Led {
        /// Where the rows are.
        place: String,
        holder: String,
        /// How long at least.
        left_s: u64,
    },
    /// A server is at work in the same folder.
    #[error(
        "{}: a server is at work there already, process {process}: stop it, or give another folder",
        folder.display()
    )]
    Occupied {
        folder: PathBuf,
        /// The other server, as it says itself.
        process: String,
    },
}

/// How long a lease runs. On a server another machine may wait for it; beside SQLite's files
/// nobody does, and the disk of an idle machine is left alone.
const ON_A_SERVER: Duration = Duration::from_secs(3);
const ON_FILES: Duration = Duration::from_secs(60);
/// How long a renewal may take, and how long a scheduler goes on without one.
const RENEWAL_MAX: Duration = Duration::from_secs(5);
const SILENT_MAX: Duration = Duration::from_secs(10);
/// How often whoever stands by looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A lead that is kept until it is given up.
pub struct Lead {
    lease: Lease,
    keeper: JoinHandle<()>,
    lost: CancellationToken,
    renewed: watch::Receiver<Duration>,
    span: Duration,
}

/// Who would lead: what it is called, and how it is reached. Without the latter, what the one before
/// it has told stays.
pub struct Candidate {
    /// What it is called.
    pub name: String,
    /// How it is reached.
    pub contact: Option<String>,
}

impl Candidate {
    /// A whole site in one process. It is called the same after a restart, and otherwise on
    /// another machine.
    pub fn alone(folder: &Path) -> Candidate {
        let name = format!("{} ({}):{}", machine::name(), machine::id(), folder.display());
        Candidate { name, contact: Some(String::new()) }
    }

    /// One of several that may share a machine and a folder, but not an address.
    pub fn at(address: SocketAddr, contact: Option<String>) -> Candidate {
        Candidate { name: format!("{} ({}) at {address}", machine::name(), machine::id()), contact }
    }
}

/// How long this machine has been up, also while it was suspended: a lease goes on meanwhile.
fn up() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    // On macOS this one goes on during sleep, by its manual.
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    // Neither is ever before the start.
    Duration::try_from(rustix::time::clock_gettime(clock)).unwrap_or_default()
}

/// Keeps other servers out of a folder for as long as the file is open: the lease takes one that is
/// started there for this one after a restart. The system lets go of it however a process ends.
pub fn occupy(folder: &Path) -> Result<File, LeadError> {
    let failed = |source| StoreError::Folder { folder: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let path = folder.join("server.lock");
    let open = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = open.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let process = std::fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
            return Err(LeadError::Occupied { folder: folder.to_owned(), process });
        }
        // Some file systems have no locks; the lease is there all the same.
        Err(TryLockError::Error(error)) => {
            tracing::warn!(%error, "this folder cannot be locked: start no second server on it");
        }
    }
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}

impl Lead {
    /// Takes the lead of a store, or says who has it.
    pub async fn take(store: &Store) -> Result<Lead, LeadError> {
        let span = match store.place().dialect() {
            Dialect::Sqlite => ON_FILES,
            Dialect::MySql | Dialect::Postgres => ON_A_SERVER,
        };
        let candidate = Candidate::alone(store.folder());
        Lead::try_take(store.lease(), &candidate, span).await?.map_err(|leader| LeadError::Led {
            place: store.place().to_string(),
            holder: leader.holder,
            left_s: leader.left.as_secs() + 1,
        })
    }

    /// Takes a seat if it is free, or else says who has it. While it is held it is only looked at,
    /// so that nobody who leads has to wait for a lock.
    pub async fn try_seat(
        lease: &Lease,
        candidate: &Candidate,
    ) -> Result<Result<Lead, Leader>, StoreError> {
        let leader = lease.leader().await?;
        if !leader.left.is_zero() && leader.holder != candidate.name {
            return Ok(Err(leader));
        }
        Lead::try_take(lease.clone(), candidate, ON_A_SERVER).await
    }

    /// Waits until a seat is free, and takes it; says who has it meanwhile. A database that is away
    /// is waited for too.
    pub async fn wait_for(
        lease: &Lease,
        candidate: &Candidate,
        mut held: impl FnMut(&Leader),
    ) -> Result<Lead, StoreError> {
        loop {
            match Lead::try_seat(lease, candidate).await {
                Ok(Ok(lead)) => return Ok(lead),
                Ok(Err(leader)) => held(&leader),
                Err(error) if error.may_pass() => {
                    tracing::warn!(%error, "the database does not answer: trying again");
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn try_take(
        lease: Lease,
        candidate: &Candidate,
        span: Duration,
    ) -> Result<Result<Lead, Leader>, StoreError> {
        let begun = up();
        let Candidate { name, contact } = candidate;
        if let Some(leader) = lease.acquire_with(name, contact.as_deref(), span).await? {
            return Ok(Err(leader));
        }
        let lost = CancellationToken::new();
        let (renewals, renewed) = watch::channel(begun);
        let keeper = tokio::spawn(keep(lease.clone(), span, renewals, lost.clone()));
        Ok(Ok(Lead { lease, keeper, lost, renewed, span }))
    }

    /// Comes back when somebody else has taken it.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Something that waits while the lease may have run out: it was not renewed in time.
    pub fn gate(&self) -> Gate {
        Gate { renewed: self.renewed.clone(), span: self.span }
    }

    /// Gives the lead up, so that whoever comes next need not wait.
    pub async fn give_up(self) {
        self.keeper.abort();
        if let Err(error) = self.lease.release().await {
            tracing::warn!(%error, "the lead was not given up: it runs out by itself");
        }
    }
}

/// Open while a lease has not run out, by this machine's own clock, which does not stand still
/// while a process is paused, nor while the machine is suspended.
#[derive(Clone)]
pub struct Gate {
    renewed: watch::Receiver<Duration>,
    span: Duration,
}

impl Gate {
    /// Waits until it is open; `false` if it never will be.
    pub async fn pass(&mut self) -> bool {
        let span = self.span;
        self.renewed.wait_for(|renewed| up().saturating_sub(*renewed) < span).await.is_ok()
    }

    /// Whether it is open right now.
    pub fn is_open(&self) -> bool {
        up().saturating_sub(*self.renewed.borrow()) < self.span
    }
}

async fn keep(
    lease: Lease,
    span: Duration,
    renewals: watch::Sender<Duration>,
    lost: CancellationToken,
) {
    loop {
        tokio::time::sleep(span / 4).await;
        let begun = up();
        match answered_within(RENEWAL_MAX, lease.renew(span)).await {
            Ok(()) => drop(renewals.send_replace(begun)),
            Err(error @ StoreError::Deposed { .. }) => {
                tracing::error!(%error, "this server leads no more");
                return lost.cancel();
            }
            Err(error) => tracing::warn!(%error, "the lead could not be renewed"),
        }
        // Whoever would wait for the database for ever cannot say that it leads no more. Beside
        // SQLite's files nobody else would lead.
        let silent = up().saturating_sub(*renewals.borrow()) > SILENT_MAX;
        if silent && span < SILENT_MAX && lease.seat() == Seat::Scheduler {
            tracing::error!("the lead could not be renewed for {SILENT_MAX:?}: this server ends");
            return lost.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_leads_alone_and_succeeds_itself_after_a_crash() {
        let [files, here, there] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let place = era_store::Place::folder(files.path());
        let open = async |folder: &Path| Store::open_at(folder, &place, None).await.unwrap();
        let (first, other) = (open(here.path()).await, open(there.path()).await);
        let lead = Lead::take(&first).await.unwrap();
        let error = Lead::take(&other).await.err().unwrap().to_string();
        assert!(error.contains("is led by") && error.contains("stop that server"), "{error}");
        // A crash gives nothing up, and the same server is up again at once.
        lead.keeper.abort();
        let again = Lead::take(&open(here.path()).await).await.unwrap();
        let late = lead.lease.renew(ON_FILES).await.unwrap_err();
        assert!(matches!(late, StoreError::Deposed { .. }), "{late}");
        again.give_up().await;
        Lead::take(&other).await.unwrap().give_up().await;
    }
}
