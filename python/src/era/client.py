"""The server's REST interface, plain and asynchronous.

What is asked and how an answer is read is written once, in `calls`; the two clients only carry
that, the one at once and the other to be awaited.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import logging
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, Union

import httpx

from . import calls, config, upload
from .calls import Call
from .errors import EraError, NoServer, Refused
from .models import CounterOffers, Job, read

PREFIX = "/api/v1"
TIMEOUT_S = 30.0
# How often a request is tried in all, and the longest wait that a server may ask for in between.
TRIES_MAX = 3
PAUSE_MAX_S = 5.0
# For so long a server may be away while somebody waits for a job: it is started again, or another
# takes its place.
AWAY_MAX_S = 30.0
AWAY_EVERY_S = 1.0
# A server says what is wrong; without a word of its own these are a proxy's.
NOBODY_BEHIND = (502, 503, 504)

LOG = logging.getLogger("era")

P = ParamSpec("P")
T = TypeVar("T")


Outcome = Union[httpx.Response, httpx.TransportError]


def answer(call: Call[T], url: str, response: Outcome) -> T:
    """An answer as its type, or the refusal as an exception."""
    if isinstance(response, httpx.TransportError):
        raise NoServer(f"{url} does not answer: {response}") from response
    if response.is_success:
        return call.answer(response.json() if response.content else None)
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    if "code" not in problem and response.status_code in NOBODY_BEHIND:
        raise NoServer(
            f"{url} answers for servers of which it reaches none now "
            f"(status {response.status_code}): try again in a few seconds"
        )
    offers = problem.get("counter_offers")
    raise Refused(
        response.status_code,
        problem.get("code", f"http_{response.status_code}"),
        problem.get("detail", response.text[:500] or response.reason_phrase),
        problem.get("field"),
        read(CounterOffers, offers) if offers else None,
    )


def _pause_s(call: Call[Any], outcome: Outcome, tries: int) -> float | None:
    """How long to wait before the same goes out again; `None` where it does not.

    What is safe to repeat is repeated when the connection breaks: reading, putting and deleting,
    and a creation whose key the server knows again.
    """
    safe = call.method != "POST" or call.key is not None
    if tries >= TRIES_MAX:
        return None
    if isinstance(outcome, httpx.TransportError):
        away = (httpx.ConnectError, httpx.TimeoutException, httpx.UnsupportedProtocol)
        return 0.05 * 2**tries if safe and not isinstance(outcome, away) else None
    if outcome.status_code in (429, 503):
        # Nothing was done: the server says so itself, and when to come again.
        asked = outcome.headers.get("retry-after", "")
        return float(asked) if asked.isdecimal() and float(asked) <= PAUSE_MAX_S else None
    # Whoever is behind the proxy is being replaced, which it may not notice for two seconds.
    return float(tries) if safe and outcome.status_code in (502, 504) else None


class _Patience:
    """Bears with a server that is away while somebody waits for a job."""

    def __init__(self, until: float | None) -> None:
        self._until = until
        self._since: float | None = None

    def heard(self) -> None:
        self._since = None

    def bear(self, error: EraError) -> None:
        """Raises what is no absence, or lasts for too long."""
        away = isinstance(error, NoServer) or (isinstance(error, Refused) and error.status == 503)
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        late = self._until is not None and now >= self._until
        if not away or late or now - self._since > AWAY_MAX_S:
            raise error


class _Told:
    """Tells once why a job waits that its owner cannot get to start."""

    def __init__(self) -> None:
        self._told = False

    def look(self, job: Job) -> None:
        explanation = job.explanation or {}
        if explanation.get("why") == "funds" and not self._told:
            self._told = True
            LOG.warning("job %d: %s", job.id, explanation["sentence"])

    def late(self, job: Job, timeout_s: float | None) -> TimeoutError:
        """What whoever has waited for too long is told."""
        why = f": {job.explanation['sentence']}" if job.explanation else ""
        return TimeoutError(f"job {job.id} is {job.state} after {timeout_s} s{why}")


def _headers(server: config.Server) -> dict[str, str]:
    headers = {"accept": "application/json", "user-agent": "era-python"}
    if server.token:
        headers["authorization"] = f"Bearer {server.token}"
    return headers


def _with_code(call: Call[T], code: str | None) -> Call[T]:
    """The same, with the code that was sent."""
    work = call.body["work"] | ({} if code is None else {"code": code})
    return dataclasses.replace(call, body=call.body | {"work": work}, code=None)


def _request(call: Call[Any]) -> dict[str, Any]:
    query = {name: one for name, one in (call.query or {}).items() if one is not None}
    headers = {"idempotency-key": call.key} if call.key else {}
    body = {} if call.body is None else {"json": call.body}
    return {
        "method": call.method,
        "url": PREFIX + call.path,
        "params": query,
        "headers": headers,
        **body,
    }


def _tell_of(method: Callable[..., Any], make: Callable[..., Any]) -> None:
    """A method is called, explained and given its arguments as its call is."""
    functools.update_wrapper(method, make)
    about = inspect.signature(make)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    whole = about.replace(parameters=[first, *about.parameters.values()])
    setattr(method, "__signature__", whole)


def _plain(make: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    """A call as a method of the plain client."""

    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._do(make(*args, **kwargs))

    _tell_of(method, make)
    return method


def _awaited(
    make: Callable[P, Call[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """A call as a method that is awaited."""

    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._do(make(*args, **kwargs))

    _tell_of(method, make)
    return method


class Client:
    """The plain client. Its address and token are found as the command line finds them."""

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        self.server = config.find(url, token)
        self._http = httpx.Client(
            base_url=self.server.url, headers=_headers(self.server), timeout=TIMEOUT_S
        )

    me = _plain(calls.me)
    quote = _plain(calls.quote)
    quote_one_of = _plain(calls.quote_one_of)
    submit = _plain(calls.submit)
    check = _plain(calls.check)
    job = _plain(calls.job)
    jobs = _plain(calls.jobs)
    cancel = _plain(calls.cancel)
    retry = _plain(calls.retry)
    logs = _plain(calls.logs)
    metrics = _plain(calls.metrics)
    secrets = _plain(calls.secrets)
    set_secret = _plain(calls.set_secret)
    remove_secret = _plain(calls.remove_secret)

    def _do(self, call: Call[T]) -> T:
        if call.code is not None:
            call = _with_code(call, upload.send(call.code, self.server))
        tries = 1
        while True:
            outcome: Outcome
            try:
                outcome = self._http.request(**_request(call))
            except httpx.TransportError as error:
                outcome = error
            pause_s = _pause_s(call, outcome, tries)
            if pause_s is None:
                return answer(call, self.server.url, outcome)
            time.sleep(pause_s)
            tries += 1

    def wait(self, id: int, timeout_s: float | None = None, every_s: float = 0.2) -> Job:
        """Waits until a job is over, also while the server is started again."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        patience, told = _Patience(until), _Told()
        while True:
            try:
                job = self.job(id)
            except EraError as error:
                patience.bear(error)
                time.sleep(AWAY_EVERY_S)
                continue
            patience.heard()
            if job.is_over:
                return job
            told.look(job)
            if until is not None and time.monotonic() >= until:
                raise told.late(job, timeout_s)
            time.sleep(every_s)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient:
    """The same, to be awaited."""

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        self.server = config.find(url, token)
        self._http = httpx.AsyncClient(
            base_url=self.server.url, headers=_headers(self.server), timeout=TIMEOUT_S
        )

    me = _awaited(calls.me)
    quote = _awaited(calls.quote)
    quote_one_of = _awaited(calls.quote_one_of)
    submit = _awaited(calls.submit)
    check = _awaited(calls.check)
    job = _awaited(calls.job)
    jobs = _awaited(calls.jobs)
    cancel = _awaited(calls.cancel)
    retry = _awaited(calls.retry)
    logs = _awaited(calls.logs)
    metrics = _awaited(calls.metrics)
    secrets = _awaited(calls.secrets)
    set_secret = _awaited(calls.set_secret)
    remove_secret = _awaited(calls.remove_secret)

    async def _do(self, call: Call[T]) -> T:
        if call.code is not None:
            sent = await asyncio.to_thread(upload.send, call.code, self.server)
            call = _with_code(call, sent)
        tries = 1
        while True:
            outcome: Outcome
            try:
                outcome = await self._http.request(**_request(call))
            except httpx.TransportError as error:
                outcome = error
            pause_s = _pause_s(call, outcome, tries)
            if pause_s is None:
                return answer(call, self.server.url, outcome)
            await asyncio.sleep(pause_s)
            tries += 1

    async def wait(self, id: int, timeout_s: float | None = None, every_s: float = 0.2) -> Job:
        """Waits until a job is over, also while the server is started again."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        patience, told = _Patience(until), _Told()
        while True:
            try:
                job = await self.job(id)
            except EraError as error:
                patience.bear(error)
                await asyncio.sleep(AWAY_EVERY_S)
                continue
            patience.heard()
            if job.is_over:
                return job
            told.look(job)
            if until is not None and time.monotonic() >= until:
                raise told.late(job, timeout_s)
            await asyncio.sleep(every_s)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        await self.close()
