"""The SDK against `era up` on this machine."""

import asyncio
import datetime as dt
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from conftest import Site, eventually, program

import era


@pytest.fixture(scope="module")
def here(tmp_path_factory):
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


def test_what_is_not_said_the_server_says(client):
    soon = dt.datetime.now(dt.timezone.utc) + dt.timedelta(hours=9)
    for made in (
        client.submit(["true"], deadline=soon),
        client.submit(["true"], accept_price=True),
    ):
        assert made.quote.price >= 0
        job = client.job(made.job)
        assert job.spec["ask"]["resources"] == {"cpu": "1", "memory": "1Gi"}
        assert job.spec["ask"]["duration_s"] == 3600
    assert client.submit(["true"], SMALL).quote is None


def test_a_job_is_checked_with_its_defaults_and_nothing_is_handed_in(client):
    before = [one.id for one in client.jobs(limit=1).items]
    checked = client.check(["true"], accept_price=True)
    assert (checked.bid, checked.problems, checked.at_most) == (True, [], None)
    assert checked.job["ask"]["duration_s"] == 3600
    wrong = client.check(["true"], {"cpu": "lots"}, queue="no where", env={"9A": "1"})
    assert not wrong.bid
    assert {one.field for one in wrong.problems} == {"resources", "queue", "work.env"}
    assert all(one.code == "bad_field" and one.detail for one in wrong.problems)
    assert client.check(["true"], SMALL).at_most > 0
    assert [one.id for one in client.jobs(limit=1).items] == before


def test_whoever_waits_for_credits_is_told(client, caplog):
    def grant(amount):
        answer = client._http.post("/api/v1/users/admin/grants", json={"amount": str(amount)})
        answer.raise_for_status()

    balance = client.me().balance
    grant(-balance)
    job = client.submit(["true"], SMALL, 60).job
    with pytest.raises(TimeoutError, match="an administrator can grant credits"):
        client.wait(job, 1)
    assert "the wallet holds 0.00 credits" in caplog.text
    assert client.quote(SMALL, 60).wallet == 0
    grant(balance)
    assert client.wait(job, 60).state == "succeeded"


def test_a_job_runs_to_its_end_with_its_log(client):
    command = ["python3", "-c", "import sys; print('hello', sys.argv[1])", "there"]
    submitted = client.submit(command, SMALL, 60, name="first", env={"X": "1"})
    job = client.wait(submitted.job, 60)
    assert (job.state, job.exit_code, job.name) == ("succeeded", 0, "first")
    assert job.spec["work"]["command"] == command
    assert "hello there" in [line.text for line in client.logs(job.id).items]
    assert job.id in [one.id for one in client.jobs(limit=10).items]


def test_a_job_finds_a_secret_that_it_names_and_one_that_is_not_there_is_refused(client):
    command = ["sh", "-c", "test \"$PROBE\" = 'open sesame'"]
    with pytest.raises(era.Refused) as refused:
        client.submit(command, SMALL, 60, secrets=["PROBE"])
    assert refused.value.field == "work.secrets" and "era secret set PROBE" in str(refused.value)
    set_at = client.set_secret("PROBE", "open sesame").set
    listed = client.secrets().items
    assert [(one.name, one.set) for one in listed] == [("PROBE", set_at)]
    job = client.wait(client.submit(command, SMALL, 60, secrets=["PROBE"]).job, 60)
    assert job.state == "succeeded" and job.spec["work"]["secrets"] == ["PROBE"]
    client.remove_secret("PROBE")
    assert client.secrets().items == []
    assert "sesame" not in repr(era.calls.set_secret("PROBE", "open sesame"))


def packed(folder: Path) -> None:
    """The package with all that it imports, as a job's code brings it along: a job sees neither the
    interpreter nor the folders of whoever runs the tests."""
    look = "import sys, era; print(*{n.partition('.')[0] for n in sys.modules}, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    for name in loaded.stdout.split():
        found = importlib.util.find_spec(name) if name != "__main__" else None
        place = Path(found.origin) if found and found.origin and "/" in found.origin else None
        if place is None or not (name == "era" or "site-packages" in place.parts):
            continue
        if place.name == "__init__.py":
            shutil.copytree(place.parent, folder / name)
        else:
            shutil.copy(place, folder)


