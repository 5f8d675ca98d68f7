"""ERA: an economic scheduler for GPU clusters.

Functions here use one client that is made when it is first needed; `Client` and `AsyncClient` are
for those who want their own.
"""

from .api import cancel, client, job, jobs, logs, me, metrics, quote, quote_one_of, submit, wait
from .client import AsyncClient, Client
from .errors import EraError, NoServer, Refused, TaskLost
from .metrics import log_metric
from .models import (
    ArrayPlace,
    Bid,
    Cost,
    CounterOffers,
    Hold,
    Job,
    JobSummary,
    LogLine,
    MenuLine,
    MetricPoint,
    Outcome,
    Page,
    PartQuote,
    Quote,
    Quoted,
    Resources,
    Submitted,
    Task,
    User,
    ValueStep,
    Work,
)

__all__ = [
    "ArrayPlace",
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
    "Outcome",
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
    "ValueStep",
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
    "quote_one_of",
    "submit",
    "wait",
]
