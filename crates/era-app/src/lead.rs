//! The lead of a site, and the leases beside it: taken before anything is written, kept while the
//! server runs, given up at its end.
//!
//! The database decides who has them, by its own clock. A server that was paused so long that
//! another one took its place finds out at its next renewal, and a scheduler at its next append at
//! the latest, which the journal refuses. What follows from a row or an answer is decided by
//! [`era_drive::lead`].

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use era_drive::lead::{LeaseRules, RENEWAL_MAX, Renewal, Tenure, Verdict, may_take};
use era_store::{Dialect, Leader, Lease, LeaseRole, Store, StoreError, answered_within};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::machine;

pub use era_drive::lead::LOOK_EVERY;

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

/// A lead that is kept until it is given up.
pub struct Lead {
    lease: Lease,
    keeper: JoinHandle<()>,
    lost: CancellationToken,
    gate: LeaseGate,
}

/// Who would lead: what it is called, and how it is reached. Without the latter, what the one before
/// it has told stays.
pub struct LeaderCandidate {
    /// What it is called.
    pub name: String,
    /// How it is reached.
    pub contact: Option<String>,
    /// By which it counts how long its lease runs.
    pub clock: Arc<dyn Clock>,
}

impl LeaderCandidate {
    /// A whole site in one process. It is called the same after a restart, and otherwise on
    /// another machine.
    pub fn alone(folder: &Path, clock: Arc<dyn Clock>) -> LeaderCandidate {
        let name = format!("{} ({}):{}", machine::name(), machine::id(), folder.display());
        LeaderCandidate { name, contact: Some(String::new()), clock }
    }

    /// One of several that may share a machine and a folder, but not an address.
    pub fn at(
        address: SocketAddr,
        contact: Option<String>,
        clock: Arc<dyn Clock>,
    ) -> LeaderCandidate {
        let name = format!("{} ({}) at {address}", machine::name(), machine::id());
        LeaderCandidate { name, contact, clock }
    }
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
    pub async fn take(store: &Store, clock: Arc<dyn Clock>) -> Result<Lead, LeadError> {
        let rules = match store.place().dialect() {
            Dialect::Sqlite => LeaseRules::ON_FILES,
            Dialect::MySql | Dialect::Postgres => LeaseRules::OF_THE_SCHEDULER,
        };
        let candidate = LeaderCandidate::alone(store.folder(), clock);
        Lead::try_take(store.lease(), &candidate, rules).await?.map_err(|leader| LeadError::Led {
            place: store.place().to_string(),
            holder: leader.holder,
            left_s: leader.left.as_secs() + 1,
        })
    }

    /// Takes a lease if it is free, or else says who has it.
    pub async fn try_seat(
        lease: &Lease,
        candidate: &LeaderCandidate,
    ) -> Result<Result<Lead, Leader>, StoreError> {
        let leader = lease.leader().await?;
        if !may_take(&candidate.name, &leader.holder, leader.left) {
            return Ok(Err(leader));
        }
        let rules = match lease.role() {
            LeaseRole::Scheduler => LeaseRules::OF_THE_SCHEDULER,
            LeaseRole::Cloud | LeaseRole::Files => LeaseRules::ON_A_SERVER,
        };
        Lead::try_take(lease.clone(), candidate, rules).await
    }

    /// Waits until a lease is free, and takes it; says who has it meanwhile. A database that is away
    /// is waited for too.
    pub async fn wait_for(
        lease: &Lease,
        candidate: &LeaderCandidate,
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
        candidate: &LeaderCandidate,
        rules: LeaseRules,
    ) -> Result<Result<Lead, Leader>, StoreError> {
        let LeaderCandidate { name, contact, clock } = candidate;
        let asked = clock.up();
        if let Some(leader) = lease.acquire_with(name, contact.as_deref(), rules.span).await? {
            return Ok(Err(leader));
        }
        let lost = CancellationToken::new();
        let (renewals, tenure) = watch::channel(Tenure::new(rules, asked));
        let keeper = tokio::spawn(keep(lease.clone(), clock.clone(), renewals, lost.clone()));
        Ok(Ok(Lead { lease, keeper, lost, gate: LeaseGate { tenure, clock: clock.clone() } }))
    }

    /// Comes back when somebody else has taken it.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Something that waits while the lease may have run out: it was not renewed in time.
    pub fn gate(&self) -> LeaseGate {
        self.gate.clone()
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
pub struct LeaseGate {
    tenure: watch::Receiver<Tenure>,
    clock: Arc<dyn Clock>,
}

impl LeaseGate {
    /// Waits until it is open; `false` if it never will be.
    pub async fn pass(&mut self) -> bool {
        let clock = &self.clock;
        self.tenure.wait_for(|tenure| tenure.holds(clock.up())).await.is_ok()
    }

    /// Whether it is open right now.
    pub fn is_open(&self) -> bool {
        self.tenure.borrow().holds(self.clock.up())
    }
}

/// Renews a lease until it is lost.
async fn keep(
    lease: Lease,
    clock: Arc<dyn Clock>,
    renewals: watch::Sender<Tenure>,
    lost: CancellationToken,
) {
    let mut tenure = *renewals.borrow();
    loop {
        tokio::time::sleep(tenure.renew_every()).await;
        let asked = clock.up();
        let renewal = match answered_within(RENEWAL_MAX, lease.renew(tenure.span())).await {
            Ok(()) => Renewal::Renewed,
            Err(error @ StoreError::Deposed { .. }) => {
                tracing::error!(%error, "this server leads no more");
                Renewal::Deposed
            }
            Err(error) => {
                tracing::warn!(%error, "the lead could not be renewed");
                Renewal::Unanswered
            }
        };
        let verdict = tenure.answered(asked, clock.up(), renewal);
        renewals.send_replace(tenure);
        match verdict {
            Verdict::Keep => {}
            Verdict::Deposed => return lost.cancel(),
            Verdict::Silent(most) => {
                tracing::error!("the lead could not be renewed for {most:?}: this server ends");
                return lost.cancel();
            }
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
        let clock = || crate::clock::tests::of_this_machine();
        let (first, other) = (open(here.path()).await, open(there.path()).await);
        let lead = Lead::take(&first, clock()).await.unwrap();
        let error = Lead::take(&other, clock()).await.err().unwrap().to_string();
        assert!(error.contains("is led by") && error.contains("stop that server"), "{error}");
        // A crash gives nothing up, and the same server is up again at once.
        lead.keeper.abort();
        let again = Lead::take(&open(here.path()).await, clock()).await.unwrap();
        let late = lead.lease.renew(LeaseRules::ON_FILES.span).await.unwrap_err();
        assert!(matches!(late, StoreError::Deposed { .. }), "{late}");
        again.give_up().await;
        Lead::take(&other, clock()).await.unwrap().give_up().await;
    }
}
