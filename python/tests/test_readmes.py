"""Every example of every README runs as it is written, or is listed here with the reason why not.

An example is a fenced block of a shell or of Python; a block without a language is a picture. The
blocks of one README run in turn, in one folder in which `era up` was started, as a reader would.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import PATIENCE_S, ROOT, Process, Site, end_supervisor, program

# By README and first line of the block.
NOT_RUN = {
    ("README.md", "make run"): "builds the program and runs all tests, this one among them",
    ("README.zh-CN.md", "make run"): "the same in Chinese",
    ("python/README.md", "pip install"): "needs the network; scripts/test-python installs it",
    ("web/README.md", "npm ci"): "needs Node and a browser; scripts/page runs all of it",
}
# Where somebody's own folders may hold README files that are not ours.
NOT_OURS = {"node_modules", "target", ".git", ".venv", "dist"}
SHELL, PYTHON = {"sh", "bash", "shell", "console"}, {"python", "py"}
# What blocks need that their README does not make.
TRAIN = "print('era: metric loss=0.5 step=1', flush=True)\n"


@dataclass(frozen=True)
class Block:
    readme: str
    line: int
    language: str
    text: str

    @property
    def reason(self) -> str | None:
        """Why it is not run."""
        found = [why for (readme, begin), why in NOT_RUN.items() if self.is_at(readme, begin)]
        return found[0] if found else None

    def is_at(self, readme: str, begin: str) -> bool:
        return self.readme == readme and self.text.startswith(begin)


def blocks() -> list[Block]:
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(set(folders) - NOT_OURS)
        for name in sorted(files):
            if not re.fullmatch(r"README.*\.md", name):
                continue
            path = Path(folder, name)
            text, readme = path.read_text(), path.relative_to(ROOT).as_posix()
            for block in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S):
                line = text.count("\n", 0, block.start()) + 1
                found.append(Block(readme, line, block[1], block[2]))
    return found


BLOCKS = blocks()


def run(readme: str, *languages: set[str]) -> list[Block]:
    """What of a README runs, in turn."""
    wanted = set().union(*languages)
    return [b for b in BLOCKS if b.readme == readme and b.language in wanted and not b.reason]


# Which test runs which blocks.
RUN = [
    *run("README.md", SHELL),
    *run("README.zh-CN.md", SHELL),
    *run("python/README.md", SHELL, PYTHON),
]


def test_every_example_runs_or_is_listed_with_its_reason():
    left = [f"{b.readme}:{b.line}" for b in BLOCKS if b not in RUN and not b.reason]
    assert left == [], "run it here, or say in NOT_RUN why it cannot"
    stale = [key for key in NOT_RUN if not any(b.is_at(*key) for b in BLOCKS)]
    assert stale == [], "no README says this any more"
    assert len(RUN) > 6, "the READMEs were found"


def test_both_languages_have_the_same_examples():
    def plain(readme: str) -> list[str]:
        return [re.sub(r" *(?:^|(?<= ))# .*", "", b.text) for b in BLOCKS if b.readme == readme]

    assert plain("README.md") == plain("README.zh-CN.md")


@pytest.fixture
def here(folder):
    """`era up` as it is first started: what it keeps lies in the folder that it is started in."""
    site = Site(folder, data="era-data")
    yield site
    site.stop()


def shell(site: Site, block: Block, path: Path | None = None) -> str:
    """Runs a block as it stands; any of its commands may fail it."""
    (site.folder / "block.sh").write_text(f"set -e\n{block.text}")
    bins = [str(path)] if path else []
    done = subprocess.run(
        ["bash", "block.sh"],
        cwd=site.folder,
        env={
            **os.environ,
            **site.environment(),
            "PATH": os.pathsep.join([*bins, os.environ["PATH"]]),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{block.readme}:{block.line}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture
def bins(tmp_path):
    """A folder in which `era` is the program under test, and `python` this one."""
    (tmp_path / "era").symlink_to(program())
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "python").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_first_steps_work_in_the_folder_of_the_server(here, bins, readme):
    said = "".join(shell(here, block, bins) for block in run(readme, SHELL))
    assert "Job 1 succeeded" in said
    # One line about what the server keeps there, and none of it among the code.
    assert said.count("Left out: era-data (ERA's own folder)") == 2, said
    assert (here.folder / "outputs/1/model.txt").read_text() == "trained\n"
    with here.client() as client:
        assert client.wait(2, 60).state == "succeeded"


def test_the_package_s_examples_work_in_the_folder_of_the_server(here, monkeypatch):
    """In turn, and as one program: what an earlier one imports and names, a later one uses."""
    monkeypatch.chdir(here.folder)
    Path("train.py").write_text(TRAIN)
    variables = {**here.environment(), "WANDB_API_KEY": "a key", "ERA_BINARY": program()}
    lines = [f"# {b.readme}:{b.line}\n{b.text}" for b in run("python/README.md", PYTHON) if "celery" not in b.text]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "succeeded 0" in done.stdout, done.stdout


def test_the_worker_s_examples_work_with_a_redis_of_their_own(folder, redis, bins):
    """The address is the only thing that is not as it is written."""
    serve, ask = [
        block.text.replace("redis://localhost:6379/0", redis.url)
        for block in run("python/README.md", SHELL, PYTHON)
        if "redis://localhost:6379/0" in block.text
    ]
    path = os.pathsep.join([str(bins), os.environ["PATH"]])
    env = {"PATH": path, "ERA_BINARY": program()}
    worker = Process(["bash", "-c", serve], folder, **env)
    try:
        # What is asked waits for the worker.
        asked = subprocess.run(
            [sys.executable, "-c", ask + "\n"],
            env={**os.environ, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
        )
        assert asked.returncode == 0, asked.stderr + worker.said()
    finally:
        worker.stop()
        end_supervisor(folder / "era-worker" / "shim")
