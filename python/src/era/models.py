"""What goes over the wire, as typed values.

Amounts of credits are `Decimal`, instants are aware `datetime`s. What a newer server adds is
ignored; what it leaves out is an error at once, and not a surprise later.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, TypeVar, Union

T = TypeVar("T")


def instant(text: str) -> dt.datetime:
    """An instant as the server writes it: to the nanosecond, of which Python keeps microseconds."""
    text = text.removesuffix("Z")
    whole, _, fraction = text.partition(".")
    at = dt.datetime.fromisoformat(whole).replace(tzinfo=dt.timezone.utc)
    return at + dt.timedelta(microseconds=int((fraction + "000000")[:6]))


def written(at: dt.datetime | str) -> str:
    """An instant as the server reads it. One without a zone is taken as the machine's own."""
    if isinstance(at, str):
        return at
    return at.astimezone(dt.timezone.utc).isoformat().replace("+00:00", "Z")


def read(kind: Any, value: Any) -> Any:
    """A value of JSON as this type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        (kind,) = [one for one in arguments if one is not type(None)]
        return read(kind, value)
    if origin is list:
        return [read(arguments[0], one) for one in value]
    if origin is dict:
        return {key: read(arguments[1], one) for key, one in value.items()}
    if kind is Decimal:
        return Decimal(str(value))
    if kind is dt.datetime:
        return instant(value)
    if kind is Any:
        return value
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        fields = {one.name for one in dataclasses.fields(kind)}
        given = {name: read(hints[name], one) for name, one in value.items() if name in fields}
        return kind(**given)
    return kind(value)


def plain(value: Any) -> Any:
    """A value as JSON has it. What is not said is left out."""
    if dataclasses.is_dataclass(value):
        if isinstance(value, Resources):
            return value.as_dict()
        pairs = ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value))
        return {name: plain(one) for name, one in pairs if one is not None}
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dt.datetime):
        return written(value)
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


@dataclass(frozen=True)
class Resources:
    """What one replica needs, as Kubernetes writes it: `cpu="500m"`, `memory="16Gi"`, `gpu=0.5`."""

    cpu: str | float | None = None
    memory: str | float | None = None
    gpu: str | float | None = None
    gpu_model: str | None = None
    gpu_memory: str | float | None = None
    devices: dict[str, str | float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        named = {
            "cpu": self.cpu,
            "memory": self.memory,
            "gpu": self.gpu,
            "gpu.model": self.gpu_model,
            "gpu.memory": self.gpu_memory,
        }
        return {name: one for name, one in named.items() if one is not None} | self.devices


@dataclass(frozen=True)
class Work:
    """What is run: a command in an environment, with its code and data."""

    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    code: str | None = None
    inputs: list[dict[str, str]] = field(default_factory=list)
    image: str | None = None
    # Names of secrets that it finds in its environment.
    secrets: list[str] = field(default_factory=list)
    terminal: bool | None = None


@dataclass(frozen=True)
class ValueStep:
    """One step of a value that falls: what it is worth if it is finished by then."""

    by: dt.datetime | str
    worth: Decimal | str | float


# Credits, as they may be given; and what a bid is worth: the same whenever it is finished, or less
# with every step, and nothing after the last.
Amount = Union[Decimal, str, float]
Worth = Union[Amount, Sequence[ValueStep]]


def worth(value: Worth) -> str | list[dict[str, str]]:
    """What a bid is worth, as the server reads it."""
    if isinstance(value, (Decimal, str, float, int)):
        return str(value)
    return [{"by": written(step.by), "worth": str(step.worth)} for step in value]


@dataclass(frozen=True)
class Bid:
    """What is asked for, when, and what it is worth."""

    resources: Resources | dict[str, Any] | None = None
    duration_s: int | None = None
    value: Worth | None = None
    replicas: int | dict[str, int] | None = None
    gpus: int | None = None
    earliest: dt.datetime | str | None = None
    deadline: dt.datetime | str | None = None
    constraints: dict[str, Any] | None = None
    # Of several that are accepted together: which of those before it must have finished first.
    after: Sequence[int] = ()

    def ask(self) -> dict[str, Any]:
        """The part of it that is priced."""
        asked: dict[str, Any] = plain(
            {
                name: getattr(self, name)
                for name in (
                    "resources",
                    "duration_s",
                    "replicas",
                    "gpus",
                    "earliest",
                    "deadline",
                    "constraints",
                )
                if getattr(self, name) is not None
            }
        )
        return asked


@dataclass(frozen=True)
class PartQuote:
    """What one request would get."""

    pool: str
    start: dt.datetime
    finish: dt.datetime
    price: Decimal


@dataclass(frozen=True)
class Quote:
    """Price and slot."""

    price: Decimal
    start: dt.datetime
    finish: dt.datetime
    alternative: int
    parts: list[PartQuote]


@dataclass(frozen=True)
class Hold:
    """A quote that binds for a while."""

    id: int
    expires: dt.datetime


@dataclass(frozen=True)
class MenuLine:
    """One line of the flexibility menu."""

    by: dt.datetime
    price: Decimal
    start: dt.datetime


@dataclass(frozen=True)
class Quoted:
    """The answer to a question for a price."""

    quote: Quote
    hold: Hold | None = None
    menu: list[MenuLine] = field(default_factory=list)
    # What the wallet holds, where the price or the value is more.
    wallet: Decimal | None = None


@dataclass(frozen=True)
class Offer:
    """A run that would be possible."""

    start: dt.datetime
    finish: dt.datetime
    price: Decimal


@dataclass(frozen=True)
class CounterOffers:
    """What would be possible instead of a refused bid."""

    value: Decimal | None = None
    window: Offer | None = None
    size: dict[str, Any] | None = None
    duration: dict[str, Any] | None = None
    # What the wallet holds, where one of these costs more.
    wallet: Decimal | None = None


@dataclass(frozen=True)
class Submitted:
    """The answer to a submission."""

    job: int
    count: int
    quote: Quote | None = None
    # The job whose checkpoints it begins with, where it was handed in in the place of one.
    checkpoints_of: int | None = None


@dataclass(frozen=True)
class Problem:
    """Something that a job would be refused for."""

    code: str
    detail: str
    # What it is about.
    field: str | None = None


@dataclass(frozen=True)
class JobChecked:
    """A job as the server understands it. Nothing was handed in."""

    # As it would be handed in, with what nobody said.
    job: dict[str, Any]
    # Whether it asks for a promise, which has a price. Else it waits in a queue.
    bid: bool
    # All that it would be refused for, whatever it costs.
    problems: list[Problem]
    # What all of it costs at most where it waits in a queue; it pays for what it uses.
    at_most: Decimal | None = None


@dataclass(frozen=True)
class Task:
    """One replica of one attempt."""

    part: int
    attempt: int
    rank: int
    node: str
    gpus: list[int]
    launched: dt.datetime
    started: dt.datetime | None = None
    ended: dt.datetime | None = None
    exit_code: int | None = None
    cause: str | None = None


@dataclass(frozen=True)
class Cost:
    """What a job paid and got back."""

    charged: Decimal
    refunded: Decimal
    net: Decimal


@dataclass(frozen=True)
class Outcome:
    """How a job ended: `code` is stable, and `parameters` say what belongs to it."""

    code: str
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ArrayPlace:
    """A job's place in an array: its first job, and the index."""

    array: int
    index: int


