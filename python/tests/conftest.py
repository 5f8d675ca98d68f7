"""Real servers for the tests: `era up`, workers, `redis-server`, each on loopback and in a folder
of its own, each ended by its own process id."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
# Far more than anything here takes on a busy machine.
PATIENCE_S = 60.0
# Short, so that what a lapsed lease does is seen soon.
LEASE_S = 3


def pytest_runtest_logreport(report):
    """Whatever is skipped is counted where the tests of all languages are: the test, a tab, and why."""
    if report.skipped and (file := os.environ.get("ERA_SKIPPED")):
        _, _, why = report.longrepr
        with open(file, "a") as door:
            door.write(f"{report.nodeid}\t{' '.join(why.removeprefix('Skipped: ').split())}\n")


def program() -> str:
    """The program under test."""
    if named := os.environ.get("ERA_BINARY"):
        return named
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(target / "debug" / "era")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(what, patience_s: float = PATIENCE_S, every_s: float = 0.05):
    """Waits for something that is bound to become true, and gives it."""
    until = time.monotonic() + patience_s
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < until, "it did not come true"
        time.sleep(every_s)


class Process:
    """A process that is ended with the value."""

    def __init__(self, command, folder: Path, **env):
        self.log = folder / f"{Path(command[0]).name}-{time.time_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={**os.environ, **{k: str(v) for k, v in env.items()}},
                start_new_session=True,
            )

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for(self, words: str) -> None:
        def there():
            assert self.process.poll() is None, f"it ended: {self.said()}"
            return words in self.said()

        eventually(there)

    def kill(self) -> None:
        """Kills it, and whatever it forked into its own session, where they stand."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self, patience_s: float = 20) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                pass
        self.kill()


