"""A Celery app with our settings and jobs that say what they do: what `Pool` is tried on.

A job writes `<word>.begun` into the folder, waits until `<word>.go` lies there, and
writes `<word>.done`.
"""

import os
import time
from pathlib import Path

from celery import Celery

from kbx_site.celery import configuration

FOLDER = Path(os.environ["TOY_FOLDER"])
app = Celery("toy", set_as_current=True)
app.conf.update(configuration(os.environ["KBX_BROKER_URL"], FOLDER))
app.conf.update(task_default_queue="toy", task_routes={})


@app.task(name="toy.job")
def job(word: str, **message: object) -> None:
    with (FOLDER / f"{word}.begun").open("a") as begun:
        begun.write(f"{os.getpid()}\n")
    while not (FOLDER / f"{word}.go").exists():
        time.sleep(0.02)
    (FOLDER / f"{word}.done").touch()
