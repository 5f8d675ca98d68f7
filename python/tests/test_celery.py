"""Both ways between Celery and ERA: real clients, real workers, a real `redis-server`."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from celery import chain, chord, group
from celery.result import AsyncResult
from conftest import LEASE_S, eventually, program

SMALL = {"cpu": "100m", "memory": "64Mi"}
both_kinds = pytest.mark.parametrize("kind", ["rust", "celery"])
# Prints a line every tenth of a second, so that it can be seen when it ran.
TICKS = "i=0; while [ $i -lt {n} ]; do echo tick $ERA_ATTEMPT; sleep 0.1; i=$((i+1)); done"


def ticking(n: int) -> list[str]:
    return ["sh", "-c", TICKS.replace("{n}", str(n))]


def lines(client, job: int) -> list:
    return [line for line in client.logs(job, limit=1000).items if line.text.startswith("tick")]


def never_two_at_once(ticks: list) -> bool:
    """Whether attempts follow one another: none prints once a later one has begun."""
    last = {}
    for tick in ticks:
        last[tick.attempt] = tick.at
    first = {}
    for tick in ticks:
        first.setdefault(tick.attempt, tick.at)
    order = sorted(first)
    return all(last[a] <= first[b] for a, b in zip(order, order[1:]))


def dead(redis) -> list[str]:
    return [fields[b"why"].decode() for _, fields in redis.client().xrange("era:dead")]


def send_again(redis, number: bytes) -> None:
    environment = {**os.environ, "ERA_BROKER": redis.broker}
    again = [program(), "worker", "dead", "--again", number.decode()]
    subprocess.run(again, env=environment, check=True, capture_output=True)


def nothing_is_held(redis) -> bool:
    client = redis.client()
    return not client.hlen("unacked") and not client.zcard("unacked_index")


# A client of Celery, and our worker.


@both_kinds
def test_any_client_of_celery_is_served_in_every_serializer(redis, workers, app, kind):
    workers(kind)
    for serializer in ["json", "msgpack", "yaml"]:
        sent = app.send_task(
            "era.exec", args=[["echo", serializer]], queue="eracompute", serializer=serializer
        )
        result = sent.get(timeout=30)
        assert (result["code"], result["output"]) == (0, serializer + "\n")
    failed = app.send_task("era.exec", args=[["sh", "-c", "exit 3"]], queue="eraeagerjob")
    assert failed.get(timeout=30)["code"] == 3
    eventually(lambda: nothing_is_held(redis))


@both_kinds
def test_what_a_client_of_celery_compressed_is_served(redis, workers, app, kind):
    workers(kind)
    for serializer in ["json", "msgpack", "yaml"]:
        sent = app.send_task(
            "era.exec",
            args=[["echo", "x" * 1000]],
            queue="eracompute",
            serializer=serializer,
            compression="gzip",
        )
        assert sent.get(timeout=30)["output"] == "x" * 1000 + "\n"
    eventually(lambda: nothing_is_held(redis))


@both_kinds
def test_what_is_compressed_otherwise_or_too_long_unpacked_is_refused_with_words(
    redis, workers, app, kind
):
    workers(kind)
    other = app.send_task("era.exec", args=[["true"]], queue="eracompute", compression="bzip2")
    bomb = app.send_task(
        "era.exec", args=[["echo", "x" * (64 << 20)]], queue="eracompute", compression="gzip"
    )
    with pytest.raises(Exception, match="compressed as `application/x-bz2` are not understood"):
        other.get(timeout=30)
    with pytest.raises(Exception, match="more than 16777216 bytes once it is unpacked"):
        bomb.get(timeout=30)
    good = app.send_task("era.exec", args=[["true"]], queue="eracompute")
    assert good.get(timeout=30)["code"] == 0
    eventually(lambda: len(dead(redis)) == 2 and nothing_is_held(redis))


@both_kinds
def test_a_node_has_its_labels_and_hides_what_it_is_told_to(redis, workers, app, folder, kind):
    hidden = folder / "hidden"
    hidden.mkdir()
    (hidden / "file").write_text("secret")
    told = ("--label", "rack=a,b", "--label", "kind=big", "--hide", str(hidden))
    workers(kind, arguments=told)
    described = b" ".join(redis.client().hvals("era:node:one")).decode()
    assert '"rack":"a,b"' in described and '"kind":"big"' in described, described
    look = ["sh", "-c", f"cat {hidden}/file || echo nothing"]
    seen = app.send_task("era.exec", args=[look], queue="eracompute").get(timeout=30)
    assert "secret" not in seen["output"] and "nothing" in seen["output"], seen


@both_kinds
def test_urgent_messages_are_taken_first(redis, workers, app, kind):
    order = []
    sent = {}
    for priority in [9, 6, 3, 0]:
        sent[priority] = app.send_task(
            "era.exec", args=[["date", "+%s%N"]], queue="eracompute", priority=priority
        )
    workers(kind, places=1)
    for priority, result in sent.items():
        order.append((int(result.get(timeout=30)["output"]), priority))
    assert [priority for _, priority in sorted(order)] == [0, 3, 6, 9]


def send(app, command, **options) -> AsyncResult:
    return app.send_task("era.exec", args=[command], queue="eracompute", **options)


@both_kinds
def test_eta_expiry_and_limits_count(redis, workers, app, kind):
    workers(kind)
    begun = time.time()
    later = send(app, ["date", "+%s.%N"], countdown=2)
    expired = send(app, ["true"], countdown=2, expires=1)
    limited = send(app, ["sleep", "60"], time_limit=1)
    stops = ["sh", "-c", "trap 'exit 7' TERM; sleep 60 & wait"]
    asked = send(app, stops, soft_time_limit=1, time_limit=20)
    assert float(later.get(timeout=30)["output"]) >= begun + 2
    limit = limited.get(timeout=30)
    assert (limit["ending"], limit["code"]) == ("limit", 137)
    told = asked.get(timeout=30)
    assert (told["ending"], told["code"]) == ("stopped", 7)
    eventually(lambda: expired.state == "REVOKED")


def test_a_celery_worker_hears_of_what_is_revoked(redis, workers, app):
    workers("celery")
    revoked = send(app, ["true"], countdown=3)
    time.sleep(0.5)
    revoked.revoke()
    eventually(lambda: revoked.state == "REVOKED")
    stopped = send(app, ["sleep", "60"])
    eventually(lambda: redis.client().exists(f"era:claim:{stopped.id}"))
    time.sleep(0.5)
    stopped.revoke(terminate=True)
    assert stopped.get(timeout=30)["ending"] == "stopped"


def wrapped(task: object, id: object, body: bytes, **headers) -> str:
    """A message by hand, for what no client of Celery would send."""
    return json.dumps(
        {
            "body": base64.b64encode(body).decode(),
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": {"task": task, "id": id, **headers},
            "properties": {
                "delivery_info": {"exchange": "", "routing_key": "eracompute"},
                "body_encoding": "base64",
                "delivery_tag": str(uuid.uuid4()),
            },
        }
    )


@both_kinds
def test_what_cannot_be_served_is_kept_with_the_reason_and_its_sender_is_told(
    redis, workers, app, kind
):
    client = redis.client()
    no_messages = [b"this is no message", b"\xff\xfe", b"[]", b'{"properties": 7}']
    client.lpush("eracompute", *no_messages)
    foreign = app.send_task("tasks.add", args=[1, 2], queue="eracompute")
    wrong = app.send_task("era.exec", args=["rm -rf /"], queue="eracompute")
    app.conf.accept_content = ["json", "pickle"]
    pickled = app.send_task("era.exec", args=[["true"]], queue="eracompute", serializer="pickle")
    workers(kind)
    refusals = [
        (foreign, "no task is called `tasks.add` here"),
        (wrong, "era.exec cannot read its arguments"),
        (pickled, "pickle runs code"),
    ]
    for refused, words in refusals:
        with pytest.raises(Exception, match=words):
            refused.get(timeout=30)
    good = app.send_task("era.exec", args=[["true"]], queue="eracompute")
    assert good.get(timeout=30)["code"] == 0
    eventually(lambda: len(dead(redis)) >= len(no_messages) + len(refusals))
    whys = dead(redis)
    assert len(whys) == len(no_messages) + len(refusals), whys
    assert sum("not wrapped as Celery wraps" in why for why in whys) == len(no_messages)
    for _, words in refusals:
        assert sum(words in why for why in whys) == 1, whys
    # As they lay there, so that they can be sent again.
    kept = [fields for _, fields in client.xrange("era:dead")]
    assert all(fields.keys() == {b"queue", b"at", b"why", b"message"} for fields in kept)
    assert {fields[b"queue"] for fields in kept} == {b"eracompute"}
    assert set(no_messages) <= {fields[b"message"] for fields in kept}
    eventually(lambda: nothing_is_held(redis))


# Each would end a Celery worker that knows nothing of it, and then the next that has the message.
MALFORMED = {
    "no-task": {"task": 7},
    "no-list": {"body": b"7"},
    "no-embed": {"body": b'[[["true"]], {}]'},
    "no-calls": {"body": b'[[["true"]], {}, {"callbacks": 7}]'},
    "no-json": {"body": b"[["},
    "no-instant": {"eta": "tomorrow"},
    "no-limits": {"timelimit": 7},
    "no-stamps": {"stamped_headers": 7},
    "no-launch": {"task": "era.run", "body": b"[[], {}, {}]"},
    "no-options": {"body": b'[[["true"]], {"shell": true}, {}]'},
}


@both_kinds
def test_a_malformed_message_ends_no_worker(redis, workers, app, kind):
    workers(kind, places=1)
    usual = {"task": "era.exec", "body": b'[[["true"]], {}, {}]'}
    for id, wrong in MALFORMED.items():
        redis.client().lpush("eracompute", wrapped(id=id, **{**usual, **wrong}))
    for id in MALFORMED:
        eventually(lambda: AsyncResult(id, app=app).state == "FAILURE")
    redis.client().lpush("eraeagerjob", b"no message here either")
    # What comes after them is served, in the one place that there is.
    for queue in ("eracompute", "eraeagerjob"):
        good = app.send_task("era.exec", args=[["true"]], queue=queue)
        assert good.get(timeout=30)["code"] == 0
    eventually(lambda: len(dead(redis)) == len(MALFORMED) + 1)
    eventually(lambda: nothing_is_held(redis))
    # One that was mended may be sent again, as the command line does it.
    number, fields = redis.client().xrange("era:dead")[0]
    send_again(redis, number)

    def buried() -> dict[bytes, bytes]:
        return {entry: kept[b"message"] for entry, kept in redis.client().xrange("era:dead")}

    eventually(lambda: number not in buried() and fields[b"message"] in buried().values())


def test_a_command_that_is_none_ends_no_celery_worker(redis, workers, app):
    worker = workers("celery")
    no_command = wrapped(id="x", task="", body=b"[7]")
    for nothing in ("no message", "7", "[]", "{}", '{"body": 7}', no_command, "\x00"):
        assert redis.client().publish("/0.celery.pidbox", nothing) > 0
    # Nobody is told what became of a command: the next one shows that it was passed over.
    answers = eventually(lambda: app.control.ping(destination=["celery@one"], timeout=5))
    assert answers == [{"celery@one": {"ok": "pong"}}]
    good = app.send_task("era.exec", args=[["true"]], queue="eraeagerjob")
    assert good.get(timeout=30)["code"] == 0
    assert worker.server.process.poll() is None


@pytest.mark.parametrize("kinds", [("rust", "rust"), ("celery", "celery"), ("rust", "celery")])
def test_a_message_that_is_delivered_twice_runs_once(redis, workers, app, kinds):
    id = str(uuid.uuid4())
    count = f"redis-cli -p {redis.port} incr runs"
    # What follows is called by Celery workers only.
    celery = kinds == ("celery", "celery")
    follows = command(app, "redis-cli", "-p", str(redis.port), "incr", "follows") if celery else None
    send(app, ["sh", "-c", f"{count}; sleep 3"], task_id=id, link=follows)
    (raw,) = redis.client().lrange("eracompute", 0, -1)

    def again() -> str:
        message = json.loads(raw)
        message["properties"]["delivery_tag"] = str(uuid.uuid4())
        return json.dumps(message)

    # The same message, and the same task in others; before, while and after it runs.
    redis.client().lpush("eracompute", raw, again())
    workers(kinds[0], "one")
    workers(kinds[1], "two")
    redis.client().lpush("eracompute", *[again() for _ in range(4)])
    assert AsyncResult(id, app=app).get(timeout=60)["code"] == 0
    redis.client().lpush("eracompute", *[again() for _ in range(4)])
    eventually(lambda: not redis.client().llen("eracompute") and nothing_is_held(redis))
    if celery:
        eventually(lambda: redis.client().get("follows"))
        assert redis.client().get("follows") == b"1"
    assert redis.client().get("runs") == b"1"
    assert not redis.client().keys("era:claim:*"), "nobody keeps it any longer"


@pytest.mark.parametrize("kinds", [("rust", "rust"), ("celery", "celery"), ("rust", "celery")])
def test_a_task_whose_result_nobody_wants_runs_once_too(redis, workers, app, kinds):
    command = ["sh", "-c", f"redis-cli -p {redis.port} incr runs; sleep 2"]
    for number, kind in enumerate(kinds):
        workers(kind, str(number))
    for _ in range(4):
        app.send_task(
            "era.exec", args=[command], queue="eracompute", task_id="same", ignore_result=True
        )
    eventually(lambda: not redis.client().llen("eracompute") and nothing_is_held(redis))
    assert redis.client().get("runs") == b"1"


@both_kinds
def test_what_must_not_wait_runs_while_every_place_is_taken(site, redis, workers, app, kind):
    workers(kind, places=1)
    client = site.client()
    eventually(lambda: site.health("one") == "up")
    waits = f'until [ "$(redis-cli -p {redis.port} get go)" = 1 ]; do sleep 0.1; done'
    taken = app.send_task("era.exec", args=[["sh", "-c", waits]], queue="eracompute")
    eventually(lambda: redis.client().keys("era:claim:*"))
    behind = app.send_task("era.exec", args=[["true"]], queue="eracompute")
    eager = app.send_task("era.exec", args=[["echo", "now"]], queue="eraeagerjob")
    assert eager.get(timeout=60)["output"] == "now\n"
    # A launch at its start does not wait for a place either.
    assert client.wait(client.submit(["true"], SMALL, 60).job, 60).state == "succeeded"
    assert not taken.ready() and not behind.ready(), "the place is still taken"
    redis.client().set("go", 1)
    assert (taken.get(timeout=60)["code"], behind.get(timeout=60)["code"]) == (0, 0)


@both_kinds
def test_so_many_commands_run_at_once_and_no_more(redis, workers, app, kind):
    workers(kind, places=4)
    waits = f'until [ "$(redis-cli -p {redis.port} get go)" = 1 ]; do sleep 0.1; done'
    sent = [
        app.send_task("era.exec", args=[["sh", "-c", waits]], queue="eracompute") for _ in range(8)
    ]
    eventually(lambda: len(redis.client().keys("era:claim:*")) == 4)
    time.sleep(2)
    assert len(redis.client().keys("era:claim:*")) == 4
    redis.client().set("go", 1)
    assert [result.get(timeout=60)["code"] for result in sent] == [0] * 8


def command(app, *words, **options):
    """A command that takes no results of others."""
    return app.signature("era.exec", args=[list(words)], queue="eracompute", immutable=True, **options)


def test_a_celery_worker_serves_canvases_around_our_tasks(redis, workers, plain, app):
    workers("celery")
    last = chain(
        command(app, "echo", "one"), app.signature("plain.where"), command(app, "echo", "two")
    ).apply_async()
    assert last.get(timeout=30)["output"] == "two\n"
    # What a task of somebody else was called with, and by whom.
    first = last.parent.parent
    seen = last.parent.get(timeout=30)
    assert seen == {"output": "one\n", "parent": first.id, "root": first.id}
    header = [command(app, "echo", "one"), app.signature("plain.make", args=["two\n", 0])]
    result = chord(header, app.signature("plain.join")).apply_async()
    assert result.get(timeout=30) == ["one\n", "two\n"]
    eventually(lambda: nothing_is_held(redis))


def test_our_worker_serves_the_last_of_a_chain_and_the_body_of_a_chord(redis, workers, plain, app):
    workers("rust")
    make = app.signature("plain.make", args=["x", 0])
    last = chain(make, command(app, "echo", "last")).apply_async()
    body = chord([make, make], command(app, "echo", "body")).apply_async()
    both = group(command(app, "echo", "a"), command(app, "echo", "b")).apply_async()
    assert [result.get(timeout=30)["output"] for result in (last, body)] == ["last\n", "body\n"]
    assert [result["output"] for result in both.get(timeout=30)] == ["a\n", "b\n"]
    eventually(lambda: nothing_is_held(redis))


def test_our_worker_leaves_what_follows_a_task_to_celery_and_runs_nothing(redis, workers, app):
    worker = workers("rust")
    count = lambda: command(app, "redis-cli", "-p", str(redis.port), "incr", "runs")  # noqa: E731
    sent = [
        chain(count(), count(), count()).apply_async(),
        chord([count(), count()], count()).apply_async(),
        count().apply_async(link=count()),
        count().apply_async(link_error=count()),
    ]
    # Whoever waits for the whole is told, and not only who waits for what was refused.
    for result in sent:
        with pytest.raises(Exception, match="served by Celery workers only"):
            result.get(timeout=30)
    eventually(lambda: len(dead(redis)) == 5 and nothing_is_held(redis))
    assert redis.client().get("runs") is None
    # None is lost: sent again, a Celery worker serves it.
    worker.stop()
    for number, _ in redis.client().xrange("era:dead"):
        send_again(redis, number)
    workers("celery", "two")
    eventually(lambda: redis.client().get("runs") == b"9")
    # This client remembers the failures that it was told.
    kept = lambda id: json.loads(redis.client().get(f"celery-task-meta-{id}") or "{}")  # noqa: E731
    for result in sent:
        eventually(lambda: kept(result.id).get("status") == "SUCCESS")
    eventually(lambda: nothing_is_held(redis))
    assert (redis.client().get("runs"), dead(redis)) == (b"9", [])


@pytest.mark.parametrize("kinds", [("rust", "rust"), ("celery", "celery"), ("celery", "rust")])
def test_a_killed_worker_s_command_is_served_by_another(redis, workers, app, kinds):
    one = workers(kinds[0], "one")
    sent = app.send_task("era.exec", args=[["sh", "-c", "sleep 2; echo $ERA_NODE"]], queue="eracompute")
    eventually(lambda: redis.client().exists(f"era:claim:{sent.id}"))
    one.kill()
    workers(kinds[1], "two")
    # Not before the first one's lease has lapsed: until then it may still run. Messages of a dead
    # Celery worker come back by their age, which is what the address of the broker says.
    result = sent.get(timeout=120)
    assert (result["code"], result["output"]) == (0, "two\n")
    eventually(lambda: nothing_is_held(redis))


# A server of ours, and workers of either kind.


@both_kinds
def test_a_job_runs_on_a_worker_of_either_kind(site, redis, workers, kind):
    workers(kind)
    client = site.client()
    eventually(lambda: site.health("one") == "up")
    good = client.submit(ticking(2), SMALL, 60)
    bad = client.submit(["sh", "-c", "exit 4"], SMALL, 60)
    long = client.submit(["sleep", "600"], SMALL, 900)
    job = client.wait(good.job, 60)
    assert (job.state, job.tasks[0].node) == ("succeeded", "one")
    assert len(lines(client, job.id)) == 2
    assert client.wait(bad.job, 60).exit_code == 4
    eventually(lambda: client.job(long.job).state == "running")
    client.cancel(long.job)
    assert client.wait(long.job, 60).state == "cancelled"
    # Nothing is left behind once the server has acted on the ends.
    for key in ("era:launches", "era:claims"):
        eventually(lambda: not redis.client().hlen(key))
    eventually(lambda: nothing_is_held(redis))


@both_kinds
def test_a_worker_that_is_killed_in_mid_task_and_comes_back_goes_on(site, redis, workers, kind):
    worker = workers(kind)
    client = site.client()
    eventually(lambda: site.health("one") == "up")
    # Within its lease, however long a busy machine takes to start it.
    site.era("admin", "config", "set", "lease=20s")
    eventually(lambda: redis.client().hget("era:node:one", "lease") == b"20000")
    submitted = client.submit(ticking(60), SMALL, 120)
    eventually(lambda: len(lines(client, submitted.job)) > 3)
    worker.kill()
    worker.start()
    job = client.wait(submitted.job, 60)
    assert (job.state, job.attempts) == ("succeeded", 1)
    assert len(lines(client, job.id)) == 60
    eventually(lambda: nothing_is_held(redis))


@both_kinds
def test_a_worker_that_is_gone_is_replaced_and_nothing_runs_twice(site, redis, workers, kind):
    one = workers(kind, "one")
    client = site.client()
    eventually(lambda: site.health("one") == "up")
    submitted = client.submit(ticking(50), SMALL, 120)
    eventually(lambda: len(lines(client, submitted.job)) > 3)
    one.kill()
    workers("rust", "two")
    eventually(lambda: site.health("one") == "lost")
    job = client.wait(submitted.job, 90)
    assert (job.state, job.attempts) == ("succeeded", 2), job.reason
    assert {task.node for task in job.tasks} == {"one", "two"}
    ticks = lines(client, job.id)
    assert never_two_at_once(ticks)
    assert sum(tick.attempt == 2 for tick in ticks) == 50
    # A node that comes back is used again.
    one.start()
    eventually(lambda: site.health("one") == "up")


@both_kinds
def test_a_redis_that_goes_away_and_comes_back_loses_nothing(site, redis, workers, app, kind):
    workers(kind)
    client = site.client()
    eventually(lambda: site.health("one") == "up")
    submitted = client.submit(ticking(40), SMALL, 120)
    eventually(lambda: len(lines(client, submitted.job)) > 3)
    redis.stop()
    waiting = client.submit(["true"], SMALL, 60)
    time.sleep(LEASE_S / 3)
    redis.start()
    job = client.wait(submitted.job, 60)
    assert (job.state, job.attempts) == ("succeeded", 1)
    assert len(lines(client, job.id)) == 40
    assert client.wait(waiting.job, 60).state == "succeeded"


def test_what_a_redis_that_stays_away_keeps_from_starting_costs_nothing(site, redis, workers):
    workers("rust")
    client = site.client()
    eventually(lambda: site.health("one") == "up")
    redis.stop()
    soon = datetime.now(timezone.utc) + timedelta(seconds=25)
    promised = client.submit(["true"], SMALL, 10, 1000, deadline=soon.isoformat())
    waiting = client.submit(ticking(3), SMALL, 600)
    cancelled = client.submit(["sleep", "600"], SMALL, 900)
    begun = time.monotonic()
    client.cancel(cancelled.job)
    assert client.wait(cancelled.job, 60).state == "cancelled"
    assert time.monotonic() - begun < 15, "nobody waits for Redis to call it off"
    eventually(lambda: site.health("one") == "lost")
    job = client.wait(promised.job, 60)
    assert job.state == "broken", job
    assert job.cost.charged > 0 and job.cost.net == 0, "a promise that was broken is refunded"
    said = " ".join(line.text for line in client.logs(waiting.job).items)
    assert f"the task waits to be started: Redis at {redis.url} did not" in said
    assert "the task was not started" in said
    redis.start()
    job = client.wait(waiting.job, 60)
    assert (job.state, job.attempts) == ("succeeded", 2)
    assert len(lines(client, job.id)) == 3, "it ran once"


def test_a_server_that_is_killed_finds_its_tasks_again(site, redis, workers):
    workers("rust")
    client = site.client()
    eventually(lambda: site.health("one") == "up")
    running = client.submit(ticking(30), SMALL, 120)
    quick = client.submit(ticking(8), SMALL, 120)
    eventually(lambda: len(lines(client, running.job)) > 3)
    site.server.kill()
    time.sleep(1)
    site.start()
    client = site.client()
    for submitted in (running, quick):
        job = client.wait(submitted.job, 60)
        assert (job.state, job.attempts) == ("succeeded", 1)


def test_a_second_site_on_the_same_redis_is_refused(site, redis, folder):
    from conftest import Process, free_port, program

    address = f"celery://127.0.0.1:{redis.port}/0"
    listen = f"127.0.0.1:{free_port()}"
    command = [program(), "up", "--data", folder / "other", "--listen", listen, "--executor", address]
    other = Process(command, folder, ERA_CONFIG=folder / "other-config")
    assert other.process.wait(30) != 0
    assert "serves another site" in other.said()


# The configuration centre, and the bus.


def test_settings_reach_every_process(site, redis, workers):
    workers("rust")
    client = redis.client()
    site.era("admin", "config", "set", "lease=2s")
    eventually(lambda: client.hget("era:settings", "lease") == b"2")
    eventually(lambda: client.hget("era:node:one", "lease") == b"2000")


def test_accepted_jobs_are_told_and_kept_for_those_who_were_away(site, redis, workers):
    workers("rust")
    eventually(lambda: site.health("one") == "up")
    client, server = redis.client(), site.client()
    listening = client.pubsub()
    listening.subscribe("accepted_queue")
    first = server.submit(["true"], SMALL, 60, name="told").job
    heard = eventually(lambda: (listening.get_message(timeout=1) or {}).get("type") == "message")
    assert heard
    redis.stop()
    second = server.submit(["true"], SMALL, 60).job
    redis.start()
    client = redis.client()

    def taken():
        got = client.xreadgroup("era-cloud", "me", {"accepted_queue": "0"}, count=10)
        new = client.xreadgroup("era-cloud", "me", {"accepted_queue": ">"}, count=10)
        entries = [e for _, all in (got + new) for e in all]
        return [json.loads(fields[b"job"]) for _, fields in entries]

    jobs = eventually(lambda: (t := taken()) and len(t) >= 2 and t)
    assert [job["job"] for job in jobs] == [first, second]
    assert (jobs[0]["name"], jobs[0]["kind"]) == ("told", "queued")


def test_the_catalogue_of_images_is_mirrored_and_found_right_by_who_was_away(site, redis):
    def mirrored():
        return {name.decode(): json.loads(text) for name, text in redis.client().hgetall("era:images").items()}

    listening = redis.client().pubsub()
    listening.subscribe("era:images")
    site.era("images", "publish", "torch", "r:5000/torch:2.9", "--framework", "pytorch", "--gpu")
    eventually(lambda: "torch" in mirrored())
    image = mirrored()["torch"]
    assert (image["reference"], image["framework"], image["gpu"]) == ("r:5000/torch:2.9", "pytorch", True)
    assert image["published_by"] == "admin"
    eventually(lambda: (listening.get_message(timeout=1) or {}).get("type") == "message")
    # What changed while Redis was away is right when it is back.
    redis.stop()
    site.era("images", "publish", "jax", "r:5000/jax:1")
    site.era("images", "rm", "torch")
    redis.start()
    eventually(lambda: list(mirrored()) == ["jax"])
    # One that lost its memory is filled at the next start at the latest.
    redis.client().flushall()
    site.stop()
    site.start()
    eventually(lambda: list(mirrored()) == ["jax"])
