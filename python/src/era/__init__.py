"""ERA: an economic scheduler for GPU clusters.

Functions here use one client that is made when it is first needed; `Client` and `AsyncClient` are
for those who want their own.
"""

from .api import cancel, client, job, jobs, logs, me, metrics, quote, submit, wait
from .client import AsyncClient, Client
from .errors import EraError, NoServer, Refused, TaskLost
from .metrics import log_metric
from .models import (
    Bid,
    Cost,
    CounterOffers,
    Hold,
    Job,
    JobSummary,
    LogLine,
    MenuLine,
    MetricPoint,
    Page,
    PartQuote,
    Quote,
    Quoted,
    Resources,
    Submitted,
    Task,
    User,
    Work,
)

__all__ = [
    "AsyncClient",
    "Bid",
    "Client",
    "Cost",
    "CounterOffers",
    "EraError",
    "Hold",
    "Job",
    "JobSummary",
    "LogLine",
    "MenuLine",
    "MetricPoint",
    "NoServer",
    "Page",
    "PartQuote",
    "Quote",
    "Quoted",
    "Refused",
    "Resources",
    "Submitted",
    "Task",
    "TaskLost",
    "User",
    "Work",
    "cancel",
    "client",
    "job",
    "jobs",
    "log_metric",
    "logs",
    "me",
    "metrics",
    "quote",
    "submit",
    "wait",
]
