//! Queues and policies.

use super::path::{encode, query};
use super::{Client, ClientError};
use crate::page::{Page, PageAsk, every};
use crate::queue::{Policy, Proposal, QueueView, RollBack, Rule, RuleCheck, RuleChecked};

impl Client {
    pub fn queues(&self) -> Result<Vec<QueueView>, ClientError> {
        every(|page| self.get(&format!("/queues{}", query(page))))
    }

    /// Makes or changes a queue.
    pub fn put_queue(&self, queue: &QueueView) -> Result<(), ClientError> {
        self.put(&format!("/queues/{}", encode(&queue.name)), queue)
    }

    /// Takes an empty queue away.
    pub fn remove_queue(&self, name: &str) -> Result<(), ClientError> {
        self.delete(&format!("/queues/{}", encode(name)))
    }

    pub fn policies(&self) -> Result<Vec<Policy>, ClientError> {
        every(|page| self.get(&format!("/policies{}", query(page))))
    }

    /// Publishes the next version of a policy.
    pub fn publish_policy(&self, name: &str, rule: &Rule) -> Result<Policy, ClientError> {
        self.put(&format!("/policies/{}", encode(name)), rule)
    }

    /// Puts an earlier version in force again.
    pub fn roll_back_policy(&self, name: &str, version: u32) -> Result<Policy, ClientError> {
        self.post(&format!("/policies/{}/rollback", encode(name)), &RollBack { version })
    }

    /// Checks a rule, and what it would do to a queue.
    pub fn check_policy(&self, check: &RuleCheck) -> Result<RuleChecked, ClientError> {
        self.post("/policies/check", check)
    }

    /// What tuning proposes.
    pub fn proposals(&self, page: &PageAsk) -> Result<Page<Proposal>, ClientError> {
        self.get(&format!("/policies/proposals{}", query(page)))
    }
}
