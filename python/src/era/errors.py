"""What can go wrong, as exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .models import CounterOffers


class EraError(Exception):
    """Anything that ERA says is wrong."""


class NoServer(EraError):
    """The server cannot be found or does not answer."""


class Refused(EraError):
    """The server said no: `code` for programs, the text for people, `field` for what it is about."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        field: str | None = None,
        counter_offers: CounterOffers | None = None,
    ):
        super().__init__(f"{field}: {detail}" if field else detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.field = field
        self.counter_offers = counter_offers


class TaskLost(EraError):
    """A task is gone through no fault of its own, and certainly runs no more."""
