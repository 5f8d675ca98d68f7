//! What is brought to a node before a promised start: the task's folders, and its image.
//!
//! A plain engine pulls the image itself. A Swarm has no call for that, so a service is placed on
//! the node, which makes the node pull it. The image is a user's, and this is no task of theirs with
//! its limits and its price, so nothing in the image is run: the service's program has a name that
//! nobody knows, which no image has, and the node fails to start it once the image is there. All of
//! it is a favour: whatever fails here is found out, and told, at the start.

use std::collections::HashMap;
use std::time::Duration;

use super::begin::{LaunchContext, Problem};
use super::failure::DockerError;
use super::instance::{Instance, InstanceState};
use super::names;
use crate::executor::Launch;

/// How long a node may take to have an image.
const PULL_TIME: Duration = Duration::from_secs(1800);
/// How often it is asked whether it has.
const LOOK: Duration = Duration::from_millis(500);
/// Nobody's user and group, and as little as a container can be made with.
const NOBODY: (u32, u32) = (65534, 65534);
const CPU_MILLI: u32 = 100;
const MEMORY_BYTES: u64 = 64 << 20;
const PROCESSES: u32 = 4;

impl LaunchContext {
    /// Brings what a launch will need to its node.
    pub(super) async fn stage(self, launch: Launch) {
        self.stage_within(&launch, PULL_TIME).await;
    }

    async fn stage_within(&self, launch: &Launch, time: Duration) {
        let staged = tokio::time::timeout(time, self.try_to_stage(launch)).await;
        // However it went, and however far: what was made for it alone goes.
        if self.engine.is_swarm()
            && let Err(error) = self.engine.delete_named(&self.stage_name(launch)).await
        {
            tracing::warn!(task = %launch.task, %error, "a service stays: the next start removes it");
        }
        match staged {
            Ok(Ok(())) => tracing::debug!(task = %launch.task, "staged"),
            Ok(Err(problem)) => {
                tracing::warn!(task = %launch.task, %problem, "not staged before its start");
            }
            Err(_) => tracing::warn!(task = %launch.task, "its image takes very long to come"),
        }
    }

    async fn try_to_stage(&self, launch: &Launch) -> Result<(), Problem> {
        self.lay_out(launch).await?;
        let image = self.image(launch).await?;
        match (self.engine.is_swarm(), &self.node) {
            (true, Some(node)) => self.pull_on(node, &image, launch).await,
            _ => Ok(self.engine.ensure_image(&image).await?),
        }
    }

    /// What the service is called that makes a node pull an image: a promise may move to another.
    fn stage_name(&self, launch: &Launch) -> String {
        let node = self.node.as_deref().map_or("", |id| id.get(..8).unwrap_or(id));
        format!("{}-stage-{node}", names::task_name(&self.defaults.site, launch.task))
    }

