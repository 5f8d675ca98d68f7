//! What is brought to a node before a promised start: the task's folders, and its image.
//!
//! A plain engine pulls the image itself. A Swarm has no call for that, so a service that ends at
//! once is placed on the node, which makes the node pull it; it is removed when it is over. All of
//! it is a favour: whatever fails here is found out, and told, at the start.

use std::collections::HashMap;
use std::time::Duration;

use super::begin::{Hand, Problem};
use super::instance::Instance;
use super::names;
use crate::executor::Launch;

/// How long a node may take to have an image.
const PULL_TIME: Duration = Duration::from_secs(1800);
/// How often it is asked whether it has.
const LOOK: Duration = Duration::from_millis(500);

impl Hand {
    /// Brings what a launch will need to its node.
    pub(super) async fn stage(self, launch: Launch) {
        let staged = tokio::time::timeout(PULL_TIME, self.try_to_stage(&launch)).await;
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

    async fn pull_on(&self, node: &str, image: &str, launch: &Launch) -> Result<(), Problem> {
        let name = format!("{}-stage", names::task_name(&self.house.site, launch.task));
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
        let over = self.wait_until_over(&name).await;
        self.engine.delete_named(&name).await?;
        over
    }

    async fn wait_until_over(&self, name: &str) -> Result<(), Problem> {
        while !self.engine.is_over(name).await? {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}
