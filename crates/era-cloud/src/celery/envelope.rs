//! What lies in a Redis list: a message as Celery's transport wraps it.
//!
//! The envelope is JSON; the body inside is bytes in base64. Fields that are not known here are
//! kept, since a message that is put back must be the one that was taken.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::body::{self, BODY_BYTES_MAX, BadBody, BodyFormat};

/// Longest envelope that is read: a body in base64, with room for headers.
pub const ENVELOPE_BYTES_MAX: usize = BODY_BYTES_MAX / 3 * 4 + (1 << 20);

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// The body as it is sent.
    pub body: String,
    /// How text in it is written.
    #[serde(rename = "content-encoding", default)]
    pub content_encoding: String,
    /// What it is.
    #[serde(rename = "content-type", default)]
    pub content_type: String,
    /// Headers: of protocol 2, what is known of the task without its body.
    #[serde(default)]
    pub headers: Map<String, Value>,
    /// What the transport needs.
    pub properties: Properties,
    /// Whatever else is there.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What the transport needs to know of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Properties {
    /// The task's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Where an answer is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// 2 for messages that outlive the broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_mode: Option<u8>,
    /// How it was routed.
    #[serde(default)]
    pub delivery_info: DeliveryInfo,
    /// How urgent it is; the transport's steps decide what that means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// How the body is wrapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_encoding: Option<String>,
    /// By what it is acknowledged.
    pub delivery_tag: String,
    /// Whatever else is there.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How a message was routed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeliveryInfo {
    /// Through which exchange; none where it went straight to a queue.
    #[serde(default)]
    pub exchange: Option<String>,
    /// By which key.
    #[serde(default)]
    pub routing_key: Option<String>,
    /// Whatever else is there.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Why a message is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadEnvelope {
    /// It is too long.
    #[error("the message has {0} bytes: send at most {ENVELOPE_BYTES_MAX}")]
    TooLong(usize),
    /// It is not wrapped as Celery wraps messages.
    #[error("the message is not wrapped as Celery wraps them: {0}")]
    Malformed(String),
    /// The body is not base64.
    #[error("the body is not in base64, as its properties say")]
    Base64,
    /// The body cannot be read.
    #[error(transparent)]
    Body(#[from] BadBody),
}

impl Envelope {
    /// Wraps a body, to go straight to a queue.
    pub fn to_queue(
        queue: &str,
        format: BodyFormat,
        body: &Value,
        headers: Map<String, Value>,
        delivery_tag: String,
    ) -> Result<Envelope, BadBody> {
        let delivery_info = DeliveryInfo {
            exchange: Some(String::new()),
            routing_key: Some(queue.to_owned()),
            rest: Map::new(),
        };
        Ok(Envelope {
            body: BASE64.encode(format.write(body)?),
            content_encoding: format.content_encoding().to_owned(),
            content_type: format.content_type().to_owned(),
            headers,
            properties: Properties {
                delivery_mode: Some(2),
                delivery_info,
                body_encoding: Some("base64".to_owned()),
                delivery_tag,
                ..Properties::default()
            },
            rest: Map::new(),
        })
    }

    /// Reads what lay in a list.
    pub fn read(bytes: &[u8]) -> Result<Envelope, BadEnvelope> {
        if bytes.len() > ENVELOPE_BYTES_MAX {
            return Err(BadEnvelope::TooLong(bytes.len()));
        }
        serde_json::from_slice(bytes).map_err(|e| BadEnvelope::Malformed(e.to_string()))
    }

    /// Writes it as it lies in a list.
    pub fn write(&self) -> Result<Vec<u8>, BadEnvelope> {
        serde_json::to_vec(self).map_err(|e| BadEnvelope::Malformed(e.to_string()))
    }

    /// The body's bytes.
    pub fn bytes(&self) -> Result<Vec<u8>, BadEnvelope> {
        match self.properties.body_encoding.as_deref() {
            Some("base64") => BASE64.decode(&self.body).map_err(|_| BadEnvelope::Base64),
            // Celery sends plain text where it is told to.
            _ => Ok(self.body.clone().into_bytes()),
        }
    }

