//! What is sent in a conversation, on its way to the one task that writes.

use axum::extract::ws::Message;
use era_api::file_service::ServerMessage;
use tokio::sync::mpsc;

/// Where frames go on their way out.
pub(super) type Outbox = mpsc::Sender<Message>;

/// The client is gone.
pub(super) struct Gone;

/// Sends a message, as soon as there is room for it.
pub(super) async fn tell(outbox: &Outbox, answer: &ServerMessage) -> Result<(), Gone> {
    // These messages have no map with odd keys and no number out of range: they can be written.
    let text = serde_json::to_string(answer).map_err(|_| Gone)?;
    outbox.send(Message::Text(text.into())).await.map_err(|_| Gone)
}
