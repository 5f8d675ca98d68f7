//! One conversation: reads what the client says and keeps its transfers.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use axum::http::StatusCode;
use era_api::data::FileFilter;
use era_api::file_service::{
    ClientMessage, FileChunk, MESSAGE_BYTES_MAX, ServerMessage, TRANSFERS_MAX,
};
use era_app::files::Service;
use era_app::files::sets::{self, Listing};
use era_spec::plain;
use era_store::files::DataSetKey;
use futures_util::stream::SplitStream;
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::download;
use super::outbox::{Gone, Outbox, tell};
use super::upload::{ChunkOutcome, Receiving};
use crate::http::open_session::{self, OpenSession};
use crate::http::{Caller, Failure};

/// Frames that wait to be sent.
const OUTBOX: usize = 8;
/// Items of a listing.
const LISTING_MAX: u32 = 500;
/// How often a silent client is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(20);
/// How long a client may be silent, or may not take what is sent.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How long a goodbye may wait for frames before it.
const GOODBYE_MAX: Duration = Duration::from_secs(2);

pub(super) async fn converse(
    socket: WebSocket,
    service: Service,
    caller: Caller,
    open: Option<OpenSession>,
) {
    let (mut sink, mut stream) = socket.split();
    let (outbox, mut frames) = mpsc::channel::<Message>(OUTBOX);
    let writer = tokio::spawn(async move {
        while let Some(frame) = frames.recv().await {
            match tokio::time::timeout(SILENCE_MAX, sink.send(frame)).await {
                Ok(Ok(())) => {}
                // Gone, or does not take anything: whoever else sends finds the channel closed.
                Ok(Err(_)) | Err(_) => return,
            }
        }
        // Who has gone already is not there to be told goodbye.
        let _ = sink.close().await;
    });
    let mut session = Session { service, caller, outbox, transfers: BTreeMap::new() };
    tokio::select! {
        () = session.listen(&mut stream) => session.end().await,
        goodbye = open_session::over(open.as_ref()) => {
            session.end().await;
            let goodbye = session.send(Message::Close(Some(goodbye)));
            // One who takes nothing any more is cut off without it.
            if tokio::time::timeout(GOODBYE_MAX, goodbye).await.is_err() {
                writer.abort();
            }
        }
    }
    drop(session);
    // The last frames go out; a writer that fails has nobody left to tell.
    let _ = writer.await;
}

struct Session {
    service: Service,
    caller: Caller,
    outbox: Outbox,
    transfers: BTreeMap<u32, Transfer>,
}

enum Transfer {
    /// The client sends.
    Receiving(Box<Receiving>),
    /// A task sends, or verifies what was received.
    Working(JoinHandle<()>),
}

impl Session {
    /// Hears the client until it goes, or is silent for too long.
    async fn listen(&mut self, stream: &mut SplitStream<WebSocket>) {
        let mut silent = Duration::ZERO;
        while silent < SILENCE_MAX {
            match tokio::time::timeout(PING_EVERY, stream.next()).await {
                Ok(Some(Ok(message))) => {
                    silent = Duration::ZERO;
                    if self.hear(message).await.is_err() {
                        break;
                    }
                }
                Ok(Some(Err(_)) | None) => break,
                Err(_) => {
                    // Whoever takes a download need not say anything meanwhile.
                    silent += if self.is_sending() { Duration::ZERO } else { PING_EVERY };
                    if self.send(Message::Ping(Vec::new().into())).await.is_err() {
                        break;
                    }
                }
            }
        }
    }

    async fn hear(&mut self, message: Message) -> Result<(), Gone> {
        self.transfers.retain(|_, transfer| match transfer {
            Transfer::Working(task) => !task.is_finished(),
            Transfer::Receiving(_) => true,
        });
        match message {
            Message::Text(text) => self.hear_text(text.as_str()).await,
            Message::Binary(frame) => self.hear_piece(&frame).await,
            Message::Close(_) => Err(Gone),
            Message::Ping(_) | Message::Pong(_) => Ok(()),
        }
    }

