//! One engine and all that is asked of it: nodes, instances, volumes, networks and logs.
//!
//! A plain engine and a Swarm are told apart when they are reached, and look the same from here
//! on. Making and removing are idempotent: what is there already was made, what is not there was
//! removed. What is asked for, and when, is not decided here.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bollard::Docker as Api;
use bollard::container::LogOutput;
use bollard::models::{
    LocalNodeState, NetworkCreateRequest, SecretSpec, ServiceSpecMode, ServiceSpecModeReplicated,
    VolumeCreateRequest,
};
use bollard::query_parameters::{
    CreateContainerOptions, KillContainerOptions, ListContainersOptions, ListNetworksOptions,
    ListSecretsOptions, ListServicesOptions, ListTasksOptions, LogsOptions, RemoveContainerOptions,
    UpdateServiceOptions,
};
use era_core::job::TaskId;
use futures_util::{Stream, StreamExt};
use tokio::time::Instant;

use super::address::{Endpoint, EngineAddress, Volumes};
use super::failure::DockerError;
use super::instance::{EngineNode, Instance, InstanceState, InstanceStatus, Volume};
use super::names::{self, SiteId};
use super::registry::Registry;
use super::{plain, swarm};
use crate::clock::MachineClock;

/// The oldest API that has all that is needed: Docker 20.10.
const API_MIN: (usize, usize) = (1, 41);
const API_MIN_TEXT: &str = "1.41";
/// How long a call may take before its answer begins.
const CALL_TIME_S: u64 = 60;
/// How often it is asked whether what was stopped is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// An engine that was reached.
#[derive(Clone)]
pub struct DockerEngine {
    pub(super) api: Api,
    /// Where it is, as users read it.
    pub(super) place: String,
    site: SiteId,
    is_swarm: bool,
    id: Option<String>,
    host: String,
    /// The only node of a Swarm that tasks are for: a volume of one engine's own is seen there
    /// alone.
    only: Option<String>,
    pub(super) registry: Registry,
    /// The clock of the machine that asks it.
    pub(super) clock: MachineClock,
    /// One network is made at a time.
    making: Arc<tokio::sync::Mutex<()>>,
}

/// Lines of a log as they come: whether an error stream's, and the bytes.
pub(super) type LogLines = Pin<Box<dyn Stream<Item = Result<(bool, Vec<u8>), DockerError>> + Send>>;

impl DockerEngine {
    /// Reaches an engine, and finds out what it is.
    pub async fn connect(
        address: &EngineAddress,
        site: SiteId,
        clock: MachineClock,
    ) -> Result<DockerEngine, DockerError> {
        let place = address.endpoint.to_string();
        let failed = |error| DockerError::of(&place, "answer", error);
        let api = open(&address.endpoint).map_err(failed)?;
        let api = api.negotiate_version().await.map_err(failed)?;
        let speaks = api.client_version();
        if (speaks.major_version, speaks.minor_version) < API_MIN {
            let has = format!("{}.{}", speaks.major_version, speaks.minor_version);
            return Err(DockerError::TooOld { engine: place, has, needs: API_MIN_TEXT });
        }
        let info = api.info().await.map_err(failed)?;
        let host = info.name.unwrap_or_default();
        let swarm = info.swarm.unwrap_or_default();
        let is_swarm = swarm.local_node_state == Some(LocalNodeState::ACTIVE);
        if is_swarm && swarm.control_available != Some(true) {
            return Err(DockerError::Worker { engine: place });
        }
        let is_local = matches!(address.volumes, Volumes::Local { .. });
        let only = swarm.node_id.filter(|_| is_swarm && is_local);
        let cluster = || swarm.cluster.and_then(|cluster| cluster.id);
        let id = if is_swarm { cluster() } else { info.id };
        let id = id.filter(|id| !id.is_empty());
        let registry = Registry::of(address)?;
        let making = Arc::default();
        Ok(DockerEngine { api, place, site, is_swarm, id, host, only, registry, clock, making })
    }