    /// The body as a value.
    pub fn value(&self) -> Result<Value, BadEnvelope> {
        let format = BodyFormat::of(&self.content_type)?;
        let text = ["", "utf-8", "utf8", "us-ascii", "ascii", "binary"];
        let encoding = self.content_encoding.to_ascii_lowercase();
        if !text.contains(&encoding.as_str()) {
            return Err(BadBody::Encoding(encoding.chars().take(100).collect()).into());
        }
        let mut bytes = self.bytes()?;
        if let Some(how) = self.headers.get("compression").and_then(Value::as_str) {
            bytes = body::unpack(how, &bytes)?;
        }
        Ok(format.read(&bytes)?)
    }

    /// How urgent it is, as the transport takes it.
    pub fn priority(&self) -> u8 {
        let asked = self.properties.priority.unwrap_or(0);
        u8::try_from(asked.clamp(0, i64::from(super::queue::PRIORITY_MAX))).unwrap_or(0)
    }

    pub fn routing_key(&self) -> &str {
        self.properties.delivery_info.routing_key.as_deref().unwrap_or_default()
    }

    /// Says that it was delivered before, as Celery's transport says it.
    pub fn mark_redelivered(&mut self) {
        self.headers.insert("redelivered".to_owned(), true.into());
        self.properties.delivery_info.rest.insert("redelivered".to_owned(), true.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As Celery 5.7 wrote it.
    const FROM_CELERY: &str = r#"{"body": "W1sxXSwgeyJiIjogMn0sIHsiY2FsbGJhY2tzIjogbnVsbCwgImVycmJhY2tzIjogbnVsbCwgImNoYWluIjogbnVsbCwgImNob3JkIjogbnVsbH1d", "content-encoding": "utf-8", "content-type": "application/json", "headers": {"lang": "py", "task": "eracompute.run", "shiny": 1}, "properties": {"correlation_id": "3340", "reply_to": "0eb6", "delivery_mode": 2, "expiration": "60000", "delivery_info": {"exchange": "", "routing_key": "eracompute"}, "priority": 4, "body_encoding": "base64", "delivery_tag": "ee62"}}"#;

    #[test]
    fn what_celery_wrapped_is_unwrapped() {
        let envelope = Envelope::read(FROM_CELERY.as_bytes()).expect("read");
        assert_eq!(envelope.routing_key(), "eracompute");
        assert_eq!(envelope.priority(), 4);
        let body = envelope.value().expect("a body");
        assert_eq!(body[0], json!([1]));
    }

    #[test]
    fn nothing_is_lost_by_reading_and_writing() {
        let envelope = Envelope::read(FROM_CELERY.as_bytes()).expect("read");
        let again: Value =
            serde_json::from_slice(&envelope.write().expect("written")).expect("JSON");
        let before: Value = serde_json::from_str(FROM_CELERY).expect("JSON");
        assert_eq!(again, before);
    }

    #[test]
    fn what_is_no_message_is_told() {
        for bad in ["", "null", "[]", "{}", "\"text\"", r#"{"body": "", "properties": {}}"#] {
            let read = Envelope::read(bad.as_bytes());
            assert!(matches!(read, Err(BadEnvelope::Malformed(_))), "{bad}: {read:?}");
        }
        let long = vec![b' '; ENVELOPE_BYTES_MAX + 1];
        assert_eq!(Envelope::read(&long), Err(BadEnvelope::TooLong(long.len())));
    }

    #[test]
    fn compressed_and_pickled_bodies_are_refused() {
        let mut envelope = Envelope::read(FROM_CELERY.as_bytes()).expect("read");
        envelope.headers.insert("compression".into(), json!("application/x-bz2"));
        let refused = BadBody::Compressed("application/x-bz2".into());
        assert_eq!(envelope.value(), Err(refused.into()));
        envelope.headers.remove("compression");
        envelope.content_type = "application/x-python-serialize".into();
        assert_eq!(envelope.value(), Err(BadBody::Pickle.into()));
    }

    #[test]
    fn a_message_that_comes_again_says_so() {
        let mut envelope = Envelope::read(FROM_CELERY.as_bytes()).expect("read");
        envelope.mark_redelivered();
        let text: Value =
            serde_json::from_slice(&envelope.write().expect("written")).expect("JSON");
        assert_eq!(text["headers"]["redelivered"], true);
        assert_eq!(text["properties"]["delivery_info"]["redelivered"], true);
        assert_eq!(text["properties"]["delivery_info"]["routing_key"], "eracompute");
    }
}
