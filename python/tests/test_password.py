"""A Redis that wants a password: who is asked, what it answers, and what to do about it."""

import sys

import pytest
from conftest import Process, Redis, Site, eventually, free_port, program


@pytest.fixture
def guarded(folder):
    place = folder / "redis"
    place.mkdir()
    server = Redis(place, password="right")
    yield server
    server.stop()


def refused(said: str, server: Redis, password: str) -> None:
    assert f"127.0.0.1:{server.port}" in said, said
    # What it answered: that it wants a password, or that this is none.
    assert ("authentication failed" if password else "NOAUTH") in said, said
    assert "redis://:PASSWORD@HOST:PORT" in said, said
    assert "wrong@" not in said and "Traceback" not in said, said


@pytest.mark.parametrize("who", ["era worker", "era worker dead", "era.worker", "--executor"])
@pytest.mark.parametrize("password", ["", ":wrong@"])
def test_a_wrong_password_is_told_with_the_service_its_answer_and_what_to_do(
    guarded, folder, who, password
):
    address = f"{password}127.0.0.1:{guarded.port}/0"
    worker = ["--broker", f"redis://{address}", "--node", "one", "--data", folder / "worker"]
    listen = f"127.0.0.1:{free_port()}"
    commands = {
        "era worker": [program(), "worker", *worker],
        "era worker dead": [program(), "worker", "--broker", f"redis://{address}", "dead"],
        "era.worker": [sys.executable, "-m", "era.worker", *worker],
        "--executor": [program(), "up", "--data", folder / "data", "--listen", listen]
        + ["--executor", f"celery://{address}"],
    }
    env = {"ERA_CONFIG": folder / "config", "ERA_BINARY": program()}
    process = Process(commands[who], folder, **env)
    try:
        assert process.process.wait(60) != 0, process.said()
        refused(process.said(), guarded, password)
    finally:
        process.kill()


@pytest.mark.parametrize("password", ["", ":wrong@"])
def test_a_server_that_only_tells_redis_goes_on_and_says_what_is_wrong(guarded, folder, password):
    site = Site(folder, "--redis", f"redis://{password}127.0.0.1:{guarded.port}/0")
    try:
        site.server.wait_for("the bus waits for Redis")
        refused(site.server.said(), guarded, password)
        assert site.client().me().name == "admin"
    finally:
        site.stop()


def test_the_right_password_is_taken_and_never_shown(guarded, folder):
    address = f":right@127.0.0.1:{guarded.port}/0"
    site = Site(folder, "--executor", f"celery://{address}")
    try:
        eventually(lambda: guarded.client().get("era:site"))
        assert "right" not in site.server.said()
    finally:
        site.stop()
