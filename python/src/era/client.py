"""The server's REST interface, plain and asynchronous.

What is asked and how an answer is read is written once, in `calls`; the two clients only carry
that, the one at once and the other to be awaited.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx

from . import calls, config
from .calls import Call
from .errors import NoServer, Refused
from .models import CounterOffers, Job, read

PREFIX = "/api/v1"
TIMEOUT_S = 30.0

P = ParamSpec("P")
T = TypeVar("T")


def answer(call: Call[T], response: httpx.Response) -> T:
    """An answer as its type, or the refusal as an exception."""
    if response.is_success:
        return call.answer(response.json() if response.content else None)
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    offers = problem.get("counter_offers")
    raise Refused(
        response.status_code,
        problem.get("code", f"http_{response.status_code}"),
        problem.get("detail", response.text[:500] or response.reason_phrase),
        problem.get("field"),
        read(CounterOffers, offers) if offers else None,
    )


def _headers(server: config.Server) -> dict[str, str]:
    headers = {"accept": "application/json", "user-agent": "era-python"}
    if server.token:
        headers["authorization"] = f"Bearer {server.token}"
    return headers


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
    job = _plain(calls.job)
    jobs = _plain(calls.jobs)
    cancel = _plain(calls.cancel)
    logs = _plain(calls.logs)
    metrics = _plain(calls.metrics)
    secrets = _plain(calls.secrets)
    set_secret = _plain(calls.set_secret)
    remove_secret = _plain(calls.remove_secret)

    def _do(self, call: Call[T]) -> T:
        try:
            response = self._http.request(**_request(call))
        except httpx.TransportError as error:
            raise NoServer(f"{self.server.url} does not answer: {error}") from error
        return answer(call, response)

    def wait(self, id: int, timeout_s: float | None = None, every_s: float = 0.2) -> Job:
        """Waits until a job is over."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            job = self.job(id)
            if job.is_over:
                return job
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"job {id} is {job.state} after {timeout_s} s")
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
    job = _awaited(calls.job)
    jobs = _awaited(calls.jobs)
    cancel = _awaited(calls.cancel)
    logs = _awaited(calls.logs)
    metrics = _awaited(calls.metrics)
    secrets = _awaited(calls.secrets)
    set_secret = _awaited(calls.set_secret)
    remove_secret = _awaited(calls.remove_secret)

    async def _do(self, call: Call[T]) -> T:
        try:
            response = await self._http.request(**_request(call))
        except httpx.TransportError as error:
            raise NoServer(f"{self.server.url} does not answer: {error}") from error
        return answer(call, response)

    async def wait(self, id: int, timeout_s: float | None = None, every_s: float = 0.2) -> Job:
        """Waits until a job is over."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            job = await self.job(id)
            if job.is_over:
                return job
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"job {id} is {job.state} after {timeout_s} s")
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