    /// The same for the site of a data folder.
    pub async fn connect_for(
        address: &EngineAddress,
        data: &Path,
        clock: MachineClock,
    ) -> Result<DockerEngine, DockerError> {
        let site = SiteId::of(data)
            .map_err(|source| DockerError::Io { what: "name this site".into(), source })?;
        DockerEngine::connect(address, site, clock).await
    }

    /// Whether it is a Swarm, of however many nodes.
    pub fn is_swarm(&self) -> bool {
        self.is_swarm
    }

    /// What it calls itself, however it is reached: the engine, or the whole Swarm.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// What its machine is called.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Where it is, as users read it.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The site that it is asked for.
    pub(super) fn site(&self) -> &SiteId {
        &self.site
    }

    fn did(&self, what: &str) -> impl FnOnce(bollard::errors::Error) -> DockerError {
        let (place, what) = (self.place.clone(), what.to_owned());
        move |error| DockerError::of(&place, &what, error)
    }

    /// The nodes that there are, whatever their health.
    pub async fn nodes(&self) -> Result<Vec<EngineNode>, DockerError> {
        if !self.is_swarm {
            let info = self.api.info().await.map_err(self.did("describe its machine"))?;
            return Ok(vec![plain::node(&info)]);
        }
        let options = None::<bollard::query_parameters::ListNodesOptions>;
        let nodes = self.api.list_nodes(options).await.map_err(self.did("list nodes"))?;
        let fits = |node: &EngineNode| self.only.as_ref().is_none_or(|only| *only == node.id);
        Ok(nodes.iter().map(swarm::node).filter(fits).collect())
    }

    /// Makes an instance, and starts it if that is wanted. One of that name that is there already
    /// is this one.
    pub async fn create(&self, instance: &Instance, start: bool) -> Result<(), DockerError> {
        if self.is_swarm {
            return self.create_service(instance, start).await;
        }
        let options =
            CreateContainerOptions { name: Some(instance.name.clone()), platform: String::new() };
        let made = |error| DockerError::of(&self.place, "make a container", error);
        let body = plain::container(instance);
        match self.api.create_container(Some(options.clone()), body.clone()).await.map_err(made) {
            Ok(_) => {}
            Err(error) if error.is_already_there() => {}
            Err(error) if error.is_missing() && names_image(&error, &instance.image) => {
                self.pull(&instance.image).await?;
                self.api.create_container(Some(options), body).await.map_err(made)?;
            }
            Err(error) => return Err(error),
        }
        if start { self.start_container(&instance.name).await } else { Ok(()) }
    }

    async fn create_service(&self, instance: &Instance, start: bool) -> Result<(), DockerError> {
        let secret = match &instance.secrets {
            Some(text) => Some(self.ensure_secret(instance, text).await?),
            None => None,
        };
        let spec = swarm::service(instance, secret.as_deref(), i64::from(start));
        let credentials = self.registry.credentials_for(&instance.image);
        let made = self.api.create_service(spec, credentials).await;
        match made.map_err(self.did("make a service")) {
            Err(error) if !error.is_already_there() => Err(error),
            _ => Ok(()),
        }
    }

    async fn ensure_secret(&self, instance: &Instance, text: &str) -> Result<String, DockerError> {
        let spec = SecretSpec {
            name: Some(instance.name.clone()),
            labels: Some(instance.labels.clone()),
            data: Some(BASE64_STANDARD.encode(text)),
            ..SecretSpec::default()
        };
        match self.api.create_secret(spec).await.map_err(self.did("keep a secret")) {
            Ok(made) => Ok(made.id),
            Err(error) if error.is_already_there() => {
                let there = self.api.inspect_secret(&instance.name).await;
                let there = there.map_err(self.did("find a secret"))?;
                there.id.ok_or_else(|| self.no_id("secret"))
            }
            Err(error) => Err(error),
        }
    }

    fn no_id(&self, what: &str) -> DockerError {
        let problem = format!("its answer gives no id for a {what}");
        DockerError::Unreachable { engine: self.place.clone(), problem }
    }

    async fn start_container(&self, name: &str) -> Result<(), DockerError> {
        let options = None::<bollard::query_parameters::StartContainerOptions>;
        self.api.start_container(name, options).await.map_err(self.did("start a container"))
    }

