"""The SDK against `era up` on this machine."""

import asyncio
import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from conftest import Site, eventually

import era


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="era-"))
    site = Site(folder)
    yield site
    site.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def client(here):
    with here.client() as client:
        yield client


SMALL = era.Resources(cpu="100m", memory="64Mi")


def test_an_account_is_told_with_its_balance(client):
    me = client.me()
    assert (me.role, type(me.balance)) == ("administrator", Decimal)


def test_a_quote_has_a_price_and_a_slot(client):
    quoted = client.quote(SMALL, 60, menu=True)
    assert quoted.quote.price >= 0
    assert quoted.quote.finish > quoted.quote.start
    assert quoted.hold is None
    assert client.quote(SMALL, 60, hold=True).hold.id >= 0


def test_a_job_runs_to_its_end_with_its_log_and_metrics(client):
    script = "import sys, era; print('hello', sys.argv[1]); era.log_metric('loss', 0.5, step=3)"
    # The interpreter that runs the tests has the package, wherever it was installed.
    command = [sys.executable, "-c", script, "there"]
    env = {"PYTHONPATH": str(Path(era.__file__).parents[1])}
    submitted = client.submit(command, SMALL, 60, name="first", env=env)
    job = client.wait(submitted.job, 60)
    assert (job.state, job.exit_code, job.name) == ("succeeded", 0, "first")
    assert job.spec["work"]["command"] == command
    assert "hello there" in [line.text for line in client.logs(job.id).items]
    # Values are written down a moment later.
    (point,) = eventually(lambda: client.metrics(job.id, names=["loss"]).items)
    assert (point.value, point.step) == (0.5, 3)
    assert job.id in [one.id for one in client.jobs(limit=10).items]


def test_a_bid_is_promised_and_costs_what_was_quoted(client):
    soon = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=45)
    submitted = client.submit(["true"], SMALL, 30, value="1000", deadline=soon)
    assert submitted.quote.price <= 1000
    assert client.wait(submitted.job, 60).state == "succeeded"


def test_the_same_key_is_the_same_job(client):
    first = client.submit(["true"], SMALL, 60, key="one-and-the-same")
    assert client.submit(["true"], SMALL, 60, key="one-and-the-same").job == first.job


def test_a_refusal_says_what_is_wrong(client):
    with pytest.raises(era.Refused) as refused:
        client.submit(["true"], {"cpu": "a lot"}, 60)
    assert refused.value.field and refused.value.code and refused.value.status == 422
    with pytest.raises(era.Refused) as refused:
        client.job(999_999)
    assert refused.value.status == 404
    with pytest.raises(era.Refused) as refused:
        era.Client(client.server.url, "era_wrong").me()
    assert refused.value.status == 401


def test_a_running_job_can_be_given_up(client):
    submitted = client.submit(["sleep", "600"], SMALL, 900)
    client.cancel(submitted.job)
    assert client.wait(submitted.job, 60).state == "cancelled"


def test_the_same_can_be_awaited(here):
    async def story():
        async with era.AsyncClient(here.url, here.token()) as client:
            quoted, submitted = await asyncio.gather(
                client.quote(SMALL, 60), client.submit(["true"], SMALL, 60)
            )
            assert quoted.quote.price >= 0
            return await client.wait(submitted.job, 60)

    assert asyncio.run(story()).state == "succeeded"


def test_functions_share_one_client(here, monkeypatch):
    import era.api

    monkeypatch.setenv("ERA_URL", here.url)
    monkeypatch.setenv("ERA_TOKEN", here.token())
    monkeypatch.setattr(era.api, "_client", None)
    submitted = era.submit(["true"], SMALL, 60)
    assert era.wait(submitted.job, timeout_s=60).state == "succeeded"
    assert era.client() is era.client()


def test_settings_are_set_by_name_and_wrong_ones_refused(here):
    assert "lease = 30\n" in here.era("admin", "config", "ls")
    here.era("admin", "config", "set", "lease=20s", "refund_unused=0.75")
    assert here.era("admin", "config", "get", "lease") == "20\n"
    with pytest.raises(AssertionError, match="no such setting"):
        here.era("admin", "config", "set", "leese=20s")
    with pytest.raises(AssertionError, match="refund_unused"):
        here.era("admin", "config", "set", "refund_unused=7")