    async fn hear_text(&mut self, text: &str) -> Result<(), Gone> {
        let parsed = if text.len() > MESSAGE_BYTES_MAX {
            Err(format!("a message has at most {MESSAGE_BYTES_MAX} bytes"))
        } else {
            serde_json::from_str::<ClientMessage>(text).map_err(|error| {
                let told = error.to_string();
                plain::said(told.split(" at line ").next().unwrap_or_default(), "field").sentence
            })
        };
        match parsed {
            Ok(say) => self.act(say).await,
            Err(problem) => {
                let failure =
                    Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_message", problem);
                self.fail(None, failure).await
            }
        }
    }

    async fn act(&mut self, say: ClientMessage) -> Result<(), Gone> {
        let id = match &say {
            ClientMessage::Upload { id, .. }
            | ClientMessage::Download { id, .. }
            | ClientMessage::Cancel { id }
            | ClientMessage::Browse { id, .. }
            | ClientMessage::Search { id, .. } => *id,
        };
        let acted = match say {
            ClientMessage::Upload { hash, bytes, .. } => self.upload(id, &hash, bytes).await,
            ClientMessage::Download { from, offset, .. } => self.download(id, from, offset),
            ClientMessage::Cancel { .. } => {
                if let Some(transfer) = self.transfers.remove(&id) {
                    stop(transfer).await;
                }
                Ok(())
            }
            ClientMessage::Browse { data, folder, after, .. } => {
                let listed = self.browse(id, &data, &folder, after.as_deref()).await;
                return self.tell_listing(id, listed).await;
            }
            ClientMessage::Search { data, text, after, .. } => {
                let listed = self.search(id, &data, text, after).await;
                return self.tell_listing(id, listed).await;
            }
        };
        match acted {
            Ok(()) => Ok(()),
            Err(failure) => self.fail(Some(id), failure).await,
        }
    }

    async fn tell_listing(
        &self,
        id: u32,
        listed: Result<ServerMessage, Failure>,
    ) -> Result<(), Gone> {
        match listed {
            Ok(answer) => self.tell(&answer).await,
            Err(failure) => self.fail(Some(id), failure).await,
        }
    }

