//! What runs a node's tasks: processes of this machine under its supervisor, or containers of its
//! engine.
//!
//! Both obey the same orders. An engine finds its tasks again by the folders of their jobs, which
//! for a server are all in one place; here they are wherever the site has its data, so a link to
//! each is kept in the worker's own folder.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::{JOBS_FOLDER, JobId, Span};

use super::NodeError;
use crate::clock::MachineClock;
use crate::docker::{
    DockerEngine, DockerExecutor, DockerOptions, Endpoint, EngineAddress, LeaseTimes, Volumes,
};
use crate::executor::{Executor, Launch, Order, Reports};
use crate::local::{LocalExecutor, LocalOptions};

/// How late a guard in a container may look at what it was told, beside its kill: it looks every
/// second, counts in whole ones, and is given one more.
const LOOKS_LATE: Duration = Duration::from_secs(4);
/// Only engines that a cut may part from us have a use for it, and none of them is taken.
const FENCE: Span = Span::from_s(30);

/// What is to run a node's tasks.
#[derive(Clone, Debug)]
pub enum Runs {
    /// Processes, under a supervisor.
    Processes(LocalOptions),
    /// Containers of the engine of this machine.
    Containers(EngineAddress),
}

/// What runs them.
pub(super) struct Behind {
    executor: Box<dyn Executor>,
    jobs: Option<Jobs>,
    late: Duration,
}

impl Behind {
    pub(super) async fn start(
        runs: Runs,
        folder: &Path,
        clock: &MachineClock,
        reports: Reports,
    ) -> Result<Behind, NodeError> {
        match runs {
            Runs::Processes(options) => {
                let local = LocalExecutor::start(options, reports).await?;
                for note in local.notes() {
                    tracing::warn!("{note}");
                }
                Ok(Behind { executor: Box::new(local), jobs: None, late: Duration::ZERO })
            }
            Runs::Containers(address) => containers(address, folder, clock.clone(), reports).await,
        }
    }

    /// How long a task may outlast the lease that it was told of, if whoever tells it has died.
    pub(super) fn late(&self) -> Duration {
        self.late
    }

    pub(super) fn carry_out(&self, order: Order) {
        match (&self.jobs, &order) {
            (Some(jobs), Order::Launch(launch)) => jobs.begin(launch, || {
                self.executor.carry_out(order.clone());
            }),
            _ => self.executor.carry_out(order),
        }
    }

    pub(super) fn acknowledge(&self, task: TaskId) {
        match &self.jobs {
            None => self.executor.acknowledge(task),
            Some(jobs) => jobs.end(task.job, || {
                self.executor.acknowledge(task);
                self.executor.known().iter().any(|other| other.job == task.job)
            }),
        }
    }

    pub(super) fn known(&self) -> Vec<TaskId> {
        self.executor.known()
    }

    pub(super) async fn leave(&self) {
        self.executor.leave().await;
    }
}

async fn containers(
    address: EngineAddress,
    folder: &Path,
    clock: MachineClock,
    reports: Reports,
) -> Result<Behind, NodeError> {
    let near = matches!(address.endpoint, Endpoint::Unix(_));
    if !near || address.volumes != Volumes::Bind {
        return Err(NodeError::Elsewhere(address.endpoint.to_string()));
    }
    let data = folder.join("containers");
    let engine = DockerEngine::connect_for(&address, &data, clock.clone()).await?;
    if engine.is_swarm() {
        return Err(NodeError::Swarm(address.endpoint.to_string()));
    }
    let jobs = Jobs::below(&data)?;
    let options = DockerOptions { address, data, fence: FENCE, clock };
    let docker = DockerExecutor::start(options, reports).await?;
    let late = LeaseTimes::none().kill + LOOKS_LATE;
    Ok(Behind { executor: Box::new(docker), jobs: Some(jobs), late })
}

/// Links to the folders of jobs that have tasks here.
struct Jobs {
    data: PathBuf,
    /// So that no link goes while another task of its job comes.
    one_at_a_time: Mutex<()>,
}

impl Jobs {
    fn below(data: &Path) -> Result<Jobs, NodeError> {
        let path = data.join(JOBS_FOLDER);
        std::fs::create_dir_all(&path).map_err(|source| NodeError::Folder { path, source })?;
        Ok(Jobs { data: data.to_owned(), one_at_a_time: Mutex::new(()) })
    }

    fn link(&self, job: JobId) -> PathBuf {
        job.folder(&self.data)
    }

    fn begin(&self, launch: &Launch, begin: impl FnOnce()) {
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let (link, to) = (self.link(launch.task.job), &launch.spec.folder);
        if std::fs::read_link(&link).is_ok_and(|there| there == *to) {
            return begin();
        }
        let _ = std::fs::remove_file(&link);
        if let Err(error) = std::os::unix::fs::symlink(to, &link) {
            // It runs all the same, and would be removed as unknown when this worker starts anew.
            tracing::warn!(link = %link.display(), %error, "a restart would not find a task again");
        }
        begin();
    }

    /// `end` says whether the job still has tasks here.
    fn end(&self, job: JobId, end: impl FnOnce() -> bool) {
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        if !end() {
            let _ = std::fs::remove_file(self.link(job));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::launch;

    #[test]
    fn a_job_is_found_by_its_link_until_its_last_task_is_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let jobs = Jobs::below(folder.path()).expect("made");
        let launch = launch(7, &["true"]);
        let link = launch.task.job.folder(folder.path());
        let leads_there = || std::fs::read_link(&link).is_ok_and(|to| to == launch.spec.folder);
        jobs.begin(&launch, || {});
        assert!(leads_there());
        jobs.begin(&launch, || assert!(leads_there(), "before it begins"));
        jobs.end(launch.task.job, || true);
        assert!(leads_there(), "another task of it is here");
        jobs.end(launch.task.job, || false);
        assert!(!leads_there());
        // What was left there leads nowhere wrong.
        std::os::unix::fs::symlink("/elsewhere", &link).expect("a link");
        jobs.begin(&launch, || {});
        assert!(leads_there());
    }

    #[tokio::test]
    async fn an_engine_of_another_machine_is_refused_with_what_would_be_right() {
        let folder = tempfile::tempdir().expect("a folder");
        for text in ["docker://manager:2376?tls=/c", "docker:///s?volumes=nfs:10.0.0.1:/srv"] {
            let address = EngineAddress::parse(text).expect("an address");
            let (tell, _told) = tokio::sync::mpsc::channel(1);
            let refused = Behind::start(
                Runs::Containers(address),
                folder.path(),
                &MachineClock::system(),
                tell,
            )
            .await;
            let said = refused.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.contains("docker:///run/docker.sock"), "{text}: {said}");
        }
    }
}
