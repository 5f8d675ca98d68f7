"""A job's code on its way to the server: sent by the command line, so that the same files go along
whoever hands a job in."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .config import Server
from .errors import EraError, NoServer
from .node import program

HASH = re.compile(r"[0-9a-f]{64}")
# The command line's own word for a server that cannot be reached.
NO_SERVER = 7


@dataclass(frozen=True)
class Code:
    """What is sent before a job: a folder, or the working folder where the command names a file in
    it."""

    command: Sequence[str]
    folder: str | None = None


def is_hash(code: object) -> bool:
    """Whether code is there already, and this names it."""
    return isinstance(code, str) and HASH.fullmatch(code) is not None


def _may_name_a_file(command: Sequence[str]) -> bool:
    """Whether it is worth to ask the command line, which knows."""
    words = {part for word in command for part in [word, *re.split(r"[\s;&|<>()\"'=]+", word)]}
    return any(part and "\0" not in part and Path(part).is_file() for part in words)


def send(code: Code, server: Server) -> str | None:
    """Sends it, and gives its hash; nothing where no code goes along."""
    if code.folder is None and not _may_name_a_file(code.command):
        return None
    command = [program(), "code", "-o", "json"]
    command += [] if code.folder is None else [f"--code={code.folder}"]
    environment = {**os.environ, "ERA_URL": server.url}
    if server.token:
        environment["ERA_TOKEN"] = server.token
    # The same authority is trusted by both.
    if trusted := os.environ.get("SSL_CERT_FILE"):
        environment.setdefault("ERA_CA", trusted)
    done = subprocess.run(
        [*command, "--", *code.command],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        kind = NoServer if done.returncode == NO_SERVER else EraError
        raise kind(done.stderr.strip().removeprefix("error: ") or "the code could not be sent")
    # What was left out, for whoever reads along.
    sys.stderr.write(done.stderr)
    found: str | None = json.loads(done.stdout)["code"]
    return found
