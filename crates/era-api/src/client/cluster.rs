//! Nodes, pools and domains.

use jiff::Timestamp;

use super::path::{encode, query};
use super::{Client, ClientError};
use crate::cluster::{BookingView, DomainView, NodeEdit, NodeFilter, NodeView, PoolView};
use crate::page::{PageAsk, every};

/// Which stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TimeRange {
    /// From; the server's choice where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// In steps of so many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_s: Option<u64>,
}

impl Client {
    /// All nodes that a filter lets through, and who holds them.
    pub fn nodes(&self, filter: &NodeFilter) -> Result<Vec<NodeView>, ClientError> {
        every(|PageAsk { cursor, limit }| {
            let page = NodeFilter { cursor: cursor.clone(), limit: *limit, ..filter.clone() };
            self.get(&format!("/nodes{}", query(&page)))
        })
    }

    pub fn node(&self, name: &str) -> Result<NodeView, ClientError> {
        self.get(&format!("/nodes/{}", encode(name)))
    }

    /// Drains a node, resumes it, moves it, or lets it go.
    pub fn edit_node(&self, name: &str, edit: &NodeEdit) -> Result<(), ClientError> {
        self.patch(&format!("/nodes/{}", encode(name)), edit)
    }

    /// What is promised on a node.
    pub fn bookings(
        &self,
        name: &str,
        period: &TimeRange,
    ) -> Result<Vec<BookingView>, ClientError> {
        self.get(&format!("/nodes/{}/bookings{}", encode(name), query(period)))
    }

    pub fn pools(&self) -> Result<Vec<PoolView>, ClientError> {
        every(|page| self.get(&format!("/pools{}", query(page))))
    }

    /// Makes or changes a pool.
    pub fn put_pool(&self, pool: &PoolView) -> Result<(), ClientError> {
        self.put(&format!("/pools/{}", encode(&pool.name)), pool)
    }

    pub fn domains(&self) -> Result<Vec<DomainView>, ClientError> {
        every(|page| self.get(&format!("/domains{}", query(page))))
    }

    /// Makes or changes a domain.
    pub fn put_domain(&self, domain: &DomainView) -> Result<(), ClientError> {
        self.put(&format!("/domains/{}", encode(&domain.name)), domain)
    }

    /// Takes a domain away; its nodes stay.
    pub fn remove_domain(&self, name: &str) -> Result<(), ClientError> {
        self.delete(&format!("/domains/{}", encode(name)))
    }
}
