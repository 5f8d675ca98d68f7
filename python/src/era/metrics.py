"""Values that a job tells while it runs."""

from __future__ import annotations

import math
import re
import sys
import threading

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,127}")

_lock = threading.Lock()


def line(name: str, value: float, step: int | None = None) -> str:
    """The line by which a job tells a value."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name of a metric: use letters, digits and _./- and begin with a letter"
        )
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} is {value}: only finite numbers are recorded")
    told = f"era: metric {name}={number!r}"
    if step is None:
        return told
    if step < 0:
        raise ValueError(f"step is {step}: count from 0")
    return f"{told} step={int(step)}"


def log_metric(name: str, value: float, step: int | None = None) -> None:
    """Records a value of this job: `log_metric("loss", 0.31, step=200)`. Outside a job it only
    prints."""
    told = line(name, value, step) + "\n"
    # One write, so that lines of threads do not mix.
    with _lock:
        sys.stdout.write(told)
        sys.stdout.flush()
