//! What a job printed: in pages, as a text, and as it comes.
//!
//! The log is read from the job's folder; nothing of it is kept in memory or in a database. Lines
//! that were just printed by several replicas wait a moment until their order is settled, so that
//! the offset of a line means the same to whoever asks.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::extract::ws::{WebSocketUpgrade, close_code};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use era_api::Page;
use era_api::job::LogLine;
use era_api::page::{PAGE_DEFAULT, PAGE_MAX};
use era_app::clock::{Clock, SystemClock};
use era_app::wire::Wrong;
use era_cloud::log::{Entry, LogError, LogReader, Only};
use era_core::units::{JobId, Span, Time};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::lasting::Lasting;
use super::watched::{Follower, Gone, is_over, may_watch, room};
use super::{Caller, Failure, Path, Query};
use crate::App;

/// Most bytes of text on a page or in a message. Written as JSON it is at most six times as long.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a piece of a text.
const PIECE_BYTES: usize = 256 << 10;
/// How long the order of what several replicas printed is not settled.
const SETTLED_AFTER: Span = Span(250);
/// What is printed last is written before its task's end is known; this long is waited for it.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Logs of jobs.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(logs)).routes(routes!(follow))
}

/// Which lines.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct LogsAsk {
    /// From this offset: `next` of the line before. From the first line that is kept where
    /// nothing is said.
    #[serde(default)]
    from: Option<u64>,
    /// Most lines, up to 1000. Not for a text.
    #[serde(default)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Only so many of the last lines, up to 1000, instead of those from an offset. Not for a text.
    #[serde(default)]
    #[param(minimum = 1, maximum = 1000)]
    last: Option<u32>,
    /// Of this attempt.
    #[serde(default)]
    attempt: Option<u32>,
    /// Of this replica.
    #[serde(default)]
    rank: Option<u32>,
    /// `json` for a page, `text` for all of it as it was printed.
    #[serde(default)]
    #[param(inline)]
    format: LogFormat,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// At an offset.
    At(u64),
    /// So that it ends where the log does.
    Last,
}

/// How a log is given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
enum LogFormat {
    /// Lines, in pages.
    #[default]
    Json,
    /// As it was printed.
    Text,
}

impl LogsAsk {
    fn only(self) -> Only {
        Only { attempt: self.attempt, rank: self.rank }
    }

    /// Which lines, and how many at most.
    fn lines(self) -> Result<(Begin, usize), Failure> {
        let (field, begin, count) = match self.last {
            Some(_) if self.from.is_some() => {
                let both = Wrong::NotBoth { one: "from", other: "last" };
                return Err(Failure::bad_field("last", both));
            }
            Some(last) => ("last", Begin::Last, last),
            None => {
                let begin = Begin::At(self.from.unwrap_or(0));
                ("limit", begin, self.limit.unwrap_or(PAGE_DEFAULT))
            }
        };
        let wrong = || Wrong::Range { least: 1, most: PAGE_MAX.into() };
        let fits = (1..=PAGE_MAX).contains(&count);
        fits.then_some((begin, count as usize)).ok_or_else(|| Failure::bad_field(field, wrong()))
    }
}

/// What a job printed: a page of lines, or all of it as a text.
///
/// Attempts follow one another, and what replicas printed is in the order of time. The last page
/// has no `next`; while the job runs, more may come behind the last line's `next`.
#[utoipa::path(get, path = "/jobs/{id}/logs", tag = "jobs", params(("id" = u64, Path), LogsAsk),
    responses(
    (status = 200, content(
        (Page<LogLine> = "application/json"),
        (String = "text/plain"),
    )),
))]
async fn logs(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
    Query(ask): Query<LogsAsk>,
) -> Result<Response, Failure> {
    let (begin, lines) = ask.lines()?;
    let job = may_watch(&app, &caller, id).await?;
    let folder = log_folder(&app, job);
    let only = ask.only();
    let is_over = is_over(&app, job);
    match ask.format {
        LogFormat::Json => {
            let page = off_runtime(move || page(&folder, only, begin, lines, is_over)).await?;
            Ok(Json(page).into_response())
        }
        LogFormat::Text => Ok(text(folder, only, ask.from.unwrap_or(0), job)),
    }
}

