//! A launch carried out, step by step: folders, image, network, instance. Each step is idempotent,
//! so the whole can be tried again after a failure that may pass.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::building;
use super::engine::DockerEngine;
use super::failure::DockerError;
use super::follow::LogTail;
use super::held::AWAY_PATIENCE;
use super::images::{Build, CODE, Context};
use super::task::{self, Chosen, TaskDefaults};
use crate::executor::{Launch, Staged};
use crate::task::Unready;

/// How a job names a Dockerfile of its code.
const DOCKERFILE: &str = "./";
/// How long to wait before an engine that does not answer is asked again.
const AGAIN: Duration = Duration::from_millis(500);
const AGAIN_MAX: Duration = Duration::from_secs(5);
/// Most lines of a build that wait to be written.
const LINES_MAX: usize = 64;

/// Why a task could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error(transparent)]
    Engine(#[from] DockerError),
    #[error(transparent)]
    Unready(#[from] Unready),
    #[error("this executor runs images, and the job names none: give it one with `--image`")]
    NoImage,
    #[error("`{0}` is not among the job's files: name the Dockerfile as `./PATH` in its code")]
    NoDockerfile(String),
    #[error("its image took longer than an hour to build, and was given up")]
    SlowBuild,
    /// It could not be reached, or had no room, for longer than a start waits.
    #[error(transparent)]
    Away(DockerError),
    #[error("node `{0}`, or a GPU that was chosen there, is no longer known to the engine")]
    NoNode(String),
    #[error("its secrets were known to the server that started it, and are not kept by it")]
    Forgotten,
    #[error("something went wrong in the server: {0}")]
    Broken(String),
}

/// What a launch is carried out with.
#[derive(Clone)]
pub(super) struct LaunchContext {
    pub(super) engine: DockerEngine,
    pub(super) defaults: TaskDefaults,
    /// The image of jobs that name none.
    pub(super) image: Option<String>,
    /// The engine's id of the node, if it has ids.
    pub(super) node: Option<String>,
    pub(super) gpus: Vec<String>,
    pub(super) laying: Laying,
}

/// One at a time makes the folders of a task ready: it may be staged while it is launched. Tasks
/// of different jobs seldom wait for each other.
pub(super) type Laying = Arc<[tokio::sync::Mutex<()>; 16]>;

impl Problem {
    /// What it is that did not pass. An image that cannot be had on one node will not be had on
    /// another; an engine, or room on a disk, may.
    pub(super) fn that_stays(error: DockerError) -> Problem {
        match error {
            image @ DockerError::NoImage { .. } => image.into(),
            other => Problem::Away(other),
        }
    }
}

impl LaunchContext {
    /// Carries out a launch, trying again while the engine cannot be reached, for as long as an
    /// engine may be away. That it waits is in the task's log.
    pub(super) async fn begin(self, launch: Launch) -> Result<(), Problem> {
        let mut pause = AGAIN;
        let mut since = None;
        loop {
            match self.try_to(&launch).await {
                // Somebody may make room meanwhile, and a full disk is no doing of the job's.
                Err(Problem::Engine(error)) if error.is_passing() || error.is_full() => {
                    tracing::warn!(task = %launch.task, %error, "a start is tried again");
                    if since.is_none() {
                        let tail = LogTail::new(self.engine.clone(), &launch);
                        tail.note(&format!("the task waits to be started: {error}"));
                    }
                    let since = *since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= AWAY_PATIENCE {
                        return Err(Problem::that_stays(error));
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(AGAIN_MAX);
                }
                done => return done,
            }
        }
    }

    async fn try_to(&self, launch: &Launch) -> Result<(), Problem> {
        if self.engine.is_swarm() && launch.spec.secrets.lack_values() {
            return Err(Problem::Forgotten);
        }
        let shown = self.lay_out(launch).await?;
        let image = self.image(launch).await?;
        let network = match task::is_gang(launch) {
            true => Some(self.engine.ensure_network(launch.task).await?),
            false => None,
        };
        let chosen = Chosen {
            image,
            node: self.node.clone(),
            gpus: self.gpus.clone(),
            network,
            shown,
            keeps_secrets: self.engine.is_swarm(),
        };
        let instance = task::instance(&self.defaults, launch, chosen)?;
        Ok(self.engine.create(&instance, true).await?)
    }

    pub(super) async fn lay_out(
        &self,
        launch: &Launch,
    ) -> Result<Vec<(PathBuf, PathBuf)>, Problem> {
        let stripe = launch.task.job.0 % (self.laying.len() as u64);
        let _alone = self.laying[stripe as usize].lock().await;
        let (defaults, launch) = (self.defaults.clone(), launch.clone());
        let keeps_secrets = self.engine.is_swarm();
        let laid =
            tokio::task::spawn_blocking(move || task::lay_out(&defaults, &launch, keeps_secrets));
        Ok(laid.await.map_err(|error| Problem::Broken(error.to_string()))??)
    }

    /// The reference of the image that a task runs in. A Dockerfile of its code is built first,
    /// and where there are several nodes pushed, so that each of them finds it.
    pub(super) async fn image(&self, launch: &Launch) -> Result<String, Problem> {
        let named = launch.spec.image.as_ref().or(self.image.as_ref()).ok_or(Problem::NoImage)?;
        let Some(path) = named.strip_prefix(DOCKERFILE) else { return Ok(named.clone()) };
        if !launch.spec.code.iter().any(|file| file.to == path) {
            return Err(Problem::NoDockerfile(named.clone()));
        }
        let tag = format!("{CODE}:{}", fingerprint(&launch.spec.code, path));
        let registry = self.engine.registry();
        let reference = match (registry.place(), self.engine.is_swarm()) {
            (None, true) => return Err(DockerError::NoRegistry.into()),
            (None, false) => format!("era-{tag}"),
            (Some(_), _) => registry.reference(&tag)?,
        };
        // The ranks of a gang, and whoever has the same code, find what the first of them built.
        let _alone = building::alone(&format!("{} {reference}", self.engine.place)).await;
        let build = !self.engine.has(&reference).await?;
        // Built is not pushed: the server may have died in between, or the push was refused.
        let push =
            registry.place().is_some() && (build || !self.engine.is_pushed(&reference).await?);
        if build || push {
            self.make(launch, path, &reference, (build, push)).await?;
        }
        Ok(reference)
    }

    /// Builds and pushes an image of a job's own code, within the bounds of all builds. The job's
    /// log says how that goes.
    async fn make(
        &self,
        launch: &Launch,
        path: &str,
        reference: &str,
        (build, push): (bool, bool),
    ) -> Result<(), Problem> {
        let tail = LogTail::new(self.engine.clone(), launch);
        let _place = match building::build_place() {
            None => {
                tail.note("the task waits for its image: others are being built");
                building::next_place().await
            }
            place => place,
        };
        let (lines, mut read) = mpsc::channel::<String>(LINES_MAX);
        let written = tokio::spawn(async move {
            while let Some(line) = read.recv().await {
                tail.note(&line);
            }
        });
        let work = async {
            if build {
                let build = Build {
                    reference: reference.to_owned(),
                    dockerfile: path.to_owned(),
                    arguments: HashMap::new(),
                };
                let context = context(launch.spec.code.clone(), self.defaults.data.clone()).await?;
                self.engine.build(&build, context, &lines).await?;
            }
            if push {
                self.engine.push(reference, &lines).await?;
            }
            Ok::<(), DockerError>(())
        };
        let done = tokio::time::timeout(building::BUILD_TIME, work).await;
        drop(lines);
        // What it said is in the log before anything else is.
        let _ = written.await;
        Ok(done.map_err(|_| Problem::SlowBuild)??)
    }
}

/// What a build depends on: kept files are called after what is in them.
fn fingerprint(code: &[Staged], dockerfile: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &[u8]| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    add(dockerfile.as_bytes());
    for file in code {
        add(file.from.as_os_str().as_encoded_bytes());
        add(file.to.as_bytes());
        add(&[u8::from(file.executable)]);
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Files as the tar file that an image is built from: on disk below `scratch`, read piece by piece,
/// and gone with its last reader.
pub async fn context(code: Vec<Staged>, scratch: PathBuf) -> Result<Context, DockerError> {
    let failed = |source| DockerError::Io { what: "pack the files".into(), source };
    let packed = tokio::task::spawn_blocking(move || pack(&code, &scratch)).await;
    let file = packed.map_err(|error| failed(io::Error::other(error)))?.map_err(failed)?;
    Ok(pieces(tokio::fs::File::from_std(file)))
}

fn pack(code: &[Staged], folder: &Path) -> io::Result<std::fs::File> {
    use std::io::Seek as _;
    let mut file = unnamed(folder)?;
    let mut tar = tar::Builder::new(&mut file);
    for staged in code {
        let mut from = std::fs::File::open(&staged.from)?;
        let mut header = tar::Header::new_gnu();
        header.set_size(from.metadata()?.len());
        header.set_mode(if staged.executable { 0o755 } else { 0o644 });
        tar.append_data(&mut header, &staged.to, &mut from)?;
    }
    tar.finish()?;
    drop(tar);
    file.rewind()?;
    Ok(file)
}

/// A file without a name, gone when it is closed.
fn unnamed(folder: &Path) -> io::Result<std::fs::File> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let path = folder.join(format!(".context-{:016x}", u64::from_le_bytes(random)));
    let file = std::fs::File::options().create_new(true).read(true).write(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn pieces(file: tokio::fs::File) -> Context {
    const PIECE: usize = 256 << 10;
    let read = futures_util::stream::unfold(Some(file), |file| async move {
        use tokio::io::AsyncReadExt as _;
        let mut file = file?;
        let mut piece = vec![0; PIECE];
        match file.read(&mut piece).await {
            Ok(0) => None,
            Ok(n) => {
                piece.truncate(n);
                Some((Ok(bytes::Bytes::from(piece)), Some(file)))
            }
            Err(error) => Some((Err(error), None)),
        }
    });
    read.boxed()
}
