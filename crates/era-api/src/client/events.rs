//! What changes, as a list.

use super::path::query;
use super::{Client, ClientError};
use crate::event::{EventFilter, EventView};
use crate::page::Page;

impl Client {
    /// What changed, oldest first.
    pub fn events(&self, filter: &EventFilter) -> Result<Page<EventView>, ClientError> {
        self.get(&format!("/events{}", query(filter)))
    }
}
