//! What changes, as a list and live.

use std::io::{BufReader, Read};

use ureq::http::{Request, header};

use super::path::query;
use super::sse::{self, Frame};
use super::{Client, ClientError};
use crate::PREFIX;
use crate::event::{EventFilter, EventView};
use crate::page::Page;

impl Client {
    /// What changed, oldest first.
    pub fn events(&self, filter: &EventFilter) -> Result<Page<EventView>, ClientError> {
        self.get(&format!("/events{}", query(filter)))
    }

    /// What changes from now on, or after the event of this id.
    pub fn follow_events(&self, after: Option<&str>) -> Result<EventStream, ClientError> {
        let path = "/events/stream";
        let mut request = Request::builder()
            .uri(format!("{}{PREFIX}{path}", self.url))
            .header(header::ACCEPT, "text/event-stream");
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let bad = |_| ClientError::BadAddress { url: self.url.clone() };
        let answer = self.agent()?.run(request.body(()).map_err(bad)?);
        let answer = self.judge(path, answer.map_err(|e| ClientError::of(&self.url, e))?)?;
        let reader = answer.into_body().into_with_config().limit(u64::MAX).reader();
        Ok(EventStream { url: self.url.clone(), lines: BufReader::new(Box::new(reader)) })
    }
}

/// Events as they happen. Ends when the server ends it; going on after the last id misses none.
pub struct EventStream {
    url: String,
    lines: BufReader<Box<dyn Read + Send>>,
}

impl Iterator for EventStream {
    type Item = Result<EventView, ClientError>;

    fn next(&mut self) -> Option<Result<EventView, ClientError>> {
        let url = || self.url.clone();
        loop {
            let frame = match sse::next(&mut self.lines) {
                Ok(Some(frame)) => frame,
                Ok(None) => return None,
                Err(error) => return Some(Err(ClientError::of_io(url(), &error))),
            };
            let Frame { data, .. } = frame;
            if data.is_empty() {
                continue;
            }
            return Some(serde_json::from_str(&data).map_err(|e| ClientError::NotUnderstood {
                url: url(),
                path: "/events/stream".to_owned(),
                why: e.to_string(),
            }));
        }
    }
}
