"""The node behind a Celery worker: `era worker --socket`, which holds the lease and runs tasks.

Celery takes messages; the node does everything else, so that a worker in Python and one in Rust
behave alike. They talk over a socket, a line of JSON for each question and each answer. The node
ends when the worker does: it holds the other end of a pipe.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import EraError, TaskLost

START_S = 60.0
AGAIN_S = 0.3


class NodeGone(EraError):
    """The node behind this worker does not answer."""


def program() -> str:
    """The command line that came with this package, or one on the path."""
    beside = Path(__import__("sys").executable).with_name("era")
    found = os.environ.get("ERA_BINARY") or (str(beside) if beside.is_file() else None)
    found = found or shutil.which("era")
    if not found:
        raise EraError("the program `era` is not installed: install the wheel, or set ERA_BINARY")
    return found


class Node:
    """A node that this process starts and others ask."""

    def __init__(
        self,
        broker: str,
        name: str,
        data: str | os.PathLike[str],
        labels: Sequence[str] = (),
        hidden: Sequence[str] = (),
    ):
        self.name = name
        # Short: a socket's path may not be long.
        self.folder = tempfile.mkdtemp(prefix="era-")
        self.path = os.path.join(self.folder, "node")
        command = [program(), "worker", "--broker", broker, "--node", name]
        command += ["--data", os.fspath(data), "--socket", self.path]
        command += [f"--label={label}" for label in labels]
        command += [f"--hide={folder}" for folder in hidden]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE)
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + START_S
        while True:
            try:
                connect(self.path).close()
                return
            except OSError:
                pass
            if self.process.poll() is not None:
                raise NodeGone("the node behind this worker has ended: see what it said above")
            if time.monotonic() > until:
                self.stop()
                raise NodeGone("the node behind this worker does not come up")
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def connect(path: str) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(path)
    except OSError:
        link.close()
        raise
    return link


class Link:
    """A conversation with the node. While it is open, the node knows that somebody listens."""

    def __init__(self, path: str):
        try:
            self._socket = connect(path)
        except OSError as error:
            raise _silent(error) from error
        self._lines = self._socket.makefile("rwb")

    def say(self, words: dict[str, Any]) -> None:
        try:
            self._lines.write(json.dumps(words).encode() + b"\n")
            self._lines.flush()
        except OSError as error:
            raise _silent(error) from error

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Asks the node, and waits as long as its answer takes."""
        self.say(question)
        try:
            line = self._lines.readline()
        except OSError as error:
            raise _silent(error) from error
        if not line:
            raise NodeGone("the node behind this worker went away")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        for part in (self._lines, self._socket):
            try:
                part.close()
            except OSError:
                # What was not said is nobody's any more.
                pass


def _silent(error: OSError) -> NodeGone:
    return NodeGone(f"the node behind this worker does not answer: {error}")


def ask(path: str, question: dict[str, Any]) -> dict[str, Any]:
    """Asks the node one thing."""
    link = Link(path)
    try:
        return link.ask(question)
    finally:
        link.close()


def outcome(answer: dict[str, Any]) -> dict[str, Any] | None:
    """How a task ended; `None` if there was nothing to do."""
    if "ended" in answer:
        ended: dict[str, Any] = answer["ended"]
        return ended
    if "lost" in answer:
        raise TaskLost(answer["lost"])
    if "error" in answer:
        raise ValueError(answer["error"])
    return None