    /// Starts an instance that was made and not started.
    pub async fn start(&self, task: TaskId) -> Result<(), DockerError> {
        let name = names::task_name(&self.site, task);
        if self.is_swarm { self.scale(&name, 1).await } else { self.start_container(&name).await }
    }

    /// Stops an instance: signalled now, killed after the grace that it was made with. A Swarm does
    /// not wait for that, and knows it then as one that was made and not started.
    pub async fn stop(&self, task: TaskId) -> Result<(), DockerError> {
        let name = names::task_name(&self.site, task);
        if self.is_swarm {
            return self.scale(&name, 0).await;
        }
        let options = None::<bollard::query_parameters::StopContainerOptions>;
        self.api.stop_container(&name, options).await.map_err(self.did("stop a container"))
    }

    /// Signals an instance of a plain engine; one that does not run needs none.
    pub(super) async fn signal(&self, task: TaskId, signal: &str) -> Result<(), DockerError> {
        let options = Some(KillContainerOptions { signal: signal.to_owned() });
        let name = names::task_name(&self.site, task);
        match self.api.kill_container(&name, options).await.map_err(self.did("signal a container"))
        {
            Err(error) if !error.is_missing() && !error.is_already_there() => Err(error),
            _ => Ok(()),
        }
    }

    async fn scale(&self, name: &str, replicas: i64) -> Result<(), DockerError> {
        let none = None::<bollard::query_parameters::InspectServiceOptions>;
        let found = self.api.inspect_service(name, none).await;
        let found = found.map_err(self.did("find a service"))?;
        let (Some(mut spec), Some(version)) =
            (found.spec, found.version.and_then(|version| version.index))
        else {
            return Err(self.no_id("service"));
        };
        let replicated = Some(ServiceSpecModeReplicated { replicas: Some(replicas) });
        let now = spec.mode.take().and_then(|mode| mode.replicated);
        if now == replicated {
            return Ok(());
        }
        if replicas > 0 {
            self.wait_for_none_of(name).await?;
        }
        spec.mode = Some(ServiceSpecMode { replicated, ..ServiceSpecMode::default() });
        let options = UpdateServiceOptions {
            version: i32::try_from(version).unwrap_or(i32::MAX),
            ..UpdateServiceOptions::default()
        };
        let updated = self.api.update_service(name, spec, options, None).await;
        updated.map(drop).map_err(self.did("scale a service"))
    }

