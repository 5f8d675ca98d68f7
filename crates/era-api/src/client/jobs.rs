//! Quotes, holds and jobs.

use super::path::query;
use super::{Client, ClientError};
use crate::Credits;
use crate::data::{JobFolder, OutputFile};
use crate::job::{
    ExplanationView, Extension, JobChecked, JobEdit, JobFilter, JobSpec, JobSummary, JobView,
    LogFilter, LogLine, MetricFilter, MetricPoint, Refund, Resubmission, Submitted, TimelineLine,
};
use crate::page::{Page, PageAsk};
use crate::quote::{QuoteAsk, Quoted};

impl Client {
    /// What a bid would get.
    pub fn quote(&self, ask: &QuoteAsk) -> Result<Quoted, ClientError> {
        self.post("/quotes", ask)
    }

    /// Gives a hold back.
    pub fn drop_hold(&self, id: u64) -> Result<(), ClientError> {
        self.delete(&format!("/holds/{id}"))
    }

    /// What is wrong with a job, and what its owner leaves open. Nothing is handed in.
    pub fn check(&self, job: &JobSpec) -> Result<JobChecked, ClientError> {
        self.post("/jobs/check", job)
    }

    /// Hands a job in.
    pub fn submit(&self, job: &JobSpec) -> Result<Submitted, ClientError> {
        self.post("/jobs", job)
    }

    /// The jobs that a filter lets through, newest first.
    pub fn jobs(&self, filter: &JobFilter) -> Result<Page<JobSummary>, ClientError> {
        self.get(&format!("/jobs{}", query(filter)))
    }

    pub fn job(&self, id: u64) -> Result<JobView, ClientError> {
        self.get(&format!("/jobs/{id}"))
    }

    /// Changes a waiting job.
    pub fn edit_job(&self, id: u64, edit: &JobEdit) -> Result<(), ClientError> {
        self.patch(&format!("/jobs/{id}"), edit)
    }

    /// Gives a job up.
    pub fn cancel(&self, id: u64) -> Result<(), ClientError> {
        self.act(&format!("/jobs/{id}/cancel"), &serde_json::json!({}))
    }

    /// What giving a job up would bring back, or all that is left of its array.
    pub fn refund(&self, id: u64, array: bool) -> Result<Refund, ClientError> {
        self.get(&format!("/jobs/{id}/refund?array={array}"))
    }

    /// A job as it would be submitted again.
    pub fn again(&self, id: u64) -> Result<Resubmission, ClientError> {
        self.get(&format!("/jobs/{id}/again"))
    }

    /// Submits an ended job again, as a new one; a promise at most for this price. It goes on from
    /// the other's checkpoints unless it is to begin `fresh`.
    pub fn retry(
        &self,
        id: u64,
        most: Option<Credits>,
        fresh: bool,
    ) -> Result<Submitted, ClientError> {
        let most = most.map_or_else(String::new, |most| format!("&most={most}"));
        self.post(&format!("/jobs/{id}/retry?fresh={fresh}{most}"), &serde_json::json!({}))
    }

    /// Buys more time for a running reservation.
    pub fn extend(&self, id: u64, extend: &Extension) -> Result<(), ClientError> {
        self.act(&format!("/jobs/{id}/extend"), extend)
    }

    /// Gives back what is left of a reservation.
    pub fn release(&self, id: u64) -> Result<(), ClientError> {
        self.act(&format!("/jobs/{id}/release"), &serde_json::json!({}))
    }

    /// Why a job waits, or when it will run.
    pub fn explain(&self, id: u64) -> Result<ExplanationView, ClientError> {
        self.get(&format!("/jobs/{id}/explain"))
    }

    /// What happened to a job, oldest first.
    pub fn timeline(&self, id: u64, page: &PageAsk) -> Result<Page<TimelineLine>, ClientError> {
        self.get(&format!("/jobs/{id}/timeline{}", query(page)))
    }

    /// The files that are kept of a job.
    pub fn kept(
        &self,
        id: u64,
        kept: JobFolder,
        page: &PageAsk,
    ) -> Result<Page<OutputFile>, ClientError> {
        self.get(&format!("/jobs/{id}/{kept}{}", query(page)))
    }

    /// Some lines of a job's log.
    pub fn logs(&self, id: u64, ask: &LogFilter) -> Result<Page<LogLine>, ClientError> {
        self.get(&format!("/jobs/{id}/logs{}", query(ask)))
    }

    /// Recorded values of a job.
    pub fn metrics(&self, id: u64, ask: &MetricFilter) -> Result<Page<MetricPoint>, ClientError> {
        self.get(&format!("/jobs/{id}/metrics{}", query(ask)))
    }
}
