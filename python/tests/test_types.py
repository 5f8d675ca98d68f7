"""What a type checker sees of the package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"

# Each line that ends in a mark is wrong, and no other is.
USER = """\
import era

def plainly(client: era.Client) -> era.Cost:
    balance: float = float(client.me().balance)
    quoted: era.Quoted = client.quote(era.Resources(cpu=1), 60, menu=True)
    submitted: era.Submitted = client.submit(["true"], {"cpu": 1}, 60, "12.5", name="first")
    points: list[era.MetricPoint] = client.metrics(submitted.job, names=["loss"]).items
    first: era.JobSummary = client.jobs(limit=1).items[0]
    held: era.Quoted = client.quote_one_of([era.Bid({"cpu": 1}, 60)], [era.ValueStep("…", 1)])
    client.submit(["true"], {"cpu": 1}, 60, hold=held.hold, overrun="stop")
    client.submit(["true"], {"cpu": 1}, 60, secrets=[client.set_secret("A", "x").name])
    client.submit(["true"], {"cpu": 1}, 60, overrun="never")  # wrong
    client.submit(["true"], {"cpu": 1}, 60, hold=held)  # wrong
    client.me().nmae  # wrong
    client.submit(["true"], {"cpu": 1}, 60, nmae="first")  # wrong
    client.quote(era.Resources(cpu=1), "long")  # wrong
    job: int = client.job(first.id)  # wrong
    return client.wait(submitted.job).cost

async def awaited(client: era.AsyncClient) -> str:
    quoted: era.Quoted = await client.quote(era.Resources(cpu=1), 60)
    submitted: era.Submitted = await client.submit(["true"], {"cpu": 1}, 60)
    hasty: era.Submitted = client.submit(["true"], {"cpu": 1}, 60)  # wrong
    (await client.logs(submitted.job)).items[0].txet  # wrong
    return (await client.wait(submitted.job)).state

def functions() -> None:
    text: str = era.logs(era.submit(["true"], {"cpu": 1}, 60).job).items[0].text
    era.log_metric("loss", "high")  # wrong
    era.wait("7")  # wrong
"""


def mypy(*arguments: str) -> str:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--show-column-numbers"]
    env = {**os.environ, "MYPYPATH": str(SOURCE), "MYPY_CACHE_DIR": os.devnull}
    return subprocess.run([*command, *arguments], env=env, capture_output=True, text=True).stdout


def test_the_package_holds_what_its_types_say():
    # Celery has no types of its own, so its worker is another matter.
    assert mypy("--strict", "--exclude", "worker", str(SOURCE / "era")) == ""


def test_answers_and_arguments_have_types_in_both_clients(tmp_path):
    user = tmp_path / "user.py"
    user.write_text(USER)
    told = mypy("--strict", str(user))
    lines = {int(line.split(":")[1]) for line in told.splitlines() if ": error:" in line}
    wrong = [n for n, line in enumerate(USER.splitlines(), 1) if line.endswith("# wrong")]
    assert sorted(lines) == wrong, told