    async fn pull_on(&self, node: &str, image: &str, launch: &Launch) -> Result<(), Problem> {
        let instance = self.bringer(node, image, launch)?;
        self.engine.create(&instance, true).await?;
        loop {
            match self.engine.seen(&instance.name).await? {
                // It was tried, so the image is there.
                Some(InstanceState::Failed(why)) if why.contains(&instance.command[0]) => {
                    return Ok(());
                }
                Some(InstanceState::Failed(why)) => {
                    return Err(DockerError::of_start(&self.engine.place, image, &why).into());
                }
                Some(InstanceState::Runs) => return Ok(()),
                Some(seen) if seen.is_over() => return Ok(()),
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// What makes a node pull an image.
    fn bringer(&self, node: &str, image: &str, launch: &Launch) -> Result<Instance, Problem> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| Problem::Broken(error.to_string()))?;
        let labels = HashMap::from([
            (names::SITE.to_owned(), self.defaults.site.as_str().to_owned()),
            (names::PURPOSE.to_owned(), "stage".to_owned()),
        ]);
        Ok(Instance {
            name: self.stage_name(launch),
            labels,
            image: image.to_owned(),
            command: vec![format!("/.era-{:032x}", u128::from_le_bytes(random))],
            // An image may ask the NVIDIA runtime for all GPUs.
            env: vec![("NVIDIA_VISIBLE_DEVICES".into(), "void".into())],
            secrets: None,
            user: Some(NOBODY),
            folder: "/".into(),
            mounts: Vec::new(),
            read_only: true,
            cpu_milli: CPU_MILLI,
            memory_bytes: MEMORY_BYTES,
            processes: PROCESSES,
            // A node that is full of tasks takes it all the same.
            reserved: false,
            shm_bytes: 0,
            gpus: Vec::new(),
            network: None,
            node: Some(node.to_owned()),
            grace_s: 1,
            log_bytes: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::Volumes;
    use super::super::engine::DockerEngine;
    use super::super::fake::Fake;
    use super::super::lease::LeaseTimes;
    use super::super::swarm;
    use super::super::task::TaskDefaults;
    use super::*;
    use crate::isolate::Isolation;
    use serde_json::json;

    fn hand(engine: DockerEngine, data: std::path::PathBuf) -> LaunchContext {
        LaunchContext {
            defaults: TaskDefaults {
                site: engine.site().clone(),
                volumes: Volumes::Bind,
                outside: data.clone(),
                data,
                times: LeaseTimes::none(),
                isolation: Isolation::NONE,
                own_ids: (0, 0),
            },
            engine,
            image: Some("torch:2.9".into()),
            node: Some("n".into()),
            gpus: Vec::new(),
            laying: Default::default(),
        }
    }

    #[tokio::test]
    async fn what_makes_a_node_pull_runs_nothing_of_the_image_and_is_held_to_next_to_nothing() {
        let engine = Fake::start(|_| None);
        let hand = hand(engine.connect().await.expect("an engine"), engine.data());
        let launch = crate::shim::tests::launch(7, &["true"]);
        let bringer = || hand.bringer("n", "evil:1", &launch).unwrap_or_else(|e| panic!("{e}"));
        let (one, other) = (bringer(), bringer());
        assert_ne!(one.command, other.command, "nobody can put it into an image");
        assert!(one.command.len() == 1 && one.command[0].starts_with("/.era-"));
        let service = swarm::service(&one, None, 1).task_template.expect("a template");
        let container = service.container_spec.expect("a container");
        assert_eq!(container.command, Some(one.command.clone()), "the image's entry is not run");
        assert_eq!(container.env, Some(vec!["NVIDIA_VISIBLE_DEVICES=void".to_owned()]));
        assert_eq!(container.user.as_deref(), Some("65534:65534"));
        assert_eq!(container.read_only, Some(true));
        assert_eq!(container.mounts, Some(Vec::new()));
        let resources = service.resources.expect("resources");
        let limits = resources.limits.expect("limits");
        assert_eq!((limits.nano_cpus, limits.pids), (Some(100_000_000), Some(4)));
        assert_eq!(limits.memory_bytes, Some(64 << 20));
        assert_eq!(resources.reservations, None, "it comes to a full node too");
    }

    #[tokio::test]
    async fn a_service_that_makes_a_node_pull_goes_even_if_the_image_never_comes() {
        let swarm = Fake::start(|request| match request {
            "GET /info" => Some((
                200,
                json!({"Swarm": {"LocalNodeState": "active", "ControlAvailable": true}}),
            )),
            "POST /services/create" => Some((201, json!({"ID": "s"}))),
            // It is preparing, for ever.
            "GET /tasks" => Some((200, json!([{"Status": {"State": "preparing"}}]))),
            _ if request.starts_with("DELETE /services/") => Some((200, json!({}))),
            _ => None,
        });
        let engine = swarm.connect().await.expect("an engine");
        let mut launch = crate::shim::tests::launch(7, &["true"]);
        std::sync::Arc::make_mut(&mut launch.spec).folder = swarm.data().join("jobs/7");
        let hand = hand(engine, swarm.data());
        hand.stage_within(&launch, Duration::from_secs(5)).await;
        let asked = swarm.asked();
        let at = |words: &str| asked.iter().position(|one| one == words);
        let made = at("POST /services/create").expect("it was made");
        let gone = at("DELETE /services/era-0a1b2c3d-j7-p0-a1-r0-stage-n").expect("it went");
        assert!(made < gone, "{asked:?}");
    }
}
