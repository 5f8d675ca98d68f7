"""A Celery worker that runs ERA's tasks.

    ERA_BROKER=redis://localhost:6379/0 celery -A era.worker worker -Q eracompute,eracompute.HOST
    python -m era.worker --broker redis://localhost:6379/0 --node HOST

Messages are acknowledged when their task is over, so that one whose worker dies is served again;
the node behind the worker makes sure that nothing runs twice at a time.
"""

from __future__ import annotations

import argparse
import os
import socket
import time

from celery import Celery, signals
from celery.exceptions import Ignore, Reject

from ..errors import EraError
from ..node import AGAIN_S, Node, NodeGone, ask, outcome

RESULT_EXPIRES_S = 7 * 86_400
NODE_PATH = "ERA_NODE_SOCKET"


def node_name() -> str:
    return os.environ.get("ERA_NODE") or socket.gethostname()


def _redis(broker: str) -> tuple[str, dict]:
    """The broker as Celery reads it, and what stands behind its question mark."""
    url, _, query = broker.partition("?")
    options = dict(pair.split("=", 1) for pair in query.split("&") if "=" in pair)
    url = url.removeprefix("celery://")
    return (url if "://" in url else f"redis://{url}"), options


broker = os.environ.get("ERA_BROKER", "redis://127.0.0.1:6379/0")
url, options = _redis(broker)

app = Celery("era", broker=url, backend=url)
app.conf.update(
    accept_content=["json", "msgpack", "yaml"],
    task_serializer="json",
    result_serializer="json",
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_track_started=False,
    task_default_queue="eracompute",
    worker_prefetch_multiplier=1,
    result_expires=RESULT_EXPIRES_S,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "visibility_timeout": int(options.get("visibility", 3600)),
        # The transport looks for abandoned messages at every tick, and not at every tenth.
        "unacked_restore_throttle": 1,
    },
)


@app.task(name="era.run", bind=True, ignore_result=False)
def run(self, id: str):
    """Runs a launch by its id: fetches its description, runs it, reports how it ended."""
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


@app.task(name="era.exec", bind=True)
def execute(self, command: list[str], env: dict[str, str] | None = None, **limits):
    """Runs a command: `{"code": 0, "ending": "itself", "output": "…"}`."""
    hard, soft = self.request.timelimit or (None, None)
    question = {"id": self.request.id, "exec": {"command": command, "env": env or {}, **limits}}
    if hard:
        question["limit_s"] = hard
    if soft:
        question["soft_s"] = soft
    try:
        return outcome(ask(os.environ[NODE_PATH], question))
    except NodeGone as error:
        time.sleep(AGAIN_S)
        raise Reject(str(error), requeue=True) from error


_node: Node | None = None


@signals.worker_init.connect
def begin(**_):
    """Before the first message is taken, the node is there."""
    global _node
    data = os.environ.get("ERA_WORKER_DATA", "era-worker")
    try:
        _node = Node(broker, node_name(), data)
    except EraError as error:
        # Celery would go on without it.
        raise SystemExit(f"error: {error}") from error
    # Forked pools inherit it.
    os.environ[NODE_PATH] = _node.path


@signals.worker_shutdown.connect
def end(**_):
    global _node
    if _node is not None:
        _node.stop()
        _node = None


def queues(node: str) -> list[str]:
    return ["eraeagerjob", f"eracompute.{node}", "eracompute"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m era.worker", description=__doc__.split("\n")[0])
    parser.add_argument("--broker", help="redis://HOST:PORT/DATABASE (or ERA_BROKER)")
    parser.add_argument("--node", help="what this node is called; the machine's name by default")
    parser.add_argument("--data", help="where this worker keeps its own things")
    parser.add_argument("--autoscale", default="50,3", help="MAX,MIN processes, one for each task")
    parser.add_argument("--loglevel", default="WARNING")
    given = parser.parse_args(arguments)
    if given.node:
        os.environ["ERA_NODE"] = given.node
    if given.data:
        os.environ["ERA_WORKER_DATA"] = given.data
    global broker
    if given.broker:
        broker = given.broker
        plain, _ = _redis(given.broker)
        app.conf.broker_url = app.conf.result_backend = plain
        os.environ["ERA_BROKER"] = given.broker
    name = node_name()
    app.worker_main(
        [
            "worker",
            f"--hostname=celery@{name}",
            f"--queues={','.join(queues(name))}",
            f"--autoscale={given.autoscale}",
            f"--loglevel={given.loglevel}",
        ]
    )