    /// Waits until what was stopped of a service is gone: a Swarm takes it for the new one, and
    /// does not replace it when it ends.
    async fn wait_for_none_of(&self, name: &str) -> Result<(), DockerError> {
        let until = Instant::now() + Duration::from_secs(CALL_TIME_S);
        while self.seen(name).await?.is_some() && Instant::now() < until {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Removes an instance with all that was made for it alone.
    pub async fn delete(&self, task: TaskId) -> Result<(), DockerError> {
        self.delete_named(&names::task_name(&self.site, task)).await
    }

    pub(super) async fn delete_named(&self, name: &str) -> Result<(), DockerError> {
        if !self.is_swarm {
            let options = RemoveContainerOptions { force: true, v: true, link: false };
            let removed = self.api.remove_container(name, Some(options)).await;
            return gone(removed.map_err(self.did("remove a container")));
        }
        gone(self.api.delete_service(name).await.map_err(self.did("remove a service")))?;
        gone(self.api.delete_secret(name).await.map_err(self.did("remove a secret")))
    }

    /// How a service of this name is that is no task; `None` while nothing is known of it.
    pub(super) async fn seen(&self, name: &str) -> Result<Option<InstanceState>, DockerError> {
        let filters = HashMap::from([("service".to_owned(), vec![name.to_owned()])]);
        let options = ListTasksOptions { filters: Some(filters) };
        let tasks = self.api.list_tasks(Some(options)).await.map_err(self.did("list tasks"))?;
        Ok(tasks.first().map(swarm::seen))
    }

    /// Why an instance that it took could not be started. A node of a Swarm that got no image says
    /// only that it has none, whatever its registry said: the registry is asked again from here.
    pub(super) async fn why_failed(&self, image: &str, answer: &str) -> DockerError {
        let error = DockerError::of_start(&self.place, image, answer);
        let unsaid = matches!(error, DockerError::NoImage { .. }) && !error.is_passing();
        if !self.is_swarm || !unsaid {
            return error;
        }
        // One that was built here is called otherwise than the job says.
        let named = answer.split_once("No such image: ").map(|(_, named)| named);
        let named = named.and_then(|named| named.split_whitespace().next()).unwrap_or(image);
        let credentials = self.registry.credentials_for(named);
        let asked = self.api.inspect_registry_image(named, credentials).await;
        let answer = match asked.map_err(self.did("ask a registry")) {
            Ok(_) => format!("{answer}, {}", super::failure::REGISTRY_HAS_IT),
            Err(DockerError::Refused { answer: said, .. }) => {
                format!("{answer}: {}", self.registry.redact(&said))
            }
            Err(away) if away.is_passing() => return away,
            Err(_) => return error,
        };
        DockerError::of_start(&self.place, image, &answer)
    }

    /// Removes what was made for gangs that nobody looks after any more; each is named by its first
    /// rank.
    pub(super) async fn sweep(&self, keep: &BTreeSet<TaskId>) -> Result<(), DockerError> {
        let filters = Some(names::ours(&self.site));
        let options = ListNetworksOptions { filters: filters.clone() };
        let networks = self.api.list_networks(Some(options)).await;
        for network in networks.map_err(self.did("list networks"))? {
            let labels = network.labels.unwrap_or_default();
            if let Some(task) = names::task(&self.site, &labels).filter(|task| !keep.contains(task))
            {
                self.delete_network(task).await?;
            }
        }
        if !self.is_swarm {
            return Ok(());
        }
        let services = ListServicesOptions { filters: filters.clone(), status: None };
        let services = self.api.list_services(Some(services)).await;
        let mut named = BTreeSet::new();
        for service in services.map_err(self.did("list services"))? {
            let spec = service.spec.unwrap_or_default();
            let staging = spec.labels.is_some_and(|labels| labels.contains_key(names::PURPOSE));
            match spec.name {
                Some(name) if staging => self.delete_named(&name).await?,
                name => named.extend(name),
            }
        }
        self.sweep_secrets(&named, filters).await
    }

    /// Removes secrets without a service: whoever kept them died before there was one.
    async fn sweep_secrets(
        &self,
        services: &BTreeSet<String>,
        filters: Option<HashMap<String, Vec<String>>>,
    ) -> Result<(), DockerError> {
        let secrets = self.api.list_secrets(Some(ListSecretsOptions { filters })).await;
        for secret in secrets.map_err(self.did("list secrets"))? {
            let name = secret.spec.and_then(|spec| spec.name);
            // A secret is called after its service.
            if let Some(name) = name.filter(|name| !services.contains(name)) {
                gone(self.api.delete_secret(&name).await.map_err(self.did("remove a secret")))?;
            }
        }
        Ok(())
    }

    /// How one instance is; `None` if there is none.
    pub async fn inspect(&self, task: TaskId) -> Result<Option<InstanceStatus>, DockerError> {
        let all = self.list().await?;
        Ok(all.into_iter().find(|sighting| sighting.task == task))
    }

    /// How all instances of this site are.
    pub async fn list(&self) -> Result<Vec<InstanceStatus>, DockerError> {
        if self.is_swarm { self.list_services().await } else { self.list_containers().await }
    }

    async fn list_services(&self) -> Result<Vec<InstanceStatus>, DockerError> {
        let filters = Some(names::ours(&self.site));
        let services = ListServicesOptions { filters: filters.clone(), status: None };
        let services = self.api.list_services(Some(services)).await;
        let services = services.map_err(self.did("list services"))?;
        let tasks = self.api.list_tasks(Some(ListTasksOptions { filters })).await;
        let mut tasks = swarm::newest(tasks.map_err(self.did("list tasks"))?);
        let mut sightings = Vec::new();
        for service in services {
            let labels = service.spec.and_then(|spec| spec.labels).unwrap_or_default();
            let Some(task) = names::task(&self.site, &labels) else { continue };
            let under_way = service.id.and_then(|id| tasks.remove(&id));
            sightings.push(match under_way {
                Some(found) => {
                    InstanceStatus { task, node: found.node_id.clone(), state: swarm::seen(&found) }
                }
                None => InstanceStatus {
                    task,
                    node: None,
                    state: InstanceState::Waits("no task was made yet".into()),
                },
            });
        }
        // A service that is removed is no longer listed, long before its container is gone.
        for left in tasks.into_values() {
            let state = swarm::seen(&left);
            let task = names::task(&self.site, &swarm::labels(&left));
            if let Some(task) = task.filter(|_| !state.is_over()) {
                sightings.push(InstanceStatus { task, node: left.node_id, state });
            }
        }
        Ok(sightings)
    }

    async fn list_containers(&self) -> Result<Vec<InstanceStatus>, DockerError> {
        let filters = Some(names::ours(&self.site));
        let options =
            ListContainersOptions { all: true, filters, ..ListContainersOptions::default() };
        let listed = self.api.list_containers(Some(options)).await;
        let mut sightings = Vec::new();
        for container in listed.map_err(self.did("list containers"))? {
            let labels = container.labels.clone().unwrap_or_default();
            let Some(task) = names::task(&self.site, &labels) else { continue };
            let state = match plain::stage(&container) {
                Some(true) => InstanceState::Runs,
                None => InstanceState::Waits("it was made and not started".into()),
                Some(false) => match self.ended(task).await? {
                    Some(seen) => seen,
                    None => continue,
                },
            };
            sightings.push(InstanceStatus { task, node: None, state });
        }
        Ok(sightings)
    }

    /// How a container ended; `None` if it is gone.
    async fn ended(&self, task: TaskId) -> Result<Option<InstanceState>, DockerError> {
        let none = None::<bollard::query_parameters::InspectContainerOptions>;
        let name = names::task_name(&self.site, task);
        let inspected = self.api.inspect_container(&name, none).await;
        let state = match inspected.map_err(self.did("inspect a container")) {
            Ok(inspected) => inspected.state.unwrap_or_default(),
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        };
        let code = state.exit_code.and_then(|code| i32::try_from(code).ok()).unwrap_or(1);
        Ok(Some(match state.error.filter(|error| !error.is_empty()) {
            Some(error) => InstanceState::Failed(super::failure::sentence(&error)),
            None => InstanceState::Ended(code),
        }))
    }

    /// Makes a volume. One of that name that is there already is this one.
    pub async fn create_volume(&self, name: &str, volume: &Volume) -> Result<(), DockerError> {
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            driver: Some("local".into()),
            driver_opts: Some(volume.driver_options()),
            labels: Some([(names::SITE.to_owned(), self.site.as_str().to_owned())].into()),
            ..VolumeCreateRequest::default()
        };
        self.api.create_volume(request).await.map(drop).map_err(self.did("make a volume"))
    }

    /// Where the engine's machine keeps what is in a volume of its own.
    pub(super) async fn folder_of(&self, name: &str) -> Result<PathBuf, DockerError> {
        let none = || DockerError::NoVolume { engine: self.place.clone(), name: name.to_owned() };
        match self.api.inspect_volume(name).await.map_err(self.did("find a volume")) {
            Ok(volume) if volume.mountpoint.starts_with('/') => Ok(volume.mountpoint.into()),
            Err(error) if !error.is_missing() => Err(error),
            _ => Err(none()),
        }
    }

    pub async fn delete_volume(&self, name: &str) -> Result<(), DockerError> {
        let options = None::<bollard::query_parameters::RemoveVolumeOptions>;
        gone(self.api.remove_volume(name, options).await.map_err(self.did("remove a volume")))
    }

    /// Makes the network that the ranks of a task's gang find each other in, and gives its id.
    ///
    /// Engines let several networks have one name, and start nothing in any of them then. So ranks
    /// that start together make one after the other; should another server have made one as well,
    /// the oldest stays.
    pub(super) async fn ensure_network(&self, task: TaskId) -> Result<String, DockerError> {
        let name = names::gang_name(&self.site, task);
        if let Some(there) = self.oldest_network(&name).await? {
            return Ok(there);
        }
        let _alone = self.making.lock().await;
        if let Some(there) = self.oldest_network(&name).await? {
            return Ok(there);
        }
        let request = NetworkCreateRequest {
            name: name.clone(),
            driver: Some(if self.is_swarm { "overlay" } else { "bridge" }.into()),
            labels: Some(names::labels(&self.site, TaskId { rank: 0, ..task })),
            ..NetworkCreateRequest::default()
        };
        let made = match self.api.create_network(request).await.map_err(self.did("make a network"))
        {
            Ok(made) => Some(made.id),
            Err(error) if error.is_already_there() => None,
            Err(error) => return Err(error),
        };
        let oldest = self.oldest_network(&name).await?;
        if let (Some(made), Some(oldest)) = (&made, &oldest)
            && made != oldest
        {
            let removed = self.api.remove_network(made).await;
            gone(removed.map_err(self.did("remove a network")))?;
        }
        oldest.or(made).ok_or_else(|| self.no_id("network"))
    }

    /// The id of the oldest network of a name.
    async fn oldest_network(&self, name: &str) -> Result<Option<String>, DockerError> {
        let filters = Some(HashMap::from([("name".to_owned(), vec![name.to_owned()])]));
        let listed = self.api.list_networks(Some(ListNetworksOptions { filters })).await;
        // The filter finds every name that this one is part of.
        let listed = listed.map_err(self.did("list networks"))?;
        let same = listed.into_iter().filter(|network| network.name.as_deref() == Some(name));
        let by_age = same.filter_map(|network| Some((network.created, network.id?)));
        Ok(by_age.min().map(|(_, id)| id))
    }

    /// Removes the network of a gang. Says whether it is gone: while a task is in it, it stays.
    pub(super) async fn delete_network(&self, task: TaskId) -> Result<bool, DockerError> {
        let name = names::gang_name(&self.site, task);
        let removed = self.api.remove_network(&name).await;
        match gone(removed.map_err(self.did("remove a network"))) {
            Ok(()) => Ok(true),
            Err(DockerError::Refused { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What an instance prints from a second on, each line with its time in front.
    pub(super) fn logs(&self, task: TaskId, since_s: i64, follow: bool) -> LogLines {
        let options = LogsOptions {
            follow,
            stdout: true,
            stderr: true,
            since: i32::try_from(since_s).unwrap_or(0),
            timestamps: true,
            tail: "all".into(),
            ..LogsOptions::default()
        };
        let name = names::task_name(&self.site, task);
        let place = self.place.clone();
        let lines = if self.is_swarm {
            self.api.service_logs(&name, Some(options)).boxed()
        } else {
            self.api.logs(&name, Some(options)).boxed()
        };
        let line = move |line: Result<LogOutput, _>| match line {
            Ok(LogOutput::StdErr { message }) => Ok((true, message.to_vec())),
            Ok(other) => Ok((false, other.into_bytes().to_vec())),
            Err(error) => Err(DockerError::of(&place, "show a log", error)),
        };
        Box::pin(lines.map(line))
    }
}

fn open(endpoint: &Endpoint) -> Result<Api, bollard::errors::Error> {
    let version = bollard::API_DEFAULT_VERSION;
    match endpoint {
        Endpoint::Unix(path) => {
            Api::connect_with_unix(&path.to_string_lossy(), CALL_TIME_S, version)
        }
        Endpoint::Tcp { host, tls: None } => Api::connect_with_http(host, CALL_TIME_S, version),
        Endpoint::Tcp { host, tls: Some(folder) } => {
            let file = |name: &str| Path::new(folder).join(name);
            let (key, cert, ca) = (file("key.pem"), file("cert.pem"), file("ca.pem"));
            Api::connect_with_ssl(host, &key, &cert, &ca, CALL_TIME_S, version)
        }
    }
}

/// Whether an answer is about the image, and not about a network or a folder.
fn names_image(error: &DockerError, image: &str) -> bool {
    matches!(error, DockerError::Missing { answer, .. }
        if answer.contains("image") || answer.contains(image))
}

/// What is not there was removed.
fn gone(removed: Result<(), DockerError>) -> Result<(), DockerError> {
    match removed {
        Err(error) if error.is_missing() => Ok(()),
        removed => removed,
    }
}
