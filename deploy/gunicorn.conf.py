"""How gunicorn serves a public site: `gunicorn -c deploy/gunicorn.conf.py kbx_site.wsgi`.

Read from the environment, like the settings; `.env.example` describes each variable.
"""

import os
from pathlib import Path
from typing import Any

from kbx_site import env, logs

bind = env.text("KBX_BIND", "127.0.0.1:8000")
# Boards are kept in each process, so a process more costs memory; what waits for the database
# waits in a thread.
workers = env.integer("KBX_WEB_WORKERS", (os.cpu_count() or 1) + 1)
worker_class = "gthread"
threads = env.integer("KBX_WEB_THREADS", 4)
timeout = 60  # seconds; the slowest page took 8 s on a cold process (docs/measurements)
graceful_timeout = 30
keepalive = 65  # longer than nginx keeps its connections to us
# A process that grew is replaced now and then; not all at once.
max_requests, max_requests_jitter = 50_000, 10_000
limit_request_line = 8190  # a comparison of five methods has a long address
if Path("/dev/shm").is_dir():  # noqa: S108  a heartbeat file of the worker's own
    worker_tmp_dir = "/dev/shm"  # noqa: S108  as above: memory, where a full disk can't stop it

control_socket_disable = True  # signals do: HUP loads a new release, TERM ends
umask = 0o007  # of a socket: its group may connect, nginx is in it
accesslog = None  # kbx_site.requests writes a line for each request, without addresses
_ours = logs.settings()
_gunicorns = {
    "gunicorn.error": {"level": "INFO", "propagate": True},
    "gunicorn.access": {"level": "WARNING", "propagate": True},
}
logconfig_dict = _ours | {"loggers": _ours["loggers"] | _gunicorns}

# Each process counts into files here; whichever answers /metrics adds them up.
_state = Path(env.text("KBX_STATE_DIR", str(Path(__file__).resolve().parents[1] / "var")))
_counts = Path(os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(_state / "metrics")))


def on_starting(server: Any) -> None:
    """Counters begin anew with the server; a reload (HUP) does not come by here."""
    _counts.mkdir(parents=True, exist_ok=True)
    for file in _counts.glob("*.db"):
        file.unlink()


def child_exit(server: Any, worker: Any) -> None:
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)
