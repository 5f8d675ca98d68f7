"""Functions for those who need one client and no more."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from . import calls
from .calls import Call
from .client import Client
from .models import Job

P = ParamSpec("P")
T = TypeVar("T")

_lock = threading.Lock()
_client: Client | None = None


def client() -> Client:
    """The client that the functions here share, made when it is first needed."""
    global _client
    with _lock:
        if _client is None:
            _client = Client()
        return _client


def _shared(make: Callable[P, Call[T]]) -> Callable[P, T]:
    @functools.wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return client()._do(make(*args, **kwargs))

    return call


me = _shared(calls.me)
quote = _shared(calls.quote)
quote_one_of = _shared(calls.quote_one_of)
submit = _shared(calls.submit)
check = _shared(calls.check)
job = _shared(calls.job)
jobs = _shared(calls.jobs)
cancel = _shared(calls.cancel)
retry = _shared(calls.retry)
logs = _shared(calls.logs)
metrics = _shared(calls.metrics)
secrets = _shared(calls.secrets)
set_secret = _shared(calls.set_secret)
remove_secret = _shared(calls.remove_secret)


def wait(id: int, timeout_s: float | None = None, every_s: float = 0.2) -> Job:
    """Waits until a job is over."""
    return client().wait(id, timeout_s, every_s)
