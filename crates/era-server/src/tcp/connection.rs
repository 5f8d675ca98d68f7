//! One connection: reads what is there, answers all of it, writes once.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use era_api::account::Scope;
use era_api::job::{JobSpec, JobStatus};
use era_app::auth::Caller;
use era_app::error::Kind;
use era_app::idempotency::{KEY_MAX, core_key};
use era_app::jobs::{change, status};
use era_app::quotes::Moment;
use era_app::wire::{Wrong, unknown_word};
use era_app::{AppError, Services};
use era_core::units::Name;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::line::{RequestLine, answer, body, quote, unreadable};
use super::permits::{ConnectionPermit, ConnectionPermits, PERMITS_MAX};
use super::{ByteStream, CONNECTIONS_MAX, LINE_MAX, OUTSTANDING_MAX};

/// Bytes that are read at a time.
const READ: usize = 64 * 1024;
/// How long a connection may stand before it has said who it is.
const AUTH_TIME: Duration = Duration::from_secs(10);
/// How often it may get that wrong.
const AUTH_TRIES: u32 = 5;
/// How long one that has said so may ask nothing.
const IDLE_TIME: Duration = Duration::from_secs(3600);
/// How long what was asked may take to be answered when the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// How long a token is believed before it is looked at again.
const BELIEVE: Duration = Duration::from_secs(1);
/// How long a peer may take to read its answers.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// How long one for whom there is no place may take to hear so.
const TURN_AWAY_TIME: Duration = Duration::from_secs(1);
/// What may be asked.
const OPS: [&str; 5] = ["auth", "quote", "submit", "cancel", "status"];

/// An answer that waits for the scheduler or the tables, as the line it will be.
type Pending = Pin<Box<dyn Future<Output = Vec<u8>> + Send>>;

/// Why a connection is over.
#[derive(Debug)]
#[allow(dead_code)] // told to the log
pub(super) enum Closed {
    /// The peer closed it, or the server stops.
    Over,
    /// It never said who it is.
    Nobody,
    /// A line is longer than any may be.
    TooLong,
    Broken(io::Error),
}

impl From<io::Error> for Closed {
    fn from(error: io::Error) -> Closed {
        Closed::Broken(error)
    }
}

/// Who is at the other end.
struct Known {
    token: String,
    caller: Caller,
    looked: Instant,
    _permit: ConnectionPermit,
}

struct Connection {
    app: Services,
    permits: ConnectionPermits,
    known: Option<Known>,
    tries: u32,
    pending: FuturesUnordered<Pending>,
    out: Vec<u8>,
}

/// Serves a connection until it is over.
pub(super) async fn serve(
    mut stream: impl ByteStream,
    app: Services,
    permits: ConnectionPermits,
    stop: CancellationToken,
) -> Result<(), Closed> {
    let begun = Instant::now();
    let mut heard = begun;
    let mut connection = Connection {
        app,
        permits,
        known: None,
        tries: 0,
        pending: FuturesUnordered::new(),
        out: Vec::with_capacity(READ),
    };
    let mut read = Vec::with_capacity(READ);
    loop {
        let nobody = connection.known.is_none();
        let left = match nobody {
            true => AUTH_TIME.saturating_sub(begun.elapsed()),
            false => IDLE_TIME.saturating_sub(heard.elapsed()),
        };
        let waits = nobody || connection.pending.is_empty();
        tokio::select! {
            biased;
            Some(line) = connection.pending.next(), if !connection.pending.is_empty() => {
                connection.out.extend_from_slice(&line);
            }
            count = stream.read_buf(&mut read), if connection.pending.len() < OUTSTANDING_MAX => {
                if count? == 0 {
                    // What was asked before the end is still answered.
                    while let Some(line) = connection.pending.next().await {
                        connection.out.extend_from_slice(&line);
                    }
                    write(&mut stream, &mut connection.out).await?;
                    return Err(Closed::Over);
                }
                heard = Instant::now();
            }
            () = tokio::time::sleep(left), if waits => {
                return Err(if nobody { Closed::Nobody } else { Closed::Over });
            }
            () = stop.cancelled() => {
                connection.answer_last().await;
                write(&mut stream, &mut connection.out).await?;
                return Ok(());
            }
        }
        let taken = connection.take(&read);
        read.drain(..taken);
        write(&mut stream, &mut connection.out).await?;
        if connection.known.is_none() && connection.tries >= AUTH_TRIES {
            return Err(Closed::Nobody);
        }
        if read.len() > LINE_MAX {
            let detail = format!("a line has at most {LINE_MAX} bytes");
            let error = AppError::new(Kind::TooLarge, "line_too_long", detail);
            answer(&mut connection.out, 0, Err::<(), _>(error));
            write(&mut stream, &mut connection.out).await?;
            return Err(Closed::TooLong);
        }
        read.reserve(READ);
    }
}

