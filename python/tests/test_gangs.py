"""Gangs as a training script finds them: real PyTorch, which meets over the network."""

from __future__ import annotations

import json
import re

import pytest
from conftest import Site, eventually
from torch_here import NotHere, torch

EACH = {"cpu": "900m", "memory": "1Gi"}
PATIENCE_S = 300
# Meets the others, and saves what came of it, as every example of PyTorch does.
TRAIN = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
total = torch.ones(1)
dist.all_reduce(total)
print(f"rank {rank} of {world} at {os.environ['LOCAL_RANK']} counts {int(total)}", flush=True)
if rank == 0:
    with open(os.path.join(os.environ["ERA_CHECKPOINTS"], "written"), "a") as file:
        file.write("once\\n")
    print("checkpoint written", flush=True)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def with_torch():
    try:
        return torch()
    except NotHere as why:
        pytest.skip(str(why))


def command(start: str) -> list[str]:
    return ["sh", "-c", f'printf %s "$TRAIN" > train.py && exec {start} train.py']


def said(client, job: int, words: str) -> list[str]:
    """All that a job's ranks said of this, in order."""
    found = [line.text for line in client.logs(job, limit=1000).items]
    return sorted(text for line in found for text in re.findall(words, line))


def formed(client, start: str, with_torch, **asked) -> list[str]:
    env = {"TRAIN": TRAIN, "PYTHONPATH": str(with_torch)}
    submitted = client.submit(command(start), EACH, 600, env=env, **asked)
    job = client.wait(submitted.job, PATIENCE_S)
    log = [line.text for line in client.logs(submitted.job, limit=1000).items]
    assert job.state == "succeeded", "\n".join(log)
    assert said(client, job.id, "checkpoint written") == ["checkpoint written"]
    return said(client, job.id, r"rank \d+ of \d+ at \d+ counts \d+")


TORCHRUN = "python3 -m torch.distributed.run"


def test_torchrun_and_plain_python_form_one_world_of_all_replicas(folder, with_torch):
    site = Site(folder)
    try:
        with site.client() as client:
            two = ["rank 0 of 2 at 0 counts 2", "rank 1 of 2 at 0 counts 2"]
            assert formed(client, TORCHRUN, with_torch, replicas=2) == two
            assert formed(client, "python3", with_torch, replicas=2) == two
            # As on a replica with two GPUs, but for what the user says of processes.
            of_two = f"env PET_NPROC_PER_NODE=2 {TORCHRUN}"
            every = [f"rank {r} of 4 at {r % 2} counts 4" for r in range(4)]
            assert formed(client, of_two, with_torch, replicas=2) == every
    finally:
        site.stop()


# Both are this machine's, and none of the names is anybody's.
ADDRESSES = {"node-a.invalid": "127.0.0.2", "node-b.invalid": "127.0.0.3"}
SPREAD = {"replicas": 2, "constraints": {"spread": True}}


def apart(site, workers, kind: str) -> None:
    """Two nodes, as on two machines."""
    for name, address in ADDRESSES.items():
        workers(kind, name, arguments=("--address", address))
    eventually(lambda: all(site.health(name) == "up" for name in ADDRESSES))


@pytest.mark.parametrize("kind", ["rust", "celery"])
def test_every_rank_is_told_the_addresses_of_nodes_whose_names_do_not_resolve(
    site, workers, kind
):
    apart(site, workers, kind)
    with site.client() as client:
        look = 'echo "$ERA_NODE $RANK $MASTER_ADDR $TF_CONFIG"'
        job = client.submit(["sh", "-c", look], {"cpu": "100m"}, 60, **SPREAD).job
        assert client.wait(job, PATIENCE_S).state == "succeeded"
        told = [line.text.split(maxsplit=3) for line in client.logs(job).items]
        nodes = {int(rank): node for node, rank, *_ in told}
        assert sorted(nodes.values()) == sorted(ADDRESSES)
        hosts = [ADDRESSES[nodes[rank]] for rank in range(2)]
        for _, rank, master, config in told:
            listed = json.loads(config)
            assert master == hosts[0]
            assert [at.split(":")[0] for at in listed["cluster"]["worker"]] == hosts
            assert listed["task"] == {"type": "worker", "index": int(rank)}


def test_torchrun_forms_one_world_across_nodes(site, workers, with_torch):
    apart(site, workers, "rust")
    with site.client() as client:
        two = ["rank 0 of 2 at 0 counts 2", "rank 1 of 2 at 0 counts 2"]
        assert formed(client, TORCHRUN, with_torch, **SPREAD) == two
