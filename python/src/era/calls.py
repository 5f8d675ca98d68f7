"""Every question that can be asked of the server, as a value.

A *call* says method, path and body, and how its answer is read. Each is written once here, with the
types that a user sees; the two clients only carry them.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import inspect
import os
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, ParamSpec, TypeVar, Union
from urllib.parse import quote as encoded

from .models import (
    Amount,
    Bid,
    Hold,
    Job,
    JobChecked,
    JobSummary,
    LogLine,
    MetricPoint,
    Page,
    Quoted,
    Resources,
    Secret,
    Submitted,
    User,
    Work,
    Worth,
    plain,
    read,
    worth,
)
from .upload import Code, is_hash

P = ParamSpec("P")
T = TypeVar("T")

# Instants, as they may be given.
When = Union[dt.datetime, str]
# What happens when a job needs longer than it said: it goes on at the market price, or it is told
# to stop in time.
Overrun = Literal["extend", "stop"]


@dataclass(frozen=True)
class Call(Generic[T]):
    """One question, and how its answer is read."""

    method: str
    path: str
    answer: Callable[[Any], T]
    # Not shown: a secret may be in it.
    body: Any = field(default=None, repr=False)
    query: dict[str, Any] | None = None
    # Creations carry a key, so that one that is repeated after a lost answer is made once.
    key: str | None = None
    # Code that is sent before, and named in the body.
    code: Code | None = None


def _one(kind: type[T]) -> Callable[[Any], T]:
    def answer(value: Any) -> T:
        found: T = read(kind, value)
        return found

    return answer


def _page(kind: type[T]) -> Callable[[Any], Page[T]]:
    def answer(value: Any) -> Page[T]:
        return Page([read(kind, one) for one in value["items"]], value.get("next"))

    return answer


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds)


def _nothing(_: Any) -> None:
    return None


def me() -> Call[User]:
    """Who is asking."""
    return Call("GET", "/sessions", _one(User))


def quote(
    resources: Resources | dict[str, Any] | None = None,
    duration_s: float | None = None,
    value: Worth | None = None,
    *,
    menu: bool = False,
    hold: bool = False,
    replicas: int | dict[str, int] | None = None,
    gpus: int | None = None,
    earliest: When | None = None,
    deadline: When | None = None,
    constraints: dict[str, Any] | None = None,
    most: Amount | None = None,
) -> Call[Quoted]:
    """What a bid would get, for at most `most`. Nothing is promised unless `hold` is set: `submit` takes the hold."""
    bid = Bid(
        resources, _whole(duration_s), value, replicas, gpus, earliest, deadline, constraints
    )
    body: dict[str, Any] = {"ask": bid.ask()}
    if most is not None:
        body["most"] = str(most)
    return _quote(body, value, menu, hold)


def quote_one_of(
    alternatives: Iterable[Bid | Iterable[Bid]],
    value: Worth | None = None,
    *,
    menu: bool = False,
    hold: bool = False,
) -> Call[Quoted]:
    """What the best of several alternatives would get. Each is a bid, or bids that are accepted
    together or not at all; `value` is what the whole is worth."""
    one_of = []
    for alternative in alternatives:
        bids = [alternative] if isinstance(alternative, Bid) else list(alternative)
        if any(bid.value is not None for bid in bids):
            raise ValueError("the value is that of the whole: give it beside the alternatives")
        all_of = [{"ask": bid.ask(), "after": list(bid.after)} for bid in bids]
        one_of.append({"all_of": all_of})
    return _quote({"one_of": one_of}, value, menu, hold)


def _quote(
    body: dict[str, Any], value: Worth | None, menu: bool, hold: bool
) -> Call[Quoted]:
    if value is not None:
        body["value"] = worth(value)
    if menu:
        body["menu"] = True
    if hold:
        body["hold"] = True
    return Call("POST", "/quotes", _one(Quoted), body, key=uuid.uuid4().hex)


def submit(
    command: Iterable[str] | Work,
    resources: Resources | dict[str, Any] | None = None,
    duration_s: float | None = None,
    value: Worth | None = None,
    *,
    env: dict[str, str] | None = None,
    secrets: Iterable[str] | None = None,
    code: str | os.PathLike[str] | Literal[False] | None = None,
    image: str | None = None,
    name: str | None = None,
    project: str | None = None,
    queue: str | None = None,
    priority: int | None = None,
    most: Amount | None = None,
    accept_price: bool | None = None,
    hold: Hold | int | None = None,
    overrun: Overrun | None = None,
    release_when_idle: bool | None = None,
    attributes: dict[str, Any] | None = None,
    array: dict[str, int] | None = None,
    after: list[dict[str, Any]] | None = None,
    preemptible: bool | None = None,
    key: str | None = None,
    replicas: int | dict[str, int] | None = None,
    gpus: int | None = None,
    earliest: When | None = None,
    deadline: When | None = None,
    constraints: dict[str, Any] | None = None,
) -> Call[Submitted]:
    """Hands a job in. With a value it is a bid, with a hold it takes the quote that was held, with
    `accept_price`, `most` or a deadline it takes the price; without any of them it waits in a
    queue. What is not said the server says: see its documentation. It finds its secrets in its environment, by their names.

    Code goes along as with `era submit`: the working folder where the command names a file in it,
    without what .gitignore and .eraignore say. `code` is another folder, the hash of code that was
    sent before, or `False` for none."""
    if isinstance(command, str):
        raise TypeError("the command is a list of words: for a shell's, ['sh', '-c', command]")
    if isinstance(command, Work):
        work = command
    else:
        words = [str(word) for word in command]
        work = Work(words, env or {}, None, [], image, list(secrets or ()))
    if code is None:
        sent = None if work.code else Code(work.command)
    elif code is False:
        sent = None
    elif isinstance(code, str) and is_hash(code):
        work, sent = dataclasses.replace(work, code=code), None
    else:
        sent = Code(work.command, os.fspath(code))
    bid = Bid(
        resources, _whole(duration_s), value, replicas, gpus, earliest, deadline, constraints
    )
    body: dict[str, Any] = {"work": plain(work), "ask": bid.ask()}
    if value is not None:
        body["value"] = worth(value)
    options = {
        "name": name,
        "project": project,
        "queue": queue,
        "priority": priority,
        "most": None if most is None else str(most),
        "accept_price": accept_price,
        "attributes": attributes,
        "array": array,
        "after": after,
        "preemptible": preemptible,
        "hold": hold.id if isinstance(hold, Hold) else hold,
        "overrun": overrun,
        "release_when_idle": release_when_idle,
    }
    body |= {name: plain(one) for name, one in options.items() if one is not None}
    return Call("POST", "/jobs", _one(Submitted), body, key=key or uuid.uuid4().hex, code=sent)


def _checked(make: Callable[P, Call[Submitted]]) -> Callable[P, Call[JobChecked]]:
    def check(*args: P.args, **kwargs: P.kwargs) -> Call[JobChecked]:
        return Call("POST", "/jobs/check", _one(JobChecked), make(*args, **kwargs).body)

    check.__doc__ = """What a job would be refused for, and what it gets where nothing is said.

    It takes what `submit` takes. Nothing is handed in, and no code is sent."""
    check.__signature__ = inspect.signature(make)  # type: ignore[attr-defined]
    return check


check = _checked(submit)


def job(id: int) -> Call[Job]:
    """One job."""
    return Call("GET", f"/jobs/{int(id)}", _one(Job))


def jobs(
    *,
    state: str | None = None,
    user: str | None = None,
    queue: str | None = None,
    name: str | None = None,
    likely: bool | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[Page[JobSummary]]:
    """Jobs, newest first. With `likely`, those that wait say when they are likely to start."""
    query: dict[str, Any] = dict(state=state, user=user, queue=queue, name=name)
    query |= dict(likely=likely, cursor=cursor, limit=limit)
    return Call("GET", "/jobs", _page(JobSummary), query=query)


def cancel(id: int) -> Call[None]:
    """Gives a job up."""
    return Call("POST", f"/jobs/{int(id)}/cancel", _nothing, {})


def retry(id: int, *, fresh: bool = False, key: str | None = None) -> Call[Submitted]:
    """Hands an ended job in again, as a new one. It finds a copy of the other's checkpoints among
    its own, unless it is to begin `fresh`."""
    query = {"fresh": "true"} if fresh else None
    path = f"/jobs/{int(id)}/retry"
    return Call("POST", path, _one(Submitted), {}, query, key=key or uuid.uuid4().hex)


def logs(
    id: int,
    *,
    offset: int | str | None = None,
    limit: int | None = None,
    attempt: int | None = None,
    rank: int | None = None,
) -> Call[Page[LogLine]]:
    """Lines of a job's log."""
    query = {"from": offset, "limit": limit, "attempt": attempt, "rank": rank}
    return Call("GET", f"/jobs/{int(id)}/logs", _page(LogLine), query=query)


def metrics(
    id: int, *, names: Iterable[str] | None = None, points: int | None = None
) -> Call[Page[MetricPoint]]:
    """Recorded values of a job."""
    query = {"names": ",".join(names) if names else None, "points": points}
    return Call("GET", f"/jobs/{int(id)}/metrics", _page(MetricPoint), query=query)


def secrets(*, cursor: str | None = None, limit: int | None = None) -> Call[Page[Secret]]:
    """One's own secrets by name, without their values."""
    return Call("GET", "/secrets", _page(Secret), query=dict(cursor=cursor, limit=limit))


def set_secret(name: str, value: str) -> Call[Secret]:
    """Sets a secret, or another value for it. Jobs that name it and start later find that one."""
    return Call("PUT", f"/secrets/{encoded(name, safe='')}", _one(Secret), {"value": value})


def remove_secret(name: str) -> Call[None]:
    """Removes a secret. A job that names it and has not started will not start."""
    return Call("DELETE", f"/secrets/{encoded(name, safe='')}", _nothing)