/// What a job prints, as it comes: each message is a JSON list of lines. Closed with the code 1000
/// once the job is over and all was sent.
#[utoipa::path(get, path = "/jobs/{id}/logs/ws", tag = "jobs", params(("id" = u64, Path), LogsAsk),
    responses(
    (status = 101, description = "A WebSocket, on which lists of lines come", body = Vec<LogLine>),
))]
async fn follow(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
    Query(ask): Query<LogsAsk>,
    lasting: Option<Extension<Lasting>>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Failure> {
    let job = may_watch(&app, &caller, id).await?;
    let upgrade = upgrade.map_err(not_a_socket)?;
    let room = room()?;
    let lasting = lasting.map(|Extension(lasting)| lasting);
    let (folder, only, from) = (log_folder(&app, job), ask.only(), ask.from.unwrap_or(0));
    Ok(upgrade.on_upgrade(move |socket| async move {
        let over = || is_over(&app, job);
        stream(Follower::new(socket, room, lasting), folder, only, from, over).await;
    }))
}

/// A WebSocket was expected.
pub(super) fn not_a_socket(
    rejection: axum::extract::ws::rejection::WebSocketUpgradeRejection,
) -> Failure {
    let status = axum::http::StatusCode::UPGRADE_REQUIRED;
    let detail = format!("this is a WebSocket: {}", rejection.body_text());
    Failure::new(status, "upgrade_required", detail)
}

/// Where a job's logs are.
fn log_folder(app: &App, job: JobId) -> PathBuf {
    job.folder(app.store.folder()).join("logs")
}

async fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<T, Failure> {
    let worked = tokio::task::spawn_blocking(work).await.map_err(|e| Failure::internal(&e))?;
    worked.map_err(|error| match error {
        LogError::TooManyTasks { most } => Failure::bad_field("rank", Wrong::ManyTasks { most }),
        LogError::File { .. } => Failure::internal(&error),
    })
}

/// Until when what is there is settled.
fn settled(reader: &LogReader, is_over: bool) -> Time {
    match is_over || reader.tasks_merged() < 2 {
        true => Time::MAX,
        false => SystemClock.now() - SETTLED_AFTER,
    }
}

fn page(
    folder: &FilePath,
    only: Only,
    begin: Begin,
    lines: usize,
    is_over: bool,
) -> Result<Page<LogLine>, LogError> {
    let mut reader = LogReader::open(folder, only)?;
    let until = settled(&reader, is_over);
    match begin {
        Begin::At(from) => reader.seek(from)?,
        Begin::Last => reader.seek_last(lines, PAGE_BYTES_MAX as u64, until)?,
    }
    let entries = reader.read(lines, PAGE_BYTES_MAX, until)?;
    let is_last = reader.read(1, 1, until)?.is_empty();
    let next = entries.last().filter(|_| !is_last).map(|last| last.next.to_string());
    Ok(Page { items: entries.into_iter().map(line).collect(), next })
}

fn line(entry: Entry) -> LogLine {
    LogLine {
        next: entry.next,
        at: era_app::wire::stamp(entry.at),
        attempt: entry.attempt,
        rank: entry.rank,
        stream: entry.stream.as_str().to_owned(),
        text: match String::from_utf8(entry.text) {
            Ok(text) => text,
            Err(bad) => String::from_utf8_lossy(bad.as_bytes()).into_owned(),
        },
        goes_on: !entry.ends,
    }
}

/// All of a log as a text, each piece read when the one before was taken: whoever takes it slowly
/// holds no thread.
fn text(folder: PathBuf, only: Only, from: u64, job: JobId) -> Response {
    let printed = Printed::Unread { folder, only, from };
    let stream = futures_util::stream::unfold(Some(printed), |printed| async move {
        let printed = printed?;
        let read = tokio::task::spawn_blocking(move || printed.piece()).await;
        match read.map_err(std::io::Error::other) {
            Ok(Ok(None)) => None,
            Ok(Ok(Some((piece, printed)))) => Some((Ok(Bytes::from(piece)), Some(printed))),
            Ok(Err(error)) => {
                tracing::warn!(%error, "a log cannot be read");
                // Whoever reads it must see that it broke off.
                Some((Err(std::io::Error::other(error)), None))
            }
            Err(error) => Some((Err(error), None)),
        }
    });
    let mut response = Body::from_stream(stream).into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let name = format!("attachment; filename=\"job-{}.log\"", job.0);
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    response
}

/// A log that is read as a text.
enum Printed {
    /// Nothing of it yet.
    Unread { folder: PathBuf, only: Only, from: u64 },
    /// Up to where the reader is. What comes while it is read is left for the next time, else one
    /// could read for ever.
    Read { reader: LogReader, text: Text, until: Time },
}

impl Printed {
    /// The next piece, and what is left; nothing at the end.
    fn piece(self) -> Result<Option<(Vec<u8>, Printed)>, LogError> {
        let (mut reader, mut text, until) = match self {
            Printed::Unread { folder, only, from } => {
                let mut reader = LogReader::open(&folder, only)?;
                reader.seek(from)?;
                let text = Text { with_rank: reader.tasks_merged() > 1, open: None };
                (reader, text, SystemClock.now())
            }
            Printed::Read { reader, text, until } => (reader, text, until),
        };
        let entries = reader.read(usize::MAX, PIECE_BYTES, until)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let piece = entries.iter().flat_map(|entry| text.put(entry)).collect();
        Ok(Some((piece, Printed::Read { reader, text, until })))
    }
}

/// Puts lines together as they were printed; of several replicas each with its rank.
struct Text {
    with_rank: bool,
    /// Whose line has not ended.
    open: Option<(u32, u32, &'static str)>,
}

impl Text {
    fn put(&mut self, entry: &Entry) -> Vec<u8> {
        let whose = (entry.attempt, entry.rank, entry.stream.as_str());
        let goes_on = self.open == Some(whose);
        let mut bytes = Vec::with_capacity(entry.text.len() + 16);
        // With ranks every line begins with one, so another's line ends the open one.
        if self.with_rank && self.open.is_some() && !goes_on {
            bytes.push(b'\n');
        }
        if self.with_rank && !goes_on {
            bytes.extend(format!("[{}] ", entry.rank).into_bytes());
        }
        bytes.extend_from_slice(&entry.text);
        if entry.ends {
            bytes.push(b'\n');
        }
        self.open = (!entry.ends).then_some(whose);
        bytes
    }
}

/// Sends lines as they come until the job is over.
async fn stream(
    mut follower: Follower,
    folder: PathBuf,
    only: Only,
    from: u64,
    over: impl Fn() -> bool,
) {
    let opened = off_runtime(move || {
        let mut reader = LogReader::open(&folder, only)?;
        reader.seek(from)?;
        Ok(reader)
    });
    let sent = match opened.await {
        Ok(reader) => send_lines(&mut follower, reader, over).await,
        Err(failure) => Ok(Err(failure)),
    };
    match sent {
        Ok(Ok(())) => follower.end(close_code::NORMAL, "the job is over").await,
        Ok(Err(_)) => follower.end(close_code::ERROR, "the log cannot be read").await,
        Err(Gone) => {}
    }
}

async fn send_lines(
    follower: &mut Follower,
    mut reader: LogReader,
    over: impl Fn() -> bool,
) -> Result<Result<(), Failure>, Gone> {
    let mut was_over = false;
    loop {
        // Asked before reading: what was printed before the end is then read.
        let is_over = over();
        if is_over && !was_over {
            tokio::time::sleep(LAST_WORDS).await;
        }
        was_over = is_over;
        let read = off_runtime(move || {
            reader.refresh()?;
            let entries =
                reader.read(PAGE_MAX as usize, PAGE_BYTES_MAX, settled(&reader, is_over))?;
            Ok((reader, entries))
        });
        let entries;
        (reader, entries) = match read.await {
            Ok(read) => read,
            Err(failure) => return Ok(Err(failure)),
        };
        if !entries.is_empty() {
            let lines: Vec<LogLine> = entries.into_iter().map(line).collect();
            follower.send(&lines).await?;
        } else if is_over {
            return Ok(Ok(()));
        } else {
            follower.pause().await?;
        }
    }
}

#[cfg(test)]
mod tests;