def test_a_job_tells_its_metrics_through_the_package(here, client, tmp_path):
    packed(tmp_path)
    script = "import era\nfor step in range(3):\n    era.log_metric('loss', 0.5 / (step + 1), step=step)\n"
    (tmp_path / "train.py").write_text(script)
    asked = ["--code", str(tmp_path), "-c", "0.1", "-m", "128Mi", "-t", "1m"]
    here.era("submit", *asked, "--name", "told", "--", "python3", "train.py")
    (told,) = client.jobs(name="told").items
    job = client.wait(told.id, 60)
    assert job.state == "succeeded", [line.text for line in client.logs(job.id).items]
    # Values are written down a moment later.
    points = eventually(lambda: (p := client.metrics(job.id, names=["loss"]).items) and len(p) == 3 and p)
    assert [(point.step, point.value) for point in points] == [(0, 0.5), (1, 0.25), (2, 0.5 / 3)]


LOOK = "import os; print(sorted(os.listdir('.'))); open('checkpoints/at', 'a').write('x')"


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A working folder with code in it, and what is none."""
    (tmp_path / "lib").mkdir()
    for name, text in [("look.py", LOOK), ("lib/a.py", ""), ("big.bin", ""), (".gitignore", "*.bin")]:
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ERA_BINARY", program())
    return tmp_path


def told(client, submitted) -> str:
    job = client.wait(submitted.job, 60)
    # A line may come in pieces.
    return "".join(line.text for line in client.logs(job.id).items)


def test_code_goes_along_as_with_the_command_line(client, work):
    command, seen = ["python3", "look.py"], "['.gitignore', 'checkpoints', 'lib', 'look.py', 'outputs']"
    assert told(client, client.submit(command, SMALL, 60)) == seen
    in_shell = ["sh", "-c", "cd . && python3 look.py"]
    assert told(client, client.submit(in_shell, SMALL, 60)) == seen
    # What was sent is named by its hash, and another folder by its path.
    sent = client.job(client.submit(command, SMALL, 60).job).spec["work"]["code"]
    elsewhere = work / "lib"
    (elsewhere / "look.py").write_text(LOOK)
    assert told(client, client.submit(command, SMALL, 60, code=sent)) == seen
    other = "['a.py', 'checkpoints', 'look.py', 'outputs']"
    for folder in (elsewhere, "lib"):
        assert told(client, client.submit(command, SMALL, 60, code=folder)) == other
    assert client.job(client.submit(command, SMALL, 60, code=False).job).spec["work"].get("code") is None
    assert client.job(client.submit(["true"], SMALL, 60).job).spec["work"].get("code") is None
    with pytest.raises(era.EraError, match="nowhere is no folder"):
        client.submit(command, SMALL, 60, code="nowhere")


def test_code_goes_along_with_the_client_that_is_awaited_and_to_no_server_that_is_not_there(here, work):
    async def submit():
        async with era.AsyncClient(here.url, here.token()) as client:
            submitted = await client.submit(["python3", "look.py"], SMALL, 60)
            return await client.wait(submitted.job, 60)

    assert asyncio.run(submit()).state == "succeeded"
    with era.Client("http://127.0.0.1:9") as client, pytest.raises(era.NoServer):
        client.submit(["python3", "look.py"], SMALL, 60)


def test_a_job_handed_in_again_goes_on_from_its_checkpoints_or_begins_fresh(client, work):
    code = "import os; at = 'checkpoints/at'; print(os.path.exists(at)); open(at, 'w').close()"
    first = client.submit(["python3", "-c", code], SMALL, 60)
    assert told(client, first) == "False"
    again = client.retry(first.job)
    assert again.checkpoints_of == first.job and told(client, again) == "True"
    fresh = client.retry(first.job, fresh=True)
    assert fresh.checkpoints_of is None and told(client, fresh) == "False"


def test_a_bid_is_promised_and_costs_what_was_quoted(client):
    soon = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=45)
    submitted = client.submit(["true"], SMALL, 30, value="1000", deadline=soon)
    assert submitted.quote.price <= 1000
    assert client.wait(submitted.job, 60).state == "succeeded"


def test_whoever_waits_does_so_while_the_server_is_started_again(here, client):
    submitted = client.submit(["sleep", "4"], SMALL, 60)
    eventually(lambda: client.job(submitted.job).state == "running")

    async def awaited():
        async with era.AsyncClient(client.server.url, client.server.token) as other:
            return await other.wait(submitted.job, 60)

    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(client.wait, submitted.job, 60), pool.submit(asyncio.run, awaited())]
        here.server.kill()
        time.sleep(1.5)
        here.start()
        assert [one.result().state for one in waiting] == ["succeeded", "succeeded"]


def soon(seconds: float) -> dt.datetime:
    return dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=seconds)


def test_a_hold_is_taken_at_its_price_and_only_once(client):
    quoted = client.quote(SMALL, 30, "1000", hold=True, deadline=soon(45))
    taken = client.submit(["true"], SMALL, 30, hold=quoted.hold, overrun="stop", project="thesis")
    assert taken.quote.price == quoted.quote.price
    job = client.wait(taken.job, 60)
    assert (job.state, job.project, job.simulated) == ("succeeded", "thesis", False)
    assert (job.outcome, job.array) == (era.Outcome("succeeded"), None)
    assert (job.spec["hold"], job.spec["overrun"]) == (quoted.hold.id, "stop")
    with pytest.raises(era.Refused):
        client.submit(["true"], SMALL, 30, hold=quoted.hold.id)


def test_a_value_may_fall_and_alternatives_are_joined(client):
    steps = [era.ValueStep(soon(60), "1000"), era.ValueStep(soon(600), Decimal(1))]
    submitted = client.submit(["false"], SMALL, 30, steps, release_when_idle=True)
    assert submitted.quote.finish <= soon(60)
    job = client.wait(submitted.job, 60)
    assert job.outcome == era.Outcome("failed", {"code": 1})
    assert [Decimal(step["worth"]) for step in job.spec["value"]] == [1000, 1]
    first, second = era.Bid(SMALL, 20), era.Bid(SMALL, 10, after=[0])
    dearer = era.Bid(SMALL, 600)
    quoted = client.quote_one_of([dearer, [first, second]], "1000", hold=True)
    assert (quoted.quote.alternative, len(quoted.quote.parts)) == (1, 2)
    assert quoted.quote.parts[1].start >= quoted.quote.parts[0].finish
    taken = client.submit(["true"], SMALL, 20, hold=quoted.hold)
    client.cancel(taken.job)
    with pytest.raises(ValueError, match="of the whole"):
        client.quote_one_of([era.Bid(SMALL, 20, "5")])


def test_one_of_an_array_says_its_place_and_one_that_waits_when_it_may_start(client):
    submitted = client.submit(["true"], SMALL, 60, array={"from": 3, "to": 4})
    last = client.wait(submitted.job + 1, 60)
    assert last.array == era.ArrayPlace(submitted.job, 4)
    whole = client.submit(["sleep", "600"], SMALL, 900).job
    waits = client.submit(["true"], SMALL, 60, after=[{"job": whole}]).job
    (told,) = [one for one in client.jobs(likely=True).items if one.id == waits]
    assert told.state == "waiting"
    assert told.likely_start is None or told.likely_start > told.submitted
    client.cancel(waits)
    client.cancel(whole)


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
            bid = era.Bid(SMALL, 30, deadline=soon(45))
            held = await client.quote_one_of([bid], "1000", hold=True)
            taken = await client.submit(["true"], SMALL, 30, hold=held.hold)
            assert taken.quote.price == held.quote.price
            assert (await client.wait(taken.job, 60)).state == "succeeded"
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
