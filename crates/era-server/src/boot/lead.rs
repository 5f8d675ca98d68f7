//! The lead of a site: taken before anything is written, kept while the server runs, given up at
//! its end.
//!
//! The database decides who leads, by its own clock. A server that was paused so long that another
//! one took the lead finds out at its next append, which the journal refuses.

use std::path::Path;
use std::time::Duration;

use era_store::{Dialect, Lease, Store, StoreError};
use tokio::task::JoinHandle;

use super::BootError;

/// How long a lease runs. On a server another machine may wait for it; beside SQLite's files
/// nobody does, and the disk of an idle machine is left alone.
const ON_A_SERVER: Duration = Duration::from_secs(4);
const ON_FILES: Duration = Duration::from_secs(60);

/// A lead that is kept until it is given up.
pub(super) struct Lead {
    lease: Lease,
    keeper: JoinHandle<()>,
}

impl Lead {
    /// Takes the lead of a store, or says who has it.
    pub(super) async fn take(store: &Store) -> Result<Lead, BootError> {
        let lease = store.lease();
        let span = match store.place().dialect() {
            Dialect::Sqlite => ON_FILES,
            Dialect::MySql | Dialect::Postgres => ON_A_SERVER,
        };
        if let Some(leader) = lease.acquire(&name(store.folder()), span).await? {
            return Err(BootError::Led {
                place: store.place().to_string(),
                holder: leader.holder,
                left_s: leader.left.as_secs() + 1,
            });
        }
        let keeper = tokio::spawn(keep(lease.clone(), span));
        Ok(Lead { lease, keeper })
    }

    /// Gives the lead up, so that whoever comes next need not wait.
    pub(super) async fn give_up(self) {
        self.keeper.abort();
        if let Err(error) = self.lease.release().await {
            tracing::warn!(%error, "the lead was not given up: it runs out by itself");
        }
    }
}

async fn keep(lease: Lease, span: Duration) {
    loop {
        tokio::time::sleep(span / 4).await;
        match lease.renew(span).await {
            Ok(()) => {}
            Err(error @ StoreError::Deposed { .. }) => {
                tracing::error!(%error, "this server leads no more");
                return;
            }
            Err(error) => tracing::warn!(%error, "the lead could not be renewed"),
        }
    }
}

/// What a server is called: the same after a restart, and another on another machine.
fn name(folder: &Path) -> String {
    let machine = rustix::system::uname();
    format!("{}:{}", machine.nodename().to_string_lossy(), folder.display())
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
