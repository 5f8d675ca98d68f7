"""Where the server is, and by what right we ask: as the command line finds it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import NoServer

DEFAULT_URL = "http://127.0.0.1:7632"


@dataclass(frozen=True)
class Server:
    """An address, and a token for it."""

    url: str
    token: str | None


def folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The user's own folder for ERA."""
    if own := environment.get("ERA_CONFIG"):
        return Path(own)
    if base := environment.get("XDG_CONFIG_HOME"):
        return Path(base) / "era"
    home = environment.get("HOME")
    return Path(home) / ".config" / "era" if home else None


def find(
    url: str | None = None,
    token: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Server:
    """What is given, else the environment, else the server that `era up` runs on this machine."""
    local = _local(folder(environment))
    url = url or environment.get("ERA_URL") or (local or {}).get("url") or DEFAULT_URL
    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise NoServer(f"`{url}` is no address: write for example https://gpu.example.org")
    token = token or environment.get("ERA_TOKEN")
    if token is None and local and local["url"].rstrip("/") == url:
        try:
            token = Path(local["token_file"]).read_text().strip()
        except OSError:
            # A token that is not ours to read is as good as none.
            token = None
    return Server(url, token)


def _local(place: Path | None) -> dict[str, str] | None:
    if place is None:
        return None
    try:
        told = json.loads((place / "local.json").read_text())
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and "url" in told and "token_file" in told else None
