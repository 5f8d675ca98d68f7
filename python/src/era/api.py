"""Functions for those who need one client and no more."""

from __future__ import annotations

import threading

from .client import Client

_lock = threading.Lock()
_client: Client | None = None


def client() -> Client:
    """The client that the functions here share, made when it is first needed."""
    global _client
    with _lock:
        if _client is None:
            _client = Client()
        return _client


def _shared(name: str):
    method = getattr(Client, name)

    def call(*args, **kwargs):
        return getattr(client(), name)(*args, **kwargs)

    call.__name__ = name
    call.__doc__ = method.__doc__
    return call


me = _shared("me")
quote = _shared("quote")
submit = _shared("submit")
job = _shared("job")
jobs = _shared("jobs")
cancel = _shared("cancel")
logs = _shared("logs")
metrics = _shared("metrics")
wait = _shared("wait")
