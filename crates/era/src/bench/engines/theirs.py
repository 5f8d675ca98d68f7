"""Celery's side of the benchmark: `publish COUNT`, or `worker` with a process for each core."""

import os
import subprocess
import sys
import time

from celery import Celery

app = Celery("bench", broker=os.environ["BROKER"], backend=os.environ["BROKER"])
app.conf.update(
    task_default_queue="eracompute", task_acks_late=True, broker_connection_retry_on_startup=True
)


@app.task(name="bench.run")
def run(command):
    return {"code": subprocess.run(command).returncode}


if sys.argv[1] == "publish":
    count = int(sys.argv[2])
    options = {"queue": "bench-client", "ignore_result": True}
    app.send_task("era.exec", args=[["true"]], **options)
    begun = time.perf_counter()
    for _ in range(count):
        app.send_task("era.exec", args=[["true"]], **options)
    print(count / (time.perf_counter() - begun))
else:
    sys.argv = sys.argv[:1]
    cores = len(os.sched_getaffinity(0))
    app.worker_main(
        ["worker", f"--concurrency={cores}", "--loglevel=ERROR", "-Q", "eracompute"]
    )
