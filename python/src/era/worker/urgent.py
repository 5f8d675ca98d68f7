"""What must not wait for a place: launches at their start, and tasks of `eraeagerjob`.

A Celery worker has one pool for all its queues, so whatever fills it holds up everything else.
These queues therefore have a worker of their own beside it, whose tasks are threads that wait for
the node that both share. It ends with the worker that started it.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time

# Far more than a node runs at once: it is the node, and not this number, that keeps them in bounds.
THREADS_MAX = 1000
AGAIN_S = 1.0
PARENT = "ERA_WORKER_PARENT"

log = logging.getLogger("era.worker")


def queues(node: str) -> list[str]:
    """The queues whose messages must not wait."""
    return ["eraeagerjob", f"eracompute.{node}"]


class Beside:
    """A worker for these queues, kept running until it is told to end."""

    def __init__(self, node: str, loglevel: str):
        self._command = [sys.executable, "-m", "celery", "-A", "era.worker", "worker"]
        self._command += [f"--hostname=urgent@{node}", f"--queues={','.join(queues(node))}"]
        self._command += ["--pool=threads", f"--concurrency={THREADS_MAX}"]
        self._command += [f"--loglevel={loglevel}", "--without-gossip", "--without-mingle"]
        self._ends = threading.Event()
        self._process = self._start()
        self._mind = threading.Thread(target=self._go_on, daemon=True)
        self._mind.start()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, PARENT: str(os.getpid())}
        return subprocess.Popen(self._command, stdin=subprocess.DEVNULL, env=environment)

    def _go_on(self) -> None:
        while True:
            code = self._process.wait()
            if self._ends.wait(AGAIN_S):
                return
            log.error("the worker for what must not wait has ended (%s): another is started", code)
            self._process = self._start()
            if self._ends.is_set():
                self._process.terminate()

    def end(self) -> None:
        """Lets it serve what it has, and waits for that."""
        self._ends.set()
        self._process.terminate()

    def wait(self) -> None:
        self._mind.join()


def parent() -> int | None:
    """The worker that started this one, if this is the one beside it."""
    told = os.environ.get(PARENT)
    return int(told) if told else None


def end_with(pid: int) -> None:
    """Ends this worker when that one is gone: the node was its own."""

    def watch() -> None:
        while os.getppid() == pid:
            time.sleep(AGAIN_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