OVER = frozenset({"succeeded", "failed", "cancelled", "released", "limit_reached", "broken"})


@dataclass(frozen=True)
class JobSummary:
    """A job as lists show it."""

    id: int
    name: str | None
    user: str
    group: str
    state: str
    queue: str | None
    submitted: dt.datetime
    promised_start: dt.datetime | None
    promised_finish: dt.datetime | None
    started: dt.datetime | None
    ended: dt.datetime | None
    exit_code: int | None
    price: Decimal
    resources: dict[str, str]
    replicas: int
    duration_s: int
    # When one that waits is likely to start, where that was asked for.
    likely_start: dt.datetime | None = field(default=None, kw_only=True)
    array: ArrayPlace | None = field(default=None, kw_only=True)
    project: str | None = field(default=None, kw_only=True)
    # Whether it ran on simulated nodes.
    simulated: bool = field(default=False, kw_only=True)

    @property
    def is_over(self) -> bool:
        return self.state in OVER


@dataclass(frozen=True)
class Job(JobSummary):
    """A job with all that is known of it."""

    spec: dict[str, Any]
    reason: str | None
    attempts: int
    tasks: list[Task]
    cost: Cost
    outcome: Outcome | None = None
    explanation: dict[str, Any] | None = None


@dataclass(frozen=True)
class User:
    """Who is asking."""

    id: int
    name: str
    group: str
    role: str
    balance: Decimal
    must_change_password: bool = False


@dataclass(frozen=True)
class LogLine:
    """One line of a job's log."""

    next: int
    at: dt.datetime
    attempt: int
    rank: int
    stream: str
    text: str
    goes_on: bool = False


@dataclass(frozen=True)
class Secret:
    """A secret, without its value."""

    name: str
    set: dt.datetime


@dataclass(frozen=True)
class MetricPoint:
    """One recorded value of a metric."""

    name: str
    step: int
    at: dt.datetime
    value: float
    rank: int


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list; `next` is where the next one begins."""

    items: list[T]
    next: str | None = None
