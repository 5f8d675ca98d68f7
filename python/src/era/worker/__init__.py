"""A Celery worker that runs ERA's tasks.

    python -m era.worker --broker redis://localhost:6379/0 --node HOST
    ERA_BROKER=redis://localhost:6379/0 celery -A era.worker worker -Q eracompute

Messages are acknowledged when their task is over, so that one whose worker dies is served again;
the node behind the worker makes sure that nothing runs twice, and minds time limits and revocation.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import socket
import ssl
import sys
import threading
import time
from typing import Any

from celery import Celery, signals
from celery.exceptions import Ignore, Reject
from celery.worker.request import Request

from ..errors import EraError
from ..node import AGAIN_S, Link, Node, NodeGone, ask, outcome
from . import dead, urgent

RESULT_EXPIRES_S = 7 * 86_400
VISIBILITY_S = 3600
NODE_PATH = "ERA_NODE_SOCKET"

log = logging.getLogger("era.worker")
app = Celery("era")
app.conf.update(
    accept_content=["json", "msgpack", "yaml"],
    task_serializer="json",
    result_serializer="json",
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_track_started=False,
    task_default_queue="eracompute",
    # What follows a task of ours and is somebody else's goes to where that is looked for.
    task_routes={re.compile(r"(?!era\.)"): {"queue": "celery"}},
    worker_prefetch_multiplier=1,
    result_expires=RESULT_EXPIRES_S,
    broker_connection_retry_on_startup=True,
    worker_consumer=f"{dead.__name__}:Consumer",
)


def node_name() -> str:
    return os.environ.get("ERA_NODE") or socket.gethostname()


# What the command line said of the node; where it is Celery's own, variables do.
_labels: list[str] = []
_hidden: list[str] = []


def _described() -> tuple[list[str], list[str]]:
    """The labels of this node, and the folders that no task may see."""
    labels = _labels or os.environ.get("ERA_WORKER_LABELS", "").split(",")
    hidden = _hidden or os.environ.get("ERA_WORKER_HIDE", "").split(os.pathsep)
    return [label for label in labels if label], [folder for folder in hidden if folder]


def _redis(broker: str) -> tuple[str, dict[str, str]]:
    """The broker as Celery reads it, and what stands behind its question mark."""
    url, _, query = broker.partition("?")
    options = dict(pair.split("=", 1) for pair in query.split("&") if "=" in pair)
    url = url.removeprefix("celery://")
    return (url if "://" in url else f"redis://{url}"), options


def use(address: str) -> None:
    """Has this worker take its messages there."""
    global broker
    url, options = _redis(address)
    # By the authority that is named, the system's, or that of SSL_CERT_FILE: nothing less is asked
    # of a server.
    encrypted = {"ssl_cert_reqs": ssl.CERT_REQUIRED} if url.startswith("rediss://") else None
    if encrypted and "ca" in options:
        encrypted["ssl_ca_certs"] = options["ca"]
    app.conf.update(
        broker_url=url,
        result_backend=url,
        broker_use_ssl=encrypted or False,
        redis_backend_use_ssl=encrypted,
        broker_transport_options={
            "visibility_timeout": int(options.get("visibility", VISIBILITY_S)),
            # The transport looks for abandoned messages at every tick, and not at every tenth.
            "unacked_restore_throttle": 1,
        },
    )
    broker = address


broker = ""
use(os.environ.get("ERA_BROKER", "redis://127.0.0.1:6379/0"))


class Refusing(Request):
    """A task of ours, which is with the dead if its arguments are none."""

    def on_failure(self, exc_info: Any, *args: Any, **kwargs: Any) -> Any:
        # Celery wraps it where it comes from another process.
        error = getattr(exc_info.exception, "exc", exc_info.exception)
        if isinstance(error, TypeError):
            self.message.bury(app.backend.client, dead.first_line(error))
        return super().on_failure(exc_info, *args, **kwargs)


class Minded(Refusing):
    """A command whose limits and revocation are the node's to mind: the pool would kill the process
    that waits for it, and not the command."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.time_limits = (None, None)

    def terminate(self, pool: Any, signal: Any = None) -> None:
        if not self.time_start:
            self._terminate_on_ack = pool, signal
            return
        try:
            ask(os.environ[NODE_PATH], {"stop": self.id})
        except NodeGone as error:
            log.warning("%s could not be told to end: %s", self.id, error)


@app.task(name="era.run", bind=True, Request=Refusing, ignore_result=False)
def run(self, id: str):
    """Runs a launch by its id: fetches its description, runs it, reports how it ended."""
    if not isinstance(id, str):
        raise TypeError("era.run needs the id of a launch as its first argument")
    try:
        ended = outcome(ask(os.environ[NODE_PATH], {"run": id}))
    except NodeGone as error:
        # Somebody else will have it, or this node when it is back.
        time.sleep(AGAIN_S)
        raise Reject(str(error), requeue=True) from error
    if ended is None:
        # It is over, or was called off: its result, if it has one, is there already.
        raise Ignore()
    return ended


