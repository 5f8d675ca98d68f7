"""Tasks of somebody else, for a Celery worker that knows nothing of ERA."""

import os
import time

from celery import Celery

app = Celery("plain", broker=os.environ["PLAIN_BROKER"], backend=os.environ["PLAIN_BROKER"])


@app.task(name="plain.where", bind=True)
def where(self, result):
    """What it was called with, and by whom."""
    request = self.request
    return {"output": result["output"], "parent": request.parent_id, "root": request.root_id}


@app.task(name="plain.make")
def make(text, pause_s):
    time.sleep(pause_s)
    return {"output": text}


@app.task(name="plain.join")
def join(results):
    return [result["output"] for result in results]
