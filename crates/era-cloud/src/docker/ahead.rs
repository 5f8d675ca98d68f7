//! What is brought to a node before a promised start: the task's folders, and its image.
//!
//! A plain engine pulls the image itself. A Swarm has no call for that, so a service that ends at
//! once is placed on the node, which makes the node pull it; it is removed when it is over. All of
//! it is a favour: whatever fails here is found out, and told, at the start.

use std::collections::HashMap;
use std::time::Duration;

use super::begin::{Hand, Problem};
use super::failure::DockerError;
use super::instance::{Instance, Seen};
use super::names;
use crate::executor::Launch;

/// How long a node may take to have an image.
const PULL_TIME: Duration = Duration::from_secs(1800);
/// How often it is asked whether it has.
const LOOK: Duration = Duration::from_millis(500);

impl Hand {
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
        let image = self.image(launch, None).await?;
        match (self.engine.is_swarm(), &self.node) {
            (true, Some(node)) => self.pull_on(node, &image, launch).await,
            _ => Ok(self.engine.ensure_image(&image).await?),
        }
    }

    /// What the service is called that makes a node pull an image.
    fn stage_name(&self, launch: &Launch) -> String {
        format!("{}-stage", names::task_name(&self.house.site, launch.task))
    }

    async fn pull_on(&self, node: &str, image: &str, launch: &Launch) -> Result<(), Problem> {
        let name = self.stage_name(launch);
        let labels = HashMap::from([
            (names::SITE.to_owned(), self.house.site.as_str().to_owned()),
            (names::PURPOSE.to_owned(), "stage".to_owned()),
        ]);
        let instance = Instance {
            name: name.clone(),
            labels,
            image: image.to_owned(),
            command: vec!["/bin/true".into()],
            env: Vec::new(),
            secrets: None,
            user: Some(self.house.own_ids),
            folder: "/".into(),
            mounts: Vec::new(),
            cpu_milli: 0,
            memory_bytes: 0,
            processes: 0,
            shm_bytes: 0,
            gpus: Vec::new(),
            network: None,
            node: Some(node.to_owned()),
            grace_s: 1,
            log_bytes: 0,
        };
        self.engine.create(&instance, true).await?;
        loop {
            match self.engine.seen(&name).await? {
                Some(Seen::Failed(why)) => {
                    return Err(DockerError::of_start(&self.engine.place, image, &why).into());
                }
                Some(seen) if seen.is_over() => return Ok(()),
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::Volumes;
    use super::super::fake::Fake;
    use super::super::lease::LeaseTimes;
    use super::super::task::House;
    use super::*;
    use crate::isolate::Isolation;
    use serde_json::json;

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
        let hand = Hand {
            house: House {
                site: engine.site().clone(),
                volumes: Volumes::Bind,
                data: swarm.data(),
                times: LeaseTimes::none(),
                isolation: Isolation::NONE,
                own_ids: (0, 0),
            },
            engine,
            image: Some("torch:2.9".into()),
            node: Some("n".into()),
            gpus: Vec::new(),
            laying: Default::default(),
        };
        hand.stage_within(&launch, Duration::from_secs(5)).await;
        let asked = swarm.asked();
        let at = |words: &str| asked.iter().position(|one| one == words);
        let made = at("POST /services/create").expect("it was made");
        let gone = at("DELETE /services/era-0a1b2c3d-j7-p0-a1-r0-stage").expect("it went");
        assert!(made < gone, "{asked:?}");
    }
}