# The question whose answer is being served: each thread of a pool serves one at a time.
_served = threading.local()


@app.task(name="era.exec", bind=True, Request=Minded)
def execute(self, command: list[str], env: dict[str, str] | None = None, **limits):
    """Runs a command: `{"code": 0, "ending": "itself", "output": "…"}`."""
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise TypeError("era.exec cannot read its arguments: the command is a list of words")
    hard, soft = self.request.timelimit or (None, None)
    question = {"id": self.request.id, "exec": {"command": command, "env": env or {}, **limits}}
    question["ignored"] = bool(self.request.ignore_result)
    if hard:
        question["limit_s"] = hard
    if soft:
        question["soft_s"] = soft
    _let_go()
    try:
        _served.link = Link(os.environ[NODE_PATH])
        ended = outcome(_served.link.ask(question))
    except NodeGone as error:
        _let_go()
        time.sleep(AGAIN_S)
        raise Reject(str(error), requeue=True) from error
    except ValueError as error:
        raise TypeError(f"era.exec cannot read its arguments: {error}") from error
    if ended is None:
        # Another message of the same task was served, with all that follows.
        raise Ignore()
    return ended


def _let_go(**said: Any) -> None:
    """Ends what was asked last. Where nothing is said, the node keeps the end for whoever has the
    message next."""
    link, _served.link = getattr(_served, "link", None), None
    if link is None:
        return
    try:
        if said:
            link.say(said)
    except NodeGone as error:
        log.warning("the end of a task was not confirmed: %s", error)
    link.close()


@signals.task_postrun.connect
def kept(task: Any, **_: Any) -> None:
    """The result is kept, and what follows is sent: until now no other worker may run the task."""
    if sys.exc_info()[0] is not None:
        # Celery could not keep it.
        return _let_go()
    request = task.request
    follows = request.callbacks or request.errbacks or request.chain or request.chord
    _let_go(done=True, follows=bool(follows))


_node: Node | None = None
_beside: urgent.Beside | None = None


@signals.worker_init.connect
def begin(sender: Any, **_: Any) -> None:
    """Before the first message is taken, the node is there."""
    global _node, _beside
    if (pid := urgent.parent()) is not None:
        return urgent.end_with(pid)
    data = os.environ.get("ERA_WORKER_DATA", "era-worker")
    try:
        _node = Node(broker, node_name(), data, *_described())
    except EraError as error:
        # Celery would go on without it.
        raise SystemExit(f"error: {error}") from error
    # Forked pools inherit it, and so does the worker beside this one.
    os.environ[NODE_PATH] = _node.path
    os.environ["ERA_BROKER"] = broker
    app.amqp.queues.deselect(urgent.queues(node_name()))
    _beside = urgent.Beside(node_name(), logging.getLevelName(sender.loglevel))


@signals.worker_shutting_down.connect
def leave(**_: Any) -> None:
    """Neither of the two takes more messages."""
    if _beside is not None:
        _beside.end()


@signals.worker_shutdown.connect
def end(**_: Any) -> None:
    global _node, _beside
    if _beside is not None:
        _beside.end()
        _beside.wait()
        _beside = None
    if _node is not None:
        _node.stop()
        _node = None


def main(arguments: list[str] | None = None) -> None:
    about = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m era.worker", description=about)
    parser.add_argument("--broker", help="redis://HOST:PORT/DATABASE (or ERA_BROKER)")
    parser.add_argument("--node", help="what this node is called; the machine's name by default")
    parser.add_argument(
        "--address",
        metavar="HOST",
        help="where other nodes reach what runs on this one: an IP address, or a name that all of "
        "them resolve; the address from which this machine reaches Redis by default",
    )
    parser.add_argument("--data", help="where this worker keeps its own things")
    parser.add_argument("--executor", help="local, or docker://SOCKET for containers")
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        help="a label of the node, as KEY=VALUE; may be given several times",
    )
    parser.add_argument(
        "--hide",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder that no task may see, such as the site's data folder; several times too",
    )
    parser.add_argument("--autoscale", default="50,3", help="MAX,MIN processes, one for each task")
    parser.add_argument("--loglevel", default="WARNING")
    given = parser.parse_args(arguments)
    if given.node:
        os.environ["ERA_NODE"] = given.node
    if given.address:
        os.environ["ERA_WORKER_ADDRESS"] = given.address
    if given.data:
        os.environ["ERA_WORKER_DATA"] = given.data
    if given.executor:
        os.environ["ERA_WORKER_EXECUTOR"] = given.executor
    _labels.extend(given.label)
    _hidden.extend(given.hide)
    if given.broker:
        try:
            use(given.broker)
        except ValueError:
            parser.error("--broker: visibility is a number of seconds, as in ?visibility=3600")
    name = node_name()
    app.worker_main(
        [
            "worker",
            f"--hostname=celery@{name}",
            "--queues=eracompute",
            f"--autoscale={given.autoscale}",
            f"--loglevel={given.loglevel}",
        ]
    )