class Redis:
    """A server that writes down what it is told before it answers."""

    def __init__(self, folder: Path, password: str | None = None):
        self.folder, self.port, self.server = folder, free_port(), None
        self.password = password
        self.start()

    def start(self) -> None:
        command = ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", ""]
        command += ["--appendonly", "yes", "--appendfsync", "always", "--dir", self.folder]
        if self.password:
            command += ["--requirepass", self.password]
        self.server = Process(command, self.folder)
        eventually(self.answers)

    def answers(self) -> bool:
        import redis

        try:
            return self.client().ping()
        except redis.exceptions.RedisError:
            return False

    def client(self):
        import redis

        return redis.Redis(port=self.port, password=self.password, decode_responses=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def broker(self) -> str:
        """With patience of a test's length behind it."""
        return f"{self.url}?lease={LEASE_S}&visibility=20"

    def stop(self) -> None:
        self.server.stop()


class Site:
    """`era up` in a folder of its own."""

    def __init__(self, folder: Path, *arguments, data: str = "data"):
        self.folder, self.data = folder, data
        self.port = free_port()
        self.arguments = arguments
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        return {"ERA_CONFIG": str(self.folder / "config"), "ERA_URL": self.url}

    def start(self) -> None:
        # Written again once its new token lies there.
        (self.folder / "config" / "local.json").unlink(missing_ok=True)
        listen = f"127.0.0.1:{self.port}"
        command = [program(), "up", "--listen", listen]
        variables = {**self.environment(), "ERA_DATA": self.data}
        self.server = Process([*command, *self.arguments], self.folder, **variables)
        eventually(self.is_ready)

    def is_ready(self) -> bool:
        assert self.server.process.poll() is None, f"it ended: {self.server.said()}"
        try:
            ready = httpx.get(f"{self.url}/readyz").status_code == 200
        except httpx.TransportError:
            return False
        return ready and (self.folder / "config" / "local.json").exists()

    def token(self) -> str:
        return (self.folder / self.data / "local-token").read_text().strip()

    def client(self):
        import era

        return era.Client(self.url, self.token())

    def era(self, *arguments) -> str:
        done = subprocess.run(
            [program(), *arguments],
            env={**os.environ, **self.environment()},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def health(self, node: str) -> str:
        """How a node is; nothing where there is none of this name."""
        headers = {"authorization": f"Bearer {self.token()}"}
        found = httpx.get(f"{self.url}/api/v1/nodes", headers=headers).json()
        all = found["items"] if isinstance(found, dict) else found
        return next((one["health"] for one in all if one["name"] == node), "")

    def stop(self) -> None:
        self.server.stop()


class Worker:
    """A node: `era worker`, or a Celery worker in Python with its node behind it."""

    def __init__(
        self,
        kind: str,
        redis: Redis,
        name: str,
        folder: Path,
        places: int = 4,
        arguments: tuple[str, ...] = (),
        **env: str,
    ):
        self.kind, self.redis, self.name, self.places = kind, redis, name, places
        self.folder, self.arguments, self.env = folder, arguments, env
        self.data = folder / name
        self.start()

    def start(self) -> None:
        if self.kind == "rust":
            command = [program(), "worker", "--concurrency", self.places]
        else:
            command = [sys.executable, "-m", "era.worker", "--loglevel", "INFO"]
            command += ["--autoscale", f"{self.places},1"]
        command += ["--broker", self.redis.broker, "--node", self.name, "--data", self.data]
        command += self.arguments
        env = {"ERA_BINARY": program(), "ERA_LOG": "info", **self.env}
        self.server = Process(command, self.folder, **env)
        self.server.wait_for(f"node {self.name} serves")
        if self.kind == "celery":
            for worker in ("celery", "urgent"):
                self.server.wait_for(f"{worker}@{self.name} ready.")

    def kill(self) -> None:
        self.server.kill()

    def stop(self) -> None:
        self.server.stop()
        end_supervisor(self.data / "shim")


def end_supervisor(folder: Path) -> None:
    """The supervisor of a node outlives its worker; a test ends it by its process id."""
    wanted = str(folder).encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in words:
            os.kill(int(entry.name), signal.SIGKILL)


@pytest.fixture
def folder():
    # Short: a supervisor's socket is in it.
    path = Path(tempfile.mkdtemp(prefix="era-"))
    yield path
    for _ in range(50):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            break
        time.sleep(0.1)


@pytest.fixture
def redis(folder):
    place = folder / "redis"
    place.mkdir()
    server = Redis(place)
    yield server
    server.stop()


@pytest.fixture
def workers(redis, folder):
    """Makes workers, and ends them."""
    made = []

    def make(kind: str, name: str = "one", **options) -> Worker:
        made.append(Worker(kind, redis, name, folder, **options))
        return made[-1]

    yield make
    for worker in made:
        worker.stop()


@pytest.fixture
def site(redis, folder):
    """A site whose tasks go through Redis."""
    address = f"celery://{redis.broker.removeprefix('redis://')}"
    server = Site(folder, "--executor", address)
    server.era("admin", "config", "set", f"lease={LEASE_S}s")
    yield server
    server.stop()


@pytest.fixture
def plain(redis, folder):
    """A Celery worker with tasks of somebody else (plain.py), on the queue that is Celery's default."""
    command = [sys.executable, "-m", "celery", "-A", "plain", "worker", "--pool", "threads"]
    command += ["--concurrency", "4", "--loglevel", "INFO", "--hostname", "plain@here"]
    place = Path(__file__).parent
    worker = Process(command, folder, PLAIN_BROKER=redis.url, PYTHONPATH=place)
    worker.wait_for("ready.")
    yield worker
    worker.stop()


@pytest.fixture
def app(redis):
    """A client of Celery that knows nothing of ERA."""
    from celery import Celery

    app = Celery("plain", broker=redis.url, backend=redis.url)
    app.conf.broker_transport_options = {"visibility_timeout": 20}
    app.conf.result_accept_content = ["json"]
    yield app
    # A result that is forgotten unsubscribes, and waits twenty seconds for a Redis that is gone: in
    # whichever later test the collector happens to find it. This client has nothing to unsubscribe.
    app.backend.result_consumer.subscribed_to.clear()
    app.backend.result_consumer.stop()
    app.close()
