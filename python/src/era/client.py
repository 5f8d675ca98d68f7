"""The server's REST interface, plain and asynchronous.

What is asked and how an answer is read is written once, as *calls*: values that say method, path,
body and the type of the answer. The two clients only carry them.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from typing import Any, Iterable

import httpx

from . import config
from .errors import NoServer, Refused
from .models import (
    Bid,
    CounterOffers,
    Job,
    JobSummary,
    LogLine,
    MetricPoint,
    Page,
    Quoted,
    Resources,
    Submitted,
    User,
    Work,
    plain,
    read,
)

PREFIX = "/api/v1"
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Call:
    """One question."""

    method: str
    path: str
    kind: Any = None
    body: Any = None
    query: dict[str, Any] | None = None
    # Creations carry a key, so that one that is repeated after a lost answer is made once.
    key: str | None = None


def _bid(resources, duration_s, value=None, **when) -> Bid:
    return Bid(resources=resources, duration_s=int(duration_s), value=value, **when)


def quote_call(bid: Bid, menu: bool, hold: bool) -> Call:
    body: dict[str, Any] = {"ask": bid.ask()}
    if bid.value is not None:
        body["value"] = str(bid.value)
    if menu:
        body["menu"] = True
    if hold:
        body["hold"] = True
    return Call("POST", "/quotes", Quoted, body, key=uuid.uuid4().hex)


def submit_call(work: Work, bid: Bid, key: str | None, options: dict[str, Any]) -> Call:
    body: dict[str, Any] = {"work": plain(work), "ask": bid.ask()}
    if bid.value is not None:
        body["value"] = str(bid.value)
    body |= {name: plain(one) for name, one in options.items() if one is not None}
    return Call("POST", "/jobs", Submitted, body, key=key or uuid.uuid4().hex)


def answer(call: Call, response: httpx.Response) -> Any:
    """An answer as its type, or the refusal as an exception."""
    if response.is_success:
        if call.kind is None or response.status_code == 204:
            return None
        return read_page(call.kind, response.json())
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


def read_page(kind: Any, value: Any) -> Any:
    if isinstance(kind, tuple):
        (item,) = kind
        return Page([read(item, one) for one in value["items"]], value.get("next"))
    return read(kind, value)


def _headers(server: config.Server) -> dict[str, str]:
    headers = {"accept": "application/json", "user-agent": "era-python"}
    if server.token:
        headers["authorization"] = f"Bearer {server.token}"
    return headers


def _request(call: Call) -> dict[str, Any]:
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


class _Calls:
    """Every question that can be asked; `_do` carries it."""

    def _do(self, call: Call) -> Any:
        raise NotImplementedError

    def me(self):
        """Who is asking: `User`."""
        return self._do(Call("GET", "/sessions", User))

    def quote(
        self,
        resources: Resources | dict[str, Any],
        duration_s: float,
        value=None,
        *,
        menu: bool = False,
        hold: bool = False,
        **when,
    ):
        """What a bid would get: `Quoted`. Nothing is promised unless `hold` is set."""
        return self._do(quote_call(_bid(resources, duration_s, value, **when), menu, hold))

    def submit(
        self,
        command: Iterable[str] | Work,
        resources: Resources | dict[str, Any],
        duration_s: float,
        value=None,
        *,
        env: dict[str, str] | None = None,
        code: str | None = None,
        image: str | None = None,
        name: str | None = None,
        project: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        most=None,
        attributes: dict[str, Any] | None = None,
        array: dict[str, int] | None = None,
        after: list[dict[str, Any]] | None = None,
        preemptible: bool | None = None,
        key: str | None = None,
        **when,
    ):
        """Hands a job in: `Submitted`. With a value it is a bid; without one it waits in a queue."""
        if isinstance(command, str):
            raise TypeError("the command is a list of words: for a shell's, ['sh', '-c', command]")
        if isinstance(command, Work):
            work = command
        else:
            work = Work([str(word) for word in command], env or {}, code, [], image)
        options = {
            "name": name,
            "project": project,
            "queue": queue,
            "priority": priority,
            "most": None if most is None else str(most),
            "attributes": attributes,
            "array": array,
            "after": after,
            "preemptible": preemptible,
        }
        return self._do(submit_call(work, _bid(resources, duration_s, value, **when), key, options))

    def job(self, id: int):
        """One job: `Job`."""
        return self._do(Call("GET", f"/jobs/{int(id)}", Job))

    def jobs(self, *, state=None, user=None, queue=None, name=None, cursor=None, limit=None):
        """Jobs, newest first: a `Page` of `JobSummary`."""
        query = dict(state=state, user=user, queue=queue, name=name, cursor=cursor, limit=limit)
        return self._do(Call("GET", "/jobs", (JobSummary,), query=query))

    def cancel(self, id: int):
        """Gives a job up."""
        return self._do(Call("POST", f"/jobs/{int(id)}/cancel", None, {}))

    def logs(self, id: int, *, offset=None, limit=None, attempt=None, rank=None):
        """Lines of a job's log: a `Page` of `LogLine`."""
        query = {"from": offset, "limit": limit, "attempt": attempt, "rank": rank}
        return self._do(Call("GET", f"/jobs/{int(id)}/logs", (LogLine,), query=query))

    def metrics(self, id: int, *, names=None, points=None):
        """Recorded values of a job: a `Page` of `MetricPoint`."""
        joined = ",".join(names) if names else None
        query = {"names": joined, "points": points}
        return self._do(Call("GET", f"/jobs/{int(id)}/metrics", (MetricPoint,), query=query))


class Client(_Calls):
    """The plain client. Its address and token are found as the command line finds them."""

    def __init__(self, url: str | None = None, token: str | None = None):
        self.server = config.find(url, token)
        self._http = httpx.Client(
            base_url=self.server.url, headers=_headers(self.server), timeout=TIMEOUT_S
        )

    def _do(self, call: Call) -> Any:
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

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self.close()


class AsyncClient(_Calls):
    """The same, to be awaited."""

    def __init__(self, url: str | None = None, token: str | None = None):
        self.server = config.find(url, token)
        self._http = httpx.AsyncClient(
            base_url=self.server.url, headers=_headers(self.server), timeout=TIMEOUT_S
        )

    async def _do(self, call: Call) -> Any:
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

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_) -> None:
        await self.close()