    fn admit(&self, id: u32) -> Result<(), Failure> {
        let refused = |code, detail: String| {
            Err(Failure::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail).about("id"))
        };
        if self.transfers.contains_key(&id) {
            return refused("id_taken", format!("transfer {id} is under way: use another id"));
        }
        if self.transfers.len() >= TRANSFERS_MAX {
            let detail = format!("{TRANSFERS_MAX} transfers are under way: wait for one to end");
            return refused("too_many_transfers", detail);
        }
        Ok(())
    }

    async fn upload(&mut self, id: u32, hash: &str, bytes: u64) -> Result<(), Failure> {
        self.admit(id)?;
        let receiving = Receiving::begin(&self.service, &self.caller, hash, bytes).await?;
        let offset = receiving.offset();
        let whole = receiving.is_whole();
        self.transfers.insert(id, Transfer::Receiving(Box::new(receiving)));
        // If the client is gone, the next read says so.
        let _ = self.tell(&ServerMessage::Ready { id, offset }).await;
        if whole {
            self.finish(id);
        }
        Ok(())
    }

    async fn hear_piece(&mut self, frame: &[u8]) -> Result<(), Gone> {
        let Some(piece) = FileChunk::read(frame) else {
            let detail = "a binary frame is an id (4 bytes), an offset (8 bytes) and at most 1 MiB";
            let failure = Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_piece", detail);
            return self.fail(None, failure).await;
        };
        let id = piece.id;
        let Some(Transfer::Receiving(receiving)) = self.transfers.get_mut(&id) else {
            // Pieces that were on their way when the upload failed or was cancelled.
            return Ok(());
        };
        match receiving.take(piece).await {
            Ok(ChunkOutcome::More) => Ok(()),
            Ok(ChunkOutcome::Written(offset)) => {
                self.tell(&ServerMessage::Written { id, offset }).await
            }
            Ok(ChunkOutcome::Whole) => {
                self.finish(id);
                Ok(())
            }
            Err(failure) => {
                if let Some(transfer) = self.transfers.remove(&id) {
                    stop(transfer).await;
                }
                self.fail(Some(id), failure).await
            }
        }
    }

    /// Verifies an upload beside everything else: a large file takes a while.
    fn finish(&mut self, id: u32) {
        let Some(Transfer::Receiving(receiving)) = self.transfers.remove(&id) else { return };
        let outbox = self.outbox.clone();
        let task = tokio::spawn(async move {
            let answer = match receiving.finish().await {
                Ok(()) => ServerMessage::Done { id },
                Err(failure) => failed(Some(id), failure),
            };
            // Who is gone will ask again.
            let _ = tell(&outbox, &answer).await;
        });
        self.transfers.insert(id, Transfer::Working(task));
    }

    fn download(
        &mut self,
        id: u32,
        from: era_api::file_service::Source,
        offset: u64,
    ) -> Result<(), Failure> {
        self.admit(id)?;
        let (service, caller) = (self.service.clone(), self.caller.clone());
        let outbox = self.outbox.clone();
        let task = tokio::spawn(async move {
            if let Err(failure) = download::send(&service, &caller, &outbox, id, from, offset).await
            {
                // Who is gone will ask again.
                let _ = tell(&outbox, &failed(Some(id), failure)).await;
            }
        });
        self.transfers.insert(id, Transfer::Working(task));
        Ok(())
    }

    async fn browse(
        &self,
        id: u32,
        data: &str,
        folder: &str,
        after: Option<&str>,
    ) -> Result<ServerMessage, Failure> {
        let (service, caller, key) = (&self.service, &self.caller, data.parse::<DataSetKey>()?);
        let listed = sets::browse(service, caller, &key, folder, after, LISTING_MAX).await?;
        let Listing { folders, files, next } = listed;
        Ok(ServerMessage::Listing { id, folders, files, next })
    }

    async fn search(
        &self,
        id: u32,
        data: &str,
        text: String,
        after: Option<String>,
    ) -> Result<ServerMessage, Failure> {
        let (search, limit) = (Some(text), Some(LISTING_MAX));
        let filter = FileFilter { search, cursor: after, limit, ..FileFilter::default() };
        let found =
            sets::files(&self.service, &self.caller, &data.parse::<DataSetKey>()?, filter).await?;
        let (folders, files) = (Vec::new(), found.items);
        Ok(ServerMessage::Listing { id, folders, files, next: found.next })
    }

    fn is_sending(&self) -> bool {
        let working = |transfer: &Transfer| matches!(transfer, Transfer::Working(task) if !task.is_finished());
        self.transfers.values().any(working)
    }

    async fn fail(&self, id: Option<u32>, failure: Failure) -> Result<(), Gone> {
        self.tell(&failed(id, failure)).await
    }

    async fn tell(&self, answer: &ServerMessage) -> Result<(), Gone> {
        tell(&self.outbox, answer).await
    }

    async fn send(&self, message: Message) -> Result<(), Gone> {
        self.outbox.send(message).await.map_err(|_| Gone)
    }

    /// The client is gone: what it sent so far is kept, what it was sent is stopped.
    async fn end(&mut self) {
        for (_, transfer) in std::mem::take(&mut self.transfers) {
            stop(transfer).await;
        }
    }
}

async fn stop(transfer: Transfer) {
    match transfer {
        Transfer::Receiving(receiving) => receiving.keep().await,
        Transfer::Working(task) => task.abort(),
    }
}

fn failed(id: Option<u32>, failure: Failure) -> ServerMessage {
    ServerMessage::Failed { id, problem: failure.0 }
}