/// Tells a peer that there is no place for it, and hangs up.
pub(super) async fn turn_away(mut stream: impl ByteStream) {
    let detail = format!(
        "{CONNECTIONS_MAX} connections are open, as many as there may be: close one, or try again"
    );
    let error = AppError::new(Kind::Unavailable, "too_many_connections", detail).after(1);
    let mut line = Vec::new();
    answer(&mut line, 0, Err::<(), _>(error));
    let told = async {
        stream.write_all(&line).await?;
        stream.shutdown().await?;
        // Until it hangs up: what it sent and nobody read would break the connection off, and the
        // line would be lost.
        while stream.read(&mut [0; 4096]).await? > 0 {}
        io::Result::Ok(())
    };
    // Whoever does not take it within a moment is not worth waiting for.
    let _ = tokio::time::timeout(TURN_AWAY_TIME, told).await;
}

async fn write(stream: &mut impl ByteStream, out: &mut Vec<u8>) -> Result<(), Closed> {
    if out.is_empty() {
        return Ok(());
    }
    let written = async {
        stream.write_all(out).await?;
        stream.flush().await
    };
    match tokio::time::timeout(WRITE_TIME, written).await {
        Ok(written) => written?,
        Err(_) => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
    out.clear();
    Ok(())
}

impl Connection {
    /// Waits a while for what was asked before the server stops.
    async fn answer_last(&mut self) {
        let until = tokio::time::Instant::now() + LAST_ANSWERS;
        while let Ok(Some(line)) = tokio::time::timeout_at(until, self.pending.next()).await {
            self.out.extend_from_slice(&line);
        }
    }

    /// Takes every whole line, as far as the scheduler may be asked; says how many bytes that is.
    fn take(&mut self, read: &[u8]) -> usize {
        if !read.contains(&b'\n') {
            return 0;
        }
        let snapshot = self.app.driver.snapshot();
        let moment = Moment::now(&*self.app.clock, &snapshot);
        self.look_again();
        let mut taken = 0;
        while self.pending.len() < OUTSTANDING_MAX {
            let Some(end) = read[taken..].iter().position(|byte| *byte == b'\n') else { break };
            let text = read[taken..taken + end].trim_ascii();
            taken += end + 1;
            if !text.is_empty() {
                self.one(moment, text);
            }
        }
        taken
    }

    fn one(&mut self, moment: Moment<'_>, text: &[u8]) {
        if text.len() > LINE_MAX {
            let wrong = Wrong::TooMany { most: LINE_MAX, what: "bytes" };
            let error = AppError::bad_field("line", wrong);
            return answer(&mut self.out, 0, Err::<(), _>(error));
        }
        let line = match serde_json::from_slice::<RequestLine<'_>>(text) {
            Ok(line) => line,
            Err(_) => {
                let (id, error) = unreadable(text);
                self.tries += u32::from(self.known.is_none());
                return answer(&mut self.out, id, Err::<(), _>(error));
            }
        };
        let id = line.id;
        if line.op == "auth" {
            let told = self.authenticate(line.token.as_deref());
            return answer(&mut self.out, id, told);
        }
        let Some(Known { caller, .. }) = &self.known else {
            self.tries += 1;
            let error = AppError::unauthenticated("say who you are first: op `auth`, `token`");
            return answer(&mut self.out, id, Err::<(), _>(error));
        };
        match &*line.op {
            "quote" => {
                answer(&mut self.out, id, quote(&self.app, caller, moment, line.ask));
            }
            "status" => match status_now(caller, moment, &line) {
                Ok((_, Some(told))) => answer(&mut self.out, id, Ok(told)),
                Ok((job, None)) => {
                    let (app, caller) = (self.app.clone(), caller.clone());
                    self.answer_later(id, async move { status::ended(&app, &caller, job).await });
                }
                Err(error) => answer(&mut self.out, id, Err::<(), _>(error)),
            },
            "submit" => match submission(caller, &line) {
                Ok((job, key)) => {
                    let (app, caller) = (self.app.clone(), caller.clone());
                    self.answer_later(
                        id,
                        async move { change::submit(&app, &caller, job, key).await },
                    );
                }
                Err(error) => answer(&mut self.out, id, Err::<(), _>(error)),
            },
            "cancel" => match body("job", line.job) {
                Ok(job) => {
                    let (app, caller) = (self.app.clone(), caller.clone());
                    self.answer_later(id, async move {
                        change::cancel(&app, &caller, job, false).await.map(|()| Done {})
                    });
                }
                Err(error) => answer(&mut self.out, id, Err::<(), _>(error)),
            },
            unknown => {
                let error = AppError::bad_field("op", unknown_word(unknown, &OPS));
                answer(&mut self.out, id, Err::<(), _>(error));
            }
        }
    }

    fn authenticate(&mut self, token: Option<&str>) -> Result<Me, AppError> {
        self.known = None;
        let Some(token) = token else { return Err(AppError::bad_field("token", Wrong::Missing)) };
        let Some(caller) = self.app.auth.caller(token) else {
            self.tries += 1;
            return Err(AppError::unauthenticated(
                "no such token is good: make one by `era login`",
            ));
        };
        let Some(permit) = self.permits.take(caller.user) else {
            let detail = format!(
                "your account has {PERMITS_MAX} connections, as many as it may: close one, or try \
                 again"
            );
            return Err(AppError::new(Kind::TooMany, "too_many_connections", detail).after(1));
        };
        let me = Me { user: caller.name.clone() };
        let token = token.to_owned();
        self.known = Some(Known { token, caller, looked: Instant::now(), _permit: permit });
        Ok(me)
    }

    /// A token that was revoked is good for a moment longer at most.
    fn look_again(&mut self) {
        if let Some(known) = &mut self.known
            && known.looked.elapsed() > BELIEVE
        {
            match self.app.auth.caller(&known.token) {
                Some(caller) => (known.caller, known.looked) = (caller, Instant::now()),
                None => self.known = None,
            }
        }
    }

    /// Answers once the scheduler has, which is when it is durable, or the tables.
    fn answer_later<T: Serialize + 'static>(
        &mut self,
        id: u64,
        asked: impl Future<Output = Result<T, AppError>> + Send + 'static,
    ) {
        self.pending.push(Box::pin(async move {
            let told = asked.await;
            let mut line = Vec::new();
            answer(&mut line, id, told);
            line
        }));
    }
}

/// Who was recognised.
#[derive(Serialize)]
struct Me {
    user: String,
}

/// Which job is asked for, and where it stands as far as the snapshot says it.
fn status_now(
    caller: &Caller,
    at: Moment<'_>,
    line: &RequestLine<'_>,
) -> Result<(u64, Option<JobStatus>), AppError> {
    caller.may(Scope::Read)?;
    let job = body("job", line.job)?;
    Ok((job, status::now(at.snapshot, caller, job)?))
}

fn submission(
    caller: &Caller,
    line: &RequestLine<'_>,
) -> Result<(JobSpec, Option<Name>), AppError> {
    let job = body("job", line.job)?;
    let key = line.key.as_deref().map(|key| {
        let bounded = (1..=KEY_MAX).contains(&key.len());
        let key = core_key(caller.user, key).filter(|_| bounded);
        key.ok_or_else(|| AppError::bad_field("key", Wrong::Text { most: 255 }))
    });
    let key = key.transpose()?;
    Ok((job, key))
}

/// Nothing to tell but that it is done.
#[derive(Serialize)]
struct Done {}
